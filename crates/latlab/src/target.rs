//! Targets: where a plan is carried out.

mod native;

use crate::engine::Outcome;
use crate::failure::{Failure, Result};
use crate::registry::About;
use crate::rig::Watch;
use latlab_core::plan::Plan;
use latlab_core::suggest;

/// Every target, in the order `latlab list targets` shows them.
pub(crate) static TARGETS: &[(About, &dyn Target)] = &[(native::ABOUT, &native::Native)];

/// Carries a plan out on the machine that latlab runs on.
pub(crate) type Here = fn(&Plan, &mut dyn Watch) -> Result<Outcome>;

/// A machine that carries plans out: this one, a guest, a board.
pub(crate) trait Target: Sync {
    /// Carries `plan` out; `here` does so on this machine.
    fn run(&self, plan: &Plan, here: Here, watch: &mut dyn Watch) -> Result<Outcome>;
}

/// The target that a plan names.
pub(crate) fn find(name: &str) -> Result<&'static dyn Target> {
    let kind = name.split(':').next().unwrap_or_default();
    TARGETS.iter().find(|(about, _)| about.name == kind).map(|(_, target)| *target).ok_or_else(
        || {
            let names: Vec<&str> = TARGETS.iter().map(|(about, _)| about.name).collect();
            let hint = suggest::hint(kind, &names);
            Failure::Failed(format!("there is no target '{name}': {hint}"))
        },
    )
}
