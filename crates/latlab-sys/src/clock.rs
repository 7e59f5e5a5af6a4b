//! The clock of all measurements: `CLOCK_MONOTONIC`, read through the vDSO.
//!
//! Reading the clock and sleeping go through the C library, since they are part of every sample:
//! the laboratory counts instructions, and another way to make the call would shift its figures.

use latlab_core::time::Nanos;

const MONOTONIC: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// The time now. One vDSO call; no system call where the clocksource is the TSC.
#[inline]
pub fn now() -> Nanos {
    read(MONOTONIC)
}

/// Wall-clock time since 1970. Dates records; never used to measure.
pub fn wall_clock() -> Nanos {
    read(libc::CLOCK_REALTIME)
}

/// CPU time that the calling thread has used.
pub fn thread_cpu_time() -> Nanos {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time that all threads of this process have used, including those that have ended.
pub fn process_cpu_time() -> Nanos {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

#[inline]
fn read(clock: libc::clockid_t) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to; the clocks used exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    #[expect(clippy::cast_sign_loss, reason = "neither clock runs before its zero")]
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Sleeps until `wake`. False if a signal ended the sleep.
#[inline]
pub fn sleep_until(wake: Nanos) -> bool {
    sleep(wake, libc::TIMER_ABSTIME)
}

/// Sleeps for at least `length`, passed to the kernel as a relative time. False if a signal ended
/// the sleep.
#[inline]
pub fn sleep_for(length: Nanos) -> bool {
    sleep(length, 0)
}

#[inline]
fn sleep(time: Nanos, flags: libc::c_int) -> bool {
    sleep_on(MONOTONIC, time, flags)
}

#[inline]
fn sleep_on(clock: libc::clockid_t, time: Nanos, flags: libc::c_int) -> bool {
    let (time, remaining) = (timespec(time), std::ptr::null_mut::<libc::timespec>());
    // Not the C library's clock_nanosleep(): that is a cancellation point, whose work after the
    // wake-up would be part of every sample.
    // SAFETY: `time` is a valid timespec to read from; the remaining time is not asked for.
    let answer = unsafe {
        libc::syscall(libc::SYS_clock_nanosleep, clock, flags, &raw const time, remaining)
    };
    answer == 0
}

/// A clock that can be set, read as if it had been at the time of `CLOCK_MONOTONIC` when this was
/// made. Its times jump where the clock is set, and drift apart where it is slewed.
#[derive(Clone, Copy, Debug)]
pub struct SettableClock {
    id: libc::clockid_t,
    /// By how much the clock was ahead of `CLOCK_MONOTONIC`, behind which it can't be set.
    ahead: Nanos,
}

impl SettableClock {
    /// The wall-clock time (`CLOCK_REALTIME`).
    pub fn realtime() -> SettableClock {
        SettableClock::of(libc::CLOCK_REALTIME)
    }

    /// International atomic time (`CLOCK_TAI`), as far as its distance to the wall-clock time was
    /// set.
    pub fn tai() -> SettableClock {
        SettableClock::of(libc::CLOCK_TAI)
    }

    fn of(id: libc::clockid_t) -> SettableClock {
        SettableClock { id, ahead: read(id) - now() }
    }

    /// The time now.
    #[inline]
    pub fn now(self) -> Nanos {
        read(self.id) - self.ahead
    }

    /// Sleeps until `wake`. False if a signal ended the sleep.
    #[inline]
    pub fn sleep_until(self, wake: Nanos) -> bool {
        sleep_on(self.id, wake + self.ahead, libc::TIMER_ABSTIME)
    }
}

/// Spins until `end`. Returns the first reading of the clock that is not before it.
#[inline]
pub fn spin_until(end: Nanos) -> Nanos {
    loop {
        let now = now();
        if now >= end {
            return now;
        }
    }
}

/// A time as system calls through the C library take it.
pub(crate) fn timespec(time: Nanos) -> libc::timespec {
    let (secs, nanos) = (time.0 / 1_000_000_000, time.0 % 1_000_000_000);
    #[expect(clippy::cast_possible_wrap, reason = "2^64 ns are far fewer than 2^63 s")]
    libc::timespec { tv_sec: secs as i64, tv_nsec: nanos as i64 }
}

/// A time as system calls through rustix take it.
pub(crate) fn rustix_timespec(time: Nanos) -> rustix::time::Timespec {
    let time = timespec(time);
    rustix::time::Timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_nsec }
}

/// The cost of reading the clock once: the least mean of several batches of readings, back to back.
/// It is part of every sample, and the lower bound of all samples.
pub fn read_cost() -> Nanos {
    const READS: u64 = 1_000;
    let batch = || {
        let begin = now();
        for _ in 1..READS {
            std::hint::black_box(now());
        }
        (now() - begin).0 / READS
    };
    Nanos((0..5).map(|_| batch()).min().unwrap_or(0))
}

/// The resolution of timers: 1 ns where high-resolution timers work, else a tick
/// (`clock_getres(2)`).
pub fn resolution() -> Nanos {
    resolution_of(rustix::time::ClockId::Monotonic)
}

/// The time between two ticks, 1/HZ: the resolution of the coarse clock, which the kernel updates at
/// ticks.
pub fn tick_period() -> Nanos {
    resolution_of(rustix::time::ClockId::MonotonicCoarse)
}

fn resolution_of(clock: rustix::time::ClockId) -> Nanos {
    let time = rustix::time::clock_getres(clock);
    #[expect(clippy::cast_sign_loss, reason = "a resolution is positive")]
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Spins until a tick has changed the coarse clock (`CLOCK_MONOTONIC_COARSE`). Returns the first
/// time at which the caller ran after it; none if there is no tick until `end`.
pub fn spin_until_tick(end: Nanos) -> Option<Nanos> {
    let before = read(libc::CLOCK_MONOTONIC_COARSE);
    while now() < end {
        if read(libc::CLOCK_MONOTONIC_COARSE) != before {
            return Some(now());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_sleeps_at_least_as_long_as_asked() {
        let begin = now();
        assert!(sleep_until(begin + Nanos::from_millis(2)));
        assert!(now() >= begin + Nanos::from_millis(2));
        assert!(sleep_for(Nanos::from_millis(2)));
        assert!(now() >= begin + Nanos::from_millis(4));
    }

    #[test]
    fn settable_clocks_are_read_as_the_monotonic_clock() {
        for clock in [SettableClock::realtime(), SettableClock::tai()] {
            let begin = now();
            assert!(clock.sleep_until(clock.now() + Nanos::from_millis(2)));
            assert!(now() >= begin + Nanos::from_millis(1), "{clock:?}");
        }
    }

    #[test]
    fn ticks_come_periodically() {
        let period = tick_period();
        assert!((1_000_000..=10_000_000).contains(&period.0), "{period}");
        // A busy machine may keep this thread from its CPU for any time.
        let next = || spin_until_tick(Nanos::MAX).expect("there are ticks");
        let first = next();
        assert!(next() > first);
        assert_eq!(spin_until_tick(now()), None);
    }

    #[test]
    fn clock_read_cost_is_positive() {
        assert!((1..1_000_000).contains(&read_cost().0));
    }
}
