//! `latlab scan`: finds non-preemptible sections of system calls.

use super::complete;
use super::measurement::Measurement;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use latlab_core::cpulist::CpuList;
use latlab_core::plan::{Interrupt, Length, Part, Plan, ScanPlan};
use latlab_core::time::Nanos;
use latlab_measure::call::CALLS;
use latlab_part::failure::{Failure, Result};
use latlab_part::part;
use serde_json::Value;
use std::ffi::OsString;

pub(super) const EXAMPLES: &str = "\
Examples:
  latlab scan populate:4MiB --on lab:utime --on lab:preemptible-hr --out kernels/
  latlab scan fork munmap:4MiB,huge=never --cpu 1 --out calls.json
  latlab scan read:disk,64KiB,dir=/tmp --resolution 500ns --for 10s
  latlab scan -- ./window            a program, between marks that it writes
  latlab scan --whole -- ip link     a whole run of a program, from its start to its end";

/// Find the non-preemptible sections of a system call
///
/// A low-priority task makes the call repeatedly. During each call an interrupt wakes a
/// high-priority task, a little later than during the call before. Plotted over the offset of the
/// interrupt, the latency of that task shows each non-preemptible section as a triangle as high as
/// the section is long. The scan then refines the edges of the triangles.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Scan {
    /// Calls with their parameters (see: latlab list calls) [default: munmap:4MiB]
    #[arg(value_name = "CALL[:key=value,…]", add = complete::calls())]
    calls: Vec<String>,
    /// A program to scan between marks that it writes (see: latlab list program)
    #[arg(last = true, value_name = "COMMAND", value_hint = complete::COMMAND)]
    command: Vec<OsString>,
    /// Scan the whole run of the program, from its start (execve) to its end, instead of between marks
    #[arg(long, requires = "command")]
    whole: bool,
    /// Number of offsets in the first pass, evenly spaced over the call
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    points: u32,
    /// Resolution of the edges [default: 1us; in the laboratory 50ns]
    #[arg(long, value_name = "TIME", value_parser = super::positive)]
    resolution: Option<Nanos>,
    /// Maximum number of measurements at one offset; half as many if the two lowest agree [default:
    /// 40; in the laboratory 6]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: Option<u32>,
    /// Interrupt that wakes the high-priority task; all but timer need the test driver, latlab's
    /// kernel module [default: what the target supports]
    #[arg(long, value_parser = interrupts())]
    interrupt: Option<Interrupt>,
    /// Time after which edges are not refined further [default: 45s; in the laboratory 2min of
    /// guest time]
    #[arg(long = "for", value_name = "TIME", value_parser = super::positive)]
    time: Option<Nanos>,
    /// Measured CPU [default: the last allowed one]
    #[arg(long, value_name = "N")]
    cpu: Option<u32>,
    #[command(flatten)]
    measurement: Measurement,
}

fn interrupts() -> impl TypedValueParser<Value = Interrupt> {
    let parse =
        |text: String| Interrupt::ALL.iter().find(|(name, _)| *name == text).map(|one| one.1);
    let names = Interrupt::ALL.map(|(name, _)| name);
    PossibleValuesParser::new(names).map(move |text| parse(text).expect("it is one of the names"))
}

impl Scan {
    pub(super) fn run(&self) -> Result<()> {
        self.measurement.carry_out(&self.plan()?)
    }

    /// Scans as `latlab explain scan` does. `outer` are the options before the word `scan`.
    pub(super) fn explain(&self, outer: &Measurement) -> Result<()> {
        let measurement = self.measurement.or(outer);
        if !measurement.is_in_instructions() {
            let why = "only the laboratory finds the function of a section: use --on lab:PROFILE";
            return Err(Failure::unsupported(format!("explain scan: {why}")));
        }
        measurement.explain(&self.plan_for(&measurement)?, true)
    }

    fn plan(&self) -> Result<Plan> {
        self.plan_for(&self.measurement)
    }

    fn plan_for(&self, measurement: &Measurement) -> Result<Plan> {
        let default = ["munmap:4MiB".to_owned()];
        let no_call = self.calls.is_empty() && self.command.is_empty();
        let calls = if no_call { &default } else { self.calls.as_slice() };
        let parts = calls.iter().map(|text| part::parse("call", CALLS, text, &[]));
        let parts =
            parts.chain(self.program(measurement).transpose()).collect::<Result<Vec<_>>>()?;
        let instructions = measurement.is_in_instructions();
        let scans: Vec<ScanPlan> =
            parts.into_iter().map(|call| self.scan(call, instructions)).collect();
        let length = Length::For(scans.first().map_or(Nanos(0), |scan| scan.limit));
        let cpus = self.cpu.into_iter().collect::<CpuList>();
        Ok(Plan { scans, ..Plan::bare("", cpus, length) })
    }

    /// The call that scans the user's program.
    fn program(&self, measurement: &Measurement) -> Result<Option<Part>> {
        if self.command.is_empty() {
            return Ok(None);
        }
        if !measurement.is_native() {
            let why = "-- COMMAND runs on this machine: to scan it in a guest, start latlab in the \
                       guest, as latlab exec --on lab:utime --with COMMAND -- latlab scan -- COMMAND";
            return Err(Failure::unsupported(why));
        }
        let text = |word: &OsString| {
            let not_text = || Failure::failed(format!("{} is not UTF-8", word.display()));
            word.to_str().map(|word| Value::from(word.to_owned())).ok_or_else(not_text)
        };
        let command: Vec<Value> = self.command.iter().map(text).collect::<Result<_>>()?;
        let window = self.whole.then(|| ("window".to_owned(), Value::from("run")));
        let params = [("command".to_owned(), Value::from(command))].into_iter().chain(window);
        let params = params.collect();
        Ok(Some(Part { name: "program".to_owned(), params }))
    }

    fn scan(&self, call: Part, instructions: bool) -> ScanPlan {
        let defaults = ScanPlan::usual(call, instructions);
        ScanPlan {
            points: self.points,
            resolution: self.resolution.unwrap_or(defaults.resolution),
            repeat: self.repeat.unwrap_or(defaults.repeat),
            interrupt: self.interrupt,
            limit: self.time.unwrap_or(defaults.limit),
            ..defaults
        }
    }
}
