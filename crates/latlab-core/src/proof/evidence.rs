//! What a record shows about one cause: its culprits, and the machine.

use crate::machine::Machine;
use crate::record::Record;
use crate::record::explained::Share;
use crate::time::Nanos;

/// A record, and one of the causes in it.
#[derive(Clone, Copy)]
pub(super) struct Evidence<'a> {
    pub(super) record: &'a Record,
    pub(super) cause: &'a str,
}

/// Culprits with less than this part of a cause's time do not count.
const SMALL: u64 = 20;

impl<'a> Evidence<'a> {
    pub(super) fn machine(&self) -> &'a Machine {
        &self.record.machine
    }

    /// Whether a task whose name begins so is a culprit.
    pub(super) fn blames(&self, task: &str) -> bool {
        self.large_shares().any(|share| share.culprit.starts_with(task))
    }

    /// Whether a kernel function with such a name is on the stack of a culprit.
    pub(super) fn passes_through(&self, functions: &[&str]) -> bool {
        let is_one = |name: &str| functions.iter().any(|function| name.contains(function));
        let explained = self.record.explained.iter();
        let stacks = explained.flat_map(|explained| &explained.stacks);
        let of_cause = stacks.filter(|stack| {
            stack.stack.split(';').next() == Some(self.cause) && self.is_large(stack.ns)
        });
        let mut frames = of_cause.flat_map(|stack| stack.stack.split(';').skip(2));
        frames.any(is_one)
            || self.large_shares().any(|share| share.function.as_deref().is_some_and(is_one))
    }

    fn shares(&self) -> impl Iterator<Item = &'a Share> {
        let explained = self.record.explained.iter();
        let cause = self.cause;
        explained.flat_map(|explained| &explained.causes).filter(move |share| share.cause == cause)
    }

    fn large_shares(&self) -> impl Iterator<Item = &'a Share> {
        let all = self.all();
        self.shares().filter(move |share| is_large(share.total, all))
    }

    /// The time of the cause.
    fn all(&self) -> Nanos {
        self.shares().fold(Nanos(0), |sum, share| sum + share.total)
    }

    fn is_large(&self, time: Nanos) -> bool {
        is_large(time, self.all())
    }
}

fn is_large(time: Nanos, of: Nanos) -> bool {
    time.0 >= of.0 / SMALL
}
