//! A storm of interrupts.

use super::{Bench, Load, Place};
use crate::driver;
use crate::failure::Result;
use crate::needs::Needs;
use crate::registry::About;
use latlab_core::random::Random;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::driver::{Driver, Source};
use latlab_sys::timer::Alarm;
use std::io;

/// Has a device or a timer interrupt again and again.
///
/// What Seo et al. 2009 (section 3.3) tell from each other by whom an interrupt is for: these are
/// for nobody under test. The device is QEMU's edu, by way of the test driver (kmod/), which the
/// laboratory brings along: it interrupts as soon as the last interrupt is served, and its handler
/// keeps the processor for a while, as real ones do (a graphics card's for 7 us in the kernel's own
/// example of the timerlat tracer). Timers are the kernel's: some of each CPU's expire at the same
/// moment, so that one interrupt has much to do, or little; PREEMPT_RT leaves that to a thread. There
/// are no more such interrupts than ticks where timers only fire at these. The driver has one device:
/// nothing else of the same run may use it. Its work is counted in the device's interrupts, or in
/// expiries of timers.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Interrupts {
    /// Whose: the test driver's device, timers, or the device where there is one, else timers
    #[arg(long, default_value = "auto")]
    source: From,
    /// How long the device's handler keeps the processor, 0 to 1ms
    #[arg(long, default_value = "10us", value_parser = busy)]
    busy: Nanos,
    /// How many of a CPU's timers expire together at most, 1 to 512; how many do varies
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=512))]
    timers: u16,
    /// Time from setting the timers to their expiry, 1us to 1s
    #[arg(long, default_value = "200us", value_parser = interval)]
    interval: Nanos,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
enum From {
    Auto,
    Device,
    Timer,
}

fn interval(text: &str) -> std::result::Result<Nanos, String> {
    let interval: Nanos = text.parse().map_err(|e| format!("{e}"))?;
    if (1_000..=1_000_000_000).contains(&interval.0) {
        Ok(interval)
    } else {
        Err(format!("{text} is out of range: timers expire after 1us to 1s"))
    }
}

fn busy(text: &str) -> std::result::Result<Nanos, String> {
    let busy: Nanos = text.parse().map_err(|e| format!("{e}"))?;
    if busy <= Source::BUSIEST {
        Ok(busy)
    } else {
        Err(format!("{text} is out of range: a handler is busy for {} at most", Source::BUSIEST))
    }
}

impl Load for Interrupts {
    const ABOUT: About =
        About { name: "interrupts", summary: "a storm of a device's or a timer's interrupts" };
    const UNIT: &'static str = "timer expiries";

    fn place(&self) -> &Place {
        &self.place
    }

    fn needs(&self) -> Needs {
        match self.source {
            From::Timer => Needs::default(),
            From::Auto | From::Device => Needs::interrupt(),
        }
    }

    fn unit(&self) -> &'static str {
        if self.has_device() { "device interrupts" } else { Self::UNIT }
    }

    fn check(&self, _: u64) -> Result<()> {
        if self.source != From::Device {
            return Ok(());
        }
        let refused = |why| driver::refused(why, Self::ABOUT.name, "source=timer");
        driver::check_device().map_err(refused)
    }

    fn work(&self, bench: &Bench) -> io::Result<()> {
        if self.has_device() {
            let driver = Driver::open().map_err(io::Error::other)?;
            return storm(bench, || from_device(&driver, self.busy));
        }
        let timers = (0..self.timers).map(|_| Alarm::new()).collect::<io::Result<Vec<_>>>()?;
        let mut random = Random::new(bench.seed);
        storm(bench, || {
            let last = random.next().unwrap_or_default() % u64::from(self.timers);
            from_timers(&timers[..=usize::try_from(last).unwrap_or(0)], self.interval)
        })
    }
}

impl Interrupts {
    fn has_device(&self) -> bool {
        self.source != From::Timer && driver::check_device().is_ok()
    }
}

/// One interrupt after another, each for so many; none where a signal or another worker was in the
/// way.
fn storm(bench: &Bench, mut one: impl FnMut() -> io::Result<u64>) -> io::Result<()> {
    bench.ready();
    while bench.running() {
        bench.done(one()?);
    }
    Ok(())
}

/// The handler runs before this returns, or on another CPU a little later.
fn from_device(driver: &Driver, busy: Nanos) -> io::Result<u64> {
    match driver.arm(Source::DeviceAtOnce { busy }) {
        Ok(_) => Ok(1),
        Err(e) if e.kind() == io::ErrorKind::ResourceBusy => Ok(0),
        Err(e) => Err(e),
    }
}

/// The kernel serves those that expire at the same moment in the order in which they were set.
fn from_timers(timers: &[Alarm], interval: Nanos) -> io::Result<u64> {
    let due = clock::now() + interval;
    timers.iter().try_for_each(|timer| timer.set(due))?;
    let expired = timers.last().is_some_and(Alarm::wait);
    Ok(if expired { timers.len() as u64 } else { 0 })
}
