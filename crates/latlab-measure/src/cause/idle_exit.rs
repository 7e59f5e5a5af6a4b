//! The CPU was idle.

use super::{Cause, is_idle};
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::segment::{Phase, Segment};
use latlab_part::part::{About, Describe};

/// The CPU was in an idle state, or ran the idle task, and had to leave it.
///
/// Recognized by the idle task: from when the task was due to the interrupt that wakes the CPU, and
/// from the wake-up to the switch. Deep idle states have a long exit latency
/// (Documentation/admin-guide/pm/cpuidle.rst; `latency` of each state in sysfs). In a virtual
/// machine this includes the time that the host takes to wake the CPU.
#[derive(Debug, clap::Args)]
pub(super) struct IdleExit;

impl Describe for IdleExit {
    const ABOUT: About =
        About { name: "idle-exit", summary: "the CPU was idle and had to leave its idle state" };
}

impl Cause for IdleExit {
    fn claim(segment: &Segment, window: &Window, _: &Circumstances) -> Option<Culprit> {
        let waits =
            matches!(segment.phase, Phase::Due | Phase::Runnable) && !window.lacks_interrupts;
        (waits && is_idle(segment)).then(Culprit::default)
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn idle_exit_is_charged_before_and_after_interrupt() {
        let window =
            scene(&[(18_000, IDLE, timer_upon(KERNEL)), (22_000, IDLE, EventKind::InterruptEnd)]);
        for machine in [METAL, GUEST] {
            let charges = charged(&window, machine);
            let expected = [("idle-exit", 8_000), ("interrupt", 4_000), ("idle-exit", 8_000)];
            assert_eq!(charges[..3], expected);
        }
    }
}
