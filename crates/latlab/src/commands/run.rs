//! `latlab run`: measure.

use super::elsewhere::Elsewhere;
use crate::engine::Outcome;
use crate::failure::{Failure, Result, failed};
use crate::format::progress::Bar;
use crate::format::{self, live, text};
use crate::load::LOADS;
use crate::probe::PROBES;
use crate::target::Target;
use crate::{registry, target};
use latlab_core::cpulist::CpuList;
use latlab_core::plan::{Length, Part, Plan, Setting};
use latlab_core::record::Record;
use latlab_core::time::Nanos;
use latlab_sys::file;
use latlab_sys::file::Pending;
use latlab_sys::signal::Signals;
use std::path::{Path, PathBuf};

/// Measure how late this machine is
///
/// Runs each probe in turn while all loads run beside it. Without a probe it is `cyclic`, for
/// 10 s on all CPUs: how late does a sleeping real-time task wake?
#[derive(Debug, clap::Args)]
pub(super) struct Run {
    /// Probes with their parameters, as cyclic:interval=100us,priority=80 [default: cyclic]
    #[arg(value_name = "PROBE[:key=value,…]")]
    probes: Vec<String>,
    /// A load to run beside the probes; may be given several times
    #[arg(long = "load", value_name = "NAME[:key=value,…]")]
    loads: Vec<String>,
    /// Where to run (see: latlab list targets); may be given several times
    #[arg(long, value_name = "TARGET", default_value = "native")]
    on: Vec<String>,
    /// How long each probe measures [default: 10s]
    #[arg(long = "for", value_name = "TIME", conflicts_with = "count", value_parser = super::positive)]
    time: Option<Nanos>,
    /// How many periods each probe measures on each CPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// The CPUs to measure on, as 0-3,8 [default: all]
    #[arg(long, value_name = "LIST", value_parser = some_cpus)]
    cpus: Option<CpuList>,
    /// Policy of all probes that do not say their own: fifo, rr, deadline, other
    #[arg(long)]
    policy: Option<String>,
    /// Time each probe runs before its samples count; they are reported apart
    #[arg(long, value_name = "TIME", default_value = "200ms")]
    warm_up: Nanos,
    /// End at the first sample above this, with exit code 1
    #[arg(long, value_name = "TIME")]
    stop_above: Option<Nanos>,
    /// Turn a knob of the machine while measuring, and back afterwards (see: latlab list knobs)
    #[arg(long = "set", value_name = "KNOB=VALUE", value_parser = setting)]
    settings: Vec<Setting>,
    /// Seed of everything that the loads draw by chance
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Keep the record in this file; with several targets, one record for each in this folder
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the record, and nothing else, on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    elsewhere: Elsewhere,
}

fn some_cpus(text: &str) -> std::result::Result<CpuList, String> {
    match text.parse::<CpuList>() {
        Ok(cpus) if cpus.is_empty() => Err("it names no CPU".to_owned()),
        Ok(cpus) => Ok(cpus),
        Err(e) => Err(e.to_string()),
    }
}

fn setting(text: &str) -> std::result::Result<Setting, String> {
    let (knob, value) = text.split_once('=').ok_or("it has no '=': write KNOB=VALUE")?;
    Ok(Setting { knob: knob.to_owned(), value: value.to_owned() })
}

/// Room that a record is sure to find at the end of the run.
const RESERVED: u64 = 1 << 20;

impl Run {
    pub(super) fn run(&self) -> Result<()> {
        let plans = self.plans()?;
        let target = self.target()?;
        if self.on[0] == "native" {
            self.elsewhere.refuse_here()?;
        }
        let places = self.places(&plans)?;
        let pending = places.iter().map(|place| place.as_deref().map(begin).transpose());
        let pending: Vec<_> = pending.collect::<Result<_>>()?;
        let signals = Signals::hold().map_err(|e| failed("signals can't be held back", e))?;
        let mut watch = live::view();
        let mut bar = Bar::new(&signals);
        let mut errand = self.elsewhere.errand(&signals, watch.as_mut(), &mut bar);
        let outcomes = target.run(&plans, &mut errand);
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

    /// The same plan for each target.
    fn plans(&self) -> Result<Vec<Plan>> {
        let plan = self.plan()?;
        let on = |target: &String| Plan { target: target.clone(), ..plan.clone() };
        Ok(self.on.iter().map(on).collect())
    }

    fn plan(&self) -> Result<Plan> {
        let policy = self.policy.iter().map(|policy| ("policy", policy.clone()));
        let policy: Vec<_> = policy.collect();
        let default = ["cyclic".to_owned()];
        let probes = if self.probes.is_empty() { &default } else { self.probes.as_slice() };
        Ok(Plan {
            probes: parts(probes, |text| registry::parse("probe", PROBES, text, &policy))?,
            scans: Vec::new(),
            loads: parts(&self.loads, |text| registry::parse("load", LOADS, text, &[]))?,
            target: String::new(),
            cpus: self.cpus.clone().unwrap_or_default(),
            length: match (self.count, self.time) {
                (Some(count), _) => Length::Count(count),
                (None, time) => Length::For(time.unwrap_or(Nanos::from_secs(10))),
            },
            warm_up: self.warm_up,
            seed: self.seed,
            stop_above: self.stop_above,
            settings: self.settings.clone(),
        })
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

fn parts(texts: &[String], parse: impl Fn(&str) -> Result<Part>) -> Result<Vec<Part>> {
    texts.iter().map(|text| parse(text)).collect()
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
