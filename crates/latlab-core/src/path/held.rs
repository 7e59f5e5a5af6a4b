//! When interrupts and preemption were off along a path, and which function began it.

use super::Off;
use super::trace::Event;

/// How many stretches of each kind are kept.
const KEPT: usize = 10;
/// The bits of the preemption counter that count: the one above them says that nobody waits
/// (`include/linux/preempt.h`).
const COUNTED: i64 = 0x7fff_ffff;

/// One stretch: by number of the function, from the path's begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) what: Off,
    pub(super) function: usize,
    pub(super) from: u64,
    pub(super) length: u64,
}

/// The changes seen along a path. What was on or off when it began is known when a program first
/// runs, with everything on; at the path's end at the latest.
#[derive(Debug, Default)]
pub(super) struct Holds {
    interrupts: Vec<Change>,
    preemption: Vec<Change>,
    count: i64,
    /// The counter at the path's begin, and how many changes are relative to it.
    begin: Option<(i64, usize)>,
}

/// From `at` on, something is on or off, or the counter has this value.
#[derive(Clone, Copy, Debug)]
struct Change {
    at: u64,
    function: usize,
    value: i64,
}

const ON: i64 = 0;
const OFF: i64 = 1;

impl Holds {
    /// An interrupt, an exception or a system call: the processor turns interrupts off.
    pub(super) fn enter(&mut self, at: u64, function: usize) {
        self.interrupts.push(Change { at, function, value: OFF });
    }

    /// A program runs: nothing is held off.
    pub(super) fn program(&mut self, at: u64) {
        let free = Change { at, function: 0, value: ON };
        if self.interrupts.last().is_none_or(|last| last.value != ON) {
            self.interrupts.push(free);
        }
        if self.begin.is_none() {
            self.begin = Some((-self.count, self.preemption.len()));
            self.preemption.push(free);
        } else if self.count != 0 {
            self.preemption.push(free);
        }
        self.count = 0;
    }

    /// What a function does with them.
    pub(super) fn hear(&mut self, event: &Event, at: u64, function: usize) {
        match event {
            Event::Off(_) => self.interrupts.push(Change { at, function, value: OFF }),
            Event::On(_) | Event::Restore(_) | Event::Leave(_) => {
                self.interrupts.push(Change { at, function, value: ON });
            }
            Event::Preempt(_, by) => {
                self.count += by;
                self.preemption.push(Change { at, function, value: self.count });
            }
            Event::Call(_) | Event::Return(_) => {}
        }
    }

    /// All stretches of a path of this length, the longest first.
    pub(super) fn end(self, length: u64) -> Vec<Hold> {
        // What turns them on first had found them off, and the other way round.
        let first = self.interrupts.first().map_or(ON, |change| OFF - change.value);
        let mut holds = stretches(Off::Interrupts, &self.interrupts, length, |change| {
            change.map_or(first, |change| change.value) == OFF
        });
        let (begin, relative) = self.begin.unwrap_or((-self.count, self.preemption.len()));
        let mut preemption = self.preemption;
        preemption.iter_mut().take(relative).for_each(|change| change.value += begin);
        holds.extend(stretches(Off::Preemption, &preemption, length, |change| {
            change.map_or(begin, |change| change.value) & COUNTED != 0
        }));
        holds.sort_by_key(|hold| (std::cmp::Reverse(hold.length), hold.from));
        holds
    }
}

/// The longest stretches in which `is_off` says yes.
fn stretches(
    what: Off,
    changes: &[Change],
    length: u64,
    is_off: impl Fn(Option<&Change>) -> bool,
) -> Vec<Hold> {
    let mut holds = Vec::new();
    let mut open = is_off(None).then_some((0, 0));
    for change in changes {
        match (open, is_off(Some(change))) {
            (None, true) => open = Some((change.at, change.function)),
            (Some((from, function)), false) => {
                holds.push(Hold { what, function, from, length: change.at - from });
                open = None;
            }
            _ => {}
        }
    }
    holds.extend(open.map(|(from, function)| Hold { what, function, from, length: length - from }));
    holds.retain(|hold| hold.length > 0);
    holds.sort_by_key(|hold| (std::cmp::Reverse(hold.length), hold.from));
    holds.truncate(KEPT);
    holds
}
