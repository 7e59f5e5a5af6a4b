//! Interrupt load: a device or timers interrupt without pause.

use super::{Load, LoadContext, Place};
use latlab_core::random::Random;
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result};
use latlab_part::part::driver;
use latlab_part::part::needs::Needs;
use latlab_part::part::{About, Describe};
use latlab_sys::clock;
use latlab_sys::driver::{Driver, InterruptSource};
use latlab_sys::timer::Alarm;
use std::io;

/// The time between two looks at the number of interrupts of a periodic device.
const BETWEEN_COUNTS: Nanos = Nanos(10_000_000);

/// Makes a device or timers interrupt the CPU without pause.
///
/// Seo et al. 2009 (section 3.3) distinguish interrupts by the task that needs them: no measured
/// task needs these. The device is QEMU's edu, controlled by the test driver (kmod/), which the
/// laboratory provides: it interrupts as soon as the last interrupt has been handled, and its
/// handler keeps the CPU busy for some time, as real ones do (that of a graphics card for 7 us in
/// the kernel's own example of the timerlat tracer). With `every` it interrupts at that interval
/// instead, and an IRQ thread handles it. Timers are the kernel's: several of each CPU
/// expire at the same moment, so that one interrupt has much to do, or little; PREEMPT_RT does this
/// work in a thread. Without high-resolution timers there is at most one such interrupt per tick.
/// The driver has one device: nothing else in the same run may use it. Counts interrupts of the
/// device, or expiries of timers.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Interrupts {
    /// Source of the interrupts: the test driver's device, timers, or (auto) the device if there is
    /// one, else timers
    #[arg(long, default_value = "auto")]
    source: From,
    /// Time that the device's handler keeps the CPU busy, 0 to 1ms; with every=, half of it at most
    #[arg(long, default_value = "10us", value_parser = busy)]
    busy: Nanos,
    /// Time from one interrupt of the device to the next, 20us to 1s, handled by an IRQ thread;
    /// without it, each comes as soon as the last has been handled
    #[arg(long, value_parser = every)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    every: Option<Nanos>,
    /// Most timers of a CPU that expire together, 1 to 512; their number is random
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=512))]
    timers: u16,
    /// Time from starting the timers to their expiry, 1us to 1s
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

fn every(text: &str) -> std::result::Result<Nanos, String> {
    let every: Nanos = text.parse().map_err(|e| format!("{e}"))?;
    if (InterruptSource::SHORTEST_PERIOD..=Nanos(1_000_000_000)).contains(&every) {
        Ok(every)
    } else {
        Err(format!("{text} is out of range: the device interrupts every 20us to 1s"))
    }
}

fn busy(text: &str) -> std::result::Result<Nanos, String> {
    let busy: Nanos = text.parse().map_err(|e| format!("{e}"))?;
    if busy <= InterruptSource::BUSIEST {
        Ok(busy)
    } else {
        Err(format!(
            "{text} is out of range: a handler may be busy for {} at most",
            InterruptSource::BUSIEST
        ))
    }
}

impl Describe for Interrupts {
    const ABOUT: About =
        About { name: "interrupts", summary: "interrupt storm from a device or from timers" };
}

impl Load for Interrupts {
    fn place(&self) -> &Place {
        &self.place
    }

    fn needs(&self) -> Needs {
        match self.source {
            From::Timer => Needs::default(),
            From::Auto | From::Device => Needs::interrupt(),
        }
    }

    fn one_worker(&self) -> bool {
        self.every.is_some() && self.has_device()
    }

    fn unit(&self) -> &'static str {
        if self.has_device() { "device interrupts" } else { "timer expiries" }
    }

    fn check(&self, _: u64) -> Result<()> {
        if self.source == From::Timer && self.every.is_some() {
            let why =
                "interrupts: every is for the device: use source=device, or interval for timers";
            return Err(Failure::failed(why));
        }
        if let Some(every) = self.every.filter(|every| self.busy.0 > every.0 / 2) {
            let busy = self.busy;
            return Err(Failure::failed(format!(
                "interrupts: busy={busy} of each {every} leaves too little time for other tasks: give \
                 half of every= at most"
            )));
        }
        if self.source != From::Device && self.every.is_none() {
            return Ok(());
        }
        let refused = |why| driver::refused(why, Self::ABOUT.name, "source=timer");
        driver::check_device().map_err(refused)
    }

    fn work(&self, context: &LoadContext) -> io::Result<()> {
        if self.has_device() {
            let driver = Driver::open().map_err(io::Error::other)?;
            if let Some(every) = self.every {
                let source = InterruptSource::DevicePeriodic { every, busy: self.busy };
                return interrupted(context, &driver, source);
            }
            return repeat(context, || interrupt_by_device(&driver, self.busy));
        }
        let timers = (0..self.timers).map(|_| Alarm::new()).collect::<io::Result<Vec<_>>>()?;
        let mut random = Random::new(context.seed);
        repeat(context, || {
            let last = random.next().unwrap_or_default() % u64::from(self.timers);
            interrupt_by_timers(&timers[..=usize::try_from(last).unwrap_or(0)], self.interval)
        })
    }
}

impl Interrupts {
    fn has_device(&self) -> bool {
        self.source != From::Timer && driver::check_device().is_ok()
    }
}

/// Calls `interrupt` until the end of the run. It returns the number of interrupts or expiries, 0
/// if a signal or another worker has prevented it.
fn repeat(context: &LoadContext, mut interrupt: impl FnMut() -> io::Result<u64>) -> io::Result<()> {
    context.ready();
    while context.running() {
        context.done(interrupt()?);
    }
    Ok(())
}

/// Counts the interrupts of a periodic device until the end of the run.
fn interrupted(context: &LoadContext, driver: &Driver, source: InterruptSource) -> io::Result<()> {
    let mut seen = 0;
    driver.arm(source)?;
    repeat(context, || {
        clock::sleep_for(BETWEEN_COUNTS);
        let sequence = match driver.wait(seen) {
            Ok(arrival) => arrival.sequence,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => seen,
            Err(e) => return Err(e),
        };
        Ok(sequence - std::mem::replace(&mut seen, sequence))
    })
}

/// Causes one interrupt of the device. Its handler runs before this returns, or on another CPU soon
/// after.
fn interrupt_by_device(driver: &Driver, busy: Nanos) -> io::Result<u64> {
    match driver.arm(InterruptSource::DeviceAtOnce { busy }) {
        Ok(_) => Ok(1),
        Err(e) if e.kind() == io::ErrorKind::ResourceBusy => Ok(0),
        Err(e) => Err(e),
    }
}

/// Has all timers expire at the same moment. The kernel handles the timers in the order in which
/// they were started, so this waits for the last one.
fn interrupt_by_timers(timers: &[Alarm], interval: Nanos) -> io::Result<u64> {
    let due = clock::now() + interval;
    timers.iter().try_for_each(|timer| timer.set(due))?;
    let expired = timers.last().map_or(Ok(false), Alarm::wait)?;
    Ok(if expired { timers.len() as u64 } else { 0 })
}
