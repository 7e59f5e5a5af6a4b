//! Options shared by the commands that measure: the targets, and the output of the records.

use super::target_options::TargetOptions;
use crate::engine::{Outcome, Prepared};
use crate::failure::{Failure, Result, failed};
use crate::format::metrics::run::Textfile;
use crate::format::progress::Bar;
use crate::format::{self, live, text};
use crate::rig::Watch;
use crate::session::Session;
use crate::target::{self, Target};
use latlab_core::plan::Plan;
use latlab_core::record::Record;
use latlab_sys::file::{self, Pending};
use latlab_sys::signal::Signals;
use std::path::{Path, PathBuf};

/// The targets, and the output of the records.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Measurement {
    /// Target to measure on: native (this machine), lab:PROFILE (the laboratory: a kernel in QEMU
    /// in instruction time), vm:PROFILE or ssh:HOST (see: latlab list targets, latlab list
    /// profiles); may be given several times
    #[arg(long, value_name = "TARGET", default_value = "native")]
    on: Vec<String>,
    /// Write the record to this file (-: print it instead of the results); with several targets,
    /// one record for each to this folder
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print only the record, as JSON, on stdout
    #[arg(long)]
    json: bool,
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

/// Bytes reserved for a record before the run starts.
const RESERVED: u64 = 1 << 20;

impl Measurement {
    /// Carries out `plan` on each target, prints the results and writes the records.
    pub(super) fn carry_out(&self, plan: &Plan) -> Result<()> {
        self.carry_out_by(plan, |target, plans, session| target.run(plans, session))
    }

    /// Carries out `plan` on each target and explains its worst samples.
    pub(super) fn explain(&self, plan: &Plan) -> Result<()> {
        self.carry_out_by(plan, |target, plans, session| {
            plans.iter().map(|plan| target.explain(plan, session)).collect()
        })
    }

    fn carry_out_by(&self, plan: &Plan, carry_out: CarryOut) -> Result<()> {
        let prepared = Prepared::of(plan)?;
        let plans: Vec<Prepared> =
            self.on.iter().map(|target| prepared.on_target(target)).collect();
        let target = self.target()?;
        if self.is_native() {
            self.options.refuse_any()?;
        }
        let paths = self.paths(&plans)?;
        let files = paths.iter().map(|path| path.as_deref().map(reserve).transpose());
        let files: Vec<_> = files.collect::<Result<_>>()?;
        let signals = Signals::block().map_err(|e| failed("signals can't be blocked", e))?;
        let mut watch = self.watch()?;
        let mut bar = Bar::new(&signals);
        let mut session = self.options.session(&signals, watch.as_mut(), &mut bar);
        let outcomes = carry_out(target, &plans, &mut session);
        let mut result = Ok(());
        for ((outcome, file), path) in outcomes.into_iter().zip(files).zip(paths) {
            let finished = outcome.and_then(|outcome| self.finish(outcome, file, path.as_deref()));
            result = worse(result, finished);
        }
        // Signals stay blocked: a second Ctrl-C must not replace the exit code.
        drop(bar);
        std::mem::forget(signals);
        result
    }

    /// The view of a measurement, which also writes metrics if they were asked for.
    fn watch(&self) -> Result<Box<dyn Watch>> {
        let view = live::view();
        match &self.metrics {
            None => Ok(view),
            Some(_) if !self.is_native() => {
                Err(Failure::Failed("--metrics is for measurements on this machine".to_owned()))
            }
            Some(path) => match Textfile::begin(view, path.clone()) {
                Ok(textfile) => Ok(Box::new(textfile)),
                Err(e) => Err(failed(&path.display().to_string(), e)),
            },
        }
    }

    /// Carries out `plan` on the only target without printing or writing anything. Returns none
    /// where the user ended it early.
    pub(super) fn record(
        &self,
        plan: &Plan,
        signals: &Signals,
        bar: &mut Bar<'_>,
    ) -> Result<Option<Record>> {
        let plan = Prepared::of(plan)?.on_target(&self.on[0]);
        let mut watch = live::view();
        let mut session = self.options.session(signals, watch.as_mut(), bar);
        let outcome = self.target()?.run(std::slice::from_ref(&plan), &mut session).pop();
        match outcome.expect("one plan has one outcome") {
            Ok(outcome) if was_interrupted(&outcome.record) => Ok(None),
            // A guest that was ended has no record.
            Err(_) if session.ended => Ok(None),
            Ok(outcome) => outcome.verdict.map_or(Ok(Some(outcome.record)), Err),
            Err(failure) => Err(failure),
        }
    }

