//! `latlab explain --always`: a flight recorder that runs until it is ended.

mod folder;

use crate::commands::block_signals;
use crate::commands::worse;
use folder::Folder;
use latlab_core::cpulist::CpuList;
use latlab_core::explain::always::Allowance;
use latlab_core::machine::Machine;
use latlab_core::plan::{ExplainPlan, Length, Plan, Watched};
use latlab_core::record::Record;
use latlab_core::record::explained::Explanations;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_format::width::Width;
use latlab_format::{self as format, late, text};
use latlab_measure::explain::{FlightRecorder, Late};
use latlab_part::failure::Result;
use latlab_sys::root::Root;
use latlab_sys::signal::{Event, Signals};
use latlab_sys::{clock, machine};
use std::path::PathBuf;

/// The tasks that a flight recorder watches, and the records that it keeps.
pub(super) struct Options {
    pub(super) watched: Watched,
    pub(super) above: Option<Nanos>,
    /// How long it watches; without, until it is ended.
    pub(super) length: Option<Nanos>,
    /// The folder for records.
    pub(super) out: Option<PathBuf>,
    /// Most bytes of records in the folder.
    pub(super) keep: Bytes,
}

/// The latency from which on a wake-up is late, without `--above`.
const ABOVE: Nanos = Nanos::from_micros(100);
/// Late wake-ups that are printed and recorded at once, and the interval after which one more is.
const BURST: u32 = 20;
const INTERVAL: Nanos = Nanos::from_secs(1);
/// Time between two looks for late wake-ups.
const PACE: Nanos = Nanos::from_millis(500);

/// Records late wake-ups until the time is up, the process ends, a signal comes, or recording fails;
/// then prints the sum.
pub(super) fn run(options: &Options) -> Result<()> {
    let signals = block_signals()?;
    let mut recording = Recording::start(options)?;
    let watched = recording.watch(options.length, &signals);
    let sum = text::summary(&recording.sum(), false, Width::of_stdout());
    let shown = format::show(&sum);
    if shown.is_err() {
        format::say(&sum);
    }
    worse(watched, shown)
}

/// A flight recorder at work.
struct Recording {
    recorder: FlightRecorder,
    folder: Option<Folder>,
    machine: Machine,
    plan: Plan,
    began: Nanos,
    allowance: Allowance,
    /// Late wake-ups that were neither printed nor recorded since the last that was.
    left_out: u64,
    /// Whether the last lines could not be printed, which was reported.
    fails: bool,
}

impl Recording {
    fn start(options: &Options) -> Result<Recording> {
        let above = options.above.unwrap_or(ABOVE);
        let folder = options.out.as_deref().map(|path| Folder::open(path, options.keep));
        let machine = machine::read(&Root::default());
        let explain = ExplainPlan {
            above: Some(above),
            watch: Some(options.watched.clone()),
            ..ExplainPlan::default()
        };
        let plan = Plan::bare("native", CpuList::default(), Length::For(Nanos(0)));
        let recorder = FlightRecorder::start(&options.watched, above, &machine)?;
        format::say(&format!("watching for wake-ups later than {above}; end with Ctrl-C"));
        Ok(Recording {
            recorder,
            folder: folder.transpose()?,
            machine,
            plan: Plan { explain: Some(explain), ..plan },
            began: clock::now(),
            allowance: Allowance::new(BURST, INTERVAL, clock::now()),
            left_out: 0,
            fails: false,
        })
    }

    fn watch(&mut self, length: Option<Nanos>, signals: &Signals) -> Result<()> {
        loop {
            let left = length.map_or(PACE, |length| length - (clock::now() - self.began));
            let ended = left == Nanos(0) || signals.wait(left.min(PACE)) == Event::End;
            self.report_late()?;
            if ended || self.recorder.is_over() {
                return Ok(());
            }
        }
    }

    /// Prints and records the late wake-ups since the last call.
    fn report_late(&mut self) -> Result<()> {
        let mut found = Vec::new();
        let read = self.recorder.read(&mut |late| found.push(late));
        for late in found {
            if self.allowance.take(clock::now()) {
                self.report(&late);
            } else {
                self.left_out += 1;
            }
        }
        read
    }

    fn report(&mut self, one: &Late) {
        let at = wall_clock_at(one.at);
        let record = self.record(one.explanations.clone(), (one.at, at));
        let path = self.folder.as_mut().and_then(|folder| folder.store(&record, at));
        let before = match std::mem::take(&mut self.left_out) {
            0 => String::new(),
            1 => "before it, 1 late wake-up was only counted\n".to_owned(),
            more => format!("before it, {more} late wake-ups were only counted\n"),
        };
        self.print(&(before + &late::line(one.pid, &one.explanations, path.as_deref())));
    }

    /// Prints lines. A failure is reported once, and the recording goes on: the disk may have room
    /// again.
    fn print(&mut self, lines: &str) {
        let printed = format::put(lines);
        if let Err(failure) = &printed
            && !self.fails
        {
            format::say(&failure.to_string());
        }
        self.fails = printed.is_err();
    }

    /// A record with these explanations, which ends at this moment, by the monotonic and the wall
    /// clock.
    fn record(&self, explanations: Explanations, (at, ended): (Nanos, Nanos)) -> Record {
        const TOOL: &str = concat!("latlab ", env!("CARGO_PKG_VERSION"));
        let length = at - self.began;
        let plan = Plan { length: Length::For(length), ..self.plan.clone() };
        let Explanations { explained, worst } = explanations;
        let record = Record::new(TOOL, ended - length, plan, self.machine.clone());
        Record { worst, explained: Some(explained), ..record }
    }

    fn sum(&self) -> Record {
        let now = clock::now();
        self.record(self.recorder.explanations(), (now, wall_clock_at(now)))
    }
}

/// The wall-clock time of a moment on `CLOCK_MONOTONIC`, by the present difference of both clocks.
fn wall_clock_at(moment: Nanos) -> Nanos {
    let (now, wall) = (clock::now(), clock::wall_clock());
    wall - (now - moment)
}
