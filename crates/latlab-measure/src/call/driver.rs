//! The test driver's loop, of known length, with known preemption points.

use super::{Call, Stage};
use crate::call::window::Window;
use latlab_core::time::Nanos;
use latlab_part::part::{About, Describe};
use latlab_sys::driver::{Loop, Mode, Pieces};
use std::io;

/// Runs a loop of the test driver, divided into equal parts by conditional preemption points.
///
/// The driver of Heursch et al. 2001 (section 2.7). The non-preemptible sections are known in
/// advance, part by part; the record holds them together with those that the scan has found. Needs
/// the module latlab (kmod/), which the laboratory provides.
#[derive(Clone, Copy, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Looping {
    /// Duration of the loop, 1us to 500ms
    #[arg(long, default_value = "482us", value_parser = length)]
    length: Nanos,
    /// Number of conditional preemption points in the loop
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=i64::from(Loop::MOST_POINTS)))]
    points: u32,
    /// Protection of each part against preemption: none (plain), a spinlock, a raw spinlock,
    /// preemption or interrupts disabled; or one spinlock that is released at each point
    /// (lock-break)
    #[arg(long, default_value = "plain")]
    mode: Protection,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
enum Protection {
    Plain,
    Spin,
    RawSpin,
    PreemptOff,
    IrqOff,
    LockBreak,
}

fn length(text: &str) -> Result<Nanos, String> {
    let length: Nanos = text.parse().map_err(|e| format!("{e}"))?;
    if (1_000..=500_000_000).contains(&length.0) {
        return Ok(length);
    }
    Err(format!("{text} is out of range: the loop takes 1us to 500ms"))
}

impl Describe for Looping {
    const ABOUT: About = About {
        name: "driver",
        summary: "a loop with preemption points in the test driver (kmod/)",
    };
}

impl Call for Looping {
    fn needs_driver(&self) -> bool {
        true
    }

    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(DriverStage { wanted: *self, pieces: Pieces::new() }))
    }
}

/// The loop, and the times of its parts.
struct DriverStage {
    wanted: Looping,
    pieces: Pieces,
}

impl Stage for DriverStage {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        let driver = window.driver()?;
        let Looping { length, points, mode } = self.wanted;
        let speed = u128::from(driver.version()?.iterations_per_second);
        let iterations = u64::try_from(u128::from(length.0) * speed / 1_000_000_000);
        let iterations = iterations.map_err(io::Error::other)?.max(u64::from(points) + 1);
        let wanted = Loop { iterations, points, mode: mode.into() };
        window.enter()?;
        driver.run(wanted, &mut self.pieces)?;
        window.leave();
        window.set_parts(&self.pieces);
        Ok(())
    }
}

impl From<Protection> for Mode {
    fn from(protection: Protection) -> Mode {
        match protection {
            Protection::Plain => Mode::Plain,
            Protection::Spin => Mode::Spin,
            Protection::RawSpin => Mode::RawSpin,
            Protection::PreemptOff => Mode::PreemptOff,
            Protection::IrqOff => Mode::IrqOff,
            Protection::LockBreak => Mode::LockBreak,
        }
    }
}
