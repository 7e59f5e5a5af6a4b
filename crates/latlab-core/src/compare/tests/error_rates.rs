//! Error rates of verdicts: how often equal sides are called different, and real differences found.

use super::super::Latency;
use super::super::judging::{Judging, judge};
use super::super::latency::{Row, RunHistograms};
use super::super::maxima::Maxima;
use super::super::runs::{Design, Method, Order};
use super::super::turns;
use super::super::verdict::{LEVEL, Verdict};
use crate::histogram::Histogram;
use crate::random::Random;
use crate::time::Nanos;

/// Judges interleaved runs, and returns the verdict on each quantile.
fn judged(a: Vec<Histogram>, b: Vec<Histogram>, method: Method) -> Vec<(String, Verdict)> {
    judged_at(a, b, method, LEVEL)
}

fn judged_at(
    a: Vec<Histogram>,
    b: Vec<Histogram>,
    method: Method,
    level: f64,
) -> Vec<(String, Verdict)> {
    let design = Design {
        runs: (a.len(), b.len()),
        method,
        order: Order::InTurns,
        same_first: false,
        judged: 0,
        level,
    };
    let whole = |runs: &[Histogram]| {
        let mut whole = Histogram::new();
        for run in runs {
            whole.add(run);
        }
        whole
    };
    let (all, other) = (whole(&a), whole(&b));
    let named = all.quantiles().named().into_iter().zip(other.quantiles().named());
    let latency = Latency {
        probe: "cyclic".to_owned(),
        span: (String::new(), String::new()),
        load: (Vec::new(), Vec::new()),
        recorded: (all.count(), other.count()),
        missed: (0, 0),
        rows: named.map(|((name, a), (_, b))| Row::new(name, a, b)).collect(),
        worst: Maxima::of((&all, 0), (&other, 0), true),
        unknown: String::new(),
    };
    let recorded = a.iter().chain(&b).cloned().collect();
    let mut latencies = [(latency, Some(RunHistograms { a, b, recorded }))];
    judge(&mut latencies, &design, Judging::Quantiles);
    let rows = latencies[0].0.rows.iter();
    rows.filter_map(|row| Some((row.name.clone(), row.judged.as_ref()?.verdict))).collect()
}

/// Returns an approximately normal deviate.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.share()).sum::<f64>() - 6.0
}

/// A run of a machine whose latencies are multiplied by `pace`: most wake-ups take 10 us, 2 % are
/// late. The pace and the tail of each run vary by 3 %.
fn run(pace: f64, late: f64, random: &mut Random) -> Histogram {
    let mut histogram = Histogram::new();
    let own = pace * (1.0 + 0.03 * normal(random));
    let tail = 1.0 + 0.03 * normal(random);
    for _ in 0..10_000 {
        let mut latency = 8_000.0 - 1_500.0 * random.share().ln();
        if random.below(50) == 0 {
            latency += tail * (20_000.0 - 3_000.0 * random.share().ln());
        }
        let times = if latency > 20_000.0 { late } else { 1.0 };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is a time"
        )]
        histogram.record(Nanos((latency * own * times) as u64));
    }
    histogram
}

/// Ten interleaved runs per side, on a machine whose pace drifts.
fn experiment(late: f64, random: &mut Random) -> (Vec<Histogram>, Vec<Histogram>) {
    let mut pace = 1.0;
    let pair = |_| {
        pace *= 1.0 + 0.05 * normal(random);
        (run(pace, 1.0, random), run(pace, late, random))
    };
    (0..10).map(pair).unzip()
}

/// Returns in how many of a hundred experiments any quantile is called different.
fn called_different(
    mut sets: impl FnMut() -> (Vec<Histogram>, Vec<Histogram>),
    method: Method,
) -> usize {
    let differs = |_: &usize| {
        let (a, b) = sets();
        judged(a, b, method).iter().any(|(_, verdict)| *verdict != Verdict::Same)
    };
    (0..100).filter(differs).count()
}

#[test]
fn equal_sides_are_called_different_in_at_most_5_of_100_comparisons() {
    let mut random = Random::new(1);
    let wrong = called_different(|| experiment(1.0, &mut random), Method::Paired);
    assert!(wrong <= 5, "{wrong} of 100");
    let mut random = Random::new(2);
    let steady = |random: &mut Random| (0..10).map(|_| run(1.0, 1.0, random)).collect::<Vec<_>>();
    let wrong = called_different(|| (steady(&mut random), steady(&mut random)), Method::Unpaired);
    assert!(wrong <= 5, "{wrong} of 100");
}

