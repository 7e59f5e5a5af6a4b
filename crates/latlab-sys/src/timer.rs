//! Periodic timers: `setitimer(2)`, `timer_create(2)` and `timerfd_create(2)` behind one type.
//!
//! Their signals are waited for, never handled: [`crate::signal::Signals::block`] comes first. The
//! waits are measured and go through the C library; rustix has neither of the first two timers.

use crate::clock::{rustix_timespec, timespec};
use crate::signal::{posix_timer_signal, wait_for};
use latlab_core::time::Nanos;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};
use rustix::time::{timerfd_create, timerfd_settime};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

/// A running periodic timer of the calling thread. Dropping it stops it.
#[derive(Debug)]
pub struct Timer(TimerKind);

#[derive(Debug)]
enum TimerKind {
    Interval,
    Posix(libc::timer_t),
    Fd(OwnedFd),
}

impl Timer {
    /// Starts the process's interval timer, whose signal is `SIGALRM` (`setitimer(ITIMER_REAL)`).
    pub fn interval(period: Nanos) -> io::Result<Timer> {
        set_itimer(period)?;
        Ok(Timer(TimerKind::Interval))
    }

    /// Starts a POSIX timer on `CLOCK_MONOTONIC` that signals the calling thread
    /// (`timer_create(2)`).
    pub fn posix(period: Nanos) -> io::Result<Timer> {
        // SAFETY: sigevent is made of integers and pointers, for which zero is a value.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = posix_timer_signal();
        event.sigev_notify_thread_id = crate::sched::thread_id();
        let mut id: libc::timer_t = std::ptr::null_mut();
        let made = &raw mut id;
        // SAFETY: event and id are valid for the call.
        crate::checked(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, made) })?;
        let timer = Timer(TimerKind::Posix(id));
        let spec = libc::itimerspec { it_interval: timespec(period), it_value: timespec(period) };
        // SAFETY: the id is that of the timer just made; the times are valid.
        crate::checked(unsafe {
            libc::timer_settime(id, 0, &raw const spec, std::ptr::null_mut())
        })?;
        Ok(timer)
    }

    /// Starts a timer that is read as a file (`timerfd_create(2)`).
    pub fn fd(period: Nanos) -> io::Result<Timer> {
        let fd = timer_file()?;
        let time = rustix_timespec(period);
        let spec = Itimerspec { it_interval: time, it_value: time };
        timerfd_settime(&fd, TimerfdTimerFlags::empty(), &spec)?;
        Ok(Timer(TimerKind::Fd(fd)))
    }

    /// Waits for the next expiry. Returns the number of expiries missed before it, which the kernel
    /// does not report for `setitimer`; None if a signal ended the wait. An error where the kernel
    /// refuses to wait.
    #[inline]
    pub fn wait(&self) -> io::Result<Option<u64>> {
        Ok(match &self.0 {
            TimerKind::Interval => wait_for(libc::SIGALRM)?.then_some(0),
            TimerKind::Posix(id) => wait_for(posix_timer_signal())?.then(|| {
                // SAFETY: the timer exists until drop.
                u64::try_from(unsafe { libc::timer_getoverrun(*id) }).unwrap_or(0)
            }),
            TimerKind::Fd(fd) => expiries(fd)?.map(|expiries| expiries.saturating_sub(1)),
        })
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        match self.0 {
            TimerKind::Interval => drop(set_itimer(Nanos(0))),
            // SAFETY: the timer exists, and its id is not used again.
            TimerKind::Posix(id) => drop(crate::checked(unsafe { libc::timer_delete(id) })),
            TimerKind::Fd(_) => {}
        }
    }
}

/// A one-shot timer, which can be set again and again (`timerfd_create(2)`). Dropping it stops it.
#[derive(Debug)]
pub struct Alarm(OwnedFd);

impl Alarm {
    /// A new alarm, which is not set.
    pub fn new() -> io::Result<Alarm> {
        timer_file().map(Alarm)
    }

    /// Sets it to expire at `due` on `CLOCK_MONOTONIC`, at once if that time has passed. The expiry
    /// that was set before is cancelled.
    pub fn set(&self, due: Nanos) -> io::Result<()> {
        let spec =
            Itimerspec { it_interval: rustix_timespec(Nanos(0)), it_value: rustix_timespec(due) };
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &spec)?;
        Ok(())
    }

    /// Waits until it has expired. False if a signal ended the wait; an error where the kernel refuses
    /// to wait.
    pub fn wait(&self) -> io::Result<bool> {
        expiries(&self.0).map(|expiries| expiries.is_some())
    }
}

fn timer_file() -> io::Result<OwnedFd> {
    Ok(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?)
}

/// Waits for the next expiry. Returns the number of expiries since the last wait; None if a signal
/// ended the wait.
#[inline]
fn expiries(fd: &OwnedFd) -> io::Result<Option<u64>> {
    let mut expiries = [0u8; 8];
    // SAFETY: the buffer has the eight bytes that reading a timer returns.
    let read = unsafe { libc::read(fd.as_raw_fd(), expiries.as_mut_ptr().cast(), 8) };
    if read == 8 { Ok(Some(u64::from_ne_bytes(expiries))) } else { not_read() }
}

#[cold]
fn not_read() -> io::Result<Option<u64>> {
    crate::interrupted("reading a timer").map(|_| None)
}

fn set_itimer(period: Nanos) -> io::Result<()> {
    let time = timespec(period);
    let time = libc::timeval { tv_sec: time.tv_sec, tv_usec: time.tv_nsec / 1_000 };
    let spec = libc::itimerval { it_interval: time, it_value: time };
    // SAFETY: the times are valid; the previous setting is not asked for.
    crate::checked(unsafe {
        libc::setitimer(libc::ITIMER_REAL, &raw const spec, std::ptr::null_mut())
    })
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn alarm_expires_at_the_time_last_set() {
        let alarm = Alarm::new().unwrap();
        let later = clock::now() + Nanos::from_millis(20);
        alarm.set(Nanos(1)).unwrap();
        alarm.set(later).unwrap();
        assert!(alarm.wait().unwrap() && clock::now() >= later, "the first setting is cancelled");
        alarm.set(later).unwrap();
        assert!(alarm.wait().unwrap(), "a time that has passed expires at once");
    }
}
