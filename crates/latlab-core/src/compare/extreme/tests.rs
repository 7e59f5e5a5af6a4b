//! Estimates are right where the conditions hold, and refused with the reason elsewhere.

mod causes;

use super::*;
use crate::record::{Counts, Sample};
use crate::timeline::Timeline;

const PER_RUN: u64 = 5_000;

/// A run of samples, a millisecond apart, and its latency.
fn series(latencies: impl Iterator<Item = f64>) -> Series {
    let (mut histogram, mut timeline) = (Histogram::new(), Timeline::new());
    for (nth, latency) in (0..).zip(latencies) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a time")]
        let latency = Nanos(latency as u64);
        histogram.record(latency);
        timeline.record(Nanos::from_millis(nth), latency);
    }
    let counts = Counts { recorded: histogram.count(), ..Counts::default() };
    let mut series = Series { probe: "cyclic".to_owned(), counts, timeline, ..Series::default() };
    series.set_histogram(&histogram);
    series
}

fn record(series: Series, worst: Vec<Sample>, explained: bool) -> Record {
    let mut record = crate::compare::tests::run("cyclic", 0, &[1]);
    (record.series, record.worst) = (vec![series], worst);
    record.explained = explained.then(Default::default);
    record
}

fn beyond(records: &[Record]) -> Vec<Extreme> {
    let runs: Vec<&Record> = records.iter().collect();
    let series: Vec<&Series> = runs.iter().flat_map(|run| &run.series).collect();
    let mut whole = Histogram::new();
    for series in &series {
        whole.add(&series.histogram().unwrap());
    }
    Tail { runs: &runs, series, whole: &whole }.beyond()
}

/// Four runs, from the latency of each sample by run and index.
fn of(mut latency: impl FnMut(u64, u64) -> f64) -> Vec<Extreme> {
    let mut run = |nth| record(series((0..PER_RUN).map(|n| latency(nth, n))), Vec::new(), false);
    beyond(&(0..4).map(&mut run).collect::<Vec<_>>())
}

fn refusal(found: &[Extreme]) -> &str {
    found[0].refused.as_deref().unwrap_or("it was estimated")
}

#[test]
fn independent_latencies_give_the_right_estimate() {
    // Exponential above 10 us: one in 200 000 is above 10 us + 2 us * ln 200 000.
    let exact = 10_000.0 + 2_000.0 * 200_000f64.ln();
    let (mut estimated, mut right) = (0, 0);
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let found = of(|_, _| 10_000.0 - 2_000.0 * random.share().ln());
        if let Some(level) = found[0].level {
            assert_eq!((level.once_in, found[0].cause.as_ref()), (200_000, None));
            assert!(level.low <= level.latency && level.latency <= level.high, "{level:?}");
            estimated += 1;
            let range = level.low.0..=level.high.0;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
            let within = range.contains(&(exact as u64));
            right += usize::from(within);
        }
    }
    assert!(estimated >= 8 && right + 2 >= estimated, "{right} of {estimated}");
}

#[test]
fn dependent_samples_are_refused() {
    let mut random = Random::new(1);
    let mut exponential = |scale: f64| 10_000.0 - scale * random.share().ln();
    let bursts = of(|_, n| exponential(if n % 1_000 < 60 { 9_000.0 } else { 1_000.0 }));
    assert!(refusal(&bursts).contains("bursts"), "{bursts:?}");
    let worse = of(|nth, _| exponential(if nth == 2 { 3_000.0 } else { 2_000.0 }));
    assert!(refusal(&worse).contains("across runs"), "{worse:?}");
}

#[test]
fn mixtures_and_short_and_merged_runs_are_refused() {
    let mut random = Random::new(2);
    // A tick: one in 40 is late by the same 30 us, plus 2 us of noise.
    let mixture = of(|_, _| {
        let tick = if random.below(40) == 0 { 30_000.0 } else { 0.0 };
        10_000.0 + tick + 2_000.0 * random.share()
    });
    assert!(mixture[0].level.is_none(), "{mixture:?}");
    let few = beyond(&[record(series((0..900u32).map(f64::from)), Vec::new(), false)]);
    assert!(refusal(&few).contains("900 samples are too few: 1000"), "{few:?}");
    let mut merged = record(series((0..9_000u32).map(f64::from)), Vec::new(), false);
    merged.runs = 2;
    assert!(refusal(&beyond(&[merged])).contains("merged"));
}
