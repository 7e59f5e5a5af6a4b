//! The parts of a plan that are carried out on this machine: those that can be.

use super::denied;
use crate::driver;
use crate::failure::{Failure, Result};
use crate::load;
use crate::needs::Needs;
use crate::probe::{self, AnyProbe, PROBES};
use crate::registry;
use latlab_core::machine::Machine;
use latlab_core::plan::{Part, Plan};
use latlab_core::record::Warning;
use latlab_sys::guard::Guard;

/// The probes of the plan, each willing to run here: nothing is started before all are.
pub(super) fn probes(plan: &Plan, warnings: &mut Vec<Warning>) -> Result<Vec<Box<dyn AnyProbe>>> {
    let mut probes = Vec::new();
    for part in &plan.probes {
        // Here as well: who sent the plan need not have looked.
        probe::check_length(part, plan.length)?;
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
pub(super) fn loads(
    plan: &Plan,
    machine: &Machine,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<Part>> {
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

/// Has the guard give back what loads will change.
pub(super) fn keep_what_they_change(guard: &mut Guard, loads: &[Part]) -> Result<()> {
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
