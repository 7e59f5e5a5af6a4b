//! The loop: waits for the start of each cycle, and judges how the last one ended.

use crate::settings::{self, IdleLimit, OnOverrun, Refused, Settings, nanos};
use crate::spin;
use crate::statistics::{Begin, Statistics, Summary};
use core::fmt;

/// A loop of the calling thread. Dropping it ends its statistics and its limit on idle states. The
/// policy stays, and memory stays locked.
pub struct Period {
    /// Time from one cycle to the next.
    length: u64,
    /// By how much it wakes early.
    spin: u64,
    on_overrun: OnOverrun,
    /// When the current cycle was due, and when it started. None before the first.
    cycle: Option<Cycle>,
    stopped: bool,
    statistics: Statistics,
    _idle_limit: Option<IdleLimit>,
}

#[derive(Clone, Copy)]
struct Cycle {
    due: u64,
    began: u64,
}

/// The loop has ended: a cycle ended after the next one was due, and [`OnOverrun::Stop`] was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a cycle ended after the next one was due")
    }
}

impl core::error::Error for Stopped {}

impl Period {
    /// Prepares the calling thread. Its first cycle starts a period after the first
    /// [`Period::wait`]. A thread that is refused a loop keeps its policy; its memory may be locked.
    ///
    /// A child of `fork(2)` does not inherit locked memory or the policy
    /// [`Policy::Deadline`](crate::Policy::Deadline), and the statistics name the thread of its parent:
    /// start the loop in the process that runs it, after `daemon(3)`.
    pub fn start(settings: &Settings<'_>) -> Result<Period, Refused> {
        let period = settings.period_ns()?;
        // What lasts comes last, as each of these may be refused.
        let statistics = Statistics::new()?;
        let idle_limit = settings.cpu_dma_latency.map(IdleLimit::hold).transpose()?;
        settings::touch_stack(settings.stack)?;
        if settings.lock_memory {
            settings::lock_memory()?;
        }
        settings::set_policy(settings.policy, period)?;
        let spin = spin::wake_up_latency(period, nanos(settings.spin_at_most));
        let on_overrun = settings.on_overrun;
        let begin = Begin { period, spin, on_overrun: on_overrun as u64, name: settings.name };
        statistics.describe(&begin);
        let (cycle, stopped) = (None, false);
        Ok(Period {
            length: period,
            spin,
            on_overrun,
            cycle,
            stopped,
            statistics,
            _idle_limit: idle_limit,
        })
    }

    /// Ends the current cycle and waits for the start of the next. Returns the number of periods
    /// that were skipped in between. Signal handlers do not end the wait.
    #[inline]
    pub fn wait(&mut self) -> Result<u64, Stopped> {
        let now = spin::now();
        let (due, missed) = match self.cycle {
            None => {
                self.statistics.begin(now + self.length);
                (now + self.length, 0)
            }
            Some(cycle) => self.end(cycle, now)?,
        };
        // After an overrun that is caught up with, the next cycle is due already.
        let began = if due <= now { now } else { spin::until(due, self.spin) };
        self.statistics.start_cycle(began.saturating_sub(due));
        self.cycle = Some(Cycle { due, began });
        Ok(missed)
    }

    /// Ends a cycle. Returns when the next one is due, and how many are skipped before it.
    #[inline]
    fn end(&mut self, cycle: Cycle, now: u64) -> Result<(u64, u64), Stopped> {
        if self.stopped {
            return Err(Stopped);
        }
        self.statistics.end_cycle(now.saturating_sub(cycle.began));
        let due = cycle.due + self.length;
        if now <= due {
            return Ok((due, 0));
        }
        self.statistics.overrun();
        let missed = match self.on_overrun {
            OnOverrun::CatchUp => 0,
            OnOverrun::Skip => (now - due) / self.length + 1,
            OnOverrun::Stop => {
                self.stopped = true;
                self.statistics.stop();
                return Err(Stopped);
            }
        };
        self.statistics.miss(missed);
        Ok((due + missed * self.length, missed))
    }

    /// Returns the loop so far. It makes no system call and may be called in a cycle.
    pub fn summary(&self) -> Summary {
        Summary { spin_ns: self.spin, ..self.statistics.summary() }
    }
}

