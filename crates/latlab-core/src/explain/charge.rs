//! Charging: each segment of a window goes to the first cause that applies to it.

use super::lock::{LockWait, Waited};
use super::segment::{Phase, Segment, segments};
use super::stop::StopKind;
use super::{Line, Task, Window};
use crate::time::Nanos;

/// Properties of the machine that hold for all windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Circumstances {
    /// Resolution of timers: the length of a tick where they fire at ticks only, else 1 ns.
    pub timer_resolution: Nanos,
    /// Whether the machine is a virtual one whose host may preempt a CPU at any moment. In
    /// instruction time this can't happen.
    pub hypervisor: bool,
}

/// The culprit of a charge, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Culprit {
    /// The task.
    pub task: Option<Task>,
    /// The task that had the CPU while `task` waited for it.
    pub behind: Option<Task>,
    /// The interrupt.
    pub line: Option<Line>,
    /// The task that asked for the function call of the interrupt, and its CPU.
    pub sender: Option<(Task, u32)>,
    /// The softirq, by its number.
    pub softirq: Option<u8>,
    /// The lock that the task waited for, with its owner.
    pub lock: Option<LockWait>,
    /// The CPU quota that was used up; empty where it is not known.
    pub quota: Option<String>,
    /// What stopped the task, by `task`.
    pub stop: Option<StopKind>,
    /// Kernel stack, innermost function first.
    pub stack: Vec<u64>,
}

/// A part of a latency that is charged to a cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The name of the cause.
    pub cause: &'static str,
    /// When it begins, on `CLOCK_MONOTONIC`.
    pub from: Nanos,
    /// When it ends.
    pub to: Nanos,
    /// The culprit.
    pub culprit: Culprit,
}

/// The charges of a latency. They do not overlap, and with the unexplained time they add up to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The charges in order of time.
    pub charges: Vec<Charge>,
    /// The time that is charged to no cause.
    pub unexplained: Nanos,
}

/// Returns the culprit of a segment, or none if the cause does not apply to it.
pub type CauseRule = fn(&Segment, &Window, &Circumstances) -> Option<Culprit>;

/// One cause.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// Its name, as users read it.
    pub name: &'static str,
    /// Decides whether it applies to a segment.
    pub claim: CauseRule,
}

impl Culprit {
    /// The culprit of a wait for a lock.
    pub fn of_lock(Waited { wait, callers, .. }: Waited) -> Culprit {
        Culprit { lock: Some(wait), stack: callers, ..Culprit::default() }
    }
}

impl Circumstances {
    /// Whether timers fire when they are due, not only at ticks.
    pub fn precise(&self) -> bool {
        self.timer_resolution <= Nanos::from_micros(1)
    }
}

impl Charge {
    /// Returns its length.
    pub fn length(&self) -> Nanos {
        self.to - self.from
    }
}

/// Explains a window. Each segment is charged to the first cause in the table that applies to it.
/// Adjacent segments with the same cause and culprit are one charge.
pub fn explain(window: &Window, circumstances: &Circumstances, causes: &[Cause]) -> Explanation {
    let mut explanation = Explanation::default();
    for segment in cut_at_tick(segments(window), window, circumstances) {
        let claims = causes.iter().filter_map(|cause| {
            (cause.claim)(&segment, window, circumstances).map(|culprit| (cause.name, culprit))
        });
        match { claims }.next() {
            Some((cause, culprit)) => explanation.charge(cause, &segment, culprit),
            None => explanation.unexplained = explanation.unexplained + segment.length(),
        }
    }
    explanation
}

impl Explanation {
    /// Returns the explained latency: charges and unexplained time.
    pub fn latency(&self) -> Nanos {
        self.charges.iter().fold(self.unexplained, |sum, charge| sum + charge.length())
    }

    fn charge(&mut self, cause: &'static str, segment: &Segment, culprit: Culprit) {
        match self.charges.last_mut() {
            Some(last)
                if last.to == segment.from && last.cause == cause && last.culprit == culprit =>
            {
                last.to = segment.to;
            }
            _ => self.charges.push(Charge { cause, from: segment.from, to: segment.to, culprit }),
        }
    }
}

/// Cuts segments at the last tick that may fire the timer: time after it is not the timer's fault.
fn cut_at_tick(all: Vec<Segment>, window: &Window, circumstances: &Circumstances) -> Vec<Segment> {
    let Nanos(expiry) = window.expiry;
    let tick = Nanos(expiry.saturating_add(circumstances.timer_resolution.0));
    let cut = |segment: Segment| {
        let across = segment.phase == Phase::Due && segment.from < tick && tick < segment.to;
        let first = Segment { to: if across { tick } else { segment.to }, ..segment };
        [Some(first), across.then_some(Segment { from: tick, ..segment })]
    };
    if circumstances.precise() { all } else { all.into_iter().flat_map(cut).flatten().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::any;
    use proptest::prelude::*;

    fn softirq(segment: &Segment, _: &Window, _: &Circumstances) -> Option<Culprit> {
        segment.activity.softirq.map(|_| Culprit::default())
    }

    fn interrupt(segment: &Segment, _: &Window, _: &Circumstances) -> Option<Culprit> {
        let (line, _) = segment.activity.interrupt?;
        Some(Culprit { line: Some(line), ..Culprit::default() })
    }

    fn tick(segment: &Segment, window: &Window, machine: &Circumstances) -> Option<Culprit> {
        let tick = window.expiry + machine.timer_resolution;
        (segment.phase == Phase::Due && segment.to <= tick).then(Culprit::default)
    }

    const CAUSES: [Cause; 3] = [
        Cause { name: "tick", claim: tick },
        Cause { name: "softirq", claim: softirq },
        Cause { name: "interrupt", claim: interrupt },
    ];

    #[test]
    fn segment_is_cut_at_the_last_tick() {
        let window = Window {
            waking: Nanos(5_000_000),
            switched: Nanos(5_000_000),
            ran: Nanos(5_000_000),
            ..Window::default()
        };
        let coarse = Circumstances { timer_resolution: Nanos(4_000_000), hypervisor: false };
        let explained = explain(&window, &coarse, &CAUSES);
        assert_eq!(explained.charges.len(), 1);
        assert_eq!(explained.charges[0].length(), Nanos(4_000_000));
        assert_eq!(explained.unexplained, Nanos(1_000_000));
    }

    proptest! {
        #[test]
        fn charges_never_overlap_and_add_up_to_the_latency(
            window in any::window(),
            resolution in 0u64..2_000,
        ) {
            let circumstances =
                Circumstances { timer_resolution: Nanos(resolution), hypervisor: false };
            let explained = explain(&window, &circumstances, &CAUSES);
            let (mut reached, mut sum) = (window.due, explained.unexplained);
            for charge in &explained.charges {
                prop_assert!(charge.from >= reached && charge.to > charge.from);
                (reached, sum) = (charge.to, sum + charge.length());
            }
            prop_assert!(reached <= window.ran);
            prop_assert_eq!(sum, window.latency());
            for pair in explained.charges.windows(2) {
                let joined = pair[0].to == pair[1].from;
                prop_assert!(!joined || (pair[0].cause, &pair[0].culprit) != (pair[1].cause, &pair[1].culprit));
            }
        }
    }
}
