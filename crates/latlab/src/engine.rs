//! The engine: carries out a plan on this machine. The only place where the rooms meet.

mod results;

use crate::call;
use crate::driver;
use crate::explain::{self, Explanations};
use crate::failure::{Failure, Result, failed};
use crate::load::{self, Crew};
use crate::needs::Needs;
use crate::probe::{self, AnyProbe, PROBES};
use crate::registry;
use crate::rig::{self, Rig, Watch};
use crate::scan::{self, Scanned};
use latlab_core::cpulist::CpuList;
use latlab_core::doctor;
use latlab_core::histogram::Histogram;
use latlab_core::machine::{Machine, TimeDomain};
use latlab_core::plan::{Part, Plan};
use latlab_core::record::{Record, SCHEMA, Series, Warning};
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

/// Carries out `plan` on this machine, whose time is of this kind. A plan that names no CPUs means
/// all that may be used.
pub(crate) fn run(
    plan: &Plan,
    time_domain: TimeDomain,
    signals: &Signals,
    watch: &mut dyn Watch,
) -> Result<Outcome> {
    let root = Root::default();
    let plan = &Plan { cpus: cpus(&plan.cpus, &cpu::online(&root))?, ..plan.clone() };
    let mut warnings = Vec::new();
    let probes = probes(plan, &mut warnings)?;
    plan.scans.iter().try_for_each(scan::check)?;
    plan.explain.iter().try_for_each(explain::check)?;
    let started = clock::since_1970();
    warnings.extend(mend(&root));
    let mut guard = turn_knobs(plan, &root)?;
    let machine = Machine { time_domain, ..read_machine(&root) };
    warnings.extend(severe_findings(&machine));
    let parts = loads(plan, &machine, &mut warnings)?;
    keep_what_they_change(&mut guard, &parts)?;
    let crew = Crew::start(&parts, &plan.cpus, &machine, plan.seed, signals)?;
    warnings.extend(lock_memory());
    let (scanned, mut failure) = scan_all(plan, signals, watch)?;
    let mut rig = Rig::new(plan, signals, watch);
    let (failed, explanations) = explaining(plan, &machine, &probes, &mut rig)?;
    failure = failure.or(failed);
    memory::unlock_all();
    let (work, ended) = crew.stop();
    let happened = counters::read(&root, &machine).happened_since(&machine.counters);
    let changes = guard.restore();
    warnings.extend(ended);
    warnings.extend(happened.into_iter().map(|text| Warning::new("machine-disturbed", text)));
    warnings.extend(results::rig_warnings(&rig, scanned.iter().any(|scan| scan.interrupted)));
    let loads: Vec<String> = parts.iter().map(|part| part.name.clone()).collect();
    let verdict = results::verdict(plan, &rig.measured, &loads);
    warnings.extend(verdict.iter().map(|text| Warning::new("stopped-above", text)));
    warnings.append(&mut rig.warnings);
    let figures = results::figures(rig.figures, &loads);
    let (mut series, worst) = results::results(rig.measured, &loads, &mut warnings);
    let (worst, explained) = match explanations {
        Some(all) => (all.worst, Some(all.explained)),
        None => (worst, None),
    };
    let mut scans = Vec::new();
    for one in scanned {
        warnings.extend(one.warnings);
        series.extend(one.series.into_iter().map(|one| Series { load: loads.clone(), ..one }));
        scans.push(one.scan);
    }
    let record = Record {
        schema: SCHEMA,
        tool: concat!("latlab ", env!("CARGO_PKG_VERSION")).to_owned(),
        started,
        runs: 1,
        plan: plan.clone(),
        machine,
        series,
        scans,
        figures,
        worst,
        explained,
        work,
        changes,
        warnings,
    };
    let verdict = failure.or(verdict.map(Failure::Worse));
    Ok(Outcome { record, verdict })
}

/// What the parts of `plan` need.
pub(crate) fn needs(plan: &Plan) -> Result<Needs> {
    let probes = plan.probes.iter().map(probe::needs);
    let loads = plan.loads.iter().map(load::needs);
    let calls = plan.scans.iter().map(|scan| call::needs(&scan.call));
    probes.chain(loads).chain(calls).try_fold(Needs::default(), |all, needs| Ok(all.and(needs?)))
}

/// How many times the run's length a probe of a plan measures.
pub(crate) fn lengths(probe: &Part) -> Result<u64> {
    probe::lengths(probe)
}

