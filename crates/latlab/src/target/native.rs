//! `native`: this machine.

use super::Target;
use crate::engine::{Outcome, Prepared};
use crate::failure::Result;
use crate::part::{About, Describe};
use crate::session::Session;
use latlab_core::machine::Machine;
use latlab_sys::machine;
use latlab_sys::root::Root;

pub(super) struct Native;

impl Describe for Native {
    const ABOUT: About = About { name: "native", summary: "this machine" };
}

impl Target for Native {
    /// One plan after another: two at once would disturb each other.
    fn run(&self, plans: &[Prepared], session: &mut Session<'_>) -> Vec<Result<Outcome>> {
        let carry_out = |(index, plan): (usize, &Prepared)| {
            session.check_not_ended(&plan.plan().target)?;
            let outcome = (session.here)(plan, session.signals, session.watch);
            session.finished(index, &outcome);
            if plans.len() > 1 {
                session.watch.done(index + 1, plans.len());
            }
            outcome
        };
        plans.iter().enumerate().map(carry_out).collect()
    }

    fn running(&self, _name: &str, _session: &mut Session<'_>) -> Result<Option<Machine>> {
        Ok(Some(machine::read(&Root::default())))
    }
}
