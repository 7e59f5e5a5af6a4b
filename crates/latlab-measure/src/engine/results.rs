//! The results of a run, as a record.

use super::Outcome;
use super::environment::Aftermath;
use crate::rig::{Pacing, ProbeResults, Rig};
use crate::scan::Scanned;
use latlab_core::cpulist::CpuList;
use latlab_core::plan::Plan;
use latlab_core::record::explained::{Explained, Explanations};
use latlab_core::record::{self, Counts, Figure, Record, Sample, Series, Warning, WarningCode};
use latlab_core::time::Nanos;
use latlab_part::failure::Failure;

/// The program and its version, as records name it.
pub(super) const TOOL: &str = concat!("latlab ", env!("CARGO_PKG_VERSION"));

/// All results of a run.
pub(super) struct Results<'a> {
    /// Wall-clock time of the start of the run, since 1970.
    pub(super) started: Nanos,
    pub(super) warnings: Vec<Warning>,
    pub(super) measured: Measured<'a>,
    pub(super) aftermath: Aftermath,
}

/// What scans and probes have measured.
pub(super) struct Measured<'a> {
    pub(super) scanned: Vec<Scanned>,
    pub(super) rig: Rig<'a>,
    pub(super) explanations: Option<Explanations>,
    pub(super) failure: Option<Failure>,
}

impl Results<'_> {
    /// The record of the run, and its verdict.
    pub(super) fn outcome(self, plan: &Plan) -> Outcome {
        let Results { started, mut warnings, measured, aftermath } = self;
        let Measured { scanned, mut rig, explanations, failure } = measured;
        let loads = aftermath.loads;
        warnings.extend(aftermath.warnings);
        warnings.extend(rig_warnings(&rig, scanned.iter().any(|scan| scan.interrupted)));
        let stopped = stopped(plan, &rig.measured, &loads)
            .or_else(|| watched_above(plan, plan.stop_above, explanations.as_ref()));
        warnings.extend(stopped.iter().map(|text| Warning::new(WarningCode::StoppedAbove, text)));
        let exceeded = exceeded(plan, &rig.measured)
            .or_else(|| watched_above(plan, plan.fail_above, explanations.as_ref()));
        warnings.extend(exceeded.iter().map(|text| Warning::new(WarningCode::FailedAbove, text)));
        warnings.append(&mut rig.warnings);
        let figures = figures(rig.figures, &loads);
        let unmeasured = unmeasured(&rig.measured, &rig.lost);
        let measured: Vec<&ProbeResults> = rig.measured.iter().collect();
        let (mut series, worst) = distributions(&measured, &loads, &mut warnings);
        let (worst, explained) = with_causes(worst, explanations);
        let mut scans = Vec::new();
        for one in scanned {
            warnings.extend(one.warnings);
            series.extend(one.series.into_iter().map(|one| Series { load: loads.clone(), ..one }));
            scans.push(one.scan);
        }
        let record = Record {
            series,
            scans,
            figures,
            worst,
            explained,
            work: aftermath.work,
            changes: aftermath.changes,
            warnings,
            ..Record::new(TOOL, started, plan.clone(), aftermath.machine)
        };
        let failure = match failure {
            Some(failed) => Some(failed.with_unrestored(aftermath.unrestored)),
            None => aftermath.unrestored,
        };
        let above = stopped.or(exceeded).map(Failure::worse);
        let replaced = record.setting_changed().map(|one| Failure::failed(one.text.clone()));
        let verdict = failure.or(replaced).or(above).or(unmeasured);
        let verdict = verdict.or_else(|| undecided(&record));
        Outcome { record, verdict }
    }
}