impl fmt::Debug for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Period").field("length", &self.length).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Policy;
    use core::time::Duration;

    const PERIOD: Duration = Duration::from_millis(2);

    fn start(on_overrun: OnOverrun) -> Period {
        let settings = Settings { lock_memory: false, on_overrun, ..Settings::every(PERIOD) };
        Period::start(&settings).unwrap()
    }

    fn due(period: &Period) -> u64 {
        period.cycle.unwrap().due
    }

    /// Runs for more than this many periods. From the start of the cycle, which may be late.
    fn run_for(periods: u64, period: &Period) {
        let end = period.cycle.unwrap().began + periods * period.length + 1;
        while spin::now() < end {}
    }

    #[test]
    fn cycles_are_due_whole_periods_after_the_first() {
        let mut period = start(OnOverrun::Skip);
        period.wait().unwrap();
        let first = due(&period);
        let missed: u64 = (0..20).map(|_| period.wait().unwrap()).sum();
        assert_eq!(due(&period), first + (20 + missed) * 2_000_000);
        let summary = period.summary();
        assert_eq!((summary.cycles, summary.missed), (21, missed));
        assert!(summary.lateness_min_ns <= summary.lateness_max_ns);
    }

    #[test]
    fn overrun_is_skipped_to_the_next_whole_period() {
        let mut period = start(OnOverrun::Skip);
        period.wait().unwrap();
        let first = due(&period);
        run_for(3, &period);
        let missed = period.wait().unwrap();
        assert!(missed >= 3, "{missed}");
        assert_eq!(due(&period), first + (missed + 1) * 2_000_000);
        let summary = period.summary();
        assert_eq!((summary.overruns, summary.missed), (1, missed));
        assert!(summary.running_max_ns > 6_000_000, "{summary:?}");
    }

    #[test]
    fn overrun_is_caught_up_with_cycle_by_cycle() {
        let mut period = start(OnOverrun::CatchUp);
        period.wait().unwrap();
        let first = due(&period);
        run_for(3, &period);
        for cycle in 1..=3 {
            assert_eq!(period.wait(), Ok(0));
            assert_eq!(due(&period), first + cycle * 2_000_000);
        }
        let summary = period.summary();
        assert_eq!((summary.cycles, summary.missed), (4, 0));
        assert!(summary.overruns >= 3 && summary.lateness_max_ns >= 4_000_000, "{summary:?}");
    }

    #[test]
    fn overrun_stops_the_loop_for_good() {
        let mut period = start(OnOverrun::Stop);
        period.wait().unwrap();
        run_for(1, &period);
        assert_eq!(period.wait(), Err(Stopped));
        assert_eq!(period.wait(), Err(Stopped));
        assert_eq!((period.summary().cycles, period.summary().overruns), (1, 1));
    }

    #[test]
    fn wrong_period_and_too_small_stack_are_refused() {
        let settings = Settings::every(Duration::from_micros(9));
        let refused = Period::start(&settings).unwrap_err();
        assert_eq!(
            (refused.what(), refused.errno()),
            ("the period must be 10 us to 1 h", libc::EINVAL)
        );
        let large = Settings { stack: 1 << 40, lock_memory: false, ..Settings::every(PERIOD) };
        assert_eq!(Period::start(&large).unwrap_err().errno(), libc::ENOMEM);
    }

    #[test]
    fn thread_that_is_refused_a_loop_keeps_its_policy() {
        let thread = std::thread::spawn(|| {
            let (nobody, before) = (65534, settings::policy());
            // SAFETY: setfsuid takes no pointers. It changes the rights of this thread to files only.
            unsafe { libc::syscall(libc::SYS_setfsuid, nobody) };
            let settings = Settings {
                policy: Policy::Fifo(1),
                lock_memory: false,
                cpu_dma_latency: Some(Duration::ZERO),
                ..Settings::every(PERIOD)
            };
            let what = Period::start(&settings).unwrap_err().what();
            assert!(what.contains("/dev/cpu_dma_latency"), "{what}");
            assert_eq!(settings::policy(), before);
        });
        thread.join().unwrap();
    }
}
