//! Judges the cycles of one thread: each lasts from the end of a wait to the start of the next.

mod absence;

use super::breach::{Breaches, Held, Moment};
use super::call;
use super::cycle::{Cycle, Finished, Part, Periods, What};
use super::event::{Event, EventKind, Locks, OutReason, StackId, Thread, WakeContext};
use super::fault::{Fault, WithoutEnd};
use super::marks::Parts;
use super::rule::Rule;
use super::stops::Stops;
use super::wait::{self, Wait};
use super::wake_up::WakeUp;
use super::warm_up::WarmUp;
use absence::ended_by;
use latlab_core::histogram::Histogram;
use latlab_core::time::Nanos;

/// How the user wants threads to be judged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Terms {
    /// The deadline of each cycle; without it, the next cycle.
    pub(super) deadline: Option<Nanos>,
    /// Length of a tick of the kernel, if it is known.
    pub(super) tick: Option<Nanos>,
    /// The first cycles, which are not judged.
    pub(super) warm_up: WarmUp,
    /// Whether threads without a real-time policy are judged too.
    pub(super) any_policy: bool,
}

/// A thread whose cycle starts at the end of this wait.
#[derive(Debug)]
pub(super) struct Cyclic {
    pub(super) thread: Thread,
    pub(super) wait: Wait,
    terms: Terms,
    pub(super) breaches: Breaches,
    pub(super) cycles: u64,
    pub(super) overruns: u64,
    /// Cycles left out because an event is missing.
    pub(super) left_out: u64,
    /// Cycles of the warm-up.
    pub(super) warmed_up: u64,
    /// Times for which it was stopped.
    pub(super) stops: Stops,
    /// When the first cycle began.
    pub(super) begun: Option<Nanos>,
    pub(super) latency: Histogram,
    pub(super) running: Histogram,
    pub(super) response: Histogram,
    pub(super) periods: Periods,
    /// The parts of its cycles, by the marks of the program.
    pub(super) parts: Parts,
    /// The last wake-ups that may belong to the cycle in progress or to a later one.
    wake_ups: Vec<WakeUp>,
    /// The cycle with the longest response time.
    pub(super) worst: Option<Finished>,
    /// The first cycles that overran.
    pub(super) overran: Vec<Finished>,
    /// Running times of cycles that did not overrun.
    pub(super) in_time: Histogram,
    pub(super) locks: Locks,
    /// Stack of the wait.
    pub(super) wait_stack: Option<StackId>,
    /// The relative time of the last wait, and how often a wait had the same time as the one
    /// before.
    asked: Nanos,
    repeated: u64,
    /// Cycles that ended with a wait for a time on the wall clock.
    pub(super) on_wall_clock: u64,
    pub(super) cycle: Option<Cycle>,
    call: Option<Call>,
    pub(super) fault: Option<Fault>,
    pub(super) without_end: WithoutEnd,
    out: Option<Out>,
    waking: Option<(Nanos, Held, WakeContext)>,
    last_due: Option<Nanos>,
}

/// A system call in progress.
#[derive(Debug)]
struct Call {
    at: Nanos,
    kind: EventKind,
    is_cycle_wait: bool,
    slept: Nanos,
    /// Time in it that was not its own: off the CPU, or in page faults.
    away: Nanos,
    waker: Option<(Held, WakeContext)>,
}

/// The thread is off the CPU.
#[derive(Debug)]
struct Out {
    at: Nanos,
    reason: OutReason,
    next: Held,
}

impl Cyclic {
    pub(super) fn new(thread: Thread, wait: Wait, terms: Terms) -> Cyclic {
        Cyclic {
            thread,
            wait,
            terms,
            breaches: Breaches::default(),
            cycles: 0,
            overruns: 0,
            left_out: 0,
            warmed_up: 0,
            stops: Stops::default(),
            begun: None,
            latency: Histogram::new(),
            running: Histogram::new(),
            response: Histogram::new(),
            periods: Periods::default(),
            parts: Parts::default(),
            wake_ups: Vec::new(),
            worst: None,
            overran: Vec::new(),
            in_time: Histogram::new(),
            locks: Locks::default(),
            wait_stack: None,
            asked: Nanos(0),
            repeated: 0,
            on_wall_clock: 0,
            cycle: None,
            call: None,
            fault: None,
            without_end: WithoutEnd::default(),
            out: None,
            waking: None,
            last_due: None,
        }
    }