/// The failure of a probe whose CPUs all went offline: nothing was measured for the whole time.
fn unmeasured(measured: &[ProbeResults], lost: &CpuList) -> Option<Failure> {
    let is_lost = |one: &ProbeResults| one.cpus.iter().any(|cpu| lost.contains(cpu));
    let is_whole = |probe| measured.iter().any(|one| one.probe == probe && !is_lost(one));
    let probe = measured.iter().map(|one| one.probe).find(|probe| !is_whole(*probe))?;
    Some(Failure::failed(format!("{probe} was not measured to the end: CPU {lost} went offline")))
}

/// The failure to say that no sample exceeds the limit, where a part of the run was lost. A run that
/// was ended early fails for that reason.
fn undecided(record: &Record) -> Option<Failure> {
    let limit = record.plan.fail_above.filter(|_| record.cut_short().is_none())?;
    let lost = &record.lost_part()?.text;
    let why = format!("whether samples exceed {limit} was not measured to the end: {lost}");
    Some(Failure::failed(why))
}

/// The first sample above the limit that ended the run, in a sentence.
fn stopped(plan: &Plan, measured: &[ProbeResults], loads: &[String]) -> Option<String> {
    let limit = plan.stop_above?;
    let tripped = measured.iter().filter_map(|m| Some((m, m.recording.tripped?)));
    let (first, tripped) = tripped.min_by_key(|(_, tripped)| tripped.late.at)?;
    let load = if loads.is_empty() { "no load".to_owned() } else { loads.join(", ") };
    Some(format!(
        "{} on CPU {}: {} from {} to {}, above {limit}: period {}, {} after counting began, under {load}",
        first.probe,
        first.cpus,
        tripped.late.latency,
        first.spans[0].0,
        first.spans[0].1,
        tripped.period,
        tripped.late.at,
    ))
}

/// The samples above the limit of the whole run, in a sentence.
fn exceeded(plan: &Plan, measured: &[ProbeResults]) -> Option<String> {
    let limit = plan.fail_above?;
    let worst = |one: &&ProbeResults| one.recording.first().histogram().max();
    let worst_of = measured.iter().max_by_key(worst).filter(|one| worst(one) > limit)?;
    let all = measured.iter().map(|one| one.recording.first().histogram());
    let (above, recorded) = all.fold((0, 0), |(above, recorded), one| {
        (above + one.count_above(limit), recorded + one.count())
    });
    let (probe, cpus, max) = (worst_of.probe, worst_of.cpus.in_words(), worst(&worst_of));
    Some(format!(
        "{above} of {recorded} samples were above {limit}; the worst: {max}, {probe} on {cpus}"
    ))
}

/// The worst wake-up of a watched task, if it was above the limit, in a sentence.
fn watched_above(
    plan: &Plan,
    limit: Option<Nanos>,
    explanations: Option<&Explanations>,
) -> Option<String> {
    let limit = limit?;
    plan.explain.as_ref()?.watch.as_ref()?;
    let worst = explanations?.worst.iter().find(|sample| sample.latency > limit)?;
    let Sample { probe, cpu, latency, at, .. } = worst;
    Some(format!("{probe} on CPU {cpu}: {latency} late, above {limit}, {at} after the start"))
}

/// Single values, with the loads that ran at the same time.
fn figures(figures: Vec<Figure>, loads: &[String]) -> Vec<Figure> {
    figures.into_iter().map(|one| Figure { load: loads.to_vec(), ..one }).collect()
}

/// The worst samples, with causes if they were explained, and the sums of the causes.
pub(super) fn with_causes(
    worst: Vec<Sample>,
    explanations: Option<Explanations>,
) -> (Vec<Sample>, Option<Explained>) {
    let Some(all) = explanations else { return (worst, None) };
    let index = |sample: &Sample| {
        let key = |one: &Sample| (one.at, one.latency, one.cpu);
        let mut same =
            worst.iter().filter(|one| key(one) == key(sample) && one.probe == sample.probe);
        same.find_map(|one| one.index)
    };
    let indexed = |sample: Sample| Sample { index: index(&sample), ..sample };
    (all.worst.into_iter().map(indexed).collect(), Some(all.explained))
}

