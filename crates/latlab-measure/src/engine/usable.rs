//! Whether this machine can carry out a plan, asked before anything is changed: its CPUs, its place, its parts. What
//! the kernel refuses only when it is tried, as a policy, `latlab_part::part::permission` explains.

use super::Prepared;
use crate::explain;
use crate::load::{Load, Placed};
use crate::probe::Probe;
use crate::scan;
use latlab_adapt as adapt;
use latlab_core::cpulist::CpuList;
use latlab_core::machine::{Machine, TimeDomain};
use latlab_core::plan::Plan;
use latlab_core::record::{Warning, WarningCode};
use latlab_part::failure::{Context as _, Failure, FailureKind, Result};
use latlab_part::part::{Built, driver};
use latlab_sys::cgroup;
use latlab_sys::cpu;
use latlab_sys::guard::{Guard, GuardError};
use latlab_sys::machine;
use std::path::Path;

/// The requested CPUs, else all that are online and that this process may use.
pub(super) fn cpus(wanted: &CpuList, online: &CpuList) -> Result<CpuList> {
    if !wanted.is_empty() {
        return check_cpus(wanted, online).map(|()| wanted.clone());
    }
    let allowed = cpu::allowed().context("the CPUs can't be listed")?;
    Ok(allowed.iter().filter(|cpu| online.is_empty() || online.contains(*cpu)).collect())
}

/// Refuses a plan that can't be carried out here, but for its probes and loads, which a plan may skip.
pub(super) fn check(plan: &Prepared, online: &CpuList) -> Result<()> {
    check_place(plan.plan(), online)?;
    plan.scans.iter().try_for_each(|(scan, call)| scan::check(scan, &**call))?;
    plan.plan().explain.iter().try_for_each(explain::check)?;
    adapt::check(&plan.plan().adapt, &plan.plan().settings)
}

/// Refuses CPUs that are not online and a control group that does not exist.
fn check_place(plan: &Plan, online: &CpuList) -> Result<()> {
    if !plan.housekeeping.is_empty() {
        check_cpus(&plan.housekeeping, online)?;
    }
    let missing = plan.cgroup.as_ref().filter(|folder| !cgroup::exists(Path::new(folder)));
    missing.map_or(Ok(()), |folder| {
        Err(Failure::unsupported(format!(
            "--cgroup {folder}: it is no control group: write its folder, as /sys/fs/cgroup/measured"
        )))
    })
}

/// Refuses CPUs that are not online.
pub fn check_cpus(wanted: &CpuList, online: &CpuList) -> Result<()> {
    let missing = wanted.minus(online);
    if wanted.is_empty() {
        return Err(Failure::failed("--cpus names no CPU"));
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("CPU {missing} is not online: this machine has {online}")))
}

/// The warning that the cache model, which the plan asks for, is not at hand: the plugin's covers a whole guest, not
/// one program in it.
pub(super) fn without_models(plan: &Prepared, time_domain: TimeDomain) -> Option<Warning> {
    let is_job = time_domain == TimeDomain::Instructions && machine::time_domain() != time_domain;
    let text = "caches and TLBs are modelled in the laboratory only (lab:PROFILE)";
    (plan.needs().models && !is_job).then(|| Warning::new(WarningCode::NotAvailable, text))
}

/// The probes of the plan. Fails if a probe can't work here, unless the plan skips such probes.
pub(super) fn probes(
    plan: &Prepared,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<Built<dyn Probe>>> {
    let mut probes = Vec::new();
    for probe in &plan.probes {
        let checked = probe.check(&plan.plan().cpus).map(|()| probe.clone());
        probes.extend(unless_skipped(plan, probe.name(), checked, warnings)?);
    }
    if probes.is_empty() && plan.scans.is_empty() && !plan.watches() {
        let why = warnings.iter().map(|warning| warning.text.as_str()).collect::<Vec<_>>();
        return Err(Failure::unsupported(format!(
            "nothing is left to measure: {}",
            why.join("; ")
        )));
    }
    Ok(probes)
}

/// The loads of the plan and their CPUs. Fails if a load can't work here, unless the plan skips
/// such loads.
pub(super) fn loads(
    plan: &Prepared,
    machine: &Machine,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<Placed>> {
    let mut loads = Vec::new();
    // A container's cpuset may lack some of the machine's.
    let cpus = cpu::assignable(&machine.cpus).context("the CPUs can't be listed")?;
    let machine = &Machine { cpus, ..machine.clone() };
    for load in &plan.loads {
        refuse_two_with_one_driver(plan, load, &loads)?;
        let placed = Placed::new(load, &plan.plan().cpus, machine);
        loads.extend(unless_skipped(plan, load.name(), placed, warnings)?);
    }
    Ok(loads)
}

/// Makes the guard restore the knobs that loads change.
pub(super) fn guard_changes(guard: &mut Guard, loads: &[Placed]) -> Result<()> {
    let changes =
        loads.iter().flat_map(|load| load.changes().iter().map(|knob| (*knob, load.name())));
    let mut changes: Vec<_> = changes.collect();
    // The last is restored first, and each terminal has LEDs of its own: the LEDs of the terminal
    // that was active can be restored once it is active again.
    changes.sort_by_key(|(knob, _)| *knob == "active_console");
    for (knob, load) in changes {
        let reason = format!("the load {load} changes it");
        guard.save(knob, &reason).map_err(|e| denied(&e))?;
    }
    Ok(())
}

/// Refuses a load that uses the test driver's only interrupt if a probe or one of the loads `before` it
/// does, too. Without the driver's device the load uses a timer.
fn refuse_two_with_one_driver(
    plan: &Prepared,
    load: &Built<dyn Load>,
    before: &[Placed],
) -> Result<()> {
    let by_probe = plan.probes.iter().any(|probe| probe.needs().interrupt);
    let taken = by_probe || before.iter().any(Placed::needs_interrupt);
    if taken && load.needs().interrupt && driver::check_device().is_ok() {
        let other = if by_probe { "a probe" } else { "another load" };
        return Err(Failure::failed(format!(
            "{}: it uses the test driver's only interrupt, which {other} uses too: use source=timer",
            load.name()
        )));
    }
    Ok(())
}

/// The part; or, if this machine lacks something that it needs and the plan skips such parts, none
/// and a warning.
fn unless_skipped<T>(
    plan: &Prepared,
    name: &str,
    checked: Result<T>,
    warnings: &mut Vec<Warning>,
) -> Result<Option<T>> {
    match checked {
        Err(why) if why.kind == FailureKind::Unsupported && plan.plan().skip_missing => {
            warnings
                .push(Warning::new(WarningCode::Skipped, format!("{name} was left out: {why}")));
            Ok(None)
        }
        checked => checked.map(Some),
    }
}

/// The refusal of a knob as a failure.
pub(super) fn denied(error: &GuardError) -> Failure {
    match error {
        GuardError::Unknown(..)
        | GuardError::Refused(..)
        | GuardError::NotANumber(..)
        | GuardError::Taken { .. } => Failure::failed(error.to_string()),
        _ => Failure::unsupported(error.to_string()),
    }
}
