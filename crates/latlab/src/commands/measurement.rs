//! What all commands that measure have in common: where to, and what becomes of the records.

use super::elsewhere::Elsewhere;
use crate::engine::Outcome;
use crate::errand::Errand;
use crate::failure::{Failure, Result, failed};
use crate::format::progress::Bar;
use crate::format::{self, live, text};
use crate::target::{self, Target};
use latlab_core::plan::Plan;
use latlab_core::record::Record;
use latlab_sys::file::{self, Pending};
use latlab_sys::signal::Signals;
use std::path::{Path, PathBuf};

/// Where to measure, and where the records are to go.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Measurement {
    /// Where to run (see: latlab list targets); may be given several times
    #[arg(long, value_name = "TARGET", default_value = "native")]
    on: Vec<String>,
    /// Keep the record in this file; with several targets, one record for each in this folder
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the record, and nothing else, on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    elsewhere: Elsewhere,
}

/// How a target is to carry plans out.
type Way = fn(&dyn Target, &[Plan], &mut Errand<'_>) -> Vec<Result<Outcome>>;

/// Room that a record is sure to find at the end of the run.
const RESERVED: u64 = 1 << 20;

impl Measurement {
    /// Carries `plan` out on each target, shows and keeps what comes of it.
    pub(super) fn carry_out(&self, plan: &Plan) -> Result<()> {
        self.carry_out_by(plan, |target, plans, errand| target.run(plans, errand))
    }

    /// The same, and finds out what made the worst samples late.
    pub(super) fn explain(&self, plan: &Plan) -> Result<()> {
        self.carry_out_by(plan, |target, plans, errand| {
            plans.iter().map(|plan| target.explain(plan, errand)).collect()
        })
    }

    fn carry_out_by(&self, plan: &Plan, way: Way) -> Result<()> {
        let on = |target: &String| Plan { target: target.clone(), ..plan.clone() };
        let plans: Vec<Plan> = self.on.iter().map(on).collect();
        let target = self.target()?;
        if self.is_here() {
            self.elsewhere.refuse_here()?;
        }
        let places = self.places(&plans)?;
        let pending = places.iter().map(|place| place.as_deref().map(begin).transpose());
        let pending: Vec<_> = pending.collect::<Result<_>>()?;
        let signals = Signals::hold().map_err(|e| failed("signals can't be held back", e))?;
        let mut watch = live::view();
        let mut bar = Bar::new(&signals);
        let mut errand = self.elsewhere.errand(&signals, watch.as_mut(), &mut bar);
        let outcomes = way(target, &plans, &mut errand);
        let mut ending = Ok(());
        for ((outcome, pending), place) in outcomes.into_iter().zip(pending).zip(places) {
            let shown = outcome.and_then(|outcome| self.show(outcome, pending, place.as_deref()));
            ending = both(ending, shown);
        }
        // Nothing but the exit code is to come, and a second Ctrl-C must not take its place.
        drop(bar);
        std::mem::forget(signals);
        ending
    }

    /// What is said here, and what was said before where nothing is said here.
    pub(super) fn and(&self, before: &Measurement) -> Measurement {
        let on = if self.is_here() { &before.on } else { &self.on };
        Measurement {
            on: on.clone(),
            out: self.out.clone().or_else(|| before.out.clone()),
            json: self.json || before.json,
            elsewhere: self.elsewhere.and(&before.elsewhere),
        }
    }

    /// Whether the time of the targets is that of their instructions.
    pub(super) fn is_in_instructions(&self) -> bool {
        self.on[0].starts_with("lab:")
    }

    /// Whether it is this machine that measures.
    pub(super) fn is_here(&self) -> bool {
        self.on[0] == "native"
    }

    /// Keeps and shows what a run gave.
    fn show(&self, outcome: Outcome, pending: Option<Pending>, path: Option<&Path>) -> Result<()> {
        let record = &outcome.record;
        // The sentence of a limit exceeded is the failure's own, and comes last.
        for warning in record.warnings.iter().filter(|w| w.code != "stopped-above") {
            format::say(&warning.text);
        }
        if let (Some(pending), Some(path)) = (pending, path) {
            keep(pending, path, record)?;
        }
        if self.json {
            format::put(&record.to_json())?;
        } else {
            format::put(&text::summary(record))?;
            point_on(path);
        }
        outcome.verdict.map_or(Ok(()), Err)
    }

    /// The kind of target that all plans are for.
    fn target(&self) -> Result<&'static dyn Target> {
        let kind = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
        let (first, others) = self.on.split_first().expect("there is a default");
        if let Some(other) = others.iter().find(|other| kind(other) != kind(first)) {
            return Err(Failure::Failed(format!(
                "--on {first} and --on {other} are two kinds of machine: run each by itself"
            )));
        }
        target::find(first)
    }

    /// Where each plan's record is to go.
    fn places(&self, plans: &[Plan]) -> Result<Vec<Option<PathBuf>>> {
        let Some(out) = &self.out else { return Ok(vec![None; plans.len()]) };
        if plans.len() == 1 {
            return Ok(vec![Some(out.clone())]);
        }
        let mut places: Vec<PathBuf> = Vec::new();
        for plan in plans {
            let name = plan.target.replace([':', '/', '@'], "-");
            let place = out.join(format!("{name}.json"));
            if places.contains(&place) {
                return Err(Failure::Failed(format!("--on {} is given twice", plan.target)));
            }
            places.push(place);
        }
        std::fs::create_dir_all(out).map_err(|e| failed(&out.display().to_string(), e))?;
        Ok(places.into_iter().map(Some).collect())
    }
}

/// Where to go from here.
fn point_on(kept: Option<&Path>) {
    match kept {
        Some(path) => {
            let path = path.display();
            format::say(&format!("kept in {path}; see it with: latlab report {path}"));
        }
        None => format::say("nothing was kept; --out FILE keeps the record for report and compare"),
    }
}

/// How two runs ended together: the more serious failure counts, and the other is said.
fn both(one: Result<()>, other: Result<()>) -> Result<()> {
    let (one, other) = match (one, other) {
        (Ok(()), ending) | (ending, Ok(())) => return ending,
        (Err(one), Err(other)) => (one, other),
    };
    let (graver, lesser) =
        if matches!(one, Failure::Worse(_)) { (other, one) } else { (one, other) };
    format::say(&lesser.to_string());
    Err(graver)
}

fn begin(path: &Path) -> Result<Pending> {
    Pending::begin(path, RESERVED).map_err(|e| failed(&path.display().to_string(), e))
}

/// Writes the record; where that fails after all, it is kept in the folder for temporary files.
fn keep(pending: Pending, path: &Path, record: &Record) -> Result<()> {
    let bytes = record.to_json().into_bytes();
    let Err(error) = pending.finish(&bytes) else {
        return Ok(());
    };
    let elsewhere = std::env::temp_dir().join(format!("latlab-{}.json", std::process::id()));
    let place = if file::write_atomically(&elsewhere, &bytes).is_ok() {
        format!("it is kept in {}", elsewhere.display())
    } else {
        format::put(&record.to_json())?;
        "it went to stdout instead".to_owned()
    };
    let path = path.display();
    Err(Failure::Failed(format!("the record can't be written to {path} ({error}); {place}")))
}