/// The CPUs asked for, else all that are online and that this process may use.
fn cpus(wanted: &CpuList, online: &CpuList) -> Result<CpuList> {
    if !wanted.is_empty() {
        return check_cpus(wanted, online).map(|()| wanted.clone());
    }
    let allowed = cpu::allowed().map_err(|e| failed("the CPUs can't be listed", e))?;
    Ok(allowed.iter().filter(|cpu| online.is_empty() || online.contains(*cpu)).collect())
}

/// What is missing for a part, where it is only left out for that.
fn missing(plan: &Plan, part: &Part, checked: Result<()>) -> Result<Option<Warning>> {
    match checked {
        Err(Failure::Unsupported(why)) if plan.skip_missing => {
            let text = format!("{} was left out: {why}", part.name);
            Ok(Some(Warning::new("skipped", text)))
        }
        checked => checked.map(|()| None),
    }
}

/// The probes of the plan, each willing to run here: nothing is started before all are.
fn probes(plan: &Plan, warnings: &mut Vec<Warning>) -> Result<Vec<Box<dyn AnyProbe>>> {
    let mut probes = Vec::new();
    for part in &plan.probes {
        let probe = registry::build("probe", PROBES, part)?;
        match missing(plan, part, probe.check(&plan.cpus))? {
            Some(skipped) => warnings.push(skipped),
            None => probes.push(probe),
        }
    }
    let watches = plan.explain.as_ref().is_some_and(|explain| explain.watch.is_some());
    if probes.is_empty() && plan.scans.is_empty() && !watches {
        let why = warnings.iter().map(|warning| warning.text.as_str()).collect::<Vec<_>>();
        return Err(Failure::Unsupported(format!(
            "nothing is left to measure: {}",
            why.join("; ")
        )));
    }
    Ok(probes)
}

/// The loads of the plan, each able to work here.
fn loads(plan: &Plan, machine: &Machine, warnings: &mut Vec<Warning>) -> Result<Vec<Part>> {
    let mut loads = Vec::new();
    for part in &plan.loads {
        refuse_two_with_one_driver(plan, part)?;
        match missing(plan, part, load::check(part, &plan.cpus, machine))? {
            Some(skipped) => warnings.push(skipped),
            None => loads.push(part.clone()),
        }
    }
    Ok(loads)
}

/// The test driver has one interrupt: what is measured with it no load may use. Loads only take its
/// device.
fn refuse_two_with_one_driver(plan: &Plan, load: &Part) -> Result<()> {
    let probes = plan.probes.iter().map(probe::needs);
    let others = probes.collect::<Result<Vec<Needs>>>()?;
    let taken = others.iter().any(|needs| needs.interrupt);
    if taken && load::needs(load)?.interrupt && driver::check_device().is_ok() {
        let why =
            "uses the test driver's interrupt, and so does what is measured: use source=timer";
        return Err(Failure::Failed(format!("{}: it {why}", load.name)));
    }
    Ok(())
}

/// Has the guard give back what loads will change.
fn keep_what_they_change(guard: &mut Guard, loads: &[Part]) -> Result<()> {
    let mut kept = Vec::new();
    for part in loads {
        kept.extend(load::changes(part)?.iter().map(|knob| (*knob, &part.name)));
    }
    // The last is given back first, and each terminal has LEDs of its own: those of the one that
    // was to be seen can be given back when it is to be seen again.
    kept.sort_by_key(|(knob, _)| *knob == "active_console");
    for (knob, load) in kept {
        let because = format!("the load {load} changes it");
        guard.keep(knob, &because).map_err(|e| denied(&e))?;
    }
    Ok(())
}

/// Scans one call after another, on the last of the CPUs: the first has most of the interrupts.
/// A failure after something was measured comes beside it, not instead of it.
fn scan_all(
    plan: &Plan,
    signals: &Signals,
    watch: &mut dyn Watch,
) -> Result<(Vec<Scanned>, Option<Failure>)> {
    let cpu = plan.cpus.iter().last().unwrap_or_default();
    let mut scanned: Vec<Scanned> = Vec::new();
    for scan in &plan.scans {
        match scan::run(scan, cpu, signals, watch) {
            Ok(one) if one.scan.points.is_empty() => {
                let Some(last) = scanned.last_mut() else {
                    let why = "ended before anything was measured";
                    return Err(Failure::Failed(why.to_owned()));
                };
                last.interrupted = true;
            }
            Ok(mut one) => {
                let failure = one.failure.take();
                scanned.push(one);
                if failure.is_some() {
                    return Ok((scanned, failure));
                }
            }
            Err(failure) if scanned.is_empty() => return Err(failure),
            Err(failure) => return Ok((scanned, Some(failure))),
        }
        if scanned.last().is_some_and(|last| last.interrupted) {
            break;
        }
    }
    Ok((scanned, None))
}

