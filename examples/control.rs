//! A control loop of 1 kHz: each cycle reads a sensor and sets an actuator, both simulated.
//! The argument is the number of cycles (1000). Cargo.toml needs the dependency latlab-period.

#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use latlab_period::{Part, Period, Policy, Settings};
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let cycles = std::env::args().nth(1).map_or(Ok(1000), |cycles| cycles.parse::<u64>())?;
    let mut period = Period::start(&Settings {
        name: Some("control"),
        policy: Policy::Fifo(80),
        ..Settings::every(Duration::from_millis(1))
    })?;
    let (mut position, mut force) = (0.0, 0.0);
    for cycle in 0..cycles.cast_signed() {
        period.wait()?;
        let sensor = Part::begin(c"sensor", cycle);
        position += (force - position) / 100.0;
        drop(sensor);
        let _actuator = Part::begin(c"actuator", cycle);
        force += (1.0 - position) / 10.0;
    }
    let summary = period.summary();
    println!(
        "{} cycles, {} overruns, {} missed, at most {} ns late",
        summary.cycles, summary.overruns, summary.missed, summary.lateness_max_ns
    );
    Ok(())
}
