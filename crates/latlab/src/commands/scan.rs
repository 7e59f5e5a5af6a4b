//! `latlab scan`: where in a system call can this kernel not be preempted?

use super::measurement::Measurement;
use crate::call::CALLS;
use crate::failure::{Failure, Result};
use crate::registry;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use latlab_core::cpulist::CpuList;
use latlab_core::plan::{Interrupt, Length, Part, Plan, ScanPlan};
use latlab_core::time::Nanos;
use serde_json::Value;
use std::ffi::OsString;

/// Find where in a system call the kernel can't be preempted
///
/// A task of low priority makes the call while an interrupt wakes one of high priority, a little
/// later each time. How late that one runs is drawn over the moment of the interrupt: a stretch
/// that can't be preempted is a triangle, as high as it is long. Where there are such edges, the
/// scan closes in on them.
#[derive(Debug, clap::Args)]
pub(super) struct Scan {
    /// Calls with their parameters (see: latlab list calls) [default: munmap:4MiB]
    #[arg(value_name = "CALL[:key=value,…]")]
    calls: Vec<String>,
    /// A program whose window is scanned (latlab list program explains how it marks that)
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Moments to begin with, spread evenly over the call
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    points: u32,
    /// How closely to close in on edges [default: 1us, in instruction time 50ns]
    #[arg(long, value_name = "TIME", value_parser = super::positive)]
    resolution: Option<Nanos>,
    /// Most measurements at one moment; half of them, where the lowest agree [default: 40, in
    /// instruction time 6]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: Option<u32>,
    /// What interrupts the call; all but the timer need the test driver [default: what fits]
    #[arg(long, value_parser = interrupts())]
    interrupt: Option<Interrupt>,
    /// When to stop looking closer [default: 45s, in instruction time 2min of the guest]
    #[arg(long = "for", value_name = "TIME", value_parser = super::positive)]
    time: Option<Nanos>,
    /// The CPU to measure on [default: the last that may be used]
    #[arg(long, value_name = "N")]
    cpu: Option<u32>,
    #[command(flatten)]
    measurement: Measurement,
}

fn interrupts() -> impl TypedValueParser<Value = Interrupt> {
    let of = |text: String| Interrupt::ALL.iter().find(|(name, _)| *name == text).map(|one| one.1);
    let names = Interrupt::ALL.map(|(name, _)| name);
    PossibleValuesParser::new(names).map(move |text| of(text).expect("it is one of the names"))
}

impl Scan {
    pub(super) fn run(&self) -> Result<()> {
        self.measurement.carry_out(&self.plan()?)
    }

    /// Carries it out as `latlab explain` does; what was said of the measurement before the word
    /// `scan` holds as well.
    pub(super) fn explain(&self, before: &Measurement) -> Result<()> {
        let measurement = self.measurement.and(before);
        if !measurement.is_in_instructions() {
            let why = "only the laboratory names the functions of a scan: use --on lab:PROFILE";
            return Err(Failure::Unsupported(format!("explain scan: {why}")));
        }
        measurement.explain(&self.plan_for(&measurement)?)
    }

    fn plan(&self) -> Result<Plan> {
        self.plan_for(&self.measurement)
    }

    fn plan_for(&self, measurement: &Measurement) -> Result<Plan> {
        let default = ["munmap:4MiB".to_owned()];
        let none = self.calls.is_empty() && self.command.is_empty();
        let calls = if none { &default } else { self.calls.as_slice() };
        let parts = calls.iter().map(|text| registry::parse("call", CALLS, text, &[]));
        let parts =
            parts.chain(self.program(measurement).transpose()).collect::<Result<Vec<_>>>()?;
        let instructions = measurement.is_in_instructions();
        let scans: Vec<ScanPlan> =
            parts.into_iter().map(|call| self.scan(call, instructions)).collect();
        let length = Length::For(scans.first().map_or(Nanos(0), |scan| scan.limit));
        let cpus = self.cpu.into_iter().collect::<CpuList>();
        Ok(Plan { scans, ..Plan::bare("", cpus, length) })
    }

    /// The user's program, as the call that it stands for.
    fn program(&self, measurement: &Measurement) -> Result<Option<Part>> {
        if self.command.is_empty() {
            return Ok(None);
        }
        if !measurement.is_here() {
            let why = "-- COMMAND is scanned where latlab runs: for a guest bring both along, as latlab \
                       exec --on lab:utime --with COMMAND -- latlab scan -- COMMAND";
            return Err(Failure::Unsupported(why.to_owned()));
        }
        let text = |word: &OsString| {
            let not_text = || Failure::Failed(format!("{} is not text", word.display()));
            word.to_str().map(|word| Value::from(word.to_owned())).ok_or_else(not_text)
        };
        let command: Vec<Value> = self.command.iter().map(text).collect::<Result<_>>()?;
        let params = [("command".to_owned(), Value::from(command))].into_iter().collect();
        Ok(Some(Part { name: "program".to_owned(), params }))
    }

    fn scan(&self, call: Part, instructions: bool) -> ScanPlan {
        let usual = ScanPlan::usual(call, instructions);
        ScanPlan {
            points: self.points,
            resolution: self.resolution.unwrap_or(usual.resolution),
            repeat: self.repeat.unwrap_or(usual.repeat),
            interrupt: self.interrupt,
            limit: self.time.unwrap_or(usual.limit),
            ..usual
        }
    }
}
