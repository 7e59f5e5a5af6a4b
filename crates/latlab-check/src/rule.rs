//! The rules of real-time programming that are checked.

use super::call::READ_WRITE;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A rule. Its ID is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// No page fault in the cycle.
    Fault,
    /// No memory is mapped or unmapped in the cycle.
    Allocation,
    /// No access in the cycle is forbidden by the protection of memory, which the cycle does not change.
    Protection,
    /// No file or terminal is written or read in the cycle.
    FileIo,
    /// The thread sleeps only where its cycle waits.
    Sleep,
    /// A contended mutex inherits priority.
    NonPi,
    /// No lower-priority task holds what the thread waits for.
    Inversion,
    /// No lower-priority task wakes the thread.
    Waker,
    /// Memory is locked.
    NotLocked,
    /// Timers are on the monotonic clock.
    WallClock,
    /// Periods are absolute.
    Drift,
    /// No lower-priority task runs while the thread is runnable.
    Throttled,
    /// The kernel grants real-time policies and locked memory.
    Refused,
    /// The thread sleeps again and again.
    Busy,
    /// A wait waits.
    Spin,
    /// Time-outs are longer than a tick.
    Timeout,
    /// Nothing stops the program.
    Stopped,
    /// A cycle ends before its deadline.
    Overrun,
    /// Periods that passed during an overrun are skipped.
    CatchUp,
    /// Memory that is mapped later is locked.
    LockFuture,
    /// No system call in the cycle that may block.
    Syscall,
    /// The thread stays on its CPU.
    Migration,
    /// No other real-time thread preempts the thread.
    SharedCpu,
    /// All symbols are bound at the start.
    LazyBinding,
}

/// How serious a breach is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The time of the cycle has no bound.
    Error,
    /// The cycle takes longer than needed, or may fail under other conditions.
    Warning,
}

/// All rules, the most serious first.
pub const RULES: [Rule; 24] = [
    Rule::Refused,
    Rule::Fault,
    Rule::Inversion,
    Rule::NonPi,
    Rule::Sleep,
    Rule::Allocation,
    Rule::Protection,
    Rule::FileIo,
    Rule::Busy,
    Rule::Spin,
    Rule::Throttled,
    Rule::Waker,
    Rule::WallClock,
    Rule::Drift,
    Rule::NotLocked,
    Rule::Stopped,
    Rule::Overrun,
    Rule::CatchUp,
    Rule::LockFuture,
    Rule::Syscall,
    Rule::Timeout,
    Rule::SharedCpu,
    Rule::Migration,
    Rule::LazyBinding,
];

/// Meaning and remedy of page faults that copy a page.
const COPY_ON_WRITE: (&str, &str) = (
    "The cycle wrote to a page that was there but not its own, such as the page of zeros, one of a file, or \
     one that fork() shares: the kernel had to copy it.",
    "Call mlockall(MCL_CURRENT | MCL_FUTURE) or write to all memory before the first cycle, as reading is not \
     enough, and again after fork().",
);
/// The same of calls that change the protection of memory.
const CHANGED_PROTECTION: (&str, &str) = (
    "The cycle changed the protection of memory, for which the kernel may have to interrupt other CPUs.",
    "Change the protection before the first cycle, or tell other threads by a flag in memory.",
);

/// The same of read-write locks.
const READ_WRITE_LOCK: (&str, &str) = (
    "The thread waited for a read-write lock, which can't inherit priority: those that hold it may be preempted \
     for any time.",
    "Use a mutex with PTHREAD_PRIO_INHERIT, or share the data without a lock.",
);

