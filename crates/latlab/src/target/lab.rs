//! `lab:PROFILE`: a kernel in QEMU whose clock counts instructions.

use super::Target;
use crate::engine::{Outcome, Prepared};
use crate::failure::{Failure, Result};
use crate::lab::{self, GuestTime, Program};
use crate::part::{About, Describe};
use crate::session::{Output, Session};

pub(super) struct Lab;

impl Describe for Lab {
    const ABOUT: About = About {
        name: "lab",
        summary: "lab:PROFILE: a kernel in QEMU in instruction time, which repeats exactly",
    };
}

impl Target for Lab {
    fn run(&self, plans: &[Prepared], session: &mut Session<'_>) -> Vec<Result<Outcome>> {
        lab::run(plans, |_, _| Ok(GuestTime::Instructions), session)
    }

    fn fingerprint(&self, plan: &Prepared, session: &mut Session<'_>) -> Result<String> {
        lab::fingerprint(plan, GuestTime::Instructions, session)
    }

    /// With QEMU's plugin, unless the plan asks for the kernel's own tracing.
    fn explain(&self, plan: &Prepared, session: &mut Session<'_>) -> Result<Outcome> {
        let explain = plan.plan().explain.clone().unwrap_or_default();
        if explain.traced {
            return self.run(std::slice::from_ref(plan), session).remove(0);
        }
        if explain.watch.is_some() {
            let why = "without --traced only probes and scans are explained: add --traced";
            return Err(Failure::Failed(format!("{}: {why}", plan.plan().target)));
        }
        let mut outcome = lab::explain(&plan.unexplained(), session)?;
        let above = explain.above.unwrap_or_default();
        let on_time = outcome.record.worst.iter_mut().filter(|sample| sample.latency <= above);
        on_time.for_each(|sample| sample.path = None);
        outcome.record.plan.explain.clone_from(&plan.plan().explain);
        Ok(outcome)
    }

    fn exec(
        &self,
        name: &str,
        program: &Program,
        session: &mut Session<'_>,
        output: &mut Output<'_>,
    ) -> Result<u8> {
        lab::exec(name, program, GuestTime::Instructions, session, output)
    }
}
