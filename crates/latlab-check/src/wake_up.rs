//! A wake-up of a thread: why it was late, and the interrupts until the thread slept again.

use latlab_core::explain::Window;
use latlab_core::explain::charge::{Culprit, Explanation};
use latlab_core::explain::names::Names;
use latlab_core::explain::segment::interruptions;
use latlab_core::time::Nanos;

/// A wake-up, explained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WakeUp {
    /// ID of the thread.
    pub tid: u32,
    /// When it should have run.
    pub due: Nanos,
    /// When its CPU switched to it.
    pub ran: Nanos,
    /// When it slept again.
    pub slept: Nanos,
    /// What took the time until it ran, in order of time.
    pub charges: Vec<Charged>,
    /// Interrupts and softirqs on top of it until it slept again, in order of time.
    pub interrupts: Vec<Charged>,
    /// Waits for locks of the kernel until it slept again, in order of time, until it was woken from
    /// each.
    pub locks: Vec<Charged>,
}

/// Time that is charged to a cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charged {
    /// When it begins.
    pub from: Nanos,
    /// Its length.
    pub length: Nanos,
    /// The cause, as `latlab list causes` names it.
    pub cause: &'static str,
    /// The task, interrupt or softirq.
    pub culprit: String,
    /// The kernel's function, where it is known.
    pub function: Option<String>,
}

impl WakeUp {
    /// The wake-up of a window, with its explanation.
    pub fn of(window: &Window, explanation: &Explanation, names: &Names) -> WakeUp {
        let charges = explanation.charges.iter().map(|charge| Charged {
            from: charge.from,
            length: charge.length(),
            cause: charge.cause,
            culprit: names.culprit(&charge.culprit),
            function: names.function(&charge.culprit),
        });
        WakeUp {
            tid: window.task.pid,
            due: window.due,
            ran: window.ran,
            slept: window.out,
            charges: charges.collect(),
            interrupts: interrupts(window, names),
            locks: locks(window, names),
        }
    }
}

fn locks(window: &Window, names: &Names) -> Vec<Charged> {
    let waits = window.lock_waits().into_iter().map(|wait| {
        let (from, length) = (wait.from, wait.released - wait.from);
        let culprit = Culprit::of_lock(wait);
        let function = names.function(&culprit);
        Charged { from, length, cause: "lock", culprit: names.culprit(&culprit), function }
    });
    waits.collect()
}

fn interrupts(window: &Window, names: &Names) -> Vec<Charged> {
    let mut all: Vec<Charged> = Vec::new();
    for (from, to, activity) in interruptions(window) {
        let line = activity.interrupt.map(|(line, _)| line);
        let cause = if line.is_some() { "interrupt" } else { "softirq" };
        let culprit = Culprit { line, softirq: activity.softirq, ..Culprit::default() };
        let (culprit, length) = (names.culprit(&culprit), to - from);
        match all.last_mut() {
            Some(last) if last.from + last.length == from && last.culprit == culprit => {
                last.length = last.length + length;
            }
            _ => all.push(Charged { from, length, cause, culprit, function: None }),
        }
    }
    all
}