/// Runs the probes, and says of what is late why it is, where that was asked for; or watches others.
fn explaining(
    plan: &Plan,
    machine: &Machine,
    probes: &[Box<dyn AnyProbe>],
    rig: &mut Rig<'_>,
) -> Result<(Option<Failure>, Option<Explanations>)> {
    let Some(explain) = &plan.explain else { return Ok((measure(probes, rig)?, None)) };
    if let Some(watched) = &explain.watch {
        let explanations = rig.while_watching(|signals, watch| {
            explain::Others::explain(plan, (watched, explain.above), machine, signals, watch)
        })?;
        return Ok((None, Some(explanations)));
    }
    let usual = measure_without(probes, rig)?;
    if rig.is_over() {
        return Ok((None, None));
    }
    let above = explain.above;
    let (measured, explanations) = explain::Lanes::explain(above, usual, machine, |observer| {
        rig.observer = Some(observer);
        let measured = measure(probes, rig);
        rig.observer = None;
        measured
    })?;
    // Whatever became of the explanations, what was measured is kept.
    match explanations {
        Ok(explanations) => Ok((measured?, Some(explanations))),
        Err(failure) => Ok((measured?.or(Some(failure)), None)),
    }
}

/// Measures for a while without explaining, so that it can be seen what explaining costs. What nine
/// of ten samples do not exceed.
#[expect(clippy::cast_precision_loss, reason = "a latency is far below 2^52 ns")]
fn measure_without(probes: &[Box<dyn AnyProbe>], rig: &mut Rig<'_>) -> Result<Nanos> {
    rig.briefly(|rig| measure(probes, rig))?;
    let measured = std::mem::take(&mut rig.measured);
    rig.figures.clear();
    if rig.interrupted || measured.iter().any(|one| one.lane.tripped.is_some()) {
        rig.measured = measured;
        return Ok(Nanos(0));
    }
    rig.warnings.clear();
    let mut all = Histogram::new();
    for one in &measured {
        let seen = one.lane.first().histogram();
        all.add(&seen);
        let median = seen.quantile(0.5);
        let what = format!("median on CPU {} without explaining", one.cpus);
        rig.figure(one.probe, &what, median.0 as f64, "ns");
    }
    Ok(all.quantile(0.9))
}

/// Runs the probes one after another. A failure after something was measured comes beside it,
/// not instead of it.
fn measure(probes: &[Box<dyn AnyProbe>], rig: &mut Rig<'_>) -> Result<Option<Failure>> {
    for probe in probes {
        match probe.run(rig) {
            Ok(()) if rig.is_over() => break,
            Ok(()) => {}
            Err(failure) if rig.measured.is_empty() => return Err(failure),
            Err(failure) => return Ok(Some(failure)),
        }
    }
    Ok(None)
}

fn turn_knobs(plan: &Plan, root: &Root) -> Result<Guard> {
    let mut guard = Guard::new(root.clone());
    for setting in &plan.settings {
        guard.set(&setting.knob, &setting.value, "asked for with --set").map_err(|e| denied(&e))?;
    }
    Ok(guard)
}

fn read_machine(root: &Root) -> Machine {
    Machine {
        clock_read_ns: clock::read_cost().0,
        record_ns: rig::record_cost().0,
        ..machine::read(root)
    }
}

/// Puts back what killed runs left changed.
fn mend(root: &Root) -> Vec<Warning> {
    Guard::mend(root).into_iter().map(|text| Warning::new("mended", text)).collect()
}

/// Refuses CPUs that are not there.
pub(crate) fn check_cpus(wanted: &CpuList, online: &CpuList) -> Result<()> {
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
        GuardError::Unknown(..)
        | GuardError::Refused(..)
        | GuardError::NotANumber(..)
        | GuardError::Taken { .. } => Failure::Failed(error.to_string()),
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
