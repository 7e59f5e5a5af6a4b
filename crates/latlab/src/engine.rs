//! The engine: carries out a plan on this machine. The only place where the rooms meet.

mod explaining;
mod parts;
mod results;

use crate::adapt::{self, Adapting};
use crate::call;
use crate::explain;
use crate::failure::{Failure, Result, failed};
use crate::load::{self, Crew};
use crate::needs::Needs;
use crate::probe;
use crate::rig::{self, Rig, Watch};
use crate::scan::{self, Scanned};
use latlab_core::cpulist::CpuList;
use latlab_core::doctor;
use latlab_core::machine::{Machine, TimeDomain};
use latlab_core::plan::{Part, Plan};
use latlab_core::record::{Record, SCHEMA, Series, Warning};
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
    let probes = parts::probes(plan, &mut warnings)?;
    plan.scans.iter().try_for_each(scan::check)?;
    plan.explain.iter().try_for_each(explain::check)?;
    adapt::check(&plan.adapt, &plan.settings)?;
    let started = clock::since_1970();
    warnings.extend(mend(&root));
    let adapting = adapt(plan)?;
    let mut guard = turn_knobs(plan, &root)?;
    let machine = Machine { time_domain, ..read_machine(&root) };
    warnings.extend(severe_findings(&machine));
    let loads = parts::loads(plan, &machine, &mut warnings)?;
    parts::keep_what_they_change(&mut guard, &loads)?;
    let crew = Crew::start(&loads, &plan.cpus, &machine, plan.seed, signals)?;
    warnings.extend(lock_memory());
    clock::sleep_for(plan.phase());
    let (scanned, mut failure) = scan_all(plan, signals, watch)?;
    let mut rig = Rig::new(plan, signals, watch);
    let (failed, explanations) = explaining::explaining(plan, &machine, &probes, &mut rig)?;
    failure = failure.or(failed);
    memory::unlock_all();
    let (work, ended) = crew.stop();
    let happened = counters::read(&root, &machine).happened_since(&machine.counters);
    let mut changes = guard.restore();
    let adapted = adapting.map(Adapting::end).unwrap_or_default();
    changes.extend(adapted.changes);
    warnings.extend(adapted.warnings.into_iter().map(|text| Warning::new("adapt", text)));
    warnings.extend(ended);
    warnings.extend(happened.into_iter().map(|text| Warning::new("machine-disturbed", text)));
    warnings.extend(results::rig_warnings(&rig, scanned.iter().any(|scan| scan.interrupted)));
    let loads: Vec<String> = loads.iter().map(|part| part.name.clone()).collect();
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
        basis: None,
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

fn turn_knobs(plan: &Plan, root: &Root) -> Result<Guard> {
    let mut guard = Guard::new(root.clone());
    for setting in &plan.settings {
        guard.set(&setting.knob, &setting.value, "asked for with --set").map_err(|e| denied(&e))?;
    }
    Ok(guard)
}

/// Has the plan's mechanisms adapt the machine from now on.
fn adapt(plan: &Plan) -> Result<Option<Adapting>> {
    if plan.adapt.is_empty() {
        return Ok(None);
    }
    Adapting::start(&plan.adapt).map(Some)
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
