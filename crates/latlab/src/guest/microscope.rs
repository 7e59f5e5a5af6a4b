//! The laboratory's microscope: a run that is made again, with QEMU's plugin watching its worst
//! samples.

use super::Time;
use super::cell::Cell;
use super::laboratory::{carry_out, cell, kernel, run};
use super::orders::Job;
use super::symbols::Symbols;
use crate::engine::Outcome;
use crate::errand::Errand;
use crate::failure::{Failure, Result, failed};
use crate::kernel as kernels;
use latlab_core::path::{Path, Watched};
use latlab_core::plan::Plan;
use latlab_core::record::{Record, Sample};
use latlab_core::scan::{Region, Scan};
use latlab_core::time::Nanos;
use std::path::PathBuf;

/// The plugin, and what it is told.
#[derive(Debug)]
pub(super) struct Microscope {
    plugin: PathBuf,
    /// Numbers of samples, and their latencies.
    samples: Vec<(u64, Nanos)>,
    faults: Vec<u64>,
    preempt_count: Option<u64>,
}

impl Microscope {
    /// What follows `-plugin`.
    pub(super) fn argument(&self, out: &str) -> String {
        let samples =
            self.samples.iter().map(|(nth, latency)| format!(",sample={nth}:{}", latency.0));
        let faults = self.faults.iter().map(|address| format!(",fault={address:x}"));
        let preempt = self.preempt_count.iter().map(|address| format!(",preempt={address:x}"));
        let rest: String = samples.chain(faults).chain(preempt).collect();
        // QEMU reads a comma as two.
        let plugin = self.plugin.display().to_string().replace(',', ",,");
        format!("file={plugin},out={out}{rest}")
    }
}

/// Carries out a plan, and again with the microscope on its worst samples, whose paths it gets.
/// The two runs are the same in all else, or it fails.
pub(crate) fn explain(plan: &Plan, errand: &mut Errand<'_>) -> Result<Outcome> {
    refuse_several_cpus(&plan.target, errand)?;
    let plugin = kernels::plugin(errand.progress)?;
    let symbols = Symbols::of(plan, errand)?;
    let outcome = run(std::slice::from_ref(plan), Time::Instructions, errand);
    let mut outcome = outcome.into_iter().next().expect("one plan, one outcome")?;
    let samples = wanted(&outcome.record)?;
    let microscope = Microscope {
        plugin,
        samples,
        faults: symbols.faults().collect(),
        preempt_count: symbols.preempt_count,
    };
    errand.watch.note("");
    let job = Job::Run(Box::new(plan.clone()));
    let cell = cell(&plan.target, Time::Instructions, job, errand)?;
    let cell = Cell { microscope: Some(microscope), ..cell };
    let answer = carry_out(vec![Ok(cell)], errand, &mut |_, _| Ok(())).pop();
    let answer = answer.expect("one cell, one answer")?;
    let trace = Watched::read(&answer.trace).map_err(|e| failed(&plan.target, e))?;
    let again = answer.outcome(plan)?.record;
    same(&plan.target, &outcome.record, &again)?;
    let mut unseen = Vec::new();
    for sample in &mut outcome.record.worst {
        let watched = trace.iter().find(|watched| Some(watched.nth) == sample.index);
        match watched {
            Some(watched) => sample.path = Some(path(&plan.target, watched, &symbols)?),
            None => unseen.extend(sample.index),
        }
    }
    for region in outcome.record.scans.iter_mut().flat_map(|scan| &mut scan.regions) {
        let watched = trace.iter().find(|watched| Some(watched.nth) == region.nth);
        let path = watched.map(|watched| path(&plan.target, watched, &symbols)).transpose()?;
        region.function = path.as_ref().and_then(Path::culprit);
    }
    if unseen.is_empty() {
        return Ok(outcome);
    }
    let why = format!("the plugin saw nothing of the samples {unseen:?}");
    Err(Failure::Failed(format!("{}: {why}", plan.target)))
}

/// The plugin counts samples, which are in one order on one CPU only.
fn refuse_several_cpus(target: &str, errand: &mut Errand<'_>) -> Result<()> {
    let cpus = kernel(target, errand)?.0.cpus;
    if cpus == 1 {
        return Ok(());
    }
    let why = format!("its guest has {cpus} CPUs, and samples are told apart on one CPU only");
    let remedy = "use a profile with cpus = 1";
    Err(Failure::Unsupported(format!("{target}: {why}: {remedy}")))
}

/// So many the plugin takes.
const MOST_SAMPLES: usize = 64;

/// The samples to watch.
fn wanted(record: &Record) -> Result<Vec<(u64, Nanos)>> {
    let nth = |sample: &Sample| Some((sample.index?, sample.latency));
    let regions = record.scans.iter().flat_map(longest);
    let regions = regions.filter_map(|region| Some((region.nth?, region.peak)));
    let wanted: Vec<_> =
        record.worst.iter().filter_map(nth).chain(regions).take(MOST_SAMPLES).collect();
    if wanted.is_empty() {
        let why = "no probe of this run takes its samples where they can be watched: cyclic does";
        return Err(Failure::Unsupported(format!("{}: {why}", record.plan.target)));
    }
    Ok(wanted)
}

/// The regions of a scan that are worth a function's name: the longest, as far as they are longer
/// than what each wake-up takes.
fn longest(scan: &Scan) -> Vec<&Region> {
    const NAMED: usize = 10;
    let long = |region: &&Region| region.length() > scan.baseline;
    let mut regions: Vec<&Region> = scan.regions.iter().filter(long).collect();
    regions.sort_by_key(|region| std::cmp::Reverse(region.length()));
    regions.truncate(NAMED);
    regions
}

fn same(target: &str, without: &Record, with: &Record) -> Result<()> {
    let (without, with) = (without.to_json(), with.to_json());
    let mut lines = without.lines().zip(with.lines());
    if without == with {
        return Ok(());
    }
    let (a, b) = lines.find(|(a, b)| a != b).unwrap_or_default();
    Err(Failure::Failed(format!(
        "{target}: the run with the microscope is another one than the run without, so nothing is \
         explained: '{}' became '{}'",
        a.trim(),
        b.trim()
    )))
}

fn path(target: &str, watched: &Watched, symbols: &Symbols) -> Result<Path> {
    if watched.apart > 0 {
        let why = format!("the plugin's count of instructions is off by {}", watched.apart);
        return Err(Failure::Failed(format!("{target}: {why}: nothing is explained")));
    }
    Ok(Path::of(watched, |address| symbols.place(address)))
}
