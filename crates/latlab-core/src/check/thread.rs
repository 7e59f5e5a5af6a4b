//! One thread: finds its cycle and judges what happens in it.

use super::breach::{Breaches, Held, Moment};
use super::call;
use super::cycle::{Cycle, Finished, Periods};
use super::event::{Event, EventKind, Locks, OutReason, StackId, Thread, WakeContext};
use super::rule::Rule;
use super::wait::{self, Candidates, Wait};
use crate::histogram::Histogram;
use crate::time::Nanos;

/// A thread with a known cycle.
#[derive(Debug)]
pub(super) struct Cyclic {
    pub(super) thread: Thread,
    pub(super) wait: Wait,
    /// The deadline that the user gave.
    deadline: Option<Nanos>,
    pub(super) breaches: Breaches,
    pub(super) cycles: u64,
    pub(super) overruns: u64,
    pub(super) latency: Histogram,
    pub(super) running: Histogram,
    pub(super) response: Histogram,
    pub(super) periods: Periods,
    pub(super) worst: Option<Finished>,
    pub(super) locks: Locks,
    /// Stack of the wait.
    pub(super) wait_stack: Option<StackId>,
    cycle: Option<Cycle>,
    call: Option<Call>,
    fault: Option<Fault>,
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
    waker: Option<(Held, WakeContext)>,
}

/// A page fault in progress.
#[derive(Debug)]
struct Fault {
    at: Nanos,
    slept: Nanos,
    subject: String,
    stack: Option<StackId>,
    moment: Moment,
}

/// The thread is off the CPU.
#[derive(Debug)]
struct Out {
    at: Nanos,
    reason: OutReason,
    next: Held,
}

/// Priority, in the kernel's numbers, from which on tasks are not real-time.
const ORDINARY: i16 = 100;
/// A stack grows by less than this below its pointer, and is not larger than this above it.
const STACK: u64 = 1 << 20;
const BELOW: u64 = 64 << 10;

impl Cyclic {
    pub(super) fn new(thread: Thread, wait: Wait, deadline: Option<Nanos>) -> Cyclic {
        Cyclic {
            thread,
            wait,
            deadline,
            breaches: Breaches::default(),
            cycles: 0,
            overruns: 0,
            latency: Histogram::new(),
            running: Histogram::new(),
            response: Histogram::new(),
            periods: Periods::default(),
            worst: None,
            locks: Locks::default(),
            wait_stack: None,
            cycle: None,
            call: None,
            fault: None,
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
            EventKind::Leave(result) => self.leave(at, *result),
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
            EventKind::Fork | EventKind::Exec | EventKind::Exit => {}
        }
    }

    fn moment(&self, at: Nanos) -> Option<Moment> {
        let start = self.cycle.as_ref()?.start;
        Some(Moment { cycle: self.cycles, offset: at - start })
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
        let is_cycle_wait = Wait::of(kind, self.thread.policy) == Some(self.wait);
        if is_cycle_wait {
            self.end_cycle(at, kind);
        }
        let kind = kind.clone();
        self.waking = None;
        self.call = Some(Call { at, kind, is_cycle_wait, slept: Nanos(0), waker: None });
    }

    fn leave(&mut self, at: Nanos, result: i64) {
        self.end_fault(None);
        let Some(call) = self.call.take() else { return };
        if call.is_cycle_wait {
            if !is_interrupted(result) {
                self.begin_cycle(at, &call);
            }
        } else if self.cycle.is_some() {
            self.judge(at, &call);
        }
    }

    fn begin_cycle(&mut self, at: Nanos, call: &Call) {
        let woken = self.waking.map(|(woken, ..)| woken).filter(|woken| *woken >= call.at);
        let due = wait::due(self.wait, call.at, &call.kind).filter(|due| *due <= at);
        // A wait that did not sleep: the time was over before.
        let due = due.or(woken).unwrap_or(if call.slept > Nanos(0) { at } else { call.at });
        if let Some(last) = self.last_due.replace(due) {
            self.periods.add(due - last);
        }
        self.cycle = Some(Cycle { due, start: at, ..Cycle::default() });
        let Some((waker, WakeContext::Task)) = call.waker else { return };
        if waker.prio > self.thread.prio && waker.prio >= 0 {
            let woken = (Rule::Waker, "wake-up by a lower-priority task".to_owned());
            self.breach(woken, stack(&call.kind), at, Nanos(0), Some(waker));
        }
    }