    pub(super) fn handle(&mut self, event: &Event) {
        let at = event.at;
        self.thread = event.thread;
        match &event.kind {
            EventKind::Enter { .. } => self.enter(at, &event.kind),
            EventKind::Leave { result, call } => self.leave(at, *result, *call),
            EventKind::Fault { .. } => self.begin_fault(at, &event.kind),
            EventKind::Faulted { major } => self.end_fault(Some((at, *major))),
            EventKind::Waking { waker, prio, comm, context } => {
                let held = Held { comm: *comm, tid: *waker, prio: *prio };
                self.waking = Some((at, held, *context));
            }
            EventKind::Out { reason, next, prio, comm, kernel } => {
                let next = Held { comm: *comm, tid: *next, prio: *prio };
                self.leave_cpu(at, *reason, next, *kernel);
            }
            EventKind::In => self.enter_cpu(at),
            EventKind::Migrate => {
                let moved = (Rule::Migration, "move to another CPU".to_owned());
                self.breach(moved, None, at, Nanos(0), None);
            }
            EventKind::Begin { name, id } => {
                if let Some(cycle) = &mut self.cycle {
                    cycle.marks.begin(name, *id, at, cycle.away);
                }
            }
            EventKind::End { name } => {
                if let Some(cycle) = &mut self.cycle {
                    cycle.marks.end(name, at, cycle.away);
                }
            }
            EventKind::Request(_)
            | EventKind::Mapped
            | EventKind::Fork
            | EventKind::Exec
            | EventKind::Exit { .. } => {}
        }
    }

    /// Whether the thread sleeps for the same time in most cycles. A thread that computes the rest
    /// of its period sleeps for a different time in each cycle, and does not drift.
    pub(super) fn drifts(&self) -> bool {
        matches!(self.wait, Wait::Time { absolute: false, .. }) && 2 * self.repeated >= self.cycles
    }

    pub(super) fn moment(&self, at: Nanos) -> Option<Moment> {
        let cycle = self.cycle.as_ref()?;
        let part = cycle.marks.current().map(str::to_owned);
        Some(Moment { cycle: self.cycles, offset: at - cycle.start, part })
    }

    /// Adds a breach if it happened in a cycle.
    fn breach(
        &mut self,
        breach: (Rule, String),
        stack: Option<StackId>,
        at: Nanos,
        took: Nanos,
        held: Option<Held>,
    ) {
        if let Some(moment) = self.moment(at) {
            self.breaches.add(breach, stack, moment, took, held);
        }
    }

    fn enter(&mut self, at: Nanos, kind: &EventKind) {
        self.end_fault(None);
        if let EventKind::Enter { call: "rt_sigreturn", arguments: [address, ..], .. } = kind {
            self.leave_handler(at, *address);
        }
        if let Some(call) = self.call.take() {
            self.leave_out(call.is_cycle_wait);
        }
        let is_cycle_wait = Wait::of(kind, self.thread.policy) == Some(self.wait);
        if is_cycle_wait {
            self.end_cycle(at, kind);
        }
        let kind = kind.clone();
        self.waking = None;
        let (slept, away) = (Nanos(0), Nanos(0));
        self.call = Some(Call { at, kind, is_cycle_wait, slept, away, waker: None });
    }

    fn leave(&mut self, at: Nanos, result: i64, name: Option<&str>) {
        self.end_fault(None);
        let Some(call) = self.call.take() else { return self.leave_out(false) };
        if name.is_some_and(|name| !is_start_of(name, &call.kind)) {
            return self.leave_out(call.is_cycle_wait);
        }
        let expired = self.expired_timeout(&call, result);
        if call.is_cycle_wait {
            if !is_interrupted(self.wait, result) {
                self.begin_cycle(at, &call);
            }
        } else if self.cycle.is_some() {
            let own = (at - call.at) - call.away;
            let by = call.waker.and_then(|waker| ended_by(Some(&call.kind), waker));
            // A wait for a lock may run for a time before it sleeps, and both are the wait.
            let what = match call::lock(&call.kind) {
                Some(lock) => What::Blocked(lock, by),
                None => What::Call(call::name(&call.kind)),
            };
            let stack = stack(&call.kind);
            let rule = self.judge(at, &call);
            if let Some(cycle) = &mut self.cycle {
                cycle.add(Part { from: call.at, to: at, own, what, rule, stack });
            }
        }
        if let Some(subject) = expired {
            self.breach((Rule::Timeout, subject), stack(&call.kind), call.at, call.slept, None);
        }
    }

