//! The tails of causes, each by itself: a mixture of them is no tail of one distribution.

use super::{Extreme, FEWEST, REFUSED_BELOW, Tail, level, steady};
use crate::record::{Record, Sample};
use crate::time::Nanos;
use crate::worst::KEPT;
use std::collections::BTreeMap;

/// One estimate, or the reason why there is none, for each cause of the worst samples.
///
/// A record has the causes of its worst samples only. Above the highest latency at which any run
/// has stopped keeping them, they are all there is.
pub(super) fn beyond(tail: &Tail<'_>) -> Vec<Extreme> {
    match gathered(tail) {
        Err(why) => vec![Extreme::of(None, Err(why))],
        Ok((threshold, causes)) => {
            let of = |(cause, samples): (String, Vec<(usize, Nanos)>)| {
                Extreme::of(Some(cause), estimate(tail, threshold, &samples))
            };
            causes.into_iter().map(of).collect()
        }
    }
}

type Gathered = BTreeMap<String, Vec<(usize, Nanos)>>;

fn gathered(tail: &Tail<'_>) -> Result<(Nanos, Gathered), String> {
    let Some(first) = tail.series.first() else {
        return Err("it is not in all runs".to_owned());
    };
    if tail.runs.iter().any(|run| run.runs > 1) {
        return Err("its runs were merged, so that their order is lost".to_owned());
    }
    let spans = |run: &Record| {
        run.series.iter().any(|series| series.probe == first.probe && series.span != first.span)
    };
    if tail.runs.iter().any(|run| spans(run)) {
        return Err("the probe has several latencies, and the worst samples do not say of which \
                    they are"
            .to_owned());
    }
    let threshold = tail.runs.iter().map(|run| complete_above(run)).max().unwrap_or_default();
    let mut causes = Gathered::new();
    for (nth, run) in tail.runs.iter().enumerate() {
        let late = |s: &&Sample| s.probe == first.probe && s.latency > threshold;
        for sample in run.worst.iter().filter(late) {
            causes.entry(main_cause(sample)).or_default().push((nth, sample.latency));
        }
    }
    if causes.is_empty() {
        return Err("its records keep no sample that all of them would have kept".to_owned());
    }
    Ok((threshold, causes))
}

/// Above what a run has kept all samples.
fn complete_above(run: &Record) -> Nanos {
    match run.worst.last() {
        Some(last) if run.worst.len() >= KEPT => last.latency,
        _ => Nanos(0),
    }
}

/// What took the most of it.
fn main_cause(sample: &Sample) -> String {
    let most = sample.causes.iter().max_by_key(|charge| charge.ns);
    match most.filter(|charge| charge.ns >= sample.unexplained.unwrap_or_default()) {
        Some(charge) => charge.cause.clone(),
        None => "unexplained".to_owned(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a latency of 2^53 ns is 104 days long")]
fn estimate(
    tail: &Tail<'_>,
    threshold: Nanos,
    samples: &[(usize, Nanos)],
) -> Result<super::Level, String> {
    let found = samples.len() as u64;
    if found < FEWEST {
        return Err(format!(
            "its records keep {found} of its samples above {threshold}, as each keeps the {KEPT} \
             worst of all causes: {FEWEST} are needed"
        ));
    }
    let of_run = |(nth, run): (usize, &&Record)| {
        let late = samples.iter().filter(|(of, _)| *of == nth).count() as u64;
        let first = tail.series.first();
        let own = run.series.iter().filter(|s| first.is_some_and(|one| s.probe == one.probe));
        (late, own.map(|series| series.counts.recorded).sum())
    };
    let late: Vec<(u64, u64)> = tail.runs.iter().enumerate().map(of_run).collect();
    if steady::over_runs(&late) < REFUSED_BELOW {
        return Err("it comes more often in some runs than in others".to_owned());
    }
    let mut latencies: Vec<Nanos> = samples.iter().map(|(_, latency)| *latency).collect();
    latencies.sort_unstable();
    let excess = |latency: Nanos| ((latency - threshold).0 as f64, 1);
    let excesses: Vec<(f64, u64)> = latencies.into_iter().map(excess).collect();
    level(&excesses, threshold, tail.whole.count())
}
