//! Breaches of the rules, summed by rule, subject and stack.

use super::event::StackId;
use super::rule::Rule;
use crate::explain::Comm;
use crate::time::Nanos;

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
    /// Time of the first from the start of its cycle.
    pub moment: Nanos,
    /// Number of the first cycle with one, from 0.
    pub first: u64,
    /// Number of the last cycle with one.
    pub last: u64,
    /// Time that the longest took; 0 if it is unknown or there is none.
    pub longest: Nanos,
    /// The task that held what the thread waited for, or woke it, in the longest.
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

/// Where in the cycles of a thread something happened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moment {
    /// Number of the cycle.
    pub(super) cycle: u64,
    /// Time from the start of the cycle.
    pub(super) offset: Nanos,
}

/// The breaches of a thread.
#[derive(Debug, Default)]
pub(super) struct Breaches(Vec<Breach>);

/// Largest number of different breaches of a thread. Others are not counted.
const MOST: usize = 4096;

impl Breaches {
    pub(super) fn add(
        &mut self,
        (rule, subject): (Rule, String),
        stack: Option<StackId>,
        moment: Moment,
        took: Nanos,
        held: Option<Held>,
    ) {
        let same = |b: &&mut Breach| b.rule == rule && b.subject == subject && b.stack == stack;
        if let Some(breach) = self.0.iter_mut().find(same) {
            breach.count += 1;
            breach.last = moment.cycle;
            if took > breach.longest {
                breach.longest = took;
                breach.held = held.or(breach.held);
            }
        } else if self.0.len() < MOST {
            let (first, last) = (moment.cycle, moment.cycle);
            self.0.push(Breach {
                rule,
                subject,
                stack,
                count: 1,
                moment: moment.offset,
                first,
                last,
                longest: took,
                held,
            });
        }
    }

    pub(super) fn take(self) -> Vec<Breach> {
        self.0
    }
}

impl Breaches {
    /// Adds a breach of all cycles.
    pub(super) fn add_whole(
        &mut self,
        (rule, subject): (Rule, String),
        stack: Option<StackId>,
        count: u64,
        cycles: u64,
    ) {
        self.0.push(Breach {
            rule,
            subject,
            stack,
            count,
            moment: Nanos(0),
            first: 0,
            last: cycles.saturating_sub(1),
            longest: Nanos(0),
            held: None,
        });
    }
}
