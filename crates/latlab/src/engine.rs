//! The engine: carries out a plan on this machine. The only place where the rooms meet.

use crate::failure::{Failure, Result, failed};
use crate::load::Crew;
use crate::probe::PROBES;
use crate::registry;
use crate::rig::{self, Measured, Rig, Watch};
use latlab_core::cpulist::CpuList;
use latlab_core::doctor;
use latlab_core::machine::Machine;
use latlab_core::plan::Plan;
use latlab_core::record::{self, Counts, Record, SCHEMA, Sample, Series, Warning};
use latlab_core::time::Nanos;
use latlab_sys::guard::{Guard, GuardError};
use latlab_sys::machine::counters;
use latlab_sys::memory::{self, Locked};
use latlab_sys::root::Root;
use latlab_sys::signal::Signals;
use latlab_sys::{clock, cpu, machine};

/// What a run gave: always a record, and a verdict where a limit was set and exceeded.
pub(crate) struct Outcome {
    pub(crate) record: Record,
    pub(crate) verdict: Option<Failure>,
}

/// Carries out `plan` on this machine.
pub(crate) fn run(plan: &Plan, watch: &mut dyn Watch) -> Result<Outcome> {
    let root = Root::default();
    let online = cpu::online(&root);
    check_cpus(&plan.cpus, &online)?;
    let signals = Signals::hold().map_err(|e| failed("signals can't be held back", e))?;
    let started = clock::since_1970();
    let mut warnings = mend(&root);
    let mut guard = Guard::new(root.clone());
    for setting in &plan.settings {
        guard.set(&setting.knob, &setting.value, "asked for with --set").map_err(|e| denied(&e))?;
    }
    let mut machine = machine::read(&root);
    machine.clock_read_ns = clock::read_cost().0;
    machine.record_ns = rig::record_cost().0;
    warnings.extend(severe_findings(&machine));
    let crew = Crew::start(&plan.loads, &plan.cpus, &machine, plan.seed)?;
    warnings.extend(lock_memory());
    let mut rig = Rig::new(&plan.cpus, plan.length, plan.warm_up, plan.stop_above, &signals, watch);
    for part in &plan.probes {
        registry::build("probe", PROBES, part)?.run(&mut rig)?;
        if rig.is_over() {
            break;
        }
    }
    memory::unlock_all();
    let (work, ended) = crew.stop();
    let happened = counters::read(&root, &machine).happened_since(&machine.counters);
    let changes = guard.restore();
    warnings.extend(ended);
    warnings.extend(happened.into_iter().map(|text| Warning::new("machine-disturbed", text)));
    warnings.extend(rig_warnings(&rig));
    let loads: Vec<String> = plan.loads.iter().map(|part| part.name.clone()).collect();
    let verdict = verdict(plan, &rig.measured, &loads);
    warnings.extend(verdict.iter().map(|text| Warning::new("stopped-above", text)));
    let (series, worst) = results(rig.measured, &loads, &mut warnings);
    let record = Record {
        schema: SCHEMA,
        tool: concat!("latlab ", env!("CARGO_PKG_VERSION")).to_owned(),
        started,
        runs: 1,
        plan: plan.clone(),
        machine,
        series,
        figures: Vec::new(),
        worst,
        work,
        changes,
        warnings,
    };
    Ok(Outcome { record, verdict: verdict.map(Failure::Worse) })
}

/// Puts back what killed runs left changed.
fn mend(root: &Root) -> Vec<Warning> {
    Guard::mend(root).into_iter().map(|text| Warning::new("mended", text)).collect()
}

fn check_cpus(wanted: &CpuList, online: &CpuList) -> Result<()> {
    let missing = wanted.minus(online);
    if wanted.is_empty() {
        return Err(Failure::Failed("--cpus names no CPU".to_owned()));
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!("CPU {missing} is not online: this machine has {online}")))
}

fn denied(error: &GuardError) -> Failure {
    match error {
        GuardError::Unknown(..) | GuardError::Refused(..) | GuardError::Taken { .. } => {
            Failure::Failed(error.to_string())
        }
        _ => Failure::Unsupported(error.to_string()),
    }
}

/// What makes figures of this machine worse than the machine could do: said with every record,
/// so that nobody takes them for the kernel's.
fn severe_findings(machine: &Machine) -> Option<Warning> {
    let findings = doctor::diagnose(machine);
    let severe = findings.iter().filter(|finding| finding.severity.is_severe());
    let codes: Vec<&str> = severe.map(|finding| finding.code.as_str()).collect();
    (!codes.is_empty()).then(|| {
        let codes = codes.join(", ");
        Warning::new("machine", format!("this machine spoils latency ({codes}): see latlab doctor"))
    })
}

