//! A limit on the time that a process may take, which a busy machine does not shorten.

use crate::clock;
use latlab_core::time::Nanos;
use std::fs;
use std::path::Path;

/// How long to wait for a process. The time in which it wants to run and waits for a CPU does not count
/// (sched-stats.rst, `/proc/<pid>/schedstat`): there it can't go on. That of its threads that waits most is
/// taken. Where the kernel does not count it, all wall-clock time counts.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pid: u32,
    length: Nanos,
    begun: Nanos,
    /// What its threads had waited by then.
    waited: Nanos,
}

impl Patience {
    /// Patience of this length with this process, from now on.
    pub fn with(pid: u32, length: Nanos) -> Patience {
        Patience { pid, length, begun: clock::now(), waited: waited(pid) }
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        let passed = Nanos(clock::now().0.saturating_sub(self.begun.0));
        // Files are read only where an idle machine would have needed no more time.
        passed > self.length && passed.0.saturating_sub(self.waited().0) > self.length.0
    }

    /// What its threads have waited for a CPU since the beginning.
    fn waited(&self) -> Nanos {
        Nanos(waited(self.pid).0.saturating_sub(self.waited.0))
    }
}

/// The longest time that one of the threads of a process has waited for a CPU.
fn waited(pid: u32) -> Nanos {
    let threads = fs::read_dir(Path::new("/proc").join(pid.to_string()).join("task"));
    let schedstat = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("schedstat")).ok();
    let texts = threads.into_iter().flatten().flatten().filter_map(schedstat);
    texts.filter_map(|text| second(&text)).max().unwrap_or(Nanos(0))
}

/// The second field of a thread's `schedstat`.
fn second(schedstat: &str) -> Option<Nanos> {
    schedstat.split_whitespace().nth(1)?.parse().ok().map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Running, command};

    /// Two loops on one CPU: one waits while the other runs.
    #[test]
    fn time_in_which_a_process_waits_for_a_cpu_does_not_count() {
        let busy = || {
            let mut shell = command("taskset");
            Running::start(shell.args(["--cpu-list", "0", "sh", "-c", "while :; do :; done"]))
                .unwrap()
        };
        let (mut first, _second) = (busy(), busy());
        let patience = Patience::with(first.child().id(), Nanos::from_millis(1));
        latlab_testing::wait_at_most(std::time::Duration::from_mins(1), "the loop waits", || {
            patience.waited() > Nanos::from_millis(20)
        });
    }

    #[test]
    fn time_in_which_a_process_sleeps_counts() {
        let mut sleep = command("sleep");
        let mut sleep = Running::start(sleep.arg("1000")).unwrap();
        let patience = Patience::with(sleep.child().id(), Nanos::from_millis(20));
        assert!(!Patience { length: Nanos::from_secs(1000), ..patience }.is_over());
        latlab_testing::wait_at_most(
            std::time::Duration::from_mins(1),
            "the sleep takes time",
            || patience.is_over(),
        );
    }

    #[test]
    fn second_field_is_the_time_of_waiting() {
        assert_eq!(second("4516 2459211 2\n"), Some(Nanos(2_459_211)));
        assert_eq!(second(""), None);
    }
}
