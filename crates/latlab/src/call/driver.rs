//! The test driver's own call: a loop that can't be preempted in a way that is known.

use super::{Call, Stage};
use crate::registry::About;
use crate::window::Window;
use latlab_core::time::Nanos;
use latlab_sys::driver::{Loop, Mode, Pieces};
use std::io;

/// Runs a loop of the test driver, cut into equal parts by conditional preemption points.
///
/// The driver of Heursch et al. 2001 (section 2.7): what a scan finds there is known before, part
/// by part, and stands in the record beside what it found. Needs the module latlab (kmod/), which
/// the laboratory brings along.
#[derive(Clone, Copy, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Looping {
    /// How long the loop takes, 1us to 500ms
    #[arg(long, default_value = "482us", value_parser = length)]
    length: Nanos,
    /// Conditional preemption points in it
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=i64::from(Loop::MOST_POINTS)))]
    points: u32,
    /// What keeps the kernel from preempting each part: nothing (plain), a spinlock, a raw
    /// spinlock, preemption or interrupts disabled; or one spinlock, dropped at each point
    #[arg(long, default_value = "plain")]
    mode: How,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
enum How {
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

impl Call for Looping {
    const ABOUT: About =
        About { name: "driver", summary: "a loop of the test driver, cut by preemption points" };

    const NEEDS_DRIVER: bool = true;

    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(Run { wanted: *self, pieces: Pieces::new() }))
    }
}

/// The loop at work, and when its parts were.
struct Run {
    wanted: Looping,
    pieces: Pieces,
}

impl Stage for Run {
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
        window.made_of(&self.pieces);
        Ok(())
    }
}

impl From<How> for Mode {
    fn from(how: How) -> Mode {
        match how {
            How::Plain => Mode::Plain,
            How::Spin => Mode::Spin,
            How::RawSpin => Mode::RawSpin,
            How::PreemptOff => Mode::PreemptOff,
            How::IrqOff => Mode::IrqOff,
            How::LockBreak => Mode::LockBreak,
        }
    }
}
