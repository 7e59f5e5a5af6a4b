//! Tail estimates by cause: a mixture of causes is not one distribution.

use super::threshold::{excesses, stable};
use super::{
    Extreme, FEWEST, Level, MOST, Tail, homogeneity, level, spread_over_runs, spread_over_time,
};
use crate::histogram::Histogram;
use crate::record::{Record, Sample, Series};
use crate::time::Nanos;
use crate::worst::KEPT;
use std::collections::{BTreeMap, BTreeSet};

/// Returns an estimate, or the reason why there is none, for each cause of the worst samples.
///
/// A record keeps the causes of its worst samples only. Above the highest of the runs' lowest kept
/// latencies, the kept samples are complete.
pub(super) fn beyond(tail: &Tail<'_>) -> Vec<Extreme> {
    match gathered(tail) {
        Err(why) => vec![Extreme::of(None, Err(why))],
        Ok((complete, causes)) => {
            let of = |(cause, samples): (String, Vec<LateSample<'_>>)| {
                Extreme::of(Some(cause), estimate(tail, complete, &samples))
            };
            causes.into_iter().map(of).collect()
        }
    }
}

/// A late sample, and the number of its run.
type LateSample<'a> = (usize, &'a Sample);

type Gathered<'a> = BTreeMap<String, Vec<LateSample<'a>>>;

fn gathered<'a>(tail: &Tail<'a>) -> Result<(Nanos, Gathered<'a>), String> {
    let Some(first) = tail.series.first() else {
        return Err("not all runs have this latency".to_owned());
    };
    if tail.runs.iter().any(|run| run.runs > 1) {
        return Err("the runs were merged, which loses their order".to_owned());
    }
    let several = |run: &&Record| {
        let mut cpus = BTreeSet::new();
        !own(run, &first.probe).all(|series| cpus.insert(series.cpu))
    };
    if tail.runs.iter().any(several) {
        return Err("the probe has several latencies, and the worst samples do not say to which \
                    they belong"
            .to_owned());
    }
    let complete = tail.runs.iter().map(|run| complete_above(run)).max().unwrap_or_default();
    let mut causes = Gathered::new();
    for (nth, run) in tail.runs.iter().enumerate() {
        let late = |s: &&Sample| s.probe == first.probe && s.latency > complete;
        for sample in run.worst.iter().filter(late) {
            causes.entry(main_cause(sample)).or_default().push((nth, sample));
        }
    }
    if causes.is_empty() {
        return Err("the records keep no sample that all of them would have kept".to_owned());
    }
    Ok((complete, causes))
}

/// Returns the series of this probe in a run: one for each CPU.
fn own<'a>(run: &'a Record, probe: &'a str) -> impl Iterator<Item = &'a Series> {
    run.series.iter().filter(move |series| series.probe == probe)
}

/// Returns the latency above which a run has kept all samples.
fn complete_above(run: &Record) -> Nanos {
    match run.worst.last() {
        Some(last) if run.worst.len() >= KEPT => last.latency,
        _ => Nanos(0),
    }
}

/// Returns the cause of the longest part of the latency.
fn main_cause(sample: &Sample) -> String {
    let most = sample.causes.iter().max_by_key(|charge| charge.ns);
    match most.filter(|charge| charge.ns >= sample.unexplained.unwrap_or_default()) {
        Some(charge) => charge.cause.clone(),
        None => "unexplained".to_owned(),
    }
}

fn estimate(tail: &Tail<'_>, complete: Nanos, samples: &[LateSample<'_>]) -> Result<Level, String> {
    let found = samples.len() as u64;
    let least = 2 * FEWEST;
    if found < least {
        return Err(format!(
            "the records keep {found} of its samples above {complete}, as each keeps the {KEPT} \
             worst of all causes: {least} are needed"
        ));
    }
    let mut histogram = Histogram::new();
    for (_, sample) in samples {
        histogram.record(sample.latency);
    }
    // Other samples in the bucket of the smallest one may not have been kept.
    let floor = histogram.buckets().next().map_or(complete, |bucket| bucket.to);
    let threshold = stable(&histogram, found.min(MOST), floor)?;
    let (mut late, mut lines) = (Vec::new(), Vec::new());
    for (nth, run) in tail.runs.iter().enumerate() {
        let of_run = samples.iter().filter(|(of, s)| *of == nth && s.latency >= threshold);
        for series in own(run, &samples[0].1.probe) {
            let here = of_run.clone().filter(|(_, sample)| sample.cpu == series.cpu);
            let moments: Vec<Nanos> = here.map(|(_, sample)| sample.at).collect();
            late.push((moments.len() as u64, series.counts.recorded));
            lines.push(homogeneity::holding(series, &moments));
        }
    }
    spread_over_runs(&late)?;
    spread_over_time(&lines)?;
    level(&excesses(&histogram, threshold), threshold, tail.whole.count())
}
