//! Waits that return at once, again and again: the thread spins where it seems to wait.

use super::event::{Event, EventKind, StackId, Thread};
use super::finding::{Finding, about};
use super::place::place;
use super::report::Frame;
use super::rule::Rule;
use super::wait::{CLOCK_REALTIME_FLAG, FUTEX_COMMAND, is_poll, is_wait};
use latlab_core::time::Nanos;

/// The waits of a thread that returned at once, without a sleep between them.
#[derive(Debug, Default)]
pub(super) struct Spins {
    /// The start of the wait in progress, if the thread has not slept in it.
    start: Option<(Nanos, EventKind)>,
    current: Option<Run>,
    worst: Option<Run>,
}

/// Waits in one call that returned at once, one after the other.
#[derive(Clone, Debug)]
struct Run {
    call: &'static str,
    count: u64,
    /// For how long the time that the first waited for was over.
    first_lag: Nanos,
    last_at: Nanos,
    /// The last of them.
    last: EventKind,
}

/// Number of waits without sleep from which on a thread spins.
const SPIN: u64 = 1000;
/// A time that was over for longer is no period that was missed.
const LONG_OVER: Nanos = Nanos::from_secs(1);
/// Result of a `futex(2)` whose time was over.
const TIMED_OUT: i64 = -110;
const MONOTONIC: u64 = 1;

impl Spins {
    pub(super) fn handle(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Enter { call, .. } => {
                self.start = may_wait(&event.kind).then(|| (event.at, event.kind.clone()));
                // The data that a poll found are read.
                let other = self.start.is_none() && super::takes_file(call);
                if other && self.current.as_ref().is_some_and(|run| is_poll(run.call)) {
                    self.end();
                }
            }
            EventKind::Leave { result, .. } => self.leave(event.at, *result),
            EventKind::Out { reason, .. } if reason.is_sleep() => self.end(),
            _ => {}
        }
    }

    fn leave(&mut self, at: Nanos, result: i64) {
        let Some((began, kind)) = self.start.take() else { return };
        let EventKind::Enter { call, .. } = kind else { return };
        let at_once = match call {
            "futex" => result == TIMED_OUT,
            call if is_poll(call) => result > 0,
            _ => result == 0,
        };
        if !at_once {
            return;
        }
        let is_same = self.current.as_ref().is_some_and(|run| run.call == call);
        if !is_same {
            self.end();
            let (first_lag, last) = (lag(began, &kind), kind.clone());
            self.current = Some(Run { call, count: 0, first_lag, last_at: at, last });
        }
        if let Some(run) = &mut self.current {
            run.count += 1;
            (run.last_at, run.last) = (began, kind);
        }
    }

    /// The thread sleeps, or no more of the same waits follow.
    fn end(&mut self) {
        self.start = None;
        let ended = self.current.take().filter(Run::spins);
        let worst = self.worst.as_ref().map_or(0, |worst| worst.count);
        self.worst = ended.filter(|run| run.count > worst).or(self.worst.take());
    }

    /// The finding about a thread that spun.
    pub(super) fn finding(
        &mut self,
        thread: Thread,
        frames: &mut dyn FnMut(u32, StackId) -> Vec<Frame>,
    ) -> Option<Finding> {
        self.end();
        let run = self.worst.as_ref()?;
        let EventKind::Enter { stack, .. } = &run.last else { return None };
        let stack = stack.map(|stack| frames(thread.pid, stack)).unwrap_or_default();
        let (call, count) = (run.call, run.count);
        let subject =
            format!("spins: {call} returned at once {count} times without a sleep between");
        let (place, details) = (place(&stack), vec![run.reason()]);
        Some(Finding { subject, details, place, stack, ..about(thread, Rule::Spin) })
    }
}

impl Run {
    /// Whether the thread spins, and does not only make up for periods that it has missed.
    fn spins(&self) -> bool {
        let lag = lag(self.last_at, &self.last);
        self.count >= SPIN && (lag >= self.first_lag || lag > LONG_OVER)
    }

    fn reason(&self) -> String {
        let EventKind::Enter { time, .. } = &self.last else { return String::new() };
        match clock(&self.last) {
            None if is_poll(self.call) => {
                "each time there was something of which nothing was read".to_owned()
            }
            None => "the time to sleep for is 0".to_owned(),
            Some(MONOTONIC) => {
                let over = self.last_at - *time;
                format!("the time given, {time} on CLOCK_MONOTONIC, was over for {over}")
            }
            // Below the time since the start of the machine, or little above it.
            Some(clock) if *time < self.last_at + Nanos::from_secs(3600) => format!(
                "the time given, {time}, is one of CLOCK_MONOTONIC, where it was {}, and the wait is on {}",
                self.last_at,
                name(clock)
            ),
            Some(clock) => format!("the time given, {time} on {}, was over", name(clock)),
        }
    }
}

/// Whether a call can wait: for a time, or for files or a futex with or without a time.
fn may_wait(kind: &EventKind) -> bool {
    match kind {
        EventKind::Enter { call: "nanosleep" | "clock_nanosleep", .. } => true,
        EventKind::Enter { call: "poll", arguments, .. } => arguments[2] != 0,
        EventKind::Enter { call: "epoll_wait" | "epoll_pwait", arguments, .. } => arguments[3] != 0,
        EventKind::Enter { call: "futex", arguments, .. } => {
            is_wait(arguments) && arguments[3] != 0
        }
        EventKind::Enter { call, .. } => is_poll(call),
        _ => false,
    }
}

/// The clock of the absolute time for which a call waits.
fn clock(kind: &EventKind) -> Option<u64> {
    /// `FUTEX_WAIT_BITSET`, whose time is absolute.
    const BITSET: u64 = 9;
    match kind {
        EventKind::Enter { call: "clock_nanosleep", arguments, .. } => {
            (arguments[1] & 1 == 1).then_some(arguments[0])
        }
        EventKind::Enter { call: "futex", arguments, .. }
            if arguments[1] & FUTEX_COMMAND == BITSET =>
        {
            Some(if arguments[1] & CLOCK_REALTIME_FLAG == 0 { MONOTONIC } else { 0 })
        }
        _ => None,
    }
}

/// For how long the time on `CLOCK_MONOTONIC` that a call waits for was over.
fn lag(at: Nanos, kind: &EventKind) -> Nanos {
    match kind {
        EventKind::Enter { time, .. } if clock(kind) == Some(MONOTONIC) => at - *time,
        _ => Nanos(0),
    }
}

fn name(clock: u64) -> String {
    match clock {
        0 => "CLOCK_REALTIME".to_owned(),
        7 => "CLOCK_BOOTTIME".to_owned(),
        11 => "CLOCK_TAI".to_owned(),
        other => format!("clock {other}"),
    }
}
