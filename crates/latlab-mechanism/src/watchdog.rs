//! Watchdog for starving `SCHED_OTHER` tasks.
//!
//! On each CPU a `SCHED_OTHER` task asks to run now and then; the watchdog checks that it does.

use latlab_core::time::Nanos;
use std::collections::BTreeMap;

/// The time without running after which a task counts as starved.
pub const STARVED: Nanos = Nanos::from_secs(1);
/// Upper limit of the counted time between two checks: if there was no check for longer, no task
/// ran either, for example because a virtual machine was stopped.
const MAX_STEP: Nanos = Nanos::from_millis(200);

/// The time for which the task of each CPU has not run.
#[derive(Clone, Debug, Default)]
pub struct Watchdog {
    checked: Option<Nanos>,
    /// For each CPU, when its task ran last, and the counted time since.
    waiting: BTreeMap<u32, (Nanos, Nanos)>,
}

impl Watchdog {
    /// Checks when the task of each CPU ran last. Returns the CPUs on which `SCHED_OTHER` tasks
    /// starve; each is reported once per [`STARVED`].
    pub fn look(&mut self, at: Nanos, ran: &[(u32, Nanos)]) -> Vec<u32> {
        let since = self.checked.replace(at).map_or(Nanos(0), |before| (at - before).min(MAX_STEP));
        let mut starved = Vec::new();
        for &(cpu, ran) in ran {
            let (last, waiting) = self.waiting.entry(cpu).or_insert((ran, Nanos(0)));
            *waiting = if *last == ran { *waiting + since } else { Nanos(0) };
            *last = ran;
            if *waiting >= STARVED {
                *waiting = Nanos(0);
                starved.push(cpu);
            }
        }
        starved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks every 100 ms. On CPU 0 the task runs in the first `until` steps only, on CPU 1
    /// always. Returns the steps at which starvation is reported.
    fn reports(until: u64) -> Vec<u64> {
        let mut watchdog = Watchdog::default();
        let ms = Nanos::from_millis;
        let look = |n: u64| watchdog.look(ms(n * 100), &[(0, ms(n.min(until) * 100)), (1, ms(n))]);
        let looks: Vec<Vec<u32>> = (0..35).map(look).collect();
        assert!(looks.iter().flatten().all(|cpu| *cpu == 0));
        (0..35).zip(looks).filter(|(_, cpus)| !cpus.is_empty()).map(|(n, _)| n).collect()
    }

    #[test]
    fn watchdog_reports_task_that_has_not_run_once_per_second() {
        assert_eq!(reports(5), [15, 25]);
        assert_eq!(reports(100), [0; 0]);
    }

    #[test]
    fn watchdog_reports_none_after_a_pause_between_checks() {
        let mut watchdog = Watchdog::default();
        watchdog.look(Nanos(0), &[(0, Nanos(0))]);
        let later = Nanos::from_secs(60);
        assert!(watchdog.look(later, &[(0, Nanos(0))]).is_empty());
    }
}