    fn end_cycle(&mut self, at: Nanos, kind: &EventKind) {
        if let EventKind::Enter { locks, stack, .. } = kind {
            (self.locks, self.wait_stack) = (*locks, *stack);
        }
        let Some(cycle) = self.cycle.take() else { return };
        let (due, start) = (cycle.due, cycle.start);
        let finished = cycle.finish(self.cycles, at);
        let period = self.periods.median();
        let next = wait::due(self.wait, at, kind).or(period.map(|period| due + period));
        let limit = self.deadline.or(next.map(|next| next - due));
        if limit.is_some_and(|limit| limit > Nanos(0) && finished.response > limit) {
            self.overruns += 1;
            let moment = Moment { cycle: self.cycles, offset: at - start };
            let over = (Rule::Overrun, "overrun".to_owned());
            self.breaches.add(over, stack(kind), moment, finished.response, None);
        }
        // The next period is over already, but not skipped.
        let late = |period| next.is_some_and(|next| at >= next + period && next - due <= period);
        let absolute = matches!(self.wait, Wait::Time { absolute: true, .. });
        if absolute && self.cycles > 0 && period.is_some_and(late) {
            let moment = Moment { cycle: self.cycles, offset: at - start };
            let over = (Rule::CatchUp, "missed period run late".to_owned());
            self.breaches.add(over, stack(kind), moment, Nanos(0), None);
        }
        self.breaches.complete();
        self.cycles += 1;
        self.latency.record(finished.latency);
        self.running.record(finished.running);
        self.response.record(finished.response);
        if self.worst.as_ref().is_none_or(|worst| finished.response > worst.response) {
            self.worst = Some(finished);
        }
    }

    /// Judges a system call in the cycle that has returned.
    fn judge(&mut self, at: Nanos, call: &Call) {
        let took = at - call.at;
        let slept = call.slept > Nanos(0) && !call::inherits(&call.kind);
        let waker = call.waker.map(|(waker, _)| waker);
        let lower = waker.filter(|waker| waker.prio > self.thread.prio);
        let place = call::place(&call.kind);
        let (found, took, held) = match call::rule(&call.kind) {
            _ if call::waits_for_mutex(&call.kind) => {
                let rule = if lower.is_some() { Rule::Inversion } else { Rule::NonPi };
                (Some((rule, format!("wait for {place}"))), call.slept, waker)
            }
            None | Some((Rule::Syscall, _)) if slept => {
                (Some((Rule::Sleep, format!("sleep in {place}"))), call.slept, waker)
            }
            own => (own, took, None),
        };
        if let Some(found) = found {
            self.breach(found, stack(&call.kind), call.at, took, held);
        }
        if wait::is_on_wall_clock(&call.kind) {
            let timed = (Rule::WallClock, "time on CLOCK_REALTIME".to_owned());
            self.breach(timed, stack(&call.kind), call.at, Nanos(0), None);
        }
    }

    fn begin_fault(&mut self, at: Nanos, kind: &EventKind) {
        self.end_fault(None);
        let EventKind::Fault { address, stack_pointer, protection, in_kernel, stack } = kind else {
            return;
        };
        let Some(moment) = self.moment(at) else { return };
        let place = address.wrapping_sub(stack_pointer.wrapping_sub(BELOW));
        let mut subject = if *protection {
            "page fault (copy on write)"
        } else if place < STACK + BELOW {
            "page fault (stack)"
        } else {
            "page fault"
        }
        .to_owned();
        if let (true, Some(Call { kind: EventKind::Enter { call, .. }, .. })) =
            (in_kernel, &self.call)
        {
            subject = format!("{subject} in {call}");
        }
        if let Some(cycle) = &mut self.cycle {
            cycle.faults += 1;
        }
        self.fault = Some(Fault { at, slept: Nanos(0), subject, stack: *stack, moment });
    }

    /// Ends the page fault in progress. Not every kernel reports when, and whether a disk was read.
    fn end_fault(&mut self, end: Option<(Nanos, bool)>) {
        let Some(fault) = self.fault.take() else { return };
        let kind = match end {
            Some((_, true)) => "major page fault",
            _ if fault.slept > Nanos(0) => "page fault that slept",
            _ => "page fault",
        };
        let subject = fault.subject.replacen("page fault", kind, 1);
        let took = end.map_or(fault.slept, |(end, _)| end - fault.at);
        self.breaches.add((Rule::Fault, subject), fault.stack, fault.moment, took, None);
    }

