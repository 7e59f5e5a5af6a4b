//! `vm:PROFILE`: a kernel in QEMU in wall-clock time.

use super::Target;
use crate::engine::{Outcome, Prepared};
use crate::failure::Result;
use crate::lab::{self, GuestTime, Program, choose_accel};
use crate::part::{About, Describe};
use crate::session::{Output, Session};

pub(super) struct Vm;

impl Describe for Vm {
    const ABOUT: About = About {
        name: "vm",
        summary: "vm:PROFILE: a kernel in QEMU in wall-clock time, with KVM if available",
    };
}

impl Target for Vm {
    /// One plan after another: guests that share processors would disturb each other.
    fn run(&self, plans: &[Prepared], session: &mut Session<'_>) -> Vec<Result<Outcome>> {
        session.jobs = 1;
        let target = plans.first().map_or("vm", |plan| &plan.plan().target);
        match choose_accel(target, session) {
            Ok(accel) => lab::run(plans, GuestTime::Wall(accel), session),
            Err(failure) => plans.iter().map(|_| Err(failure.clone())).collect(),
        }
    }

    fn fingerprint(&self, plan: &Prepared, session: &mut Session<'_>) -> Result<String> {
        let accel = choose_accel(&plan.plan().target, session)?;
        lab::fingerprint(plan, GuestTime::Wall(accel), session)
    }

    fn exec(
        &self,
        name: &str,
        program: &Program,
        session: &mut Session<'_>,
        output: &mut Output<'_>,
    ) -> Result<u8> {
        let accel = choose_accel(name, session)?;
        lab::exec(name, program, GuestTime::Wall(accel), session, output)
    }
}