    /// The time-out of a socket that was so short that rounding it up to ticks mattered, if it has ended the
    /// call.
    fn expired_timeout(&self, call: &Call, result: i64) -> Option<String> {
        /// `EAGAIN`.
        const AGAIN: i64 = -11;
        /// Rounding up by a tick is less than a tenth of more ticks.
        const FEW: u64 = 10;
        let ticks = call::socket_timeout(&call.kind).filter(|ticks| (1..=FEW).contains(ticks))?;
        if result != AGAIN || call.slept == Nanos(0) {
            return None;
        }
        let whole = match (ticks, self.terms.tick) {
            (1, Some(tick)) => format!("a tick of {tick}"),
            (1, None) => "a tick".to_owned(),
            (_, Some(tick)) => format!("{ticks} ticks of {tick}"),
            (_, None) => format!("{ticks} ticks"),
        };
        Some(format!("time-out of {} of {whole}", call::place(&call.kind)))
    }

    /// Leaves out the current cycle, or the cycle that begins. The start or the end of a system
    /// call is missing, or both, so the times of the cycle are not known. The kernel runs no
    /// program of a tracepoint while it runs that program for another task of the CPU, which
    /// real-time threads may preempt in it (on Linux 7.3 with PREEMPT_RT). It reports all context
    /// switches: these can't be preempted.
    fn leave_out(&mut self, begins: bool) {
        if self.is_warm_up() {
            return self.skip_cycle();
        }
        self.breaches.forget();
        self.without_end.clear();
        if self.cycle.take().is_some() || begins {
            self.left_out += 1;
        }
    }

    /// Whether the cycle in progress belongs to the warm-up.
    fn is_warm_up(&self) -> bool {
        let since =
            self.cycle.as_ref().map(|cycle| cycle.start - self.begun.unwrap_or(cycle.start));
        since.is_some_and(|since| self.terms.warm_up.includes(self.warmed_up, since))
    }

    /// Ends a cycle of the warm-up.
    fn skip_cycle(&mut self) {
        self.breaches.forget();
        self.without_end.clear();
        self.cycle = None;
        self.warmed_up += 1;
    }

    fn begin_cycle(&mut self, at: Nanos, call: &Call) {
        self.begun = self.begun.or(Some(at));
        let woken = self.waking.map(|(woken, ..)| woken).filter(|woken| *woken >= call.at);
        let due = wait::due(self.wait, call.at, &call.kind).filter(|due| *due <= at);
        // At the end of its period, a SCHED_DEADLINE thread is not woken: it was runnable.
        let waited = call.slept > Nanos(0) || self.wait == Wait::Period;
        // A wait that did not sleep: the time was over before.
        let due = due.or(woken).unwrap_or(if waited { at } else { call.at });
        if let Some(last) = self.last_due.replace(due) {
            self.periods.add(due - last);
        }
        let waited = call.at.max(due);
        self.cycle = Some(Cycle { due, waited, start: at, ..Cycle::default() });
        let Some((waker, WakeContext::Task)) = call.waker else { return };
        if self.thread.is_above(waker.prio) {
            let woken = (Rule::Waker, "wake-up by a lower-priority task".to_owned());
            self.breach(woken, stack(&call.kind), at, Nanos(0), Some(waker));
        }
    }

    fn end_cycle(&mut self, at: Nanos, kind: &EventKind) {
        if self.cycle.is_none() {
            return;
        }
        let mut is_repeated = false;
        if let EventKind::Enter { locks, stack, time, .. } = kind {
            (self.locks, self.wait_stack) = (*locks, *stack);
            is_repeated = std::mem::replace(&mut self.asked, *time) == *time;
        }
        if self.is_warm_up() {
            return self.skip_cycle();
        }
        self.repeated += u64::from(is_repeated);
        // The wait of a condition is on it only where it has a time.
        let on_wall_clock = self.wait.is_on_wall_clock() || wait::is_on_wall_clock(kind);
        self.on_wall_clock += u64::from(on_wall_clock);
        // A relative time begins with the wait, so the deadline of the cycle can't be computed from
        // it.
        let is_absolute = matches!(self.wait, Wait::Time { absolute: true, .. });
        let next = wait::due(self.wait, at, kind).filter(|_| is_absolute);
        self.finish_cycle(at, next, stack(kind));
    }

