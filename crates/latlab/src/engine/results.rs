//! What the lanes of a run recorded, as the series, samples and warnings of a record.

use crate::rig::{Measured, Rhythm, Rig};
use latlab_core::plan::Plan;
use latlab_core::record::{self, Counts, Figure, Sample, Series, Warning};

/// The worst sample above the limit, in a sentence.
pub(super) fn verdict(plan: &Plan, measured: &[Measured], loads: &[String]) -> Option<String> {
    let limit = plan.stop_above?;
    let tripped = measured.iter().filter_map(|m| Some((m, m.lane.tripped?)));
    let (first, tripped) = tripped.min_by_key(|(_, tripped)| tripped.late.at)?;
    let beside = if loads.is_empty() { "no load".to_owned() } else { loads.join(", ") };
    Some(format!(
        "{} on CPU {}: {} from {} to {}, above {limit}: period {}, {} after counting began, under {beside}",
        first.probe,
        first.cpus,
        tripped.late.latency,
        first.spans[0].0,
        first.spans[0].1,
        tripped.period,
        tripped.late.at,
    ))
}

/// The single values, with the loads that ran beside them.
pub(super) fn figures(figures: Vec<Figure>, loads: &[String]) -> Vec<Figure> {
    figures.into_iter().map(|one| Figure { load: loads.to_vec(), ..one }).collect()
}

/// The lanes as series, and the worst samples of all.
pub(super) fn results(
    measured: Vec<Measured>,
    loads: &[String],
    warnings: &mut Vec<Warning>,
) -> (Vec<Series>, Vec<Sample>) {
    let (mut series, mut worst) = (Vec::new(), Vec::new());
    for one in measured {
        warnings.extend(lane_warnings(&one));
        worst.extend(one.lane.worst.iter().map(|late| Sample {
            probe: one.probe.to_owned(),
            cpu: one.first_cpu(),
            at: late.at,
            latency: late.latency,
            index: one.lane.marked.then_some(late.nth),
            causes: Vec::new(),
            unexplained: None,
            path: None,
        }));
        let spans = one.spans.iter().enumerate();
        series.extend(spans.map(|(channel, span)| make_series(&one, channel, *span, loads)));
    }
    record::worst_first(&mut worst);
    (series, worst)
}

fn make_series(one: &Measured, channel: usize, span: (&str, &str), loads: &[String]) -> Series {
    let (tally, timeline) = &one.lane.series[channel];
    let mut series = Series {
        probe: one.probe.to_owned(),
        span: (span.0.to_owned(), span.1.to_owned()),
        cpu: one.first_cpu(),
        together: (one.cpus.len() > 1).then(|| one.cpus.clone()),
        load: loads.to_vec(),
        schedule: one.schedule.clone(),
        interval: one.rhythm.interval(),
        counts: Counts {
            recorded: tally.recorded(),
            missed: tally.missed(),
            below_zero: tally.below_zero(),
        },
        first: one.lane.first.filter(|_| channel == 0),
        warm_up: (channel == 0).then_some(one.lane.warm_up),
        disturbed: one.lane.disturbed,
        cpu_ns: one.lane.cpu_ns,
        timeline: timeline.clone(),
        // What follows from the histogram is put in below.
        ..Series::default()
    };
    series.set_histogram(&tally.histogram());
    series
}

fn lane_warnings(one: &Measured) -> Vec<Warning> {
    let (probe, cpu, disturbed) = (one.probe, &one.cpus, one.lane.disturbed);
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
    // Where nothing had to come, that is a result.
    let quiet = matches!(one.rhythm, Rhythm::Irregular);
    if one.lane.series[0].0.recorded() == 0 && !quiet {
        let text = format!("{probe} on CPU {cpu} recorded nothing: the run ended in its warm-up");
        warnings.push(Warning::new("nothing-recorded", text));
    }
    warnings
}

/// What befell the whole run. A scan may have been ended early as well.
pub(super) fn rig_warnings(rig: &Rig<'_>, scan_interrupted: bool) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if rig.interrupted || scan_interrupted {
        let text = "ended early at the user's request; what was measured until then is here";
        warnings.push(Warning::new("interrupted", text));
    }
    if !rig.lost.is_empty() {
        let text = format!(
            "CPU {} went offline during the run; what was measured on it until then is here (the \
             last of it, up to 250 ms, on the CPU that its thread was moved to)",
            rig.lost
        );
        warnings.push(Warning::new("cpu-offline", text));
    }
    warnings
}
