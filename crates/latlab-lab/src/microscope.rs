//! The microscope: a run repeated with QEMU's plugin, which records the instructions of its worst
//! samples.

use super::cells::carry_out_one;
use super::guest::{Cell, GuestTime, Plugin};
use super::prepare;
use super::symbols::Symbols;
use latlab_core::path::{Path, Trace};
use latlab_core::record::{Record, Sample};
use latlab_core::scan::{Scan, Section};
use latlab_core::time::Nanos;
use latlab_measure::engine::{Outcome, Prepared};
use latlab_measure::session::Session;
use latlab_part::failure::{Context as _, Failure, Result};

/// Carries out a plan, then repeats it with the plugin, and adds to each of the worst samples above the limit of
/// `explain` the path of its instructions. Unless the plan asks that both verify each other, the guest's recorder does
/// not run. Fails if the two runs differ in anything else.
pub fn explain(asked: &Prepared, session: &mut Session<'_>) -> Result<Outcome> {
    let explain = asked.plan().explain.clone().unwrap_or_default();
    let plan = &if explain.verify { asked.clone() } else { asked.unexplained() };
    let target = &plan.plan().target;
    refuse_unsupported(target, session)?;
    let library = prepare::plugin(session)?;
    let cell = prepare::plan(plan, GuestTime::Instructions, session)?;
    let symbols = Symbols::of(cell.clone(), session)?;
    let mut carry_out = |cell| carry_out_one(cell, session, &mut |_, _| Ok(()));
    let mut outcome = carry_out(cell.clone())?.outcome(plan)?;
    let samples = wanted(&outcome.record)?;
    if !samples.is_empty() {
        let plugin = Plugin {
            library,
            misses: plan.needs().models,
            samples: samples.clone(),
            faults: symbols.faults().collect(),
            preempt_count: symbols.preempt_count,
            sections: None,
        };
        let answer = carry_out(Cell { plugin: Some(plugin), ..cell })?;
        let trace = Trace::read(&answer.trace).context(target)?;
        check_same(target, &outcome.record, &answer.outcome(plan)?.record)?;
        check_complete(target, &outcome.record.worst, &samples, &trace)?;
        let above = explain.above.unwrap_or_default();
        add_paths(target, &mut outcome.record, &trace, &symbols, above)?;
    }
    outcome.record.plan.explain.clone_from(&asked.plan().explain);
    Ok(outcome)
}

/// Adds to each of the worst samples that were recorded and are longer than `above` its path, and to each named
/// section its function.
fn add_paths(
    target: &str,
    record: &mut Record,
    trace: &[Trace],
    symbols: &Symbols,
    above: Nanos,
) -> Result<()> {
    let recorded = |index: Option<u64>| trace.iter().find(|watched| Some(watched.index) == index);
    for sample in record.worst.iter_mut().filter(|sample| sample.latency > above) {
        let recorded = recorded(sample.index);
        sample.path = recorded.map(|watched| path(target, watched, symbols)).transpose()?;
    }
    for section in record.scans.iter_mut().flat_map(|scan| &mut scan.sections) {
        let path =
            recorded(section.nth).map(|watched| path(target, watched, symbols)).transpose()?;
        section.function = path.as_ref().and_then(Path::culprit);
    }
    Ok(())
}

/// Fails where the plugin recorded nothing for one of the worst samples that it was to record.
fn check_complete(
    target: &str,
    worst: &[Sample],
    wanted: &[(u64, Nanos)],
    trace: &[Trace],
) -> Result<()> {
    let is_missing = |index: &u64| {
        wanted.iter().any(|(wanted, _)| wanted == index)
            && !trace.iter().any(|watched| watched.index == *index)
    };
    let missing: Vec<u64> =
        worst.iter().filter_map(|sample| sample.index).filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let why = format!("the plugin recorded nothing for the samples {missing:?}");
    Err(Failure::failed(format!("{target}: {why}")))
}

/// Refuses guests with several CPUs: the order of samples is unique on one CPU only. Refuses guests
/// whose instructions the plugin does not know.
fn refuse_unsupported(target: &str, session: &mut Session<'_>) -> Result<()> {
    let (profile, kernel) = prepare::kernel(target, session)?;
    let why = "samples are identified on one CPU only";
    prepare::check_plugin(target, &profile, &kernel, why, ": use --traced")
}

/// As many samples as the plugin accepts.
const MOST_SAMPLES: usize = 64;

