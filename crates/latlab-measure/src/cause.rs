//! Causes of late wake-ups: each claims the segments that it explains.

mod dispatch;
mod equal_priority;
mod higher_priority;
mod host;
mod idle_exit;
mod interrupt;
mod interrupt_thread;
mod interrupts_off;
mod lock;
mod migration;
mod non_preemptible;
mod overrun;
mod page_fault;
mod softirq;
mod stalled;
mod stopped;
mod throttled;
mod timer_callbacks;
mod timer_resolution;
mod unreported;

use clap::Command;
use latlab_core::explain::charge::{self, CauseRule, Circumstances, Culprit, Explanation};
use latlab_core::explain::segment::{Phase, Segment};
use latlab_core::explain::{Task, Window};
use latlab_core::time::Nanos;
use latlab_part::part::{About, Describe};
use std::cmp::Ordering;

/// Every cause. The first that claims a segment gets it: causes that certainly explain a segment
/// come before causes that explain it only if nothing else does.
///
/// 1. This machine is not to blame for the time that the task was stopped, nor for that before the
///    timer expired, nor for the time that the host took, whatever its CPU did meanwhile.
/// 2. Interrupts run above everything, and a timer callback is a part of its interrupt. An
///    interrupt that is delivered late was blocked by whatever ran, a softirq included. Softirqs
///    run above tasks.
/// 3. A wait for a lock, a page fault, an IRQ thread, a migration and throttling concern the woken
///    task or its waker; the task that has the CPU meanwhile, even the idle task, is not to blame. A
///    page fault may wait for a lock.
/// 4. Only then the current task and its priority count.
/// 5. The rest is dispatching.
pub static CAUSES: &[Entry] = &[
    entry::<stopped::Stopped>(),
    entry::<timer_resolution::TimerResolution>(),
    entry::<host::Host>(),
    entry::<timer_callbacks::TimerCallbacks>(),
    entry::<interrupt::Interrupt>(),
    entry::<interrupts_off::InterruptsOff>(),
    entry::<softirq::Softirq>(),
    entry::<lock::Lock>(),
    entry::<page_fault::PageFault>(),
    entry::<overrun::Overrun>(),
    entry::<interrupt_thread::InterruptThread>(),
    entry::<migration::Migration>(),
    entry::<throttled::Throttled>(),
    entry::<unreported::Unreported>(),
    entry::<idle_exit::IdleExit>(),
    entry::<higher_priority::HigherPriority>(),
    entry::<equal_priority::EqualPriority>(),
    entry::<stalled::Stalled>(),
    entry::<non_preemptible::NonPreemptible>(),
    entry::<dispatch::Dispatch>(),
];

/// One cause. The doc comment of its struct says what it is, how it is recognized, and from which
/// source; it has no parameters.
pub trait Cause: Describe + clap::Args {
    /// The culprit, if this cause explains the segment.
    fn claim(stretch: &Segment, window: &Window, machine: &Circumstances) -> Option<Culprit>;
}

/// One line of the table of causes.
#[derive(Debug)]
pub struct Entry {
    /// Its name and summary.
    pub about: About,
    /// The cause as clap knows it, for its help.
    pub keys: fn() -> Command,
    claim: CauseRule,
}

/// Explains one late wake-up.
pub fn explain(window: &Window, machine: &Circumstances) -> Explanation {
    let causes: Vec<charge::Cause> = CAUSES
        .iter()
        .map(|entry| charge::Cause { name: entry.about.name, claim: entry.claim })
        .collect();
    charge::explain(window, machine, &causes)
}

const fn entry<C: Cause>() -> Entry {
    Entry { about: C::ABOUT, keys: || C::augment_args(Command::new("cause")), claim: C::claim }
}

/// The longest undisturbed delivery of an interrupt, from device to handler. A round trip over PCI
/// Express and the entry into the kernel take less than half of it.
const DELIVERY: Nanos = Nanos::from_micros(1);

/// The task that has the CPU instead of the woken one, and how its priority compares: `Less` runs
/// before the woken task. Ordinary tasks take turns, so that none has a lower priority than
/// another.
fn instead(stretch: &Segment, window: &Window) -> Option<(Task, Ordering)> {
    let (activity, ours) = (&stretch.activity, window.task);
    let task = activity.task.filter(|task| task.pid != ours.pid || task.is_idle())?;
    if stretch.phase < Phase::Runnable || activity.interrupt.is_some() || activity.softirq.is_some()
    {
        return None;
    }
    let order = match task.prio.cmp(&ours.prio) {
        _ if task.is_idle() => Ordering::Greater,
        _ if !ours.is_realtime() && !task.is_realtime() => Ordering::Equal,
        order => order,
    };
    Some((task, order))
}

/// The task that has the CPU instead of the woken one, as culprit, if its priority compares so.
fn culprit(order: Ordering, stretch: &Segment, window: &Window) -> Option<Culprit> {
    let (task, found) = instead(stretch, window)?;
    (found == order).then_some(Culprit { task: Some(task), ..Culprit::default() })
}

/// Whether the CPU was idle, without an interrupt or softirq.
fn is_idle(stretch: &Segment) -> bool {
    let activity = &stretch.activity;
    let idle = activity.task.is_some_and(|task| task.is_idle());
    idle && activity.interrupt.is_none() && activity.softirq.is_none()
}

#[cfg(test)]
mod tests;
