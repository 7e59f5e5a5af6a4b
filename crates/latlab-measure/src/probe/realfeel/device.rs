//! Clock devices that interrupt periodically: the RTC and the HPET.

use latlab_core::periods;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::hpet::Hpet;
use latlab_sys::rtc::Rtc;
use std::io;

/// A clock device, and the clock on which its interrupts are due.
pub(super) trait InterruptDevice: Sized + Send {
    fn open() -> io::Result<Self>;
    /// Starts the interrupts. Returns the uncertainty of the time of the first one.
    fn start(&mut self, hertz: u32) -> io::Result<Nanos>;
    fn period(&self) -> Nanos;
    /// Waits for interrupts. Returns their number since the last wait; none if a signal ended the
    /// wait.
    fn wait(&self) -> io::Result<Option<u64>>;
    /// Reads the device's clock.
    fn now(&mut self) -> Nanos;
    /// Returns `CLOCK_MONOTONIC`'s time of a reading that was just taken.
    fn monotonic(now: Nanos) -> Nanos;
    /// Returns the latency of a wait that returned at `now` with `count` interrupts, and the number
    /// of missed periods. The latency is none if the previous wait, which returned late, has
    /// already accounted for the interrupt.
    fn returned(&mut self, now: Nanos, count: u64) -> (Option<Nanos>, u64);
}

/// Periodic interrupts of the RTC, which are a kernel timer.
pub(super) struct RtcInterrupts {
    rtc: Rtc,
    period: Nanos,
    due: Nanos,
}

impl InterruptDevice for RtcInterrupts {
    fn open() -> io::Result<RtcInterrupts> {
        Ok(RtcInterrupts { rtc: Rtc::open()?, period: Nanos(0), due: Nanos(0) })
    }

    fn start(&mut self, hertz: u32) -> io::Result<Nanos> {
        self.rtc.set_rate(hertz)?;
        let before = clock::now();
        self.rtc.start()?;
        // Rounded down, as in the kernel.
        self.period = Nanos(1_000_000_000 / u64::from(hertz));
        self.due = before + self.period;
        Ok(clock::now() - before)
    }

    fn period(&self) -> Nanos {
        self.period
    }

    #[inline]
    fn wait(&self) -> io::Result<Option<u64>> {
        self.rtc.wait()
    }

    #[inline]
    fn now(&mut self) -> Nanos {
        clock::now()
    }

    #[inline]
    fn monotonic(now: Nanos) -> Nanos {
        now
    }

    #[inline]
    fn returned(&mut self, now: Nanos, _: u64) -> (Option<Nanos>, u64) {
        let wakeup = periods::judge(self.due, self.period, now);
        if wakeup.early {
            return (None, 0);
        }
        self.due = wakeup.next;
        (Some(wakeup.latency), wakeup.missed)
    }
}

/// Periodic interrupts of an HPET comparator.
pub(super) struct HpetInterrupts {
    hpet: Hpet,
    due: Nanos,
}

impl InterruptDevice for HpetInterrupts {
    fn open() -> io::Result<HpetInterrupts> {
        Ok(HpetInterrupts { hpet: Hpet::open()?, due: Nanos(0) })
    }

    fn start(&mut self, hertz: u32) -> io::Result<Nanos> {
        self.hpet.start(hertz)?;
        self.due = self.hpet.expiry();
        Ok(self.hpet.tick())
    }

    fn period(&self) -> Nanos {
        self.hpet.period()
    }

    #[inline]
    fn wait(&self) -> io::Result<Option<u64>> {
        self.hpet.wait()
    }

    #[inline]
    fn now(&mut self) -> Nanos {
        self.hpet.now()
    }

    #[inline]
    fn monotonic(_: Nanos) -> Nanos {
        clock::now()
    }

    #[inline]
    fn returned(&mut self, now: Nanos, count: u64) -> (Option<Nanos>, u64) {
        let due = std::mem::replace(&mut self.due, self.hpet.expiry());
        if now < due { (None, count) } else { (Some(now - due), count.saturating_sub(1)) }
    }
}
