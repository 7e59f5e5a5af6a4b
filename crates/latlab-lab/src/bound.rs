//! Runs with QEMU's plugin, which records their longest sections and all interrupts.

use super::answer::Answer;
use super::cells::carry_out;
use super::guest::{Cell, GuestTime, Plugin, Sections};
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
    let symbols = match plans.first().map(|plan| symbols(plan, session)) {
        Some(Ok(symbols)) => symbols,
        Some(Err(failure)) => return vec![Err(failure)],
        None => return Vec::new(),
    };
    let cells = plans.iter().map(|plan| cell(plan, &symbols, session)).collect();
    let answers = carry_out(cells, session, &mut |_, _| Ok(()), &mut |_, _| ());
    let observed = answers.into_iter().zip(plans);
    observed.map(|(answer, plan)| observation(answer?, plan, &symbols)).collect()
}

/// The symbols of the kernel, if the plugin can find its sections.
fn symbols(plan: &Prepared, session: &mut Session<'_>) -> Result<Symbols> {
    let target = &plan.plan().target;
    let (profile, kernel) = prepare::kernel(target, session)?;
    let why = "sections are those of one CPU";
    prepare::check_plugin(target, &profile, &kernel, why, "")?;
    let symbols = Symbols::of(plan, session)?;
    if symbols.preempt_count.is_none() {
        let why = "its kernel has no preemption counter that the plugin knows";
        return Err(Failure::Unsupported(format!("{target}: {why}")));
    }
    Ok(symbols)
}

fn cell(plan: &Prepared, symbols: &Symbols, session: &mut Session<'_>) -> Result<Cell> {
    let library = prepare::plugin(session)?;
    let plugin = Plugin {
        library,
        misses: false,
        samples: Vec::new(),
        faults: symbols.faults().collect(),
        preempt_count: symbols.preempt_count,
        sections: Some(Sections { roles: symbols.roles(), stubs: symbols.stubs() }),
    };
    let cell = prepare::plan(plan, GuestTime::Instructions, session)?;
    Ok(Cell { plugin: Some(plugin), ..cell })
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
