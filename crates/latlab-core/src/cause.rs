//! The causes of late wake-ups, by the names that records have.

/// A cause of late wake-ups; `latlab list causes` describes it. Records have the name, as a record of another version
/// may have causes that this one does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Somebody stopped the task.
    Stopped,
    /// Timer slack, or the wait for the next tick.
    TimerResolution,
    /// The host of a virtual machine took the CPU.
    Host,
    /// Callbacks of other timers ran.
    TimerCallbacks,
    /// An interrupt handler ran.
    Interrupt,
    /// An interrupt was delivered late, as interrupts were disabled.
    InterruptsOff,
    /// A softirq ran.
    Softirq,
    /// The task waited for a lock of the kernel.
    Lock,
    /// The task had a page fault.
    PageFault,
    /// The task was still running when it was due again.
    Overrun,
    /// The thread of an interrupt had to run first.
    InterruptThread,
    /// The task was being migrated.
    Migration,
    /// The CPU time of the task was used up.
    Throttled,
    /// A task ran whose switches the kernel does not report.
    Unreported,
    /// The CPU left its idle state.
    IdleExit,
    /// A task of higher priority ran.
    HigherPriority,
    /// A task of the same priority ran.
    EqualPriority,
    /// An interrupt was delivered late although nothing disabled interrupts.
    Stalled,
    /// The kernel ran code that is not preemptible.
    NonPreemptible,
    /// The context switch, and the return to user space.
    Dispatch,
}

/// All causes with their names, in the order in which they claim time.
const NAMES: [(Cause, &str); 20] = [
    (Cause::Stopped, "stopped"),
    (Cause::TimerResolution, "timer-resolution"),
    (Cause::Host, "host"),
    (Cause::TimerCallbacks, "timer-callbacks"),
    (Cause::Interrupt, "interrupt"),
    (Cause::InterruptsOff, "interrupts-off"),
    (Cause::Softirq, "softirq"),
    (Cause::Lock, "lock"),
    (Cause::PageFault, "page-fault"),
    (Cause::Overrun, "overrun"),
    (Cause::InterruptThread, "interrupt-thread"),
    (Cause::Migration, "migration"),
    (Cause::Throttled, "throttled"),
    (Cause::Unreported, "unreported"),
    (Cause::IdleExit, "idle-exit"),
    (Cause::HigherPriority, "higher-priority"),
    (Cause::EqualPriority, "equal-priority"),
    (Cause::Stalled, "stalled"),
    (Cause::NonPreemptible, "non-preemptible"),
    (Cause::Dispatch, "dispatch"),
];

impl Cause {
    /// Every cause, in the order in which they claim time.
    pub fn all() -> impl Iterator<Item = Cause> {
        NAMES.into_iter().map(|(cause, _)| cause)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        NAMES[self as usize].1
    }

    /// The cause of this name; none where this version has none.
    pub fn named(name: &str) -> Option<Cause> {
        NAMES.into_iter().find(|(_, known)| *known == name).map(|(cause, _)| cause)
    }
}

impl PartialEq<Cause> for str {
    fn eq(&self, cause: &Cause) -> bool {
        self == cause.name()
    }
}

impl PartialEq<Cause> for String {
    fn eq(&self, cause: &Cause) -> bool {
        **self == *cause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_causes_and_differ() {
        assert!(Cause::all().all(|cause| Cause::named(cause.name()) == Some(cause)));
        assert_eq!(Cause::Dispatch as usize + 1, NAMES.len());
        assert_eq!(Cause::named("weather"), None);
        assert!(*"host" == Cause::Host && *"host" != Cause::Interrupt);
        let recorded = String::from("host");
        assert!(recorded == Cause::Host);
    }
}
