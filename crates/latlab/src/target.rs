//! Targets: where a plan is carried out.

mod lab;
mod native;
mod ssh;
mod vm;

use crate::engine::Outcome;
use crate::errand::{Errand, Put};
use crate::failure::{Failure, Result};
use crate::guest::{self, Program};
use crate::registry::About;
use latlab_core::plan::Plan;
use latlab_core::suggest;

/// Every target, in the order `latlab list targets` shows them.
pub(crate) static TARGETS: &[(About, &dyn Target)] = &[
    (native::ABOUT, &native::Native),
    (lab::ABOUT, &lab::Lab),
    (vm::ABOUT, &vm::Vm),
    (ssh::ABOUT, &ssh::Ssh),
];

/// A machine that carries plans out: this one, a guest, a board.
pub(crate) trait Target: Sync {
    /// Carries `plans` out, all for targets of this kind; one outcome for each, in their order.
    fn run(&self, plans: &[Plan], errand: &mut Errand<'_>) -> Vec<Result<Outcome>>;

    /// The digest of what a record of `plan` would be measured with now: one of the same plan with
    /// another is not taken for it. Of machines that are as they are, this program.
    fn basis(&self, _plan: &Plan, _errand: &mut Errand<'_>) -> Result<String> {
        guest::this_program()
    }

    /// Carries `plan` out and finds out what made its wake-ups late: by the means of any machine,
    /// unless it has better ones.
    fn explain(&self, plan: &Plan, errand: &mut Errand<'_>) -> Result<Outcome> {
        let outcome = self.run(std::slice::from_ref(plan), errand).pop();
        outcome.expect("one plan has one outcome")
    }

    /// Starts a program on the target `name`; `put` gets what it writes. Its exit code.
    fn exec(
        &self,
        name: &str,
        _program: &Program,
        _errand: &mut Errand<'_>,
        _put: &mut Put<'_>,
    ) -> Result<u8> {
        Err(Failure::Unsupported(format!("{name} can't start programs: lab: and vm: targets can")))
    }
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
