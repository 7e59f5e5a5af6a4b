//! The clock of all measurements: `CLOCK_MONOTONIC`, read through the vDSO.
//!
//! Reading the clock and sleeping go through the C library, since they are part of every sample:
//! the laboratory counts instructions, and another way to make the call would shift its figures.

use latlab_core::time::Nanos;
use std::io;

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

/// Sleeps until `wake`, for a pause. False if it ended early: a signal came, or it was refused. A
/// task that measures or has real-time priority calls [`wait_until`].
#[inline]
pub fn sleep_until(wake: Nanos) -> bool {
    wait_until(wake).unwrap_or(false)
}

/// Sleeps for at least `length`, for a pause. False if it ended early, as [`sleep_until`] may.
#[inline]
pub fn sleep_for(length: Nanos) -> bool {
    wait_for(length).unwrap_or(false)
}

/// Sleeps until `wake`. False if a signal ended the sleep.
///
/// # Errors
///
/// There was no sleep, nor will there be one if it is repeated, as where a filter denies the system
/// call.
#[inline]
pub fn wait_until(wake: Nanos) -> io::Result<bool> {
    wait_on(MONOTONIC, wake, libc::TIMER_ABSTIME)
}

/// Sleeps for at least `length`, passed to the kernel as a relative time. False if a signal ended
/// the sleep. Fails as [`wait_until`] does.
#[inline]
pub fn wait_for(length: Nanos) -> io::Result<bool> {
    wait_on(MONOTONIC, length, 0)
}

#[inline]
fn wait_on(clock: libc::clockid_t, time: Nanos, flags: libc::c_int) -> io::Result<bool> {
    let (time, remaining) = (timespec(time), std::ptr::null_mut::<libc::timespec>());
    // Not the C library's clock_nanosleep(): that is a cancellation point, whose work after the
    // wake-up would be part of every sample.
    // SAFETY: `time` is a valid timespec to read from; the remaining time is not asked for.
    let answer = unsafe {
        libc::syscall(libc::SYS_clock_nanosleep, clock, flags, &raw const time, remaining)
    };
    if answer == 0 { Ok(true) } else { not_slept() }
}

/// Why the last sleep of this thread did not end at its time.
#[cold]
fn not_slept() -> io::Result<bool> {
    crate::interrupted("clock_nanosleep(2)")
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
        // Another task may run between two readings: the closest of several count.
        let readings = (0..5).map(|_| {
            let (before, there, after) = (now(), read(id), now());
            (after - before, there - before)
        });
        let (_, ahead) = readings.min().unwrap_or_default();
        SettableClock { id, ahead }
    }

    /// The time now.
    #[inline]
    pub fn now(self) -> Nanos {
        read(self.id) - self.ahead
    }

    /// Sleeps until `wake`. False if a signal ended the sleep. Fails as [`wait_until`] does.
    ///
    /// If the clock is set back meanwhile, the sleep ends as much later. A
    /// [`crate::clock_watch::ClockWatch`] detects this.
    #[inline]
    pub fn wait_until(self, wake: Nanos) -> io::Result<bool> {
        wait_on(self.id, wake + self.ahead, libc::TIMER_ABSTIME)
    }

    /// The same clock, read from now on as if it had been at the time of `CLOCK_MONOTONIC` now.
    #[must_use]
    pub fn read_anew(self) -> SettableClock {
        SettableClock::of(self.id)
    }

    /// By how much it was set since it was read as `CLOCK_MONOTONIC`, all steps together; steps up to
    /// `slewed` do not count.
    pub fn step(self, slewed: Nanos) -> Option<Step> {
        // Another task may run between two of these.
        let (before, there, after) = (now(), self.now(), now());
        match there {
            _ if there > after + slewed => Some(Step::Ahead(there - after)),
            _ if there + slewed < before => Some(Step::Back(before - there)),
            _ => None,
        }
    }
}

/// By how much a clock was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ahead by this time.
    Ahead(Nanos),
    /// Back by this time.
    Back(Nanos),
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
            assert!(clock.wait_until(clock.now() + Nanos::from_millis(2)).unwrap());
            assert!(now() >= begin + Nanos::from_millis(1), "{clock:?}");
        }
    }

    #[test]
    fn clock_that_was_set_is_told_by_its_step() {
        let clock = SettableClock::realtime();
        let second = Nanos::from_secs(1);
        let slewed = Nanos::from_millis(1);
        // As it is read after it was set by a second.
        let ahead = SettableClock { ahead: clock.ahead - second, ..clock };
        let back = SettableClock { ahead: clock.ahead + second, ..clock };
        assert!(matches!(ahead.step(slewed), Some(Step::Ahead(_))));
        assert!(matches!(back.step(slewed), Some(Step::Back(_))));
        assert_eq!(ahead.read_anew().step(slewed), None);
    }

    #[test]
    fn refused_sleep_is_an_error_and_not_a_signal() {
        let refused = wait_on(-1, Nanos(0), 0).unwrap_err();
        assert!(refused.to_string().starts_with("clock_nanosleep(2): "), "{refused}");
        assert!(wait_on(MONOTONIC, Nanos(0), 0).unwrap());
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
