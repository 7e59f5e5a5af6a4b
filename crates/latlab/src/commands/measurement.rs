//! Options shared by the commands that measure: the targets, and the output of the records.

use super::block_signals;
use super::complete;
use super::explain::proof;
use super::reserved::Reserved;
use super::rights;
use super::target_options::TargetOptions;
use super::worse;
use crate::target::{self, Target};
use latlab_core::plan::Plan;
use latlab_core::record::Record;
use latlab_format::metrics::run::Textfile;
use latlab_format::progress::Bar;
use latlab_format::width::Width;
use latlab_format::{self as format, csv, live, text};
use latlab_measure::engine::{Outcome, Prepared};
use latlab_measure::session::Session;
use latlab_part::failure::{Context as _, Failure, Result, failed};
use latlab_part::progress::Watch;
use latlab_sys::file;
use latlab_sys::signal::Signals;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The targets, and the output of the records.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Measurement {
    /// Target to measure on: native (this machine), lab:PROFILE (the laboratory: a kernel in QEMU
    /// in instruction time), vm:PROFILE or ssh:HOST (see: latlab list targets, latlab list
    /// profiles); may be given several times
    #[arg(long, value_name = "TARGET", default_value = "native", add = complete::targets())]
    on: Vec<String>,
    /// Write the record to this file, brought up to date every minute while this machine or an ssh:
    /// target measures (-: print it instead of the results); with several targets, one record for
    /// each to this folder
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print only the record, as JSON, on stdout
    #[arg(long)]
    json: bool,
    /// Print only the series, as CSV: a row each, times in nanoseconds
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write metrics of the measurement to this file every 5 s, for Prometheus (the textfile
    /// collector of `node_exporter`)
    #[arg(long, value_name = "FILE.prom")]
    metrics: Option<PathBuf>,
    #[command(flatten)]
    options: TargetOptions,
}

/// A way to carry out plans on a target.
type CarryOut = fn(&dyn Target, &[Prepared], &mut Session<'_>) -> Vec<Result<Outcome>>;

/// The file name that stands for standard output.
const STDOUT: &str = "-";

impl Measurement {
    /// Carries out `plan` on each target, prints the results and writes the records.
    pub(super) fn carry_out(&self, plan: &Plan) -> Result<()> {
        self.carry_out_by(plan, true, |target, plans, session| target.run(plans, session))
    }

    /// Carries out `plan` on each target and explains its worst samples. Prints all that was
    /// recorded if it is `verbose`, else the causes.
    pub(super) fn explain(&self, plan: &Plan, verbose: bool) -> Result<()> {
        self.carry_out_by(plan, verbose, |target, plans, session| {
            plans.iter().map(|plan| target.explain(plan, session)).collect()
        })
    }

    /// Explains `plan` on each target, and then tries remedies against the leading causes.
    pub(super) fn prove(&self, plan: &Plan, verbose: bool) -> Result<()> {
        self.carry_out_by(plan, verbose, |target, plans, session| {
            let prove = |plan: &Prepared| {
                let explained = target.explain(plan, session)?;
                Ok(proof::prove(explained, plan, target, session))
            };
            plans.iter().map(prove).collect()
        })
    }

    /// Makes a record without measuring on a target, prints it and writes it.
    pub(super) fn make(
        &self,
        verbose: bool,
        make: impl FnOnce() -> Result<(Record, Result<()>)>,
    ) -> Result<()> {
        if !self.is_native() || self.metrics.is_some() {
            return Err(Failure::failed("--on and --metrics are for measurements: leave them out"));
        }
        self.options.check(&self.on[0])?;
        let out = self.out.as_deref().filter(|out| *out != Path::new(STDOUT));
        let file = out.map(Reserved::begin).transpose()?;
        let (record, result) = make()?;
        record.warnings.iter().for_each(|warning| format::say(&warning.text));
        let written = file.map_or(Ok(()), |file| self.write(file, &record));
        worse(result, worse(written, self.show(&record, verbose)))
    }

    fn carry_out_by(&self, plan: &Plan, verbose: bool, carry_out: CarryOut) -> Result<()> {
        let prepared = Prepared::of(plan)?;
        let plans: Vec<Prepared> =
            self.on.iter().map(|target| prepared.on_target(target)).collect();
        let target = self.target()?;
        self.options.check(&self.on[0])?;
        self.check_files(plan)?;
        rights::keep_for(&[(plan, self.is_native())])?;
        let paths = self.paths(&plans)?;
        let files = paths.iter().map(|path| path.as_deref().map(Reserved::begin).transpose());
        let files: Vec<_> = files.collect::<Result<_>>()?;
        let signals = block_signals()?;
        let mut watch = self.watch(keep(&plans, &paths))?;
        let mut bar = Bar::new(&signals);
        let mut session = self.options.session(&signals, watch.as_mut(), &mut bar);
        let outcomes = carry_out(target, &plans, &mut session);
        // The records are written even where nothing can be printed.
        let has_rows = self.csv && outcomes.iter().any(Result::is_ok);
        let mut result = if has_rows { format::put(&csv::header()) } else { Ok(()) };
        for ((outcome, file), path) in outcomes.into_iter().zip(files).zip(paths) {
            let finish = |outcome: Outcome| self.finish(&outcome, verbose, file, path.as_deref());
            let finished = outcome.and_then(finish);
            result = worse(result, finished);
        }
        drop(bar);
        result
    }

    /// Refuses files for a guest where no command would read them.
    fn check_files(&self, plan: &Plan) -> Result<()> {
        let (on, kind) = (&self.on[0], target::kind(&self.on[0]));
        let why = match () {
            () if plan.with.is_empty() => return Ok(()),
            () if !matches!(kind, "lab" | "vm") => format!("{on} has its own files"),
            () if plan.starts_programs() => return Ok(()),
            () => "no load starts a command: use --load exec:COMMAND".to_owned(),
        };
        Err(Failure::failed(format!("--with has no effect: {why}")))
    }

    /// The view of a measurement, which also writes metrics if they were asked for.
    fn watch(&self, keep: Option<live::Keep>) -> Result<Box<dyn Watch>> {
        let view = live::view(keep);
        match &self.metrics {
            None => Ok(view),
            Some(_) if !self.is_native() => {
                Err(Failure::failed("--metrics is for measurements on this machine"))
            }
            Some(path) => match Textfile::begin(view, path.clone()) {
                Ok(textfile) => Ok(Box::new(textfile)),
                Err(e) => Err(failed(&path.display().to_string(), e)),
            },
        }
    }

    /// Carries out `plan` on the only target without printing or writing anything.
    pub(super) fn outcome(
        &self,
        plan: &Plan,
        signals: &Signals,
        bar: &mut Bar<'_>,
    ) -> Result<Outcome> {
        let plan = Prepared::of(plan)?.on_target(&self.on[0]);
        let mut watch = live::view(None);
        let mut session = self.options.session(signals, watch.as_mut(), bar);
        let outcome = self.target()?.run(std::slice::from_ref(&plan), &mut session).pop();
        outcome.expect("one plan has one outcome")
    }

    /// Refuses several targets and outputs, for a side of a comparison.
    pub(super) fn check_side(&self) -> Result<()> {
        let refused = match (self.on.len(), &self.out) {
            (2.., _) => "give one --on for each side",
            (_, Some(_)) => "--out is for latlab ab: it writes the records of both sides",
            _ if self.json => "--json is for latlab ab",
            _ if self.csv => "--csv is not for a side of latlab ab",
            _ if self.metrics.is_some() => "--metrics is for a single run",
            _ => return self.options.check(&self.on[0]),
        };
        Err(Failure::failed(refused))
    }

    /// These options, and those of `defaults` that are not given here.
    pub(super) fn or(&self, defaults: &Measurement) -> Measurement {
        let on = if self.is_native() { &defaults.on } else { &self.on };
        Measurement {
            on: on.clone(),
            out: self.out.clone().or_else(|| defaults.out.clone()),
            json: self.json || defaults.json,
            csv: self.csv || defaults.csv,
            metrics: self.metrics.clone().or_else(|| defaults.metrics.clone()),
            options: self.options.or(&defaults.options),
        }
    }

    /// Whether the targets measure in instruction time.
    pub(super) fn is_in_instructions(&self) -> bool {
        self.on[0].starts_with("lab:")
    }

    /// The folder for records of `explain --always`, which watches this machine and prints lines.
    pub(super) fn folder(&self) -> Result<Option<PathBuf>> {
        let refused = match &self.out {
            _ if !self.is_native() => "--always watches this machine: leave --on out",
            _ if self.json || self.csv => {
                "--always prints a line for each late wake-up: its \
                                           records are in the folder of --out"
            }
            _ if self.metrics.is_some() => "--metrics is not for --always",
            Some(path) if path == Path::new(STDOUT) || path.is_file() => {
                "--always writes a record for each late wake-up: give --out a folder"
            }
            out => return self.options.check(&self.on[0]).map(|()| out.clone()),
        };
        Err(Failure::failed(refused))
    }

    /// Whether this machine measures.
    pub(super) fn is_native(&self) -> bool {
        self.on[0] == "native"
    }

    /// Prints the results of a run and writes its record, each also where the other fails.
    fn finish(
        &self,
        outcome: &Outcome,
        verbose: bool,
        file: Option<Reserved>,
        path: Option<&Path>,
    ) -> Result<()> {
        let record = &outcome.record;
        // The failure is printed last.
        outcome.warnings().for_each(|warning| format::say(&warning.text));
        let written = file.map_or(Ok(()), |file| self.write(file, record));
        let shown = self.show(record, verbose);
        if written.is_ok() && !self.csv && !self.prints_record() {
            suggest_next(path);
        }
        worse(outcome.failure().map_or(Ok(()), Err), worse(written, shown))
    }

    /// Writes the record. One that is printed anyway needs no substitute for its file.
    fn write(&self, file: Reserved, record: &Record) -> Result<()> {
        if self.prints_record() {
            return file.write(&record.to_json());
        }
        file.write_record(record)
    }

    fn show(&self, record: &Record, verbose: bool) -> Result<()> {
        if self.csv {
            return format::put(&csv::series(record));
        }
        if self.prints_record() {
            return format::put(&record.to_json());
        }
        let heading = if self.on.len() > 1 { text::heading(record) } else { String::new() };
        format::show(&(heading + &text::summary(record, verbose, Width::of_stdout())))
    }

    /// Whether the record is all that is printed.
    fn prints_record(&self) -> bool {
        self.json || self.out.as_deref() == Some(Path::new(STDOUT))
    }

    /// The target that carries out all plans.
    fn target(&self) -> Result<&'static dyn Target> {
        let (first, others) = self.on.split_first().expect("there is a default");
        if let Some(other) = others.iter().find(|other| target::kind(other) != target::kind(first))
        {
            return Err(Failure::failed(format!(
                "--on {first} and --on {other} are two kinds of target: run latlab once for each"
            )));
        }
        target::find(first)
    }

    /// The path of each plan's record.
    fn paths(&self, plans: &[Prepared]) -> Result<Vec<Option<PathBuf>>> {
        let Some(out) = self.out.as_ref().filter(|out| *out != Path::new(STDOUT)) else {
            return Ok(vec![None; plans.len()]);
        };
        if plans.len() == 1 {
            return Ok(vec![Some(out.clone())]);
        }
        let mut paths: Vec<PathBuf> = Vec::new();
        for plan in plans {
            let name = plan.plan().target.replace([':', '/', '@'], "-");
            let path = out.join(format!("{name}.json"));
            if paths.contains(&path) {
                return Err(Failure::failed(format!("--on {} is given twice", plan.plan().target)));
            }
            paths.push(path);
        }
        std::fs::create_dir_all(out).at(out)?;
        Ok(paths.into_iter().map(Some).collect())
    }
}

/// Writes records of the results so far to the files that the finished ones will replace. None
/// where there are no files, only devices and pipes. Only the first failure is reported.
fn keep(plans: &[Prepared], paths: &[Option<PathBuf>]) -> Option<live::Keep> {
    let targets = plans.iter().map(|plan| plan.plan().target.clone());
    let files = targets.zip(paths.iter().flatten().cloned()).filter(|(_, path)| is_file(path));
    let files: BTreeMap<String, PathBuf> = files.collect();
    if files.is_empty() {
        return None;
    }
    let mut reported = false;
    let keep = move |record: &Record| {
        let Some(path) = files.get(&record.plan.target) else { return };
        let written = file::write_atomically(path, record.to_json().as_bytes());
        if let (Err(e), false) = (written, reported) {
            reported = true;
            format::say(&format!("{} can't be brought up to date: {e}", path.display()));
        }
    };
    Some(Box::new(keep))
}

/// Whether this is or becomes a file, rather than a device or a pipe, which gets one record.
fn is_file(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |metadata| metadata.is_file())
}

/// Names the commands that show the record, or the option that writes one.
fn suggest_next(written: Option<&Path>) {
    match written {
        Some(path) => {
            let path = path.display();
            format::say(&format!("wrote {path}; show it with: latlab report {path}"));
        }
        None => format::say("no record was written; --out FILE writes one for report and compare"),
    }
}
