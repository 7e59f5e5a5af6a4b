//! The tail of each cause, from the few samples that explained records keep.

use super::*;
use crate::record::{Charge, worst_first};

const CAUSES: [&str; 2] = ["softirq", "timer"];
const SAMPLES: u64 = 300;
const RUNS: u64 = 40;

/// A late sample of one of the causes.
struct LateSample {
    /// Its period.
    at: u64,
    cause: usize,
    latency: f64,
}

/// An explained run of samples around 10 us, some of them late.
fn explained(late: &[LateSample], random: &mut Random) -> Record {
    let mut latencies: Vec<f64> =
        (0..SAMPLES).map(|_| 10_000.0 + 1_000.0 * random.share()).collect();
    for one in late {
        latencies[place(one.at)] = one.latency;
    }
    let mut worst: Vec<Sample> =
        (0..).zip(&latencies).map(|(at, ns)| sample(at, *ns, late)).collect();
    worst_first(&mut worst);
    record(series(latencies.into_iter()), worst, true)
}

fn sample(at: u64, ns: f64, late: &[LateSample]) -> Sample {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a time")]
    let latency = Nanos(ns as u64);
    let cause = late.iter().find(|one| one.at == at).map(|one| CAUSES[one.cause]);
    let charge = |cause: &str| Charge {
        cause: cause.to_owned(),
        from: Nanos(0),
        ns: latency,
        culprit: String::new(),
        stack: Vec::new(),
    };
    Sample {
        probe: "cyclic".to_owned(),
        cpu: 0,
        at: Nanos::from_millis(at),
        latency,
        index: None,
        unexplained: cause.is_none().then_some(latency),
        causes: cause.map(charge).into_iter().collect(),
        path: None,
    }
}

fn place(at: u64) -> usize {
    usize::try_from(at).unwrap()
}

/// Late samples of the first cause in each run, at random moments, exponential above 50 us: fewer
/// than a record keeps.
fn at_any_time(many: impl Fn(u64) -> usize, random: &mut Random) -> Vec<Vec<LateSample>> {
    let run = |nth| {
        let any = |_| LateSample {
            at: random.below(place(SAMPLES)) as u64,
            cause: 0,
            latency: exponential(random),
        };
        (0..many(nth)).map(any).collect()
    };
    (0..RUNS).map(run).collect()
}

fn exponential(random: &mut Random) -> f64 {
    50_000.0 - 5_000.0 * random.share().ln()
}

fn of(runs: &[Vec<LateSample>], random: &mut Random) -> Vec<Extreme> {
    let records: Vec<Record> = runs.iter().map(|late| explained(late, random)).collect();
    beyond(&records)
}

fn cause<'a>(found: &'a [Extreme], name: &str) -> &'a Extreme {
    found.iter().find(|one| one.cause.as_deref() == Some(name)).unwrap()
}

fn why(extreme: &Extreme) -> &str {
    extreme.refused.as_deref().unwrap_or("it was estimated")
}

#[test]
fn cause_with_independent_samples_gives_the_right_estimate() {
    let (mut estimated, mut right) = (0, 0);
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let runs = at_any_time(|nth| 5 + place(nth) % 5, &mut random);
        let late = runs.iter().map(Vec::len).sum::<usize>();
        let found = of(&runs, &mut random);
        let Some(level) = cause(&found, CAUSES[0]).level else { continue };
        assert_eq!(level.once_in, 10 * RUNS * SAMPLES);
        #[expect(clippy::cast_precision_loss, reason = "some hundreds")]
        let exact = 50_000.0 + 5_000.0 * (10.0 * late as f64).ln();
        estimated += 1;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
        let within = (level.low.0..=level.high.0).contains(&(exact as u64));
        right += usize::from(within);
    }
    assert!(estimated >= 4 && right + 1 >= estimated, "{right} of {estimated}");
}

/// The bursts of one cause do not affect the estimate of another.
#[test]
fn cause_with_bursts_is_refused() {
    let mut random = Random::new(1);
    let mut runs = at_any_time(|_| 5, &mut random);
    for run in &mut runs {
        let begin = random.below(280) as u64;
        let burst =
            |n: u64| LateSample { at: begin + 2 * n, cause: 1, latency: exponential(&mut random) };
        run.extend((0..4u64).map(burst));
    }
    let found = of(&runs, &mut random);
    assert!(why(cause(&found, CAUSES[1])).contains("bursts"), "{found:?}");
    assert!(!why(cause(&found, CAUSES[0])).contains("bursts"), "{found:?}");
}

#[test]
fn cause_more_frequent_in_some_runs_is_refused() {
    let mut random = Random::new(2);
    let runs = at_any_time(|nth| if nth % 3 == 0 { 9 } else { 2 }, &mut random);
    let found = of(&runs, &mut random);
    assert!(why(cause(&found, CAUSES[0])).contains("across runs"), "{found:?}");
}

/// Three of ten late samples are another 100 us later.
#[test]
fn cause_whose_tail_changes_shape_is_refused() {
    let mut random = Random::new(3);
    let mut runs = at_any_time(|_| 8, &mut random);
    for late in runs.iter_mut().flatten().filter(|late| late.at % 10 < 3) {
        late.latency += 100_000.0;
    }
    let found = of(&runs, &mut random);
    assert!(why(cause(&found, CAUSES[0])).contains("no stable POT threshold"), "{found:?}");
}

#[test]
fn cause_with_few_samples_or_two_series_on_a_cpu_is_refused() {
    let mut random = Random::new(4);
    let runs = at_any_time(|_| 2, &mut random);
    let found = of(&runs, &mut random);
    assert!(why(cause(&found, CAUSES[0])).contains("100 are needed"), "{found:?}");
    let mut twice = explained(&runs[0], &mut random);
    twice.series.push(twice.series[0].clone());
    assert!(why(&beyond(&[twice])[0]).contains("several latencies"));
}
