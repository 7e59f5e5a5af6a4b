//! Sections of a path with interrupts or preemption disabled, and the functions that began them.

use super::Off;
use super::trace::Effect;

/// Number of sections of each kind that are kept.
const KEPT: usize = 10;
/// The bits of the preemption counter that disable preemption. The bit above them is the inverted
/// need-resched flag (`include/linux/preempt.h`).
const COUNTED: i64 = 0x7fff_ffff;

/// One section: its function by number, and its time from the start of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawSection {
    pub(super) what: Off,
    pub(super) function: usize,
    pub(super) from: u64,
    pub(super) length: u64,
}

/// The changes of interrupts and preemption along a path. The states at its start are known once a
/// program runs, which has both enabled, or else at the end of the path.
#[derive(Debug, Default)]
pub(super) struct Changes {
    interrupts: Vec<Change>,
    preemption: Vec<Change>,
    count: i64,
    /// The preemption counter at the start of the path, and how many changes are relative to it.
    begin: Option<(i64, usize)>,
}

/// The state of interrupts, or the value of the preemption counter, from `at` on.
#[derive(Clone, Copy, Debug)]
struct Change {
    at: u64,
    function: usize,
    value: i64,
}

const ON: i64 = 0;
const OFF: i64 = 1;

impl Changes {
    /// Notes an interrupt, an exception or a system call: the processor disables interrupts.
    pub(super) fn enter(&mut self, at: u64, function: usize) {
        self.interrupts.push(Change { at, function, value: OFF });
    }

    /// Notes that a program runs: interrupts and preemption are enabled.
    pub(super) fn program(&mut self, at: u64) {
        let enabled = Change { at, function: 0, value: ON };
        if self.interrupts.last().is_none_or(|last| last.value != ON) {
            self.interrupts.push(enabled);
        }
        if self.begin.is_none() {
            self.begin = Some((-self.count, self.preemption.len()));
            self.preemption.push(enabled);
        } else if self.count != 0 {
            self.preemption.push(enabled);
        }
        self.count = 0;
    }

    /// Notes what an instruction of a function does to interrupts or preemption.
    pub(super) fn note(&mut self, effect: &Effect, at: u64, function: usize) {
        match effect {
            Effect::Off(_) => self.interrupts.push(Change { at, function, value: OFF }),
            Effect::On(_) | Effect::Restore(_) | Effect::Leave(_) => {
                self.interrupts.push(Change { at, function, value: ON });
            }
            Effect::Preempt(_, by) => {
                self.count += by;
                self.preemption.push(Change { at, function, value: self.count });
            }
            Effect::Call(_) | Effect::Return(_) => {}
        }
    }

    /// Returns the longest sections of a path of this length, longest first.
    pub(super) fn sections(self, length: u64) -> Vec<RawSection> {
        // Before the first change, interrupts were in the opposite state.
        let first = self.interrupts.first().map_or(ON, |change| OFF - change.value);
        let mut all = sections(Off::Interrupts, &self.interrupts, length, |change| {
            change.map_or(first, |change| change.value) == OFF
        });
        let (begin, relative) = self.begin.unwrap_or((-self.count, self.preemption.len()));
        let mut preemption = self.preemption;
        preemption.iter_mut().take(relative).for_each(|change| change.value += begin);
        all.extend(sections(Off::Preemption, &preemption, length, |change| {
            change.map_or(begin, |change| change.value) & COUNTED != 0
        }));
        all.sort_by_key(|section| (std::cmp::Reverse(section.length), section.from));
        all
    }
}

/// The longest sections between changes to a state that `is_off` and back.
fn sections(
    what: Off,
    changes: &[Change],
    length: u64,
    is_off: impl Fn(Option<&Change>) -> bool,
) -> Vec<RawSection> {
    let mut all = Vec::new();
    let mut open = is_off(None).then_some((0, 0));
    for change in changes {
        match (open, is_off(Some(change))) {
            (None, true) => open = Some((change.at, change.function)),
            (Some((from, function)), false) => {
                all.push(RawSection { what, function, from, length: change.at - from });
                open = None;
            }
            _ => {}
        }
    }
    let last = |(from, function)| RawSection { what, function, from, length: length - from };
    all.extend(open.map(last));
    all.retain(|section| section.length > 0);
    all.sort_by_key(|section| (std::cmp::Reverse(section.length), section.from));
    all.truncate(KEPT);
    all
}
