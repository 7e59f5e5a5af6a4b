//! This machine, as it is.

use super::{Here, Target};
use crate::engine::Outcome;
use crate::failure::Result;
use crate::registry::About;
use crate::rig::Watch;
use latlab_core::plan::Plan;

pub(super) const ABOUT: About = About { name: "native", summary: "this machine, as it is" };

pub(super) struct Native;

impl Target for Native {
    fn run(&self, plan: &Plan, here: Here, watch: &mut dyn Watch) -> Result<Outcome> {
        here(plan, watch)
    }
}