    fn leave_cpu(&mut self, at: Nanos, reason: OutReason, next: Held, kernel: bool) {
        self.out = Some(Out { at, reason, next });
        let waits = self.call.as_ref().is_some_and(|call| call.is_cycle_wait);
        if reason != OutReason::Preempted || waits || kernel {
            return;
        }
        if next.prio < ORDINARY {
            let shared = (Rule::SharedCpu, "preemption by a real-time thread".to_owned());
            self.breach(shared, None, at, Nanos(0), Some(next));
        }
    }

    fn enter_cpu(&mut self, at: Nanos) {
        let Some(out) = self.out.take() else { return };
        let time = at - out.at;
        let waker = self.waking.filter(|(woken, ..)| *woken >= out.at);
        if let (Some(fault), OutReason::Sleeps) = (&mut self.fault, out.reason) {
            fault.slept = fault.slept + time;
        }
        if let (Some(call), OutReason::Sleeps) = (&mut self.call, out.reason) {
            call.slept = call.slept + time.max(Nanos(1));
            call.waker = waker.map(|(_, held, context)| (held, context)).or(call.waker);
        }
        let what = match (&self.call, &self.fault) {
            (_, Some(_)) => "a page fault".to_owned(),
            (Some(call), None) => call::place(&call.kind),
            (None, None) => "the kernel".to_owned(),
        };
        let waits = self.call.as_ref().is_some_and(|call| call.is_cycle_wait);
        let Some(cycle) = self.cycle.as_mut().filter(|_| !waits) else { return };
        match out.reason {
            OutReason::Sleeps => cycle.add_sleep(&what, time),
            OutReason::KernelLock => cycle.add_sleep("a spinlock of the kernel", time),
            OutReason::Preempted => {
                cycle.add_preemption(out.next.comm, time);
                if out.next.prio >= ORDINARY {
                    let throttled = (Rule::Throttled, "interval of throttling".to_owned());
                    self.breach(throttled, None, out.at, time, Some(out.next));
                }
            }
        }
    }
}

/// The threads whose cycle is not known yet, with what happened so far.
#[derive(Debug)]
pub(super) struct Unknown {
    events: Vec<Event>,
}

/// Waits after which the cycle is chosen.
const ENOUGH: u32 = 32;
/// Largest number of events kept until the cycle is known.
const KEPT: usize = 100_000;

/// A thread, with or without a known cycle.
#[derive(Debug)]
pub(super) struct Watched {
    candidates: Candidates,
    unknown: Option<Unknown>,
    pub(super) cyclic: Option<Cyclic>,
    pub(super) thread: Thread,
    deadline: Option<Nanos>,
}

impl Watched {
    pub(super) fn new(thread: Thread, deadline: Option<Nanos>) -> Watched {
        let unknown = Some(Unknown { events: Vec::new() });
        Watched { candidates: Candidates::default(), unknown, cyclic: None, thread, deadline }
    }

    pub(super) fn handle(&mut self, event: Event) {
        self.thread = event.thread;
        let wait = Wait::of(&event.kind, event.thread.policy);
        let count = wait.map_or(0, |wait| self.candidates.add(wait));
        if let Some(cyclic) = &mut self.cyclic {
            cyclic.handle(&event);
            return;
        }
        let Some(unknown) = &mut self.unknown else { return };
        unknown.events.push(event);
        if unknown.events.len() > KEPT {
            unknown.events.drain(..KEPT / 2);
        }
        if count >= ENOUGH {
            self.choose();
        }
    }

    /// Chooses the cycle from the waits so far, and judges what happened so far.
    pub(super) fn choose(&mut self) {
        if self.cyclic.is_some() {
            return;
        }
        let (Some(wait), Some(unknown)) = (self.candidates.best(), self.unknown.take()) else {
            return;
        };
        let mut cyclic = Cyclic::new(self.thread, wait, self.deadline);
        unknown.events.iter().for_each(|event| cyclic.handle(event));
        self.cyclic = Some(cyclic);
    }
}

fn stack(kind: &EventKind) -> Option<StackId> {
    match kind {
        EventKind::Enter { stack, .. } => *stack,
        _ => None,
    }
}

/// Whether a wait was ended by a signal: `EINTR` and the kernel's codes for restarting.
fn is_interrupted(result: i64) -> bool {
    result == -4 || (-516..=-512).contains(&result)
}