/// Returns the number of pairs after which runs taken in turns, at most ten pairs, are decided.
fn decided_after((a, b): &(Vec<Histogram>, Vec<Histogram>)) -> Option<usize> {
    (1..=a.len()).find(|pairs| {
        let Some(look) = turns::look(*pairs, a.len()) else { return false };
        let method = if look.paired { Method::Paired } else { Method::Unpaired };
        let (a, b) = (a[..*pairs].to_vec(), b[..*pairs].to_vec());
        judged_at(a, b, method, look.level).iter().any(|(_, verdict)| *verdict != Verdict::Same)
    })
}

#[test]
fn equal_sides_in_turns_are_decided_in_at_most_1_of_40() {
    let mut random = Random::new(7);
    let experiments = (0..200).map(|_| experiment(1.0, &mut random));
    let wrong = experiments.filter(|sides| decided_after(sides).is_some()).count();
    assert!(wrong <= 5, "{wrong} of 200");
}

#[test]
fn sides_that_differ_by_half_in_turns_are_decided_after_six_pairs() {
    let mut random = Random::new(8);
    let experiments = (0..20).map(|_| experiment(1.5, &mut random));
    let pairs: Vec<Option<usize>> = experiments.map(|sides| decided_after(&sides)).collect();
    assert!(pairs.iter().filter(|pairs| **pairs == Some(6)).count() >= 19, "{pairs:?}");
}

/// One CPU's wake-ups in 40 runs of 2 s each, one after another, on a busy virtual machine
/// (`latlab run cyclic --for 2s`, Linux 6.18, 2026-11): minimum, maximum, sum, distribution.
const SILICON: &str = include_str!("silicon.txt");

/// 40 runs in the laboratory with the seeds 1 to 40, which start the probes at different moments of
/// the load (`latlab run cyclic --on lab:utime --load fork --count 1000 --cpus 0 --seed N`).
const LABORATORY: &str = include_str!("laboratory.txt");

fn kept(text: &str) -> Vec<Histogram> {
    let run = |line: &str| {
        let [min, max, sum, hdr] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let time = |text: &str| Nanos(text.parse().unwrap());
        let histogram = Histogram::decode(hdr, time(min), time(max), sum.parse().unwrap()).unwrap();
        histogram.corrected(Nanos::from_millis(1))
    };
    text.lines().map(run).collect()
}

/// Twenty consecutive runs, two by two: one of each two is assigned to A at random, the other to B.
fn dealt(runs: &[Histogram], random: &mut Random) -> (Vec<Histogram>, Vec<Histogram>) {
    let from = random.below(runs.len() - 19);
    let deal = |two: &[Histogram]| {
        let heads = random.below(2);
        (two[heads].clone(), two[1 - heads].clone())
    };
    runs[from..from + 20].chunks(2).map(deal).unzip()
}

/// Twenty random runs, ten for each side.
fn drawn(runs: &[Histogram], random: &mut Random) -> (Vec<Histogram>, Vec<Histogram>) {
    let mut left: Vec<&Histogram> = runs.iter().collect();
    let mut ten = || (0..10).map(|_| left.swap_remove(random.below(left.len())).clone()).collect();
    (ten(), ten())
}

#[test]
fn interleaved_runs_of_one_machine_show_no_difference() {
    let runs = kept(SILICON);
    let mut random = Random::new(4);
    let wrong = called_different(|| dealt(&runs, &mut random), Method::Paired);
    assert!(runs.len() == 40 && wrong <= 5, "{wrong} of 100");
}

#[test]
fn seeds_of_one_laboratory_cell_show_no_difference() {
    let runs = kept(LABORATORY);
    let mut random = Random::new(5);
    let wrong = called_different(|| drawn(&runs, &mut random), Method::Unpaired);
    assert!(runs.len() == 40 && wrong <= 5, "{wrong} of 100");
}

#[test]
fn laboratory_run_equals_itself_and_differs_exactly_from_another() {
    let runs = kept(LABORATORY);
    let of = |a: usize, b: usize| {
        let verdicts = judged(vec![runs[a].clone()], vec![runs[b].clone()], Method::Exact);
        verdicts.into_iter().map(|(_, verdict)| verdict).collect::<Vec<_>>()
    };
    assert_eq!(of(0, 0), [Verdict::Same; 5]);
    let later = if runs[0].quantile(0.5) < runs[1].quantile(0.5) { (0, 1) } else { (1, 0) };
    assert_eq!(of(later.0, later.1)[0], Verdict::Slower);
    assert_eq!(of(later.1, later.0)[0], Verdict::Faster);
}

#[test]
fn p99_increase_of_ten_percent_is_found_in_90_of_100_comparisons() {
    let mut random = Random::new(3);
    let mut found = 0;
    for _ in 0..100 {
        let (a, b) = experiment(1.1, &mut random);
        let verdicts = judged(a, b, Method::Paired);
        let of = |name: &str| verdicts.iter().find(|(row, _)| row == name).map(|(_, v)| *v);
        found += usize::from(of("p99") == Some(Verdict::Slower));
    }
    assert!(found >= 90, "{found} of 100");
}