    /// Watching ends. A cycle in progress that is past its limit ends there: the thread hangs in it. A
    /// thread in another wait, as for a signal or another thread, may have left its loop instead. What
    /// else breached a rule in it does not count.
    pub(super) fn stop(&mut self, at: Nanos) {
        let policy = self.thread.policy;
        if self.call.as_ref().is_some_and(|call| Wait::of(&call.kind, policy).is_some()) {
            return;
        }
        let limit = self.terms.deadline.or(self.periods.median());
        let Some((cycle, limit)) = self.cycle.as_ref().zip(limit) else { return };
        if at - cycle.due <= limit || self.is_warm_up() {
            return;
        }
        self.enter_cpu(at);
        self.end_fault(None);
        self.add_faults_without_end();
        self.breaches.forget();
        let stack = self.call.as_ref().and_then(|call| stack(&call.kind));
        self.finish_cycle(at, None, stack);
    }

    /// Ends the cycle in progress, if there is one, and judges its time. `known` is the time at which
    /// the next one is due.
    fn finish_cycle(&mut self, at: Nanos, known: Option<Nanos>, stack: Option<StackId>) {
        self.add_faults_without_end();
        let Some(mut cycle) = self.cycle.take() else { return };
        cycle.marks.end_all(at, cycle.away);
        self.parts.add(&cycle.marks);
        // Of the cycles that are kept, only the longest needs them.
        let marks = std::mem::take(&mut cycle.marks);
        let (due, start) = (cycle.due, cycle.start);
        let number = self.cycles;
        let mut finished = Finished { number, cycle, end: at, wake_ups: Vec::new() };
        self.wake_ups.iter().for_each(|wake_up| finished.add(wake_up));
        self.wake_ups.retain(|wake_up| wake_up.slept >= at);
        if self.stops.delayed(&finished) {
            return self.breaches.complete();
        }
        let period = self.periods.median();
        let next = known.or(period.map(|period| due + period));
        let limit = self.terms.deadline.or(next.map(|next| limit(next - due, period)));
        let limit = limit.filter(|limit| *limit > Nanos(0) && finished.response() > *limit);
        if let Some(limit) = limit {
            self.overruns += 1;
            // The part that ran when the cycle had to end.
            let part = marks.at(due + limit).map(str::to_owned);
            let moment = Moment { cycle: self.cycles, offset: at - start, part };
            let over = (Rule::Overrun, "overrun".to_owned());
            self.breaches.add(over, stack, moment, finished.response(), None);
            if self.overran.len() < EXPLAINED {
                self.overran.push(finished.clone());
            }
        } else {
            self.in_time.record(finished.running());
        }
        // The next period is over already, but not skipped. An estimated time can't tell.
        let late = |period| known.is_some_and(|next| at >= next + period && next - due <= period);
        let absolute = matches!(self.wait, Wait::Time { absolute: true, .. });
        if absolute && self.cycles > 0 && period.is_some_and(late) {
            let moment = Moment { cycle: self.cycles, offset: at - start, part: None };
            let over = (Rule::CatchUp, "missed period run late".to_owned());
            self.breaches.add(over, stack, moment, Nanos(0), None);
        }
        self.breaches.complete();
        self.cycles += 1;
        self.latency.record(finished.latency());
        self.running.record(finished.running());
        self.response.record(finished.response());
        if self.worst.as_ref().is_none_or(|worst| finished.response() > worst.response()) {
            let cycle = Cycle { marks, ..finished.cycle };
            self.worst = Some(Finished { cycle, ..finished });
        }
    }

