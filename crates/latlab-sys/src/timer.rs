//! Periodic timers: `setitimer(2)`, `timer_create(2)` and `timerfd_create(2)` behind one word.
//!
//! Their signals are waited for, never handled: [`crate::signal::Signals::hold`] comes first.

use crate::clock::timespec;
use crate::signal::{posix_signal, wait_for};
use latlab_core::time::Nanos;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// A running periodic timer of the calling thread. Dropping it stops it.
#[derive(Debug)]
pub struct Timer(Kind);

#[derive(Debug)]
enum Kind {
    Interval,
    Posix(libc::timer_t),
    Fd(OwnedFd),
}

impl Timer {
    /// `setitimer(ITIMER_REAL)`: one per process, its signal is `SIGALRM`.
    pub fn interval(period: Nanos) -> io::Result<Timer> {
        set_itimer(period)?;
        Ok(Timer(Kind::Interval))
    }

    /// `timer_create(CLOCK_MONOTONIC)` with a signal to the calling thread.
    pub fn posix(period: Nanos) -> io::Result<Timer> {
        // SAFETY: sigevent is made of integers and pointers, for which zero is a value.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = posix_signal();
        event.sigev_notify_thread_id = crate::sched::thread_id();
        let mut id: libc::timer_t = std::ptr::null_mut();
        let made = &raw mut id;
        // SAFETY: event and id are valid for the call.
        crate::checked(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, made) })?;
        let timer = Timer(Kind::Posix(id));
        let spec = periodic(period);
        // SAFETY: the id is that of the timer just made, the times are valid.
        crate::checked(unsafe {
            libc::timer_settime(id, 0, &raw const spec, std::ptr::null_mut())
        })?;
        Ok(timer)
    }

    /// A timer that is read as a file.
    pub fn fd(period: Nanos) -> io::Result<Timer> {
        let fd = timer_file()?;
        set_file(&fd, 0, &periodic(period))?;
        Ok(Timer(Kind::Fd(fd)))
    }

    /// Waits for the next expiry. How many passed unseen before it, as far as the kernel says
    /// (it does not for `setitimer`); none if a signal ended the wait.
    #[inline]
    pub fn wait(&self) -> Option<u64> {
        match &self.0 {
            Kind::Interval => wait_for(libc::SIGALRM).then_some(0),
            Kind::Posix(id) => wait_for(posix_signal()).then(|| {
                // SAFETY: the id is that of a timer that exists.
                u64::try_from(unsafe { libc::timer_getoverrun(*id) }).unwrap_or(0)
            }),
            Kind::Fd(fd) => expiries(fd).map(|expiries| expiries.saturating_sub(1)),
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        match self.0 {
            Kind::Interval => drop(set_itimer(Nanos(0))),
            // SAFETY: the id is that of a timer that exists, and is not used again.
            Kind::Posix(id) => drop(crate::checked(unsafe { libc::timer_delete(id) })),
            Kind::Fd(_) => {}
        }
    }
}

/// A timer that expires once each time it is set (`timerfd_create(2)`). Dropping it stops it.
#[derive(Debug)]
pub struct Alarm(OwnedFd);

impl Alarm {
    /// One that is not set.
    pub fn new() -> io::Result<Alarm> {
        timer_file().map(Alarm)
    }

    /// Has it expire at `due` on `CLOCK_MONOTONIC`, at once if that is past, and not when it was to
    /// expire before.
    pub fn set(&self, due: Nanos) -> io::Result<()> {
        let spec = libc::itimerspec { it_interval: timespec(Nanos(0)), it_value: timespec(due) };
        set_file(&self.0, libc::TFD_TIMER_ABSTIME, &spec)
    }

    /// Waits until it has expired. Whether it has: not if a signal ended the wait.
    pub fn wait(&self) -> bool {
        expiries(&self.0).is_some()
    }
}

fn timer_file() -> io::Result<OwnedFd> {
    let flags = libc::TFD_CLOEXEC;
    // SAFETY: timerfd_create takes no pointers.
    let fd = crate::checked(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
    // SAFETY: the descriptor is fresh and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn set_file(fd: &OwnedFd, flags: libc::c_int, spec: &libc::itimerspec) -> io::Result<()> {
    let (spec, old) = (std::ptr::from_ref(spec), std::ptr::null_mut());
    // SAFETY: the times are valid; the old ones are not asked for.
    crate::checked(unsafe { libc::timerfd_settime(fd.as_raw_fd(), flags, spec, old) }).map(drop)
}

/// Waits for the next expiry. How many there were; none if a signal ended the wait.
#[inline]
fn expiries(fd: &OwnedFd) -> Option<u64> {
    let mut expiries = [0u8; 8];
    // SAFETY: the buffer has the eight bytes that a timer's read gives.
    let read = unsafe { libc::read(fd.as_raw_fd(), expiries.as_mut_ptr().cast(), 8) };
    (read == 8).then(|| u64::from_ne_bytes(expiries))
}

fn set_itimer(period: Nanos) -> io::Result<()> {
    let time = timespec(period);
    let time = libc::timeval { tv_sec: time.tv_sec, tv_usec: time.tv_nsec / 1_000 };
    let spec = libc::itimerval { it_interval: time, it_value: time };
    // SAFETY: the times are valid; the old ones are not asked for.
    crate::checked(unsafe {
        libc::setitimer(libc::ITIMER_REAL, &raw const spec, std::ptr::null_mut())
    })
    .map(drop)
}

fn periodic(period: Nanos) -> libc::itimerspec {
    libc::itimerspec { it_interval: timespec(period), it_value: timespec(period) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn an_alarm_expires_when_it_was_last_set_to() {
        let alarm = Alarm::new().unwrap();
        let later = clock::now() + Nanos::from_millis(20);
        alarm.set(Nanos(1)).unwrap();
        alarm.set(later).unwrap();
        assert!(alarm.wait() && clock::now() >= later, "what it was set to before is forgotten");
        alarm.set(later).unwrap();
        assert!(alarm.wait(), "what is past comes at once");
    }
}