/// ID, level, meaning and remedy of a rule.
type About = (&'static str, Level, &'static str, &'static str);

impl Rule {
    /// The ID, as in `--fail-on`.
    pub fn id(self) -> &'static str {
        self.about().0
    }

    /// How serious a breach is by default.
    pub fn level(self) -> Level {
        self.about().1
    }

    /// What a breach means, in one sentence.
    pub fn meaning(self) -> &'static str {
        self.about().2
    }

    /// What to do, in one sentence.
    pub fn remedy(self) -> &'static str {
        self.about().3
    }

    /// What a breach with this subject means, and what to do. Both may differ among the breaches of
    /// one rule.
    pub(super) fn meaning_and_remedy(self, subject: &str) -> (&'static str, &'static str) {
        match self {
            Rule::Fault if subject.contains("(copy on write)") => COPY_ON_WRITE,
            Rule::Protection if subject.starts_with("call") => CHANGED_PROTECTION,
            Rule::Inversion | Rule::NonPi if subject.ends_with(READ_WRITE) => READ_WRITE_LOCK,
            rule => (rule.meaning(), rule.remedy()),
        }
    }

    #[rustfmt::skip]
    #[expect(clippy::too_many_lines, reason = "it is a table")]
    fn about(self) -> About {
        match self {
            Rule::Fault => ("fault", Level::Error,
                "The kernel had to provide a page of memory during the cycle.",
                "Call mlockall(MCL_CURRENT | MCL_FUTURE) and touch all memory and the stack before the first cycle."),
            Rule::Allocation => ("allocation", Level::Error,
                "The cycle asked the kernel to map, unmap or resize memory, as malloc() and free() do.",
                "Allocate before the first cycle, or from a pool; with glibc, set M_MMAP_MAX to 0 and M_TRIM_THRESHOLD to -1 by mallopt()."),
            Rule::Protection => ("protection", Level::Error,
                "The cycle accessed memory that its protection forbids, and a signal handler ran, as at a safepoint of a garbage collector; no page was missing.",
                "Keep the memory of the cycle accessible: let the thread read a flag at the end of its cycle instead of faulting."),
            Rule::FileIo => ("file-io", Level::Error,
                "The cycle used a file, a pipe or a terminal, as logging does; the call may wait for a disk or a reader.",
                "Pass the data through memory to a thread that is not real-time, which writes it."),
            Rule::Sleep => ("sleep", Level::Error,
                "The thread slept during the cycle on something other than what its cycle waits for.",
                "Use calls that do not block, or move the work to another thread."),
            Rule::NonPi => ("non-pi", Level::Error,
                "The thread waited for a mutex without priority inheritance: its owner may be preempted for any time.",
                "Set PTHREAD_PRIO_INHERIT by pthread_mutexattr_setprotocol(), or share the data without a lock."),
            Rule::Inversion => ("inversion", Level::Error,
                "A lower-priority task held a mutex without priority inheritance while the thread waited for it.",
                "Set PTHREAD_PRIO_INHERIT by pthread_mutexattr_setprotocol(), or share the data without a lock."),
            Rule::Waker => ("waker", Level::Error,
                "A lower-priority task woke the thread, which therefore depends on when that task runs.",
                "Let a timer, an interrupt or a task of at least its priority wake the thread."),
            Rule::NotLocked => ("not-locked", Level::Error,
                "Memory of the program is not locked: the kernel may take away its pages, also those of its code.",
                "Call mlockall(MCL_CURRENT | MCL_FUTURE) before the first cycle."),
            Rule::WallClock => ("wall-clock", Level::Error,
                "The thread waits for a time on CLOCK_REALTIME, which jumps when somebody sets the clock.",
                "Use CLOCK_MONOTONIC; for condition variables, pthread_condattr_setclock()."),
            Rule::Drift => ("drift", Level::Error,
                "The thread sleeps for a time instead of until a time, so that each cycle is later by its own length and latency.",
                "Use clock_nanosleep() with TIMER_ABSTIME, and add the period to the time of the last wake-up."),
            Rule::Throttled => ("throttled", Level::Error,
                "A lower-priority task ran while the thread was runnable: the kernel limits the time of real-time tasks.",
                "Keep the cycle below its share of the CPU; see sched_rt_runtime_us, the fair server of the kernel, and the runtime of SCHED_DEADLINE."),
            Rule::Refused => ("refused", Level::Error,
                "The program asked for a real-time policy or for locked memory, the kernel refused it, and the program went on without.",
                "Give it the right: setcap cap_sys_nice,cap_ipc_lock+ep on the program, or the limits rtprio and memlock in /etc/security/limits.conf (LimitRTPRIO and LimitMEMLOCK of systemd)."),
            Rule::Busy => ("busy", Level::Error,
                "The thread ran for nearly a second without sleeping: the kernel throttles it (sched_rt_runtime_us, the fair server) or, where it does not, the thread starves all tasks of lower priority on its CPU: SCHED_OTHER and, with PREEMPT_RT, ktimers and rcuc.",
                "Let it sleep in each cycle, as with clock_nanosleep(); a loop that has to poll needs an isolated CPU (isolcpus, nohz_full) and no real-time policy."),
            Rule::Spin => ("spin", Level::Error,
                "A wait returned at once again and again: the thread ran all the time where it seems to wait.",
                "Give the wait a time to come, of the clock that it is on; after poll(), read what is there."),
            Rule::Timeout => ("timeout", Level::Warning,
                "The kernel counts the time-outs of sockets (SO_RCVTIMEO) in ticks: a shorter one is rounded up to a tick, and ends with a later tick.",
                "Wait with ppoll(), whose time-out is exact for a real-time thread, and receive with MSG_DONTWAIT."),
            Rule::Stopped => ("stopped", Level::Warning,
                "A signal, a debugger or the freezer of a control group stopped the program: cycles that this delayed are not judged.",
                "Let nothing stop it; that is no matter of the program."),
            Rule::Overrun => ("overrun", Level::Warning,
                "A cycle ended after its deadline.",
                "See the causes of overruns, the longest first."),
            Rule::CatchUp => ("catch-up", Level::Warning,
                "After an overrun, the thread ran the cycles it had missed at once, one after the other.",
                "Compare the time with the end of the period, and skip periods that have passed."),
            Rule::LockFuture => ("lock-future", Level::Warning,
                "Memory that the program maps later is not locked.",
                "Add MCL_FUTURE to mlockall()."),
            Rule::Syscall => ("syscall", Level::Warning,
                "The cycle made a system call that may block or take long.",
                "Make the call before the first cycle, or in a thread that is not real-time."),
            Rule::SharedCpu => ("shared-cpu", Level::Warning,
                "Another real-time thread preempted the thread on its CPU.",
                "Give the threads CPUs of their own, or add the other's time to the response time."),
            Rule::Migration => ("migration", Level::Warning,
                "The kernel moved the thread to another CPU, whose caches hold none of its data.",
                "Pin the thread by pthread_setaffinity_np()."),
            Rule::LazyBinding => ("lazy-binding", Level::Warning,
                "The first call of each library function looks up its symbol.",
                "Link with -Wl,-z,now, or set LD_BIND_NOW=1."),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Rule, String> {
        let found = RULES.into_iter().find(|rule| rule.id() == text);
        found.ok_or_else(|| {
            let ids = RULES.map(Rule::id);
            format!("there is no rule '{text}': {}", latlab_core::suggest::hint(text, &ids))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_found_by_their_ids() {
        for rule in RULES {
            assert_eq!(rule.id().parse(), Ok(rule));
            let json = serde_json::to_string(&rule).unwrap();
            assert_eq!(json, format!("\"{}\"", rule.id()));
            assert!(rule.meaning().ends_with('.') && rule.remedy().ends_with('.'));
        }
        assert!("faults".parse::<Rule>().unwrap_err().contains("fault"));
    }
}
