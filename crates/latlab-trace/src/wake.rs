//! Tasks that are woken and have not run yet.

use crate::clock::Expiry;
use latlab_core::explain::Task;
use latlab_core::explain::queue::Move;
use latlab_core::explain::stop::{Stop, StopKind};
use latlab_core::time::Nanos;
use std::collections::HashMap;

/// A task that goes to sleep may be woken this long before it is switched out: the waker does not wait for that.
const BEFORE_SLEEP: Nanos = Nanos::from_micros(10);

/// A wake-up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wake {
    pub(crate) due: Nanos,
    pub(crate) expiry: Nanos,
    pub(crate) waking: Nanos,
    pub(crate) waker: Task,
    pub(crate) waker_cpu: u32,
    /// The CPU on whose run queue it is, as far as it is known.
    pub(crate) queue: Option<u32>,
    pub(crate) moves: Vec<Move>,
    pub(crate) stop: Option<Stop>,
    /// The stack of its waking, innermost function first.
    pub(crate) stack: Vec<u64>,
}

/// Wake-ups by thread id, and when other threads went to sleep.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    pending: HashMap<u32, Wake>,
    asleep: HashMap<u32, Option<Stop>>,
}

impl Wakes {
    /// A task is woken by the current task of this CPU. `expiry` is that of the timer that wakes it.
    pub(crate) fn wake(
        &mut self,
        task: Task,
        (waker, cpu): (Task, u32),
        at: Nanos,
        expiry: Option<Expiry>,
    ) {
        let stop = self.asleep.get(&task.pid).copied().flatten();
        let expiry =
            expiry.filter(|expiry| expiry.due < at).unwrap_or(Expiry { due: at, expiry: at });
        let (due, expiry) = match stop {
            Some(stop) => (stop.since, stop.since),
            None => (expiry.due, expiry.expiry.min(at)),
        };
        let wake = Wake { due, expiry, waking: at, waker, waker_cpu: cpu, stop, ..Wake::default() };
        self.pending.insert(task.pid, wake);
    }

    /// The wake-up of a task, if it is pending.
    pub(crate) fn pending(&mut self, pid: u32) -> Option<&mut Wake> {
        self.pending.get_mut(&pid)
    }

    /// A task is switched out in this state.
    pub(crate) fn leave(&mut self, pid: u32, state: &str, at: Nanos) {
        if state.starts_with('R') {
            // It had not slept.
            self.pending.remove(&pid);
            return;
        }
        if self.pending.get(&pid).is_some_and(|wake| at - wake.waking > BEFORE_SLEEP) {
            self.pending.remove(&pid);
        }
        if state.starts_with(['X', 'Z']) {
            self.asleep.remove(&pid);
            return;
        }
        let stopped = |kind| Stop { kind, since: at, by: None };
        let stop = match state.as_bytes() {
            [b'T', ..] => Some(stopped(StopKind::Signal)),
            [b't', ..] => Some(stopped(StopKind::Tracer)),
            _ => None,
        };
        self.asleep.insert(pid, stop);
    }

    /// A task is switched to. Returns its wake-up, if it was woken.
    pub(crate) fn run(&mut self, pid: u32) -> Option<Wake> {
        self.asleep.remove(&pid);
        self.pending.remove(&pid)
    }
}

impl Wake {
    /// It is moved to another CPU. Until it is on its first run queue that is no move from one to another.
    pub(crate) fn migrate(&mut self, at: Nanos, from: u32, to: u32) {
        if self.queue.is_some() {
            self.moves.push(Move { at, from, to });
        }
        self.queue = Some(to);
    }
}
