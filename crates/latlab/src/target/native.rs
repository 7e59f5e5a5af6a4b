//! This machine, as it is.

use super::Target;
use crate::engine::Outcome;
use crate::errand::Errand;
use crate::failure::Result;
use crate::registry::About;
use latlab_core::plan::Plan;

pub(super) const ABOUT: About = About { name: "native", summary: "this machine, as it is" };

pub(super) struct Native;

impl Target for Native {
    /// One after another: two plans at once would disturb each other.
    fn run(&self, plans: &[Plan], errand: &mut Errand<'_>) -> Vec<Result<Outcome>> {
        let carry_out = |(place, plan): (usize, &Plan)| {
            errand.go_on(&plan.target)?;
            let outcome = (errand.here)(plan, errand.signals, errand.watch);
            errand.came(place, &outcome);
            if plans.len() > 1 {
                errand.watch.done(place + 1, plans.len());
            }
            outcome
        };
        plans.iter().enumerate().map(carry_out).collect()
    }
}
