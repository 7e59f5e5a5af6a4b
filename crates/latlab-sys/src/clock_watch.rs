//! Watching whether a clock is set while tasks sleep on it.

use crate::clock::{SettableClock, rustix_timespec};
use latlab_core::time::Nanos;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};
use rustix::time::{timerfd_create, timerfd_settime};
use std::io;
use std::os::fd::OwnedFd;

/// Watches whether a clock is set, also to and fro.
#[derive(Debug)]
pub struct ClockWatch {
    clock: SettableClock,
    /// None where the kernel has none to give: then only steps that can still be seen are.
    alarm: Option<SettingAlarm>,
    was_set: bool,
}

impl ClockWatch {
    /// Watches this clock from now on.
    pub fn of(clock: SettableClock) -> ClockWatch {
        ClockWatch { clock: clock.read_anew(), alarm: SettingAlarm::new().ok(), was_set: false }
    }

    /// Whether the clock was set since it is watched.
    pub fn was_set(&mut self) -> bool {
        /// Both clocks are slewed alike, so that only another task comes between their readings.
        const SLEWED: Nanos = Nanos::from_millis(1);
        // The alarm does not report changes of the distance between CLOCK_TAI and the wall-clock
        // time.
        self.was_set = self.was_set
            || self.alarm.as_ref().is_some_and(SettingAlarm::was_set)
            || self.clock.step(SLEWED).is_some();
        self.was_set
    }
}

/// Tells whether `CLOCK_REALTIME` was set (`TFD_TIMER_CANCEL_ON_SET`).
#[derive(Debug)]
struct SettingAlarm(OwnedFd);

impl SettingAlarm {
    /// Tells what happens from now on.
    fn new() -> io::Result<SettingAlarm> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let fd = timerfd_create(TimerfdClockId::Realtime, flags)?;
        // It never expires.
        let spec = Itimerspec {
            it_interval: rustix_timespec(Nanos(0)),
            it_value: rustix_timespec(Nanos(i64::MAX.cast_unsigned())),
        };
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        timerfd_settime(&fd, flags, &spec)?;
        Ok(SettingAlarm(fd))
    }

    /// Whether the clock was set since it was last asked.
    fn was_set(&self) -> bool {
        rustix::io::read(&self.0, &mut [0; 8]) == Err(rustix::io::Errno::CANCELED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_that_nobody_sets_was_not_set() {
        for clock in [SettableClock::realtime(), SettableClock::tai()] {
            let mut watch = ClockWatch::of(clock);
            assert!(watch.alarm.is_some() && !watch.was_set(), "{clock:?}");
        }
    }
}
