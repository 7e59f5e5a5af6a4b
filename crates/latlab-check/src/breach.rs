//! Breaches of the rules, summed by rule, subject and stack.

use super::event::{StackId, priority};
use super::rule::Rule;
use latlab_core::explain::Comm;
use latlab_core::time::Nanos;

/// Breaches of one rule by one thread at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The rule.
    pub rule: Rule,
    /// What breached it, such as a system call.
    pub subject: String,
    /// The user stack of the first.
    pub stack: Option<StackId>,
    /// How often.
    pub count: u64,
    /// The part of the cycle in which they happened, by the marks of the program.
    pub part: Option<String>,
    /// Time of the first from the start of its cycle.
    pub moment: Nanos,
    /// Number of the first cycle with one, from 0.
    pub first: u64,
    /// Number of the last cycle with one.
    pub last: u64,
    /// Time that the longest took; 0 if it is unknown or there is none.
    pub longest: Nanos,
    /// The task of the longest breach: it held the resource that the thread waited for, or woke the
    /// thread.
    pub held: Option<Held>,
}

/// A task that delayed a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its name.
    pub comm: Comm,
    /// Its ID.
    pub tid: u32,
    /// The kernel's priority of it.
    pub prio: i16,
}

impl Held {
    /// Its name, ID and priority.
    pub(super) fn describe(self) -> String {
        format!("{} [{}, {}]", self.comm, self.tid, priority(self.prio))
    }
}

/// Where in the cycles of a thread something happened.
#[derive(Clone, Debug, Default)]
pub(super) struct Moment {
    /// Number of the cycle.
    pub(super) cycle: u64,
    /// Time from the start of the cycle.
    pub(super) offset: Nanos,
    /// The part of the cycle, by the marks of the program.
    pub(super) part: Option<String>,
}

/// The breaches of a thread. Those of a cycle count once it is complete.
#[derive(Debug, Default)]
pub(super) struct Breaches {
    complete: Vec<Breach>,
    /// Breaches of the cycle in progress.
    pending: Vec<Breach>,
    /// Number of breaches that were not kept.
    left_out: u64,
}

/// Largest number of different breaches of a thread, and of breaches of a cycle. Of others, only the
/// first of a rule is kept.
pub(super) const KEPT_BREACHES: usize = 4096;

impl Breaches {
    /// Adds a breach of the cycle in progress.
    pub(super) fn add(
        &mut self,
        (rule, subject): (Rule, String),
        stack: Option<StackId>,
        Moment { cycle, offset, part }: Moment,
        longest: Nanos,
        held: Option<Held>,
    ) {
        if has_room(&self.pending, rule) {
            let (moment, first, last) = (offset, cycle, cycle);
            self.pending.push(Breach {
                rule,
                subject,
                stack,
                count: 1,
                part,
                moment,
                first,
                last,
                longest,
                held,
            });
        } else {
            self.left_out += 1;
        }
    }

    /// The cycle in progress is complete.
    pub(super) fn complete(&mut self) {
        for new in std::mem::take(&mut self.pending) {
            let same = |known: &Breach| {
                (known.rule, known.stack) == (new.rule, new.stack)
                    && (&known.subject, &known.part) == (&new.subject, &new.part)
            };
            match self.complete.iter().position(same) {
                Some(place) => self.complete[place].merge(&new),
                None if has_room(&self.complete, new.rule) => self.complete.push(new),
                None => self.left_out += 1,
            }
        }
    }

    /// Forgets the breaches of the cycle in progress.
    pub(super) fn forget(&mut self) {
        self.pending.clear();
    }

    /// Adds a breach of all cycles.
    pub(super) fn add_whole(
        &mut self,
        (rule, subject): (Rule, String),
        stack: Option<StackId>,
        count: u64,
        cycles: u64,
    ) {
        self.complete.push(Breach {
            rule,
            subject,
            stack,
            count,
            part: None,
            moment: Nanos(0),
            first: 0,
            last: cycles.saturating_sub(1),
            longest: Nanos(0),
            held: None,
        });
    }

    pub(super) fn take(self) -> Vec<Breach> {
        self.complete
    }

    /// Number of breaches that were not kept.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The rules that were breached.
    pub(super) fn rules(&self) -> impl Iterator<Item = Rule> {
        self.complete.iter().map(|breach| breach.rule)
    }
}

/// Whether one more breach of a rule is kept. The verdict depends on which rules were breached.
fn has_room(kept: &[Breach], rule: Rule) -> bool {
    kept.len() < KEPT_BREACHES || kept.iter().all(|breach| breach.rule != rule)
}

impl Breach {
    fn merge(&mut self, other: &Breach) {
        self.count += other.count;
        self.last = other.last;
        if other.longest > self.longest {
            self.longest = other.longest;
            self.held = other.held.or(self.held);
        }
    }
}
