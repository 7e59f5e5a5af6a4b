//! Runs with QEMU's plugin, which records their longest sections and all interrupts.

use super::answer::Answer;
use super::cells::carry_out;
use super::guest::{Cell, GuestTime, Job, Plugin, Sections};
use super::prepare;
use super::symbols::Symbols;
use latlab_core::bound::{Observation, Trace};
use latlab_core::record::Record;
use latlab_measure::engine::Prepared;
use latlab_measure::session::Session;
use latlab_part::failure::{Context as _, Failure, Result};

/// Carries out plans for one target, which differ in their seeds only, each in a guest of its own.
/// Returns the records, and what each run has shown.
pub fn observe(
    plans: &[Prepared],
    session: &mut Session<'_>,
) -> Vec<Result<(Record, Observation)>> {
    let Some(first) = plans.first() else { return Vec::new() };
    let (cell, symbols) = match equipped(first, session) {
        Ok(equipped) => equipped,
        Err(failure) => return vec![Err(failure)],
    };
    let carrying_out = |plan: &Prepared| Job::Run(Box::new(plan.plan().clone()));
    let cells = plans.iter().map(|plan| Ok(Cell { job: carrying_out(plan), ..cell.clone() }));
    let answers = carry_out(cells.collect(), session, &mut |_, _| Ok(()), &mut |_, _| ());
    let observed = answers.into_iter().zip(plans);
    observed.map(|(answer, plan)| observation(answer?, plan, &symbols)).collect()
}

/// The cell that carries out `plan` with the plugin, and the symbols of its kernel, if the plugin can find its
/// sections.
fn equipped(plan: &Prepared, session: &mut Session<'_>) -> Result<(Cell, Symbols)> {
    let target = &plan.plan().target;
    let (profile, kernel) = prepare::kernel(target, session)?;
    let why = "sections are those of one CPU";
    prepare::check_plugin(target, &profile, &kernel, why, "")?;
    let cell = prepare::plan(plan, GuestTime::Instructions, session)?;
    let symbols = Symbols::of(cell.clone(), session)?;
    if symbols.preempt_count.is_none() {
        let why = "its kernel has no preemption counter that the plugin knows";
        return Err(Failure::unsupported(format!("{target}: {why}")));
    }
    let plugin = Plugin {
        library: prepare::plugin(session)?,
        misses: false,
        samples: Vec::new(),
        faults: symbols.faults().collect(),
        preempt_count: symbols.preempt_count,
        sections: Some(Sections { roles: symbols.roles(), stubs: symbols.stubs() }),
    };
    Ok((Cell { plugin: Some(plugin), ..cell }, symbols))
}

fn observation(
    answer: Answer,
    plan: &Prepared,
    symbols: &Symbols,
) -> Result<(Record, Observation)> {
    let target = &plan.plan().target;
    let trace = Trace::read(&answer.trace).context(target)?;
    let record = answer.outcome(plan)?.whole()?;
    let observed = Observation::of(&trace, &record, |address| symbols.place(address));
    let observed = observed.context(target)?;
    Ok((record, observed))
}
