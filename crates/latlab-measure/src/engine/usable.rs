//! The parts of a plan that can work on this machine.

use super::Prepared;
use crate::load::{Load, Placed};
use crate::probe::Probe;
use latlab_core::machine::Machine;
use latlab_core::record::Warning;
use latlab_part::failure::{Context as _, Failure, Result};
use latlab_part::part::{Built, driver};
use latlab_sys::cpu;
use latlab_sys::guard::{Guard, GuardError};

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
        return Err(Failure::Unsupported(format!(
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
        return Err(Failure::Failed(format!(
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
        Err(Failure::Unsupported(why)) if plan.plan().skip_missing => {
            warnings.push(Warning::new("skipped", format!("{name} was left out: {why}")));
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
        | GuardError::Taken { .. } => Failure::Failed(error.to_string()),
        _ => Failure::Unsupported(error.to_string()),
    }
}
