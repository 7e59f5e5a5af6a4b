//! Waiting for a moment: asleep, or asleep and then spinning for as long as waking takes.
//!
//! A thread that wakes early by the wake-up latency, and spins until its moment, starts on time
//! whatever the latency was. This is how Rapid Reaction Linux (Heursch and Rzehak 2001) had periods
//! start on time whose timers were late.

use core::hint;

/// The time on `CLOCK_MONOTONIC`, in nanoseconds.
#[inline]
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid to write to, and every Linux has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Waits until `due`: asleep until `early` nanoseconds before it, then spinning. Returns the time at
/// its end.
#[inline]
pub(crate) fn until(due: u64, early: u64) -> u64 {
    sleep_until(due.saturating_sub(early));
    let mut time = now();
    // Without spinning, the clock is past `due` already.
    while time < due {
        hint::spin_loop();
        time = now();
    }
    time
}

/// Sleeps until `wake`. A signal handler prolongs nothing and shortens nothing.
#[inline]
fn sleep_until(wake: u64) {
    let (secs, nanos) = (wake / 1_000_000_000, wake % 1_000_000_000);
    let time = libc::timespec { tv_sec: secs.cast_signed(), tv_nsec: nanos.cast_signed() };
    let rest = core::ptr::null_mut::<libc::timespec>();
    let (clock, flags) = (libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME);
    loop {
        // Not the C library's function, where a thread may be cancelled: its end would unwind Rust.
        // SAFETY: `time` is valid; with an absolute time the kernel does not write to `rest`.
        let failed = unsafe {
            libc::syscall(libc::SYS_clock_nanosleep, clock, flags, &raw const time, rest)
        };
        if failed == 0 || now() >= wake {
            return;
        }
    }
}

/// Wake-ups whose latency is measured.
const WAKE_UPS: usize = 100;
/// The 99th percentile of them.
const HIGH: usize = WAKE_UPS - 2;

/// Measures how long this thread takes to wake up, with sleeps of 2 ms, or of a period if that is
/// shorter, to twice as long; to a tick longer where timers expire at ticks. Returns the 99th percentile
/// in nanoseconds, or `at_most` or half of the period if that is shorter.
pub(crate) fn wake_up_latency(period: u64, at_most: u64) -> u64 {
    /// Idle states depend on how long a CPU sleeps; a long period must not make the start long.
    const LONGEST: u64 = 2_000_000;
    /// Has no factor in common with the number of wake-ups, so that each length occurs once.
    const STEP: usize = 61;
    if at_most == 0 {
        return 0;
    }
    let (mut latencies, shortest) = ([0; WAKE_UPS], period.min(LONGEST));
    let range = shortest.max(resolution());
    for (nth, latency) in latencies.iter_mut().enumerate() {
        // A wake-up at a tick begins each sleep of one length at the same distance from the next tick.
        let further = (nth * STEP % WAKE_UPS) as u64 * range / WAKE_UPS as u64;
        let due = now() + shortest + further;
        *latency = until(due, 0) - due;
    }
    latencies.sort_unstable();
    latencies[HIGH].min(at_most).min(period / 2)
}

/// The resolution of timers: 1 ns, or a tick where there are no high-resolution timers.
fn resolution() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid to write to, and every Linux has this clock.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_ends_at_or_after_its_moment_with_and_without_spinning() {
        for early in [0, 300_000, u64::MAX] {
            let due = now() + 1_000_000;
            assert!(until(due, early) >= due);
        }
        let past = now();
        assert!(until(past, 0) >= past);
    }

    #[test]
    fn spinning_is_bounded_by_the_user_and_by_half_of_the_period() {
        assert_eq!(wake_up_latency(100_000, 0), 0);
        assert_eq!(wake_up_latency(100_000, 1), 1);
        assert!((1..=50_000).contains(&wake_up_latency(100_000, u64::MAX)));
    }
}