/// The distributions of all samplers, and the worst samples.
pub(super) fn distributions(
    measured: &[&ProbeResults],
    loads: &[String],
    warnings: &mut Vec<Warning>,
) -> (Vec<Series>, Vec<Sample>) {
    let (mut series, mut worst) = (Vec::new(), Vec::new());
    for one in measured {
        warnings.extend(lane_warnings(one));
        worst.extend(one.recording.worst.iter().map(|late| Sample {
            probe: one.probe.to_owned(),
            cpu: one.first_cpu(),
            at: late.at,
            latency: late.latency,
            index: one.recording.marked.then_some(late.index),
            causes: Vec::new(),
            unexplained: None,
            path: None,
        }));
        let spans = one.spans.iter().enumerate();
        series.extend(spans.map(|(channel, span)| make_series(one, channel, *span, loads)));
    }
    record::worst_first(&mut worst);
    (series, worst)
}

fn make_series(one: &ProbeResults, channel: usize, span: (&str, &str), loads: &[String]) -> Series {
    let (tally, timeline) = &one.recording.series[channel];
    // Read once: the thread may go on recording.
    let histogram = tally.histogram();
    let mut series = Series {
        probe: one.probe.to_owned(),
        span: (span.0.to_owned(), span.1.to_owned()),
        cpu: one.first_cpu(),
        together: (one.cpus.len() > 1).then(|| one.cpus.clone()),
        load: loads.to_vec(),
        schedule: one.recording.schedule.clone(),
        interval: one.pacing.interval(),
        counts: Counts {
            recorded: histogram.count(),
            missed: tally.missed(),
            below_zero: tally.below_zero(),
        },
        first: one.recording.first.filter(|_| channel == 0),
        warm_up: (channel == 0).then_some(one.recording.warm_up),
        disturbed: one.recording.disturbed,
        cpu_ns: one.recording.cpu_ns,
        timeline: timeline.clone(),
        // Set from the histogram below.
        ..Series::default()
    };
    series.set_histogram(&histogram);
    series
}

fn lane_warnings(one: &ProbeResults) -> Vec<Warning> {
    let (probe, cpus, disturbed) = (one.probe, one.cpus.in_words(), one.recording.disturbed);
    let mut warnings = Vec::new();
    let faults = disturbed.minor_faults + disturbed.major_faults;
    if faults > 0 {
        let text = format!("{probe} on {cpus} took {faults} page faults while it measured");
        warnings.push(Warning::new(WarningCode::PageFaults, text));
    }
    if disturbed.preempted > 0 {
        let text = format!(
            "{probe} on {cpus} was preempted {} times: something ran above it",
            disturbed.preempted
        );
        warnings.push(Warning::new(WarningCode::Preempted, text));
    }
    if one.recording.schedule.policy == "deadline" {
        let text =
            format!("{probe}: deadline tasks can't be bound to a CPU: {cpus} is only a label here");
        warnings.push(Warning::new(WarningCode::NotBound, text));
    }
    // For an irregular probe no sample is a result.
    let quiet = matches!(one.pacing, Pacing::Irregular);
    if one.recording.series[0].0.recorded() == 0 && !quiet {
        let text = format!("{probe} on {cpus} recorded nothing: the run ended during its warm-up");
        warnings.push(Warning::new(WarningCode::NothingRecorded, text));
    }
    warnings
}

/// Warnings about the whole run.
fn rig_warnings(rig: &Rig<'_>, scan_interrupted: bool) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if rig.interrupted || scan_interrupted {
        let text = "ended early at the user's request; the samples until then are kept";
        warnings.push(Warning::new(WarningCode::Interrupted, text));
    }
    if !rig.lost.is_empty() {
        let text = format!(
            "CPU {} went offline during the run; its samples until then are kept (the last 250 ms or \
             less may be from the CPU that its thread was moved to)",
            rig.lost
        );
        warnings.push(Warning::new(WarningCode::CpuOffline, text));
    }
    warnings
}
