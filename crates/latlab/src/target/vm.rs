//! `vm:PROFILE`: a kernel in QEMU in wall-clock time.

use super::Target;
use latlab_lab::{self as lab, GuestTime, Program, choose_accel};
use latlab_measure::engine::{Outcome, Prepared};
use latlab_measure::session::{Output, Session};
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};

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
        lab::run(plans, time_of, session)
    }

    fn fingerprint(&self, plan: &Prepared, session: &mut Session<'_>) -> Result<String> {
        lab::fingerprint(plan, time_of(plan, session)?, session)
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

    fn command(
        &self,
        name: &str,
        words: Vec<String>,
        session: &mut Session<'_>,
        output: &mut Output<'_>,
    ) -> Result<u8> {
        let accel = choose_accel(name, session)?;
        lab::command(name, words, GuestTime::Wall(accel), session, output)
    }
}

/// The time of a plan's guest. Its architecture decides whether KVM can run it.
fn time_of(plan: &Prepared, session: &mut Session<'_>) -> Result<GuestTime> {
    choose_accel(&plan.plan().target, session).map(GuestTime::Wall)
}
