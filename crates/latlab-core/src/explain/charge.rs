//! Charging: each segment of a window goes to the first cause that applies to it.

use super::stretch::{Phase, Stretch, segments};
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
pub struct Who {
    /// The task.
    pub task: Option<Task>,
    /// The interrupt.
    pub line: Option<Line>,
    /// The softirq, by its number.
    pub softirq: Option<u8>,
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
    pub who: Who,
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
pub type Claim = fn(&Stretch, &Window, &Circumstances) -> Option<Who>;

/// One cause.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// Its name, as users read it.
    pub name: &'static str,
    /// Decides whether it applies to a segment.
    pub claim: Claim,
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
            (cause.claim)(&segment, window, circumstances).map(|who| (cause.name, who))
        });
        match { claims }.next() {
            Some((cause, who)) => explanation.charge(cause, &segment, who),
            None => explanation.unexplained = explanation.unexplained + segment.length(),
        }
    }
    explanation
}

impl Explanation {
    fn charge(&mut self, cause: &'static str, segment: &Stretch, who: Who) {
        match self.charges.last_mut() {
            Some(last) if last.to == segment.from && last.cause == cause && last.who == who => {
                last.to = segment.to;
            }
            _ => self.charges.push(Charge { cause, from: segment.from, to: segment.to, who }),
        }
    }
}

/// Cuts segments at the last tick that may fire the timer: time after it is not the timer's fault.
fn cut_at_tick(all: Vec<Stretch>, window: &Window, circumstances: &Circumstances) -> Vec<Stretch> {
    let Nanos(expiry) = window.expiry;
    let tick = Nanos(expiry.saturating_add(circumstances.timer_resolution.0));
    let cut = |segment: Stretch| {
        let across = segment.phase == Phase::Due && segment.from < tick && tick < segment.to;
        let first = Stretch { to: if across { tick } else { segment.to }, ..segment };
        [Some(first), across.then_some(Stretch { from: tick, ..segment })]
    };
    if circumstances.precise() { all } else { all.into_iter().flat_map(cut).flatten().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::any;
    use proptest::prelude::*;

    fn idle(segment: &Stretch, _: &Window, _: &Circumstances) -> Option<Who> {
        segment.doing.idle.map(|_| Who::default())
    }

    fn interrupt(segment: &Stretch, _: &Window, _: &Circumstances) -> Option<Who> {
        let (line, _) = segment.doing.interrupt?;
        Some(Who { line: Some(line), ..Who::default() })
    }

    fn tick(segment: &Stretch, window: &Window, machine: &Circumstances) -> Option<Who> {
        let tick = window.expiry + machine.timer_resolution;
        (segment.phase == Phase::Due && segment.to <= tick).then(Who::default)
    }

    const CAUSES: [Cause; 3] = [
        Cause { name: "tick", claim: tick },
        Cause { name: "idle", claim: idle },
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
                prop_assert!(!joined || (pair[0].cause, &pair[0].who) != (pair[1].cause, &pair[1].who));
            }
        }
    }
}
