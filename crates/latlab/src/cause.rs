//! Causes: each claims the parts of a late wake-up that it made.

mod dispatch;
mod equal_priority;
mod higher_priority;
mod host;
mod idle_exit;
mod interrupt;
mod interrupt_thread;
mod interrupts_off;
mod migration;
mod non_preemptable;
mod overrun;
mod page_fault;
mod softirq;
mod stalled;
mod throttled;
mod timer_callbacks;
mod timer_resolution;
mod unreported;

use crate::registry::About;
use clap::Command;
use latlab_core::explain::charge::{self, Circumstances, Claim, Explanation, Who};
use latlab_core::explain::stretch::{Phase, Stretch};
use latlab_core::explain::{Task, Window};
use latlab_core::time::Nanos;
use std::cmp::Ordering;

/// Every cause. The first that claims a stretch has it: what surely explains it stands before what
/// would explain it if nothing else did.
///
/// 1. What the timer does not owe the task, and what the host took, is nobody's on this machine,
///    whatever its CPU did meanwhile.
/// 2. Interrupts are on top of everything, and a timer's callback within its interrupt is more
///    than that. An interrupt that does not come was kept off, by whatever ran: a softirq as well.
///    Softirqs are on top of tasks.
/// 3. A page fault, an interrupt's thread, a move to another CPU and throttling are stories of our
///    own task or its waker; who has the CPU meanwhile, the idle task too, is not to blame.
/// 4. Only then does it count who is current, and how urgent that is.
/// 5. Dispatching is what remains.
pub(crate) static CAUSES: &[Entry] = &[
    entry::<timer_resolution::TimerResolution>(),
    entry::<host::Host>(),
    entry::<timer_callbacks::TimerCallbacks>(),
    entry::<interrupt::Interrupt>(),
    entry::<interrupts_off::InterruptsOff>(),
    entry::<softirq::Softirq>(),
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
    entry::<non_preemptable::NonPreemptable>(),
    entry::<dispatch::Dispatch>(),
];

/// One cause. The doc comment of its struct says what it is, how it is recognized, and where that
/// is from; it has no parameters.
pub(crate) trait Cause: clap::Args {
    const ABOUT: About;

    /// Who is to blame for this stretch, if it is this cause that made it.
    fn claim(stretch: &Stretch, window: &Window, machine: &Circumstances) -> Option<Who>;
}

/// One line of the table: a cause whose own type has been erased.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) about: About,
    /// The cause as clap knows it, for its help.
    pub(crate) keys: fn() -> Command,
    claim: Claim,
}

/// Explains one late wake-up.
pub(crate) fn explain(window: &Window, machine: &Circumstances) -> Explanation {
    let causes: Vec<charge::Cause> = CAUSES
        .iter()
        .map(|entry| charge::Cause { name: entry.about.name, claim: entry.claim })
        .collect();
    charge::explain(window, machine, &causes)
}

const fn entry<C: Cause>() -> Entry {
    Entry { about: C::ABOUT, keys: || C::augment_args(Command::new("cause")), claim: C::claim }
}

/// The longest that an interrupt takes from its device to its handler with nothing in its way. A
/// round trip over PCI Express and the entry into the kernel take less than half of it.
const DELIVERY: Nanos = Nanos::from_micros(1);

/// The task that has the CPU instead of ours, and whether it is before ours (less), beside it or
/// behind it. Ordinary tasks take turns, so that none is behind another of them.
fn instead(stretch: &Stretch, window: &Window) -> Option<(Task, Ordering)> {
    let (doing, ours) = (&stretch.doing, window.task);
    let task = doing.task.filter(|task| task.pid != ours.pid || task.is_idle())?;
    if stretch.phase < Phase::Runnable || doing.interrupt.is_some() || doing.softirq.is_some() {
        return None;
    }
    let order = match task.prio.cmp(&ours.prio) {
        _ if task.is_idle() => Ordering::Greater,
        Ordering::Greater if !ours.is_realtime() => Ordering::Equal,
        order => order,
    };
    Some((task, order))
}

/// The task that has the CPU instead of ours, to blame where it is before ours (less), beside it or
/// behind it.
fn culprit(order: Ordering, stretch: &Stretch, window: &Window) -> Option<Who> {
    let (task, found) = instead(stretch, window)?;
    (found == order).then_some(Who { task: Some(task), ..Who::default() })
}

/// Whether the CPU was idle, and nothing on top of that.
fn is_idle(stretch: &Stretch) -> bool {
    let doing = &stretch.doing;
    let idle = doing.idle.is_some() || doing.task.is_some_and(|task| task.is_idle());
    idle && doing.interrupt.is_none() && doing.softirq.is_none()
}

#[cfg(test)]
mod tests;
