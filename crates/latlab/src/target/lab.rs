//! `lab:PROFILE`: a kernel in QEMU whose clock counts instructions.

use super::Target;
use latlab_core::explain::verify::verify;
use latlab_lab::{self as lab, GuestTime, Program};
use latlab_measure::engine::{Outcome, Prepared};
use latlab_measure::session::{Output, Session};
use latlab_part::failure::{Failure, Result};
use latlab_part::part::{About, Describe};

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
        if explain.verify {
            return verified(lab::explain(plan, session)?);
        }
        if explain.traced {
            return self.run(std::slice::from_ref(plan), session).remove(0);
        }
        if explain.watch.is_some() {
            let why = "without --traced only probes and scans are explained: add --traced";
            return Err(Failure::failed(format!("{}: {why}", plan.plan().target)));
        }
        lab::explain(plan, session)
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

    fn command(
        &self,
        name: &str,
        words: Vec<String>,
        session: &mut Session<'_>,
        output: &mut Output<'_>,
    ) -> Result<u8> {
        lab::command(name, words, GuestTime::Instructions, session, output)
    }
}

/// The outcome of a run that the recorder and the plugin have explained: a failure where they disagree.
fn verified(mut outcome: Outcome) -> Result<Outcome> {
    let (count, disagreements) = verify(&outcome.record);
    if count == 0 {
        let why = "no wake-up was explained, so nothing was compared: lower --above";
        return Err(Failure::failed(format!("{}: {why}", outcome.record.plan.target)));
    }
    if !disagreements.is_empty() {
        let lines: Vec<String> = disagreements.iter().map(ToString::to_string).collect();
        let why = format!("the recorder and the plugin disagree: {}", lines.join("; "));
        outcome
            .verdict
            .get_or_insert(Failure::failed(format!("{}: {why}", outcome.record.plan.target)));
    }
    Ok(outcome)
}
