//! The laboratory: a real kernel in QEMU whose time is the number of its instructions.

use super::Target;
use crate::engine::Outcome;
use crate::errand::{Errand, Put};
use crate::failure::{Failure, Result};
use crate::guest::{self, Program, Time};
use crate::registry::About;
use latlab_core::plan::Plan;

pub(super) const ABOUT: About =
    About { name: "lab", summary: "lab:PROFILE: a kernel in QEMU whose time repeats exactly" };

pub(super) struct Lab;

impl Target for Lab {
    fn run(&self, plans: &[Plan], errand: &mut Errand<'_>) -> Vec<Result<Outcome>> {
        guest::run(plans, Time::Instructions, errand)
    }

    fn basis(&self, plan: &Plan, errand: &mut Errand<'_>) -> Result<String> {
        guest::basis(plan, Time::Instructions, errand)
    }

    /// From outside of the guest, unless it is to be traced as any machine is.
    fn explain(&self, plan: &Plan, errand: &mut Errand<'_>) -> Result<Outcome> {
        let explain = plan.explain.clone().unwrap_or_default();
        if explain.traced {
            return self.run(std::slice::from_ref(plan), errand).remove(0);
        }
        if explain.watch.is_some() {
            let why = "from outside only probes and scans are explained: give --traced as well";
            return Err(Failure::Failed(format!("{}: {why}", plan.target)));
        }
        let mut outcome = guest::explain(&Plan { explain: None, ..plan.clone() }, errand)?;
        let above = explain.above.unwrap_or_default();
        let on_time = outcome.record.worst.iter_mut().filter(|sample| sample.latency <= above);
        on_time.for_each(|sample| sample.path = None);
        outcome.record.plan.explain.clone_from(&plan.explain);
        Ok(outcome)
    }

    fn exec(
        &self,
        name: &str,
        program: &Program,
        errand: &mut Errand<'_>,
        put: &mut Put<'_>,
    ) -> Result<u8> {
        guest::exec(name, program, Time::Instructions, errand, put)
    }
}
