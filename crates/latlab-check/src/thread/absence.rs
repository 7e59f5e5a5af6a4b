//! The times for which a thread is not on its CPU.

use super::{Cyclic, Out, stack};
use crate::breach::Held;
use crate::call;
use crate::cycle::{Part, What};
use crate::event::ORDINARY;
use crate::event::{EventKind, OutReason, WakeContext};
use crate::rule::Rule;
use latlab_core::time::Nanos;

impl Cyclic {
    pub(super) fn leave_cpu(&mut self, at: Nanos, reason: OutReason, next: Held, kernel: bool) {
        if reason == OutReason::Sleeps && self.sleeps_in_missing_call(at) {
            let call = self.call.take();
            self.leave_out(call.is_some());
        }
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

    pub(super) fn enter_cpu(&mut self, at: Nanos) {
        let Some(out) = self.out.take() else { return };
        let time = at - out.at;
        let waker = self.waking.filter(|(woken, ..)| *woken >= out.at);
        let sleeps = out.reason.is_sleep();
        if let Some(fault) = &mut self.fault {
            let into = if sleeps { &mut fault.slept } else { &mut fault.away };
            *into = *into + time;
        }
        if let Some(call) = &mut self.call {
            call.away = call.away + time;
            if sleeps {
                call.slept = call.slept + time.max(Nanos(1));
                call.waker = waker.map(|(_, held, context)| (held, context)).or(call.waker);
            }
        }
        if let OutReason::Stopped(by) = out.reason
            && self.begun.is_some()
        {
            self.stops.add(out.at, at, by);
        }
        if self.call.as_ref().is_some_and(|call| call.is_cycle_wait) {
            return;
        }
        if let Some(cycle) = &mut self.cycle {
            cycle.away = cycle.away + time;
        }
        self.add_absence(at, &out, waker.map(|(_, held, context)| (held, context)));
        if out.reason == OutReason::Preempted
            && self.is_throttled_by(out.next)
            && self.thread.is_realtime()
        {
            let throttled = (Rule::Throttled, "interval of throttling".to_owned());
            self.breach(throttled, None, out.at, time, Some(out.next));
        }
    }

    /// Whether the thread is runnable and may not run, as this task replaces it: one of lower priority, or
    /// the idle task.
    fn is_throttled_by(&self, next: Held) -> bool {
        next.tid == 0 || self.thread.is_realtime() && next.prio >= ORDINARY
    }

    /// Adds the time for which the thread was not on its CPU. A page fault includes its sleep.
    fn add_absence(&mut self, at: Nanos, out: &Out, waker: Option<(Held, WakeContext)>) {
        let what = match out.reason {
            reason if reason.is_sleep() && self.fault.is_some() => return,
            OutReason::Stopped(by) => What::Stopped(by),
            OutReason::Sleeps | OutReason::SleepsInKernel => {
                let kind = self.call.as_ref().map(|call| &call.kind);
                let place = kind.map(|kind| call::lock(kind).unwrap_or_else(|| call::place(kind)));
                let by = waker.and_then(|waker| ended_by(kind, waker));
                What::Blocked(place.unwrap_or("the kernel".to_owned()), by)
            }
            OutReason::KernelLock => What::KernelLock,
            OutReason::Preempted if self.is_throttled_by(out.next) => What::Throttled(out.next),
            OutReason::Preempted => What::Preempted(out.next),
        };
        let call = self.call.as_ref().filter(|_| out.reason.is_sleep());
        let stack = call.and_then(|call| stack(&call.kind));
        let Some(cycle) = &mut self.cycle else { return };
        let rule = matches!(what, What::Throttled(_)).then_some(Rule::Throttled);
        cycle.add(Part { from: out.at, to: at, own: at - out.at, what, rule, stack });
    }
}

/// The task that ended a sleep in a call. A thread that waits for another process, by a terminal or
/// a connection, is woken by the kernel once that process has written. The task is then that
/// process. An interrupt is no task. For a lock, the task may be its known holder.
pub(super) fn ended_by(
    kind: Option<&EventKind>,
    (waker, context): (Held, WakeContext),
) -> Option<Held> {
    if let Some(peer) = kind.and_then(call::peer) {
        return Some(peer);
    }
    let holder = kind.and_then(call::holder);
    let is_holder = holder.is_some_and(|holder| holder.tid == waker.tid);
    (context != WakeContext::Interrupt && !is_holder).then_some(waker)
}