fn lock_memory() -> Option<Warning> {
    match memory::lock_all() {
        Ok(Locked::All) => None,
        Ok(Locked::Present) => Some(Warning::new(
            "memory-partly-locked",
            "RLIMIT_MEMLOCK lets only present memory be locked; page faults are counted",
        )),
        Err(e) => Some(Warning::new(
            "memory-not-locked",
            format!(
                "memory could not be locked ({e}): raise RLIMIT_MEMLOCK (ulimit -l); page faults are counted"
            ),
        )),
    }
}

fn rig_warnings(rig: &Rig<'_>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if rig.interrupted {
        let text = "ended early at the user's request; what was measured until then is here";
        warnings.push(Warning::new("interrupted", text));
    }
    if !rig.lost.is_empty() {
        let text = format!(
            "CPU {} went offline during the run; what was measured on it until then is here",
            rig.lost
        );
        warnings.push(Warning::new("cpu-offline", text));
    }
    warnings
}

/// The worst sample above the limit, in a sentence.
fn verdict(plan: &Plan, measured: &[Measured], loads: &[String]) -> Option<String> {
    let limit = plan.stop_above?;
    let tripped = measured.iter().filter_map(|m| Some((m, m.lane.tripped?)));
    let (first, tripped) = tripped.min_by_key(|(_, tripped)| tripped.late.at)?;
    let beside = if loads.is_empty() { "no load".to_owned() } else { loads.join(", ") };
    Some(format!(
        "{} on CPU {}: {} from {} to {}, above {limit}: period {}, {} after counting began, under {beside}",
        first.probe,
        first.cpu,
        tripped.late.latency,
        first.spans[0].0,
        first.spans[0].1,
        tripped.period,
        tripped.late.at,
    ))
}

/// The lanes as series, and the worst samples of all.
fn results(
    measured: Vec<Measured>,
    loads: &[String],
    warnings: &mut Vec<Warning>,
) -> (Vec<Series>, Vec<Sample>) {
    let (mut series, mut worst) = (Vec::new(), Vec::new());
    for one in measured {
        warnings.extend(lane_warnings(&one));
        for (channel, span) in one.spans.iter().enumerate() {
            let made = make_series(&one, channel, *span, loads);
            worst.extend(one.lane.series[channel].2.iter().map(|late| Sample {
                probe: one.probe.to_owned(),
                cpu: one.cpu,
                at: late.at,
                latency: late.latency,
                causes: Vec::new(),
                unexplained: late.latency,
            }));
            series.push(made);
        }
    }
    record::worst_first(&mut worst);
    (series, worst)
}

fn make_series(one: &Measured, channel: usize, span: (&str, &str), loads: &[String]) -> Series {
    let (tally, timeline, _) = &one.lane.series[channel];
    let mut series = Series {
        probe: one.probe.to_owned(),
        span: (span.0.to_owned(), span.1.to_owned()),
        cpu: one.cpu,
        load: loads.to_vec(),
        profile: None,
        schedule: one.schedule.clone(),
        interval: Some(one.interval),
        counts: Counts {
            recorded: tally.recorded(),
            missed: tally.missed(),
            below_zero: tally.below_zero(),
        },
        min: Nanos(0),
        max: Nanos(0),
        mean: Nanos(0),
        stddev: Nanos(0),
        sum: 0,
        quantiles: latlab_core::histogram::Quantiles::default(),
        corrected: latlab_core::histogram::Quantiles::default(),
        first: one.lane.first.filter(|_| channel == 0),
        warm_up: (channel == 0).then_some(one.lane.warm_up),
        disturbed: one.lane.disturbed,
        cpu_ns: one.lane.cpu_ns,
        timeline: timeline.clone(),
        hdr: String::new(),
    };
    series.set_histogram(&tally.histogram());
    series
}

fn lane_warnings(one: &Measured) -> Vec<Warning> {
    let (probe, cpu, disturbed) = (one.probe, one.cpu, one.lane.disturbed);
    let mut warnings = Vec::new();
    let faults = disturbed.minor_faults + disturbed.major_faults;
    if faults > 0 {
        let text = format!("{probe} on CPU {cpu} took {faults} page faults while it measured");
        warnings.push(Warning::new("page-faults", text));
    }
    if disturbed.preempted > 0 {
        let text = format!(
            "{probe} on CPU {cpu} was preempted {} times: something ran above it",
            disturbed.preempted
        );
        warnings.push(Warning::new("preempted", text));
    }
    if one.schedule.policy == "deadline" {
        let text = format!(
            "{probe}: the kernel binds no deadline task to a CPU; CPU {cpu} is only a name here"
        );
        warnings.push(Warning::new("not-bound", text));
    }
    if one.lane.series[0].0.recorded() == 0 {
        let text = format!("{probe} on CPU {cpu} recorded nothing: the run ended in its warm-up");
        warnings.push(Warning::new("nothing-recorded", text));
    }
    warnings
}