/// The samples to record: index and latency. None for scans that found no section: nothing is there to be
/// explained.
fn wanted(record: &Record) -> Result<Vec<(u64, Nanos)>> {
    let index = |sample: &Sample| Some((sample.index?, sample.latency));
    let sections = record.scans.iter().flat_map(longest);
    let sections = sections.filter_map(|section| Some((section.nth?, section.peak)));
    let wanted: Vec<_> =
        record.worst.iter().filter_map(index).chain(sections).take(MOST_SAMPLES).collect();
    if wanted.is_empty() && record.scans.is_empty() {
        let why = "no probe of this run takes samples that the plugin can identify: use cyclic";
        return Err(Failure::unsupported(format!("{}: {why}", record.plan.target)));
    }
    Ok(wanted)
}

/// The sections of a scan that get a function's name: the longest, if longer than a plain wake-up.
fn longest(scan: &Scan) -> Vec<&Section> {
    const NAMED: usize = 10;
    let long = |section: &&Section| section.length() > scan.baseline;
    let mut sections: Vec<&Section> = scan.sections.iter().filter(long).collect();
    sections.sort_by_key(|section| std::cmp::Reverse(section.length()));
    sections.truncate(NAMED);
    sections
}

/// Fails where the run with the plugin differs from the run without it.
fn check_same(target: &str, without: &Record, with: &Record) -> Result<()> {
    let (without, with) = (without.to_json(), with.to_json());
    let mut lines = without.lines().zip(with.lines());
    if without == with {
        return Ok(());
    }
    let (a, b) = lines.find(|(a, b)| a != b).unwrap_or_default();
    Err(Failure::failed(format!(
        "{target}: the run with the plugin differs from the run without it, so nothing is explained: \
         '{}' became '{}'",
        a.trim(),
        b.trim()
    )))
}

fn path(target: &str, watched: &Trace, symbols: &Symbols) -> Result<Path> {
    if watched.apart > 0 {
        let why = format!("the plugin's count of instructions is off by {}", watched.apart);
        return Err(Failure::failed(format!("{target}: {why}: nothing is explained")));
    }
    Ok(Path::of(watched, |address| symbols.place(address)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::cpulist::CpuList;
    use latlab_core::machine::Machine;
    use latlab_core::plan::{Length, Plan};

    #[test]
    fn scan_without_a_section_has_nothing_to_explain() {
        let plan = Plan::bare("lab:v7.2", CpuList::default(), Length::Count(1));
        let record = Record::new("latlab", Nanos(0), plan, Machine::default());
        let refused = wanted(&record).unwrap_err().to_string();
        assert!(refused.contains("no probe of this run takes samples"), "{refused}");
        let scan = |sections: &str| {
            let spread = r#"{ "min": 9000, "median": 9000, "max": 9000 }"#;
            let text = format!(
                r#"{{ "call": {{ "name": "populate", "params": {{}} }}, "cpu": 0, "interrupt": "timer",
                     "duration": {spread}, "baseline": 100, "noise": 0, "points": [],
                     "sections": [{sections}] }}"#
            );
            Record { scans: vec![serde_json::from_str(&text).unwrap()], ..record.clone() }
        };
        assert_eq!(wanted(&scan("")), Ok(vec![]));
        let section =
            |end, nth| format!(r#"{{ "start": 0, "end": {end}, "peak": {end}, "nth": {nth} }}"#);
        assert_eq!(wanted(&scan(&section(100, 4))), Ok(vec![]), "a plain wake-up is as long");
        assert_eq!(wanted(&scan(&section(101, 4))), Ok(vec![(4, Nanos(101))]));
    }

    #[test]
    fn sample_that_the_plugin_had_no_room_for_is_not_missing() {
        let sample = |index: u64| Sample {
            probe: "cyclic".to_owned(),
            cpu: 0,
            at: Nanos(index),
            latency: Nanos(5_000),
            index: Some(index),
            causes: Vec::new(),
            unexplained: None,
            path: None,
        };
        let plan = Plan::bare("lab:rt", CpuList::default(), Length::Count(1));
        let record = Record::new("latlab", Nanos(0), plan, Machine::default());
        let record = Record { worst: (1..=70).map(sample).collect(), ..record };
        let wanted = wanted(&record).unwrap();
        assert_eq!(wanted.len(), 64);
        let trace = |recorded: std::ops::RangeInclusive<u64>| {
            let text: String =
                recorded.map(|index| format!("sample {index} 5000 0\nend\n")).collect();
            Trace::read(&text).unwrap()
        };
        let check = |trace: &[Trace]| check_complete("lab:rt", &record.worst, &wanted, trace);
        assert_eq!(check(&trace(1..=64)), Ok(()));
        let why = "lab:rt: the plugin recorded nothing for the samples [64]";
        assert_eq!(check(&trace(1..=63)), Err(Failure::failed(why)));
    }
}
