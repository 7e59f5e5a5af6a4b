//! A virtual machine: a kernel in QEMU in the time on the wall.

use super::Target;
use crate::engine::Outcome;
use crate::errand::{Errand, Put};
use crate::failure::Result;
use crate::guest::{self, Accel, Program, Time};
use crate::registry::About;
use latlab_core::plan::Plan;

pub(super) const ABOUT: About = About {
    name: "vm",
    summary: "vm:PROFILE: a kernel in QEMU in wall time, on KVM where it works",
};

pub(super) struct Vm;

impl Target for Vm {
    /// One after another: guests that share processors would measure each other.
    fn run(&self, plans: &[Plan], errand: &mut Errand<'_>) -> Vec<Result<Outcome>> {
        errand.jobs = 1;
        let target = plans.first().map_or("vm", |plan| &plan.target);
        match Accel::choose(target, errand) {
            Ok(accel) => guest::run(plans, Time::Wall(accel), errand),
            Err(failure) => plans.iter().map(|_| Err(failure.clone())).collect(),
        }
    }

    fn basis(&self, plan: &Plan, errand: &mut Errand<'_>) -> Result<String> {
        let accel = Accel::choose(&plan.target, errand)?;
        guest::basis(plan, Time::Wall(accel), errand)
    }

    fn exec(
        &self,
        name: &str,
        program: &Program,
        errand: &mut Errand<'_>,
        put: &mut Put<'_>,
    ) -> Result<u8> {
        let accel = Accel::choose(name, errand)?;
        guest::exec(name, program, Time::Wall(accel), errand, put)
    }
}
