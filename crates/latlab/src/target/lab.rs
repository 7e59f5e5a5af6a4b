//! The laboratory: a real kernel in QEMU whose time is the number of its instructions.

use super::Target;
use crate::engine::Outcome;
use crate::errand::{Errand, Put};
use crate::failure::Result;
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

    fn explain(&self, plan: &Plan, errand: &mut Errand<'_>) -> Result<Outcome> {
        guest::explain(plan, errand)
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
