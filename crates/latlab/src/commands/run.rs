//! `latlab run`: measure.

use crate::failure::{Failure, Result, failed};
use crate::format::{self, live, text};
use crate::load::LOADS;
use crate::probe::PROBES;
use crate::{engine, registry, target};
use latlab_core::cpulist::CpuList;
use latlab_core::plan::{Length, Part, Plan, Setting};
use latlab_core::record::Record;
use latlab_core::time::Nanos;
use latlab_sys::file::Pending;
use latlab_sys::root::Root;
use latlab_sys::{cpu, file};
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
    /// Where to run
    #[arg(long, value_name = "TARGET", default_value = "native")]
    on: String,
    /// How long each probe measures [default: 10s]
    #[arg(long = "for", value_name = "TIME", conflicts_with = "count", value_parser = positive)]
    time: Option<Nanos>,
    /// How many periods each probe measures on each CPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// The CPUs to measure on, as 0-3,8 [default: all]
    #[arg(long, value_name = "LIST")]
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
    /// Keep the record in this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the record, and nothing else, on stdout
    #[arg(long)]
    json: bool,
}

fn positive(text: &str) -> std::result::Result<Nanos, String> {
    match text.parse::<Nanos>() {
        Ok(Nanos(0)) => Err("nothing can be measured in no time".to_owned()),
        Ok(time) => Ok(time),
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
        let plan = self.plan()?;
        let target = target::find(&plan.target)?;
        let pending = self.out.as_deref().map(begin).transpose()?;
        let outcome = target.run(&plan, engine::run, live::view().as_mut())?;
        let record = &outcome.record;
        // The sentence of a limit exceeded is the failure's own, and comes last.
        for warning in record.warnings.iter().filter(|w| w.code != "stopped-above") {
            format::say(&warning.text);
        }
        if let (Some(pending), Some(path)) = (pending, &self.out) {
            keep(pending, path, record)?;
        }
        if self.json {
            format::put(&record.to_json())?;
        } else {
            format::put(&text::summary(record))?;
            self.point_on();
        }
        // Nothing but the exit code is to come, and a second Ctrl-C must not take its place.
        std::mem::forget(outcome.signals);
        outcome.verdict.map_or(Ok(()), Err)
    }

    fn plan(&self) -> Result<Plan> {
        let policy = self.policy.iter().map(|policy| ("policy", policy.clone()));
        let policy: Vec<_> = policy.collect();
        let default = ["cyclic".to_owned()];
        let probes = if self.probes.is_empty() { &default } else { self.probes.as_slice() };
        Ok(Plan {
            probes: parts(probes, |text| registry::parse("probe", PROBES, text, &policy))?,
            loads: parts(&self.loads, |text| registry::parse("load", LOADS, text, &[]))?,
            target: self.on.clone(),
            cpus: self.cpus()?,
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

    /// Those asked for, else all that are online and that this process may use.
    fn cpus(&self) -> Result<CpuList> {
        if let Some(cpus) = &self.cpus {
            return Ok(cpus.clone());
        }
        let online = cpu::online(&Root::default());
        let allowed = cpu::allowed().map_err(|e| failed("the CPUs can't be listed", e))?;
        Ok(allowed.iter().filter(|cpu| online.is_empty() || online.contains(*cpu)).collect())
    }

    /// Where to go from here.
    fn point_on(&self) {
        match &self.out {
            Some(path) => {
                let path = path.display();
                format::say(&format!("kept in {path}; see it with: latlab report {path}"));
            }
            None => {
                format::say("nothing was kept; --out FILE keeps the record for report and compare");
            }
        }
    }
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
