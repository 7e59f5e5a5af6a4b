//! Charging: each stretch of a window goes to the first cause that claims it.

use super::stretch::{Phase, Stretch, stretches};
use super::{Line, Task, Window};
use crate::time::Nanos;

/// What is true of the machine for all windows alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Circumstances {
    /// How exactly timers fire: the length of a tick where they only do at ticks, else 1 ns.
    pub timer_resolution: Nanos,
    /// Whether the machine is a virtual one, so that its host may take a CPU away at any moment;
    /// not where time is a count of instructions.
    pub hypervisor: bool,
}

/// Who is to blame: as much of it as is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// The task.
    pub task: Option<Task>,
    /// The interrupt.
    pub line: Option<Line>,
    /// The softirq, by the kernel's number.
    pub softirq: Option<u8>,
    /// Addresses in the kernel, the innermost first.
    pub stack: Vec<u64>,
}

/// A part of a latency, and what it is charged to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The name of the cause.
    pub cause: &'static str,
    /// When it begins, on `CLOCK_MONOTONIC`.
    pub from: Nanos,
    /// When it ends.
    pub to: Nanos,
    /// Who is to blame.
    pub who: Who,
}

/// A latency in parts. The charges do not overlap, and with what is left make up all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// In order of time.
    pub charges: Vec<Charge>,
    /// What no cause claimed.
    pub unexplained: Nanos,
}

/// Says who is to blame for a stretch, if it is this cause at all.
pub type Claim = fn(&Stretch, &Window, &Circumstances) -> Option<Who>;

/// One cause.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// Its name, as users read it.
    pub name: &'static str,
    /// What it claims.
    pub claim: Claim,
}

impl Circumstances {
    /// Whether timers fire when they are due, and not only at ticks.
    pub fn precise(&self) -> bool {
        self.timer_resolution <= Nanos::from_micros(1)
    }
}

impl Charge {
    /// How much of the latency it is.
    pub fn length(&self) -> Nanos {
        self.to - self.from
    }
}

/// Explains a window: of the causes that claim a stretch, the first in the table has it.
/// Neighbours of the same cause that blame the same are one charge.
pub fn explain(window: &Window, circumstances: &Circumstances, causes: &[Cause]) -> Explanation {
    let mut explanation = Explanation::default();
    for stretch in cut_at_tick(stretches(window), window, circumstances) {
        let claims = causes.iter().filter_map(|cause| {
            (cause.claim)(&stretch, window, circumstances).map(|who| (cause.name, who))
        });
        match { claims }.next() {
            Some((cause, who)) => explanation.charge(cause, &stretch, who),
            None => explanation.unexplained = explanation.unexplained + stretch.length(),
        }
    }
    explanation
}

impl Explanation {
    fn charge(&mut self, cause: &'static str, stretch: &Stretch, who: Who) {
        match self.charges.last_mut() {
            Some(last) if last.to == stretch.from && last.cause == cause && last.who == who => {
                last.to = stretch.to;
            }
            _ => self.charges.push(Charge { cause, from: stretch.from, to: stretch.to, who }),
        }
    }
}

/// Cuts where the latest tick that may fire a timer is over: what comes after is not the timer's.
fn cut_at_tick(all: Vec<Stretch>, window: &Window, circumstances: &Circumstances) -> Vec<Stretch> {
    let Nanos(expiry) = window.expiry;
    let tick = Nanos(expiry.saturating_add(circumstances.timer_resolution.0));
    let cut = |stretch: Stretch| {
        let across = stretch.phase == Phase::Due && stretch.from < tick && tick < stretch.to;
        let first = Stretch { to: if across { tick } else { stretch.to }, ..stretch };
        [Some(first), across.then_some(Stretch { from: tick, ..stretch })]
    };
    if circumstances.precise() { all } else { all.into_iter().flat_map(cut).flatten().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::any;
    use proptest::prelude::*;

    fn of_idle(stretch: &Stretch, _: &Window, _: &Circumstances) -> Option<Who> {
        stretch.doing.idle.map(|_| Who::default())
    }

    fn of_interrupt(stretch: &Stretch, _: &Window, _: &Circumstances) -> Option<Who> {
        let (line, _) = stretch.doing.interrupt?;
        Some(Who { line: Some(line), ..Who::default() })
    }

    fn of_tick(stretch: &Stretch, window: &Window, machine: &Circumstances) -> Option<Who> {
        let tick = window.expiry + machine.timer_resolution;
        (stretch.phase == Phase::Due && stretch.to <= tick).then(Who::default)
    }

    const CAUSES: [Cause; 3] = [
        Cause { name: "tick", claim: of_tick },
        Cause { name: "idle", claim: of_idle },
        Cause { name: "interrupt", claim: of_interrupt },
    ];

    #[test]
    fn a_stretch_is_cut_where_the_tick_is_over() {
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
        fn charges_never_overlap_and_with_the_rest_are_the_latency(
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
