//! `latlab bound`: the worst composition of the sections that runs in the laboratory have shown.

use super::block_signals;
use super::complete;
use super::reserved::Reserved;
use super::rights;
use super::target_options::TargetOptions;
use super::worse;
use latlab_core::bound::{Observation, Row, compose};
use latlab_core::cpulist::CpuList;
use latlab_core::plan::{Length, Part, Plan};
use latlab_core::record::Record;
use latlab_core::time::Nanos;
use latlab_format::progress::Bar;
use latlab_format::width::Width;
use latlab_format::{self as format, bound, live};
use latlab_lab as lab;
use latlab_measure::engine::Prepared;
use latlab_measure::load::LOADS;
use latlab_measure::probe::PROBES;
use latlab_measure::session::Session;
use latlab_part::failure::{Failure, Result, failed};
use latlab_part::part;
use latlab_sys::signal::Signals;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  latlab bound --on lab:rt --load fork
  latlab bound --on lab:rt --load none --load fork --seeds 10 -o bounds.json --svg bounds.svg";

/// The load that is none.
const NONE: &str = "none";

/// Time before samples count, in which loads start: what they do then is not part of a bound.
const WARM_UP: Nanos = Nanos::from_millis(50);

/// Compose the worst wake-up latency from all sections that a load has shown
///
/// In the laboratory, QEMU sees each change of preemption and interrupts in a guest. This command
/// takes the longest section of each kind in all runs of a load, and composes them to the worst that
/// could have met one wake-up, after de Oliveira et al., "Demystifying the Real-Time Linux Scheduling
/// Latency" (ECRTS 2020): `L = max(D_ST, D_POID) + D_PAIE + D_PSD` + interrupts within L. It names the
/// functions that begin and end each section, and shows the longest latency that the probe `cyclic`
/// measured in the same runs.
///
/// A bound is the worst composition of what was observed, in instructions. It is no guarantee: not
/// for what these runs did not show, and not for silicon.
///
/// Each load is measured by itself, on each target, once with each seed from 1 to --seeds.
///
/// Exit codes: 0 success; 1 a measured latency exceeds its bound: a task of higher priority delayed
/// the probe, or latlab is wrong; 2 failure; 3 this machine or the kernel lacks something; 4 it was
/// ended early (Ctrl-C).
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Bound {
    /// Kernel in the laboratory, lab:PROFILE (see: latlab list profiles); may be given several times
    #[arg(long, value_name = "TARGET", required = true, add = complete::targets())]
    on: Vec<String>,
    /// Load to run while the probe measures; none without one; may be given several times
    #[arg(long = "load", value_name = "NAME[:key=value,…]", default_value = NONE, add = complete::loads())]
    loads: Vec<String>,
    /// Number of runs of each load on each target, each with a seed of its own
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// Number of periods of 1 ms that each run measures
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Write the bounds to this file, as JSON
    #[arg(long, short = 'o', value_name = "FILE")]
    out: Option<PathBuf>,
    /// Draw the bounds beside the measured maxima, as an SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print only the bounds, as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    options: TargetOptions,
}

/// A target, a load, and their plan without a seed.
type Cell = (String, String, Plan);

impl Bound {
    pub(super) fn run(&self) -> Result<()> {
        let plans = self.plans()?;
        self.on.iter().try_for_each(|target| self.options.check(target))?;
        rights::keep(rights::ELSEWHERE)?;
        let out = self.out.as_deref().map(Reserved::begin).transpose()?;
        let svg = self.svg.as_deref().map(Reserved::begin).transpose()?;
        let signals = block_signals()?;
        let (rows, failure) = self.rows(&plans, &signals);
        if !rows.is_empty() {
            let shown = self.show(&rows);
            let out = out.map_or(Ok(()), |file| file.write(&bound::json(&rows)));
            let svg = svg.map_or(Ok(()), |file| file.write(&bound::svg(&rows)));
            let written = worse(shown, worse(out, svg));
            return worse(written, failure.map_or_else(|| check(&rows), Err));
        }
        failure.map_or_else(|| check(&rows), Err)
    }

