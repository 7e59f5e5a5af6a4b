//! Waiting that a busy machine does not cut short.

use std::fs;
use std::thread::{self, available_parallelism};
use std::time::{Duration, Instant};

/// Longest time to wait for something, counted at the rate at which a task gets a CPU: while ten tasks want
/// to run on two CPUs, five seconds of the clock count as one. A fixed time of the clock fails on a machine
/// that is busy enough.
#[derive(Debug)]
pub struct Patience {
    left: Duration,
    looked: Instant,
}

impl Patience {
    /// Patience of this length on an idle machine.
    pub fn new(length: Duration) -> Patience {
        Patience { left: length, looked: Instant::now() }
    }

    /// Whether it is over. Called often, as the load between two calls is taken as that at the second.
    pub fn is_over(&mut self) -> bool {
        let now = Instant::now();
        let share = share(runnable(), available_parallelism().map_or(1, Into::into));
        self.left = self.left.saturating_sub((now - self.looked).mul_f64(share));
        self.looked = now;
        self.left.is_zero()
    }
}

/// Waits until `condition` is true, and looks every few milliseconds. Panics with `what` after `length`, as
/// [`Patience`] counts it.
pub fn wait_at_most(length: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    const STEP: Duration = Duration::from_millis(5);
    let mut patience = Patience::new(length);
    while !condition() {
        assert!(!patience.is_over(), "not within {length:?} of an idle machine: {what}");
        thread::sleep(STEP);
    }
}

/// The share of a CPU that a task gets on average.
fn share(runnable: u32, cpus: usize) -> f64 {
    let cpus = u32::try_from(cpus).map_or(f64::INFINITY, f64::from);
    (cpus / f64::from(runnable.max(1))).min(1.0)
}

/// Number of tasks on this machine that run or want to (`proc_loadavg(5)`).
fn runnable() -> u32 {
    let text = fs::read_to_string("/proc/loadavg").expect("/proc is mounted");
    let fourth = text.split(' ').nth(3).and_then(|tasks| tasks.split_once('/'));
    fourth.and_then(|(runnable, _)| runnable.parse().ok()).expect("the fourth field is two numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_less_where_tasks_wait_for_a_cpu() {
        let percent = |runnable, cpus| format!("{:.0}", 100.0 * share(runnable, cpus));
        let shares = [(0, 2), (1, 2), (2, 2), (4, 2), (20, 2), (20, 1)];
        let shares = shares.map(|(runnable, cpus)| percent(runnable, cpus));
        assert_eq!(shares, ["100", "100", "100", "50", "10", "5"]);
    }

    #[test]
    fn task_that_looks_is_runnable() {
        assert!(runnable() >= 1);
    }

    #[test]
    fn patience_ends() {
        let begun = Instant::now();
        let mut patience = Patience::new(Duration::from_millis(20));
        assert!(!patience.is_over());
        while !patience.is_over() {
            thread::yield_now();
        }
        assert!(begun.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    #[should_panic(expected = "not within 1ms of an idle machine: never")]
    fn wait_for_what_never_happens_panics() {
        wait_at_most(Duration::from_millis(1), "never", || false);
    }
}
