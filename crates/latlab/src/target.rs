//! Targets: where a plan is carried out.

mod lab;
mod native;
mod ssh;
mod vm;

use crate::engine::Outcome;
use crate::failure::{Failure, Result};
use crate::guest::{Accel, Program};
use crate::message::Stream;
use crate::registry::About;
use crate::rig::Watch;
use latlab_core::plan::Plan;
use latlab_core::suggest;
use latlab_core::time::Nanos;
use latlab_sys::signal::Signals;

/// Every target, in the order `latlab list targets` shows them.
pub(crate) static TARGETS: &[(About, &dyn Target)] = &[
    (native::ABOUT, &native::Native),
    (lab::ABOUT, &lab::Lab),
    (vm::ABOUT, &vm::Vm),
    (ssh::ABOUT, &ssh::Ssh),
];

/// Carries a plan out on the machine that latlab runs on.
pub(crate) type Here = fn(&Plan, &Signals, &mut dyn Watch) -> Result<Outcome>;

/// Takes what a program on a target writes.
pub(crate) type Put<'a> = dyn FnMut(Stream, &[u8]) -> Result<()> + 'a;

/// How plans are to be carried out; nothing of it changes what comes out.
pub(crate) struct Errand<'a> {
    /// Carries a plan out on this machine.
    pub(crate) here: Here,
    /// The requests to end.
    pub(crate) signals: &'a Signals,
    /// Who looks on.
    pub(crate) watch: &'a mut dyn Watch,
    /// How many guests may run at the same time.
    pub(crate) jobs: usize,
    /// Whether to measure what is known already.
    pub(crate) fresh: bool,
    /// What is to carry out the instructions of a virtual machine, where that matters to the user.
    pub(crate) accel: Option<Accel>,
    /// How long to wait for a target that says nothing; each has its own idea where there is none.
    pub(crate) limit: Option<Nanos>,
}

/// A machine that carries plans out: this one, a guest, a board.
pub(crate) trait Target: Sync {
    /// Carries `plans` out, all for targets of this kind; one outcome for each, in their order.
    fn run(&self, plans: &[Plan], errand: &mut Errand<'_>) -> Vec<Result<Outcome>>;

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
