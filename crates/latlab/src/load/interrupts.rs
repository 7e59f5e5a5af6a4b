//! A storm of interrupts.

use super::{Bench, Load, Place};
use crate::driver;
use crate::failure::Result;
use crate::needs::Needs;
use crate::registry::About;
use latlab_core::time::Nanos;
use latlab_sys::driver::{Driver, Source};
use latlab_sys::timer::Timer;
use std::io;

/// Has a device or a timer interrupt again and again.
///
/// What Seo et al. 2009 (section 3.3) tell from each other by whom an interrupt is for: these are
/// for nobody under test. The device is QEMU's edu, by way of the test driver (kmod/), which the
/// laboratory brings along: it interrupts as soon as the last interrupt is served. Timers are the
/// kernel's, one on each CPU; each expiry interrupts and wakes the worker, which sets the next one:
/// so there are no more than the kernel's ticks where timers only fire at these. The driver has one
/// device: nothing else of the same run may use it. Its work is counted in interrupts, of the one or
/// the other kind.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Interrupts {
    /// Whose: the test driver's device, timers, or the device where there is one, else timers
    #[arg(long, default_value = "auto")]
    source: From,
    /// Time between two interrupts of a timer, 1us to 1s
    #[arg(long, default_value = "20us", value_parser = interval)]
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
        Err(format!("{text} is out of range: timers interrupt every 1us to 1s"))
    }
}

impl Load for Interrupts {
    const ABOUT: About =
        About { name: "interrupts", summary: "a storm of a device's or a timer's interrupts" };
    const UNIT: &'static str = "timer interrupts";

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
            return storm(bench, || from_device(&driver));
        }
        let timer = Timer::fd(self.interval)?;
        storm(bench, || Ok(timer.wait().map(drop)))
    }
}

impl Interrupts {
    fn has_device(&self) -> bool {
        self.source != From::Timer && driver::check_device().is_ok()
    }
}

/// One interrupt after another; none where a signal or another worker was in the way.
fn storm(bench: &Bench, mut one: impl FnMut() -> io::Result<Option<()>>) -> io::Result<()> {
    bench.ready();
    while bench.running() {
        bench.done(u64::from(one()?.is_some()));
    }
    Ok(())
}

/// The handler runs before this returns, or on another CPU a little later.
fn from_device(driver: &Driver) -> io::Result<Option<()>> {
    match driver.arm(Source::DeviceAtOnce) {
        Ok(_) => Ok(Some(())),
        Err(e) if e.kind() == io::ErrorKind::ResourceBusy => Ok(None),
        Err(e) => Err(e),
    }
}