    /// Adds an explained wake-up to the kept cycles, and keeps it for the cycle in progress.
    pub(super) fn explain(&mut self, wake_up: &WakeUp) {
        for finished in self.overran.iter_mut().chain(&mut self.worst) {
            finished.add(wake_up);
        }
        if self.wake_ups.len() == EXPLAINED {
            self.wake_ups.remove(0);
        }
        self.wake_ups.push(wake_up.clone());
    }

    /// Judges a system call in the cycle that has returned. Returns the rule that it breached.
    fn judge(&mut self, at: Nanos, call: &Call) -> Option<Rule> {
        let took = at - call.at;
        let slept = call.slept > Nanos(0) && !call::inherits(&call.kind);
        let waker = call.waker.filter(|(_, context)| *context != WakeContext::Interrupt);
        let waker = call::peer(&call.kind).or(waker.map(|(waker, _)| waker));
        let holder = call::holder(&call.kind);
        let all = [holder, waker].into_iter().flatten();
        let lower = all.clone().find(|task| self.thread.is_above(task.prio));
        let place = call::place(&call.kind);
        let (found, took, held) = match call::rule(&call.kind) {
            // Where the lock was free again before the thread slept, the call waited for nobody.
            _ if call::waits_for_lock(&call.kind) && call.slept == Nanos(0) => (None, took, None),
            _ if call::waits_for_lock(&call.kind) && self.thread.is_realtime() => {
                let rule = if lower.is_some() { Rule::Inversion } else { Rule::NonPi };
                (
                    Some((rule, format!("wait for {place}"))),
                    call.slept,
                    lower.or(all.clone().next()),
                )
            }
            None | Some((Rule::Syscall, _)) if slept => {
                (Some((Rule::Sleep, format!("sleep in {place}"))), call.slept, holder.or(waker))
            }
            own => (own, took, None),
        };
        let rule = found.as_ref().map(|(rule, _)| *rule);
        if let Some(found) = found {
            self.breach(found, stack(&call.kind), call.at, took, held);
        }
        if wait::is_on_wall_clock(&call.kind) {
            let timed = (Rule::WallClock, "time on CLOCK_REALTIME".to_owned());
            self.breach(timed, stack(&call.kind), call.at, Nanos(0), None);
        }
        rule
    }

    /// The name of the call in progress.
    pub(super) fn call_in_progress(&self) -> Option<&'static str> {
        match self.call.as_ref()?.kind {
            EventKind::Enter { call, .. } => Some(call),
            _ => None,
        }
    }

    /// Attributes `time` of the call in progress, if there is one, to a page fault.
    pub(super) fn leave_to_fault(&mut self, time: Nanos) {
        if let Some(call) = &mut self.call {
            call.away = call.away + time;
        }
    }

    /// Whether a sleep that begins belongs to an unreported call: no call or page fault is in
    /// progress, or the call in progress has slept until its time, which is over.
    fn sleeps_in_missing_call(&self, at: Nanos) -> bool {
        let Some(call) = &self.call else { return self.fault.is_none() };
        let due = wait::due(self.wait, call.at, &call.kind).filter(|_| call.is_cycle_wait);
        call.slept > Nanos(0) && due.is_some_and(|due| at > due)
    }
}

/// Largest number of overruns of a thread that are explained, and of wake-ups of a cycle.
const EXPLAINED: usize = 1000;

/// The time that a cycle has until the next one. A thread that skips the periods that have passed
/// waits for a later one.
fn limit(next: Nanos, period: Option<Nanos>) -> Nanos {
    const ROUNDING: Nanos = Nanos::from_micros(1);
    period.filter(|period| next + ROUNDING >= *period + *period).unwrap_or(next)
}

fn is_start_of(name: &str, kind: &EventKind) -> bool {
    matches!(kind, EventKind::Enter { call, .. } if *call == name)
}

fn stack(kind: &EventKind) -> Option<StackId> {
    match kind {
        EventKind::Enter { stack, .. } => *stack,
        _ => None,
    }
}

/// Whether a wait was interrupted by a signal: `EINTR` and the kernel's codes for restarting. `pause`
/// and `sigsuspend` wait for that signal, and always return `ERESTARTNOHAND`.
fn is_interrupted(wait: Wait, result: i64) -> bool {
    const RESTART: i64 = -514;
    let is_awaited = wait == Wait::Signal && result == RESTART;
    result == -4 || (-516..=-512).contains(&result) && !is_awaited
}
