//! The scheduler of ordinary tasks as a knob: none but the kernel's own, or one of `sched_ext`.

use latlab_bpf::Slices;
use latlab_core::mechanism::Knob;
use latlab_core::mechanism::suppress::{SCHED_EXT, SLICES};
use latlab_core::record::Change;
use latlab_sys::guard::GuardError;
use latlab_sys::root::Root;

/// Our scheduler, while it is at work. It needs no journal: the kernel takes its own again when this
/// process has ended, however it ends.
#[derive(Debug, Default)]
pub(super) struct Scheduler {
    ours: Option<Slices>,
    change: Option<Change>,
}

/// Which scheduler is at work; nothing where the kernel has no `sched_ext`.
pub(super) fn standing(root: &Root) -> Option<Knob> {
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
    /// Has ours take over from the kernel's own.
    pub(super) fn take_over(&mut self, because: &str) -> Result<(), GuardError> {
        let refused = |why| GuardError::Refused(SCHED_EXT.to_owned(), SLICES.to_owned(), why);
        self.ours = Some(Slices::start().map_err(|error| refused(error.to_string()))?);
        self.change = Some(Change {
            knob: SCHED_EXT.to_owned(),
            old: "none".to_owned(),
            new: SLICES.to_owned(),
            reason: because.to_owned(),
            restored: true,
        });
        Ok(())
    }

    /// Gives ordinary tasks back to the kernel's own.
    pub(super) fn give_back(&mut self) {
        self.ours = None;
    }

    /// Gives back, and says what was changed.
    pub(super) fn end(&mut self) -> Option<Change> {
        self.give_back();
        self.change.take()
    }
}