    /// Measures all bounds, or those before the first failure.
    fn rows(&self, plans: &[Cell], signals: &Signals) -> (Vec<Row>, Option<Failure>) {
        let mut watch = live::view(None);
        let mut bar = Bar::new(signals);
        let mut session = self.options.session(signals, watch.as_mut(), &mut bar);
        let mut rows = Vec::new();
        for (target, load, plan) in plans {
            match self.row(target, load, plan, &mut session) {
                Ok(row) => rows.push(row),
                Err(_) if session.ended => {
                    let (done, all) = (rows.len(), plans.len());
                    let cut = format!("ended early, after {done} of {all} bounds");
                    return (rows, Some(Failure::cut_short(cut)));
                }
                Err(failure) => return (rows, Some(failure)),
            }
        }
        (rows, None)
    }

    /// Each target with each load.
    fn plans(&self) -> Result<Vec<Cell>> {
        let other = self.on.iter().find(|target| !target.starts_with("lab:"));
        if let Some(other) = other {
            let why = "sections are seen in the laboratory only: use --on lab:PROFILE";
            return Err(Failure::unsupported(format!("{other}: {why}")));
        }
        let probe = part::parse("probe", PROBES, "cyclic", &[])?;
        let load = |text: &String| -> Result<(String, Vec<Part>)> {
            let is_none = text == NONE;
            let loads = (!is_none).then(|| part::parse("load", LOADS, text, &[]));
            Ok((text.clone(), loads.transpose()?.into_iter().collect()))
        };
        let loads = self.loads.iter().map(load).collect::<Result<Vec<_>>>()?;
        let plan = |target: &String, (name, loads): &(String, Vec<Part>)| {
            let bare = Plan::bare(target, CpuList::default(), Length::Count(self.count));
            let (probes, loads) = (vec![probe.clone()], loads.clone());
            (target.clone(), name.clone(), Plan { probes, loads, warm_up: WARM_UP, ..bare })
        };
        let of_target = |target| loads.iter().map(move |load| (target, load));
        let all = self.on.iter().flat_map(of_target);
        Ok(all.map(|(target, load)| plan(target, load)).collect())
    }

    /// Measures one load on one target with all seeds.
    fn row(&self, target: &str, load: &str, plan: &Plan, session: &mut Session<'_>) -> Result<Row> {
        let seeded = |seed| Ok(Prepared::of(&Plan { seed, ..plan.clone() })?.on_target(target));
        let plans = (1..=self.seeds).map(seeded).collect::<Result<Vec<_>>>()?;
        let runs = lab::observe(&plans, session).into_iter().collect::<Result<Vec<_>>>()?;
        let (records, observed): (Vec<Record>, Vec<Observation>) = runs.into_iter().unzip();
        let endless = || failed(target, "interrupts leave a thread no time: there is no bound");
        let bound = compose(&observed).ok_or_else(endless)?;
        let machine = records.first().map(|record| record.machine.clone()).unwrap_or_default();
        Ok(Row {
            target: target.to_owned(),
            load: load.to_owned(),
            kernel: machine.kernel,
            preempt: machine.preempt,
            runs: self.seeds,
            samples: observed.iter().map(|run| run.samples).sum(),
            maximum: observed.iter().map(|run| run.maximum).max().unwrap_or_default(),
            bound,
        })
    }

    fn show(&self, rows: &[Row]) -> Result<()> {
        if self.json {
            return format::put(&bound::json(rows));
        }
        format::show(&bound::text(rows, Width::of_stdout()))
    }
}

/// Fails where a measured latency exceeds its bound.
fn check(rows: &[Row]) -> Result<()> {
    let exceeded = |row: &&Row| !row.holds();
    let Some(row) = rows.iter().find(exceeded) else { return Ok(()) };
    Err(Failure::worse(format!(
        "{} under {}: a wake-up took {}, longer than the bound of {}: unless a task of higher \
         priority delayed the probe, this is a defect of latlab, please report it",
        row.target, row.load, row.maximum, row.bound.ns
    )))
}