    /// Refuses several targets and outputs, for a side of a comparison.
    pub(super) fn check_side(&self) -> Result<()> {
        let refused = match (self.on.len(), &self.out, self.json) {
            (2.., ..) => "give one --on for each side",
            (_, Some(_), _) => "--out is for latlab ab: it writes the records of both sides",
            (.., true) => "--json is for latlab ab",
            _ if self.metrics.is_some() => "--metrics is for a single run",
            _ if self.is_native() => return self.options.refuse_any(),
            _ => return Ok(()),
        };
        Err(Failure::Failed(refused.to_owned()))
    }

    /// These options, and those of `defaults` that are not given here.
    pub(super) fn or(&self, defaults: &Measurement) -> Measurement {
        let on = if self.is_native() { &defaults.on } else { &self.on };
        Measurement {
            on: on.clone(),
            out: self.out.clone().or_else(|| defaults.out.clone()),
            json: self.json || defaults.json,
            metrics: self.metrics.clone().or_else(|| defaults.metrics.clone()),
            options: self.options.or(&defaults.options),
        }
    }

    /// Whether the targets measure in instruction time.
    pub(super) fn is_in_instructions(&self) -> bool {
        self.on[0].starts_with("lab:")
    }

    /// Whether this machine measures.
    pub(super) fn is_native(&self) -> bool {
        self.on[0] == "native"
    }

    /// Prints the results of a run and writes its record.
    fn finish(&self, outcome: Outcome, file: Option<Pending>, path: Option<&Path>) -> Result<()> {
        let record = &outcome.record;
        // The failures that these are for are printed last.
        let is_last = |code: &str| matches!(code, "stopped-above" | "failed-above" | "interrupted");
        for warning in record.warnings.iter().filter(|w| !is_last(&w.code)) {
            format::say(&warning.text);
        }
        let interrupted = record.warnings.iter().find(|warning| warning.code == "interrupted");
        let cut_short = interrupted.map(|warning| Failure::CutShort(warning.text.clone()));
        if let (Some(file), Some(path)) = (file, path) {
            write(file, path, record)?;
        }
        if self.prints_record() {
            format::put(&record.to_json())?;
        } else {
            if self.on.len() > 1 {
                format::put(&text::heading(record))?;
            }
            format::put(&text::summary(record))?;
            suggest_next(path);
        }
        outcome.verdict.or(cut_short).map_or(Ok(()), Err)
    }

    /// Whether the record is all that is printed.
    fn prints_record(&self) -> bool {
        self.json || self.out.as_deref() == Some(Path::new(STDOUT))
    }

    /// The target that carries out all plans.
    fn target(&self) -> Result<&'static dyn Target> {
        let kind = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
        let (first, others) = self.on.split_first().expect("there is a default");
        if let Some(other) = others.iter().find(|other| kind(other) != kind(first)) {
            return Err(Failure::Failed(format!(
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
                return Err(Failure::Failed(format!("--on {} is given twice", plan.plan().target)));
            }
            paths.push(path);
        }
        std::fs::create_dir_all(out).map_err(|e| failed(&out.display().to_string(), e))?;
        Ok(paths.into_iter().map(Some).collect())
    }
}

/// Whether the user ended the run early.
fn was_interrupted(record: &Record) -> bool {
    record.warnings.iter().any(|warning| warning.code == "interrupted")
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

/// Returns the more serious of two failures, and prints the other.
fn worse(one: Result<()>, other: Result<()>) -> Result<()> {
    let (one, other) = match (one, other) {
        (Ok(()), result) | (result, Ok(())) => return result,
        (Err(one), Err(other)) => (one, other),
    };
    let rank = |failure: &Failure| match failure {
        Failure::Worse(_) => 0,
        Failure::CutShort(_) => 1,
        Failure::Failed(_) | Failure::Unsupported(_) => 2,
    };
    let (serious, minor) = if rank(&other) > rank(&one) { (other, one) } else { (one, other) };
    format::say(&minor.to_string());
    Err(serious)
}

fn reserve(path: &Path) -> Result<Pending> {
    Pending::begin(path, RESERVED).map_err(|e| failed(&path.display().to_string(), e))
}

/// Writes the record. If that fails, writes it to the folder for temporary files or to stdout.
fn write(file: Pending, path: &Path, record: &Record) -> Result<()> {
    let bytes = record.to_json().into_bytes();
    let Err(error) = file.finish(&bytes) else {
        return Ok(());
    };
    let substitute = std::env::temp_dir().join(format!("latlab-{}.json", std::process::id()));
    let fallback = if file::write_atomically(&substitute, &bytes).is_ok() {
        format!("it is in {}", substitute.display())
    } else {
        format::put(&record.to_json())?;
        "it was printed on stdout".to_owned()
    };
    let path = path.display();
    Err(Failure::Failed(format!("the record can't be written to {path} ({error}); {fallback}")))
}
