//! The `sched_ext` scheduler of SCHED_OTHER tasks as a knob.

use latlab_bpf::Slices;
use latlab_core::mechanism::Knob;
use latlab_core::mechanism::suppress::{SCHED_EXT, SLICES};
use latlab_core::record::Change;
use latlab_sys::guard::GuardError;
use latlab_sys::root::Root;

/// latlab's BPF scheduler, while it is attached. It needs no journal: the kernel returns to its own
/// scheduler when this process ends, however it ends.
#[derive(Debug, Default)]
pub(super) struct Scheduler {
    attached: Option<Slices>,
    change: Option<Change>,
}

/// The scheduler that is attached now, `none` for the kernel's own. None where the kernel has no
/// `sched_ext`.
pub(super) fn current(root: &Root) -> Option<Knob> {
    let state = root.text("sys/kernel/sched_ext/state")?;
    let name = root.text("sys/kernel/sched_ext/root/ops").filter(|_| state.trim() != "disabled");
    Some(Knob {
        name: SCHED_EXT.to_owned(),
        path: "/sys/kernel/sched_ext/root/ops".to_owned(),
        value: name.map_or_else(|| "none".to_owned(), |name| name.trim().to_owned()),
        possible: ["none", SLICES].map(str::to_owned).to_vec(),
    })
}

impl Scheduler {
    /// Replaces the kernel's scheduler.
    pub(super) fn attach(&mut self, reason: &str) -> Result<(), GuardError> {
        let refused = |why| GuardError::Refused(SCHED_EXT.to_owned(), SLICES.to_owned(), why);
        self.attached = Some(Slices::start().map_err(|error| refused(error.to_string()))?);
        self.change = Some(Change {
            knob: SCHED_EXT.to_owned(),
            old: "none".to_owned(),
            new: SLICES.to_owned(),
            reason: reason.to_owned(),
            restored: true,
        });
        Ok(())
    }

    /// Returns SCHED_OTHER tasks to the kernel's scheduler.
    pub(super) fn detach(&mut self) {
        self.attached = None;
    }

    /// Detaches, and returns the change, if there was one.
    pub(super) fn restore(&mut self) -> Option<Change> {
        self.detach();
        self.change.take()
    }
}
