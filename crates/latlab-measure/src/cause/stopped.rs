//! The task was stopped.

use super::Cause;
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::segment::{Phase, Segment};
use latlab_part::part::{About, Describe};

/// The task was stopped: by a signal (SIGSTOP, or one of a terminal), by a tracer such as a debugger,
/// or by the freezer of its control group. It could not run until another task let it go on.
///
/// Recognized by the state in which it was switched out, whatever its CPU did meanwhile. A task that
/// was runnable first waits for the CPU, as ever, to be stopped there. One that slept until a time,
/// in `clock_nanosleep(2)` or nanosleep(2) of `CLOCK_MONOTONIC` on x86-64, is late from that time on; any
/// other from when it was stopped. Who did it is the last sender of such a signal to the process
/// (`signal:signal_generate`), the tracer, or the last task that froze a control group of version 2
/// (`cgroup:cgroup_freeze`); signal(7), ptrace(2), Documentation/admin-guide/cgroup-v2.rst.
#[derive(Debug, clap::Args)]
pub(super) struct Stopped;

impl Describe for Stopped {
    const ABOUT: About = About {
        name: "stopped",
        summary: "stopped by a signal, a tracer or a freezer; names who did it",
    };
}

impl Cause for Stopped {
    fn claim(segment: &Segment, window: &Window, _: &Circumstances) -> Option<Culprit> {
        let stop = window.stop.filter(|_| segment.phase == Phase::Stopped)?;
        Some(Culprit { task: stop.by, stop: Some(stop.kind), ..Culprit::default() })
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;
    use latlab_core::explain::stop::{Stop, StopKind};

    /// Stopped since a moment, until it is woken at 20 000.
    fn stopped(since: u64) -> Window {
        let mut window = scene(&[
            (9_000, URGENT, EventKind::SoftirqEnd),
            (12_000, URGENT, timer_upon(KERNEL)),
            (12_500, URGENT, EventKind::InterruptEnd),
        ]);
        let by = Some(task(PEER));
        window.stop = Some(Stop { kind: StopKind::Signal, since: Nanos(since), by });
        window
    }

    #[test]
    fn stop_is_charged_whatever_the_cpu_did_meanwhile() {
        for machine in [METAL, GUEST] {
            let charges = charged(&stopped(10_000), machine);
            let expected = [("stopped", 10_000), ("higher-priority", 10_000), ("dispatch", 1_000)];
            assert_eq!(charges, expected);
        }
        let culprit = blamed(&stopped(10_000), METAL, "stopped");
        assert_eq!((culprit.task, culprit.stop), (Some(task(PEER)), Some(StopKind::Signal)));
    }

    /// Steal time that is counted at ticks has no place in the window.
    #[test]
    fn stolen_time_does_not_explain_a_stop() {
        let window = Window { stolen: Nanos(15_000), ..stopped(10_000) };
        assert_eq!(charged(&window, GUEST)[0], ("stopped", 10_000));
    }

    /// A sample of a probe whose sleep ended before the stop.
    #[test]
    fn time_before_the_stop_is_not_charged_to_it() {
        let window = stopped(14_000);
        assert_eq!(blamed(&window, METAL, "stopped").stop, Some(StopKind::Signal));
        assert!(charged(&window, METAL).contains(&("stopped", 6_000)));
        let ended = Stop { since: Nanos(25_000), ..window.stop.expect("it is stopped") };
        let late = Window { stop: Some(ended), ..window };
        assert!(charged(&late, METAL).iter().all(|(cause, _)| *cause != "stopped"));
    }
}
