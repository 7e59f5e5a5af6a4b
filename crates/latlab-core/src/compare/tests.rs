//! Tests of comparisons: designs, verdicts, limits.

mod error_rates;

use super::limit::Outcome::{NotMeasured, Over, Within};
use super::*;
use crate::cpulist::CpuList;
use crate::histogram::Histogram;
use crate::machine::{Machine, TimeDomain};
use crate::plan::{Length, Part, Plan};
use crate::record::WarningCode::{self, CpuOffline, Interrupted, LoadEnded, StoppedAbove};
use crate::record::{Counts, Figure, Series, Warning};
use crate::scan::{Interrupt, Section, Spread};
use crate::time::Nanos;

/// A histogram of these samples.
pub(super) fn histogram(samples: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    for sample in samples {
        histogram.record(Nanos(*sample));
    }
    histogram
}

/// A run of this probe with these latencies, taken at this second.
pub(super) fn run(probe: &str, at: u64, latencies: &[u64]) -> Record {
    let histogram = histogram(latencies);
    let mut series = Series {
        probe: probe.to_owned(),
        span: ("timer expiry".to_owned(), "thread running".to_owned()),
        interval: Some(Nanos::from_millis(1)),
        counts: Counts { recorded: histogram.count(), missed: 0, below_zero: 0 },
        ..Series::default()
    };
    series.set_histogram(&histogram);
    let machine = Machine { time_domain: TimeDomain::Silicon, ..Machine::default() };
    let record = Record::new("latlab", Nanos::from_secs(at), plan(probe), machine);
    Record { series: vec![series], ..record }
}

fn plan(probe: &str) -> Plan {
    Plan {
        probes: vec![Part { name: probe.to_owned(), params: serde_json::Map::new() }],
        ..Plan::bare("native", CpuList::from_iter([0]), Length::Count(1_000))
    }
}

/// Latencies from `middle` on, slightly different in each run.
fn around(middle: u64, nth: u64) -> Vec<u64> {
    (0..2_000).map(|n| middle + n + nth % 3 * 10).collect()
}

/// Somebody changed the machine between two runs of one side.
#[test]
fn machines_of_one_side_that_differ_are_named_once() {
    let (mut a, mut b) = sides(6, 2);
    a.iter_mut().chain(&mut b).for_each(|run| run.machine.memory.swappiness = Some(60));
    for (nth, run) in (0..).zip(&mut b) {
        // Measured: it varies from run to run.
        run.machine.memory.swap_used_kib = Some(nth);
        run.machine.counters.uptime_s = Some(nth);
        run.machine.governor = (nth > 2).then(|| "powersave".to_owned());
    }
    let comparison = compare(&a, &b).unwrap();
    let (of_a, of_b) = &comparison.machine_of_runs;
    assert!(comparison.machine.is_empty() && of_a.is_empty(), "{comparison:?}");
    let fields: Vec<&str> = of_b.iter().map(|one| one.field.as_str()).collect();
    assert_eq!(fields, ["governor"]);
    assert_eq!(of_b[0].changes(&|part| part.name.clone())[0].b, "powersave");
}

/// Interleaved runs; the latencies of the second side are `times` as long.
fn sides(runs: u64, times: u64) -> (Vec<Record>, Vec<Record>) {
    let side = |late: u64, offset: u64| {
        (0..runs)
            .map(|n| run("cyclic", 10 * n + offset, &around(late * 10_000, n + offset)))
            .collect()
    };
    (side(1, 0), side(times, 5))
}

fn verdicts(latency: &Latency) -> Vec<(&str, Verdict)> {
    let judged = |row: &'_ Row| row.judged.as_ref().map(|judged| judged.verdict);
    latency.rows.iter().filter_map(|row| Some((row.name.as_str(), judged(row)?))).collect()
}

#[test]
fn lateness_is_judged_by_the_highest_quantile_and_the_worst_sample() {
    let (a, b) = sides(8, 2);
    let comparison = compare_lateness_at(&a, &b, turns::last_look(8)).unwrap();
    let latency = &comparison.latencies[0];
    assert_eq!(verdicts(latency), [("p99", Verdict::Slower), ("max", Verdict::Slower)]);
    let max = latency.rows.iter().find(|row| row.name == "max").unwrap();
    assert!((1.8..1.9).contains(&max.ratio.unwrap()), "{max:?}");
}

/// One sample of 2000 differs, which only the worst shows.
#[test]
fn lateness_differs_by_a_single_late_sample_in_each_run() {
    let (a, mut b) = sides(8, 1);
    for (nth, record) in (0..).zip(&mut b) {
        let late = [around(10_000, nth), vec![900_000 + nth]].concat();
        *record = run("cyclic", 10 * nth + 5, &late[1..]);
    }
    let comparison = compare_lateness_at(&a, &b, turns::last_look(8)).unwrap();
    assert_eq!(
        verdicts(&comparison.latencies[0]),
        [("p99", Verdict::Same), ("max", Verdict::Slower)]
    );
}

/// Sixty samples have ten above the median only, which is twice as long.
#[test]
fn lateness_is_not_judged_by_the_median() {
    let side = |offset: u64, times: u64| -> Vec<Record> {
        let samples =
            |n: u64| (0..60).map(move |nth| if nth < 59 { times * 5_000 + n } else { 90_000 });
        (0..8).map(|n| run("cyclic", 10 * n + offset, &samples(n).collect::<Vec<_>>())).collect()
    };
    let comparison = compare_lateness_at(&side(0, 1), &side(5, 2), turns::last_look(8)).unwrap();
    assert_eq!(verdicts(&comparison.latencies[0]), [("max", Verdict::Same)]);
}

#[test]
fn ratio_below_a_hundredth_is_a_divisor() {
    assert_eq!((by(0.0025), by(0.01)), ("÷ 400".to_owned(), "÷ 100".to_owned()));
    assert_eq!((by(0.5), by(0.0)), ("−50 %".to_owned(), "−100 %".to_owned()));
}

#[test]
fn interleaved_runs_show_a_difference_and_its_size() {
    let (a, b) = sides(8, 2);
    let comparison = compare(&a, &b).unwrap();
    assert_eq!(comparison.design.method, Method::Paired);
    assert_eq!(comparison.design.judged, 3, "2000 samples have ten above p50, p90 and p99");
    let latency = &comparison.latencies[0];
    assert_eq!(
        verdicts(latency),
        [("p50", Verdict::Slower), ("p90", Verdict::Slower), ("p99", Verdict::Slower)]
    );
    let p50 = latency.rows.iter().find(|row| row.name == "p50").unwrap();
    let (ratio, interval) = (p50.ratio.unwrap(), p50.judged.as_ref().unwrap().ratio.unwrap());
    assert!(interval.low <= ratio && ratio <= interval.high && (1.9..1.95).contains(&ratio));
    assert!(latency.sentence().starts_with("slower: p50 +91 % (+"), "{}", latency.sentence());
    let (same, _) = sides(8, 1);
    let latency = &compare(&same, &same).unwrap().latencies[0];
    assert_eq!(latency.sentence(), "no difference found at p50, p90, p99");
    assert_eq!(compare(&b, &a).unwrap().latencies[0].verdict(), Verdict::Faster);
}

#[test]
fn few_runs_are_inconclusive_and_sequential_runs_have_a_caveat() {
    let (a, b) = sides(5, 2);
    let comparison = compare(&a, &b).unwrap();
    assert_eq!(comparison.design.method, Method::None);
    assert_eq!(comparison.latencies[0].verdict(), Verdict::Inconclusive);
    let sentence = comparison.latencies[0].sentence();
    assert!(
        sentence.starts_with("p50 91 % longer (")
            && sentence.contains("; inconclusive: 5 and 5 runs; at least 6 interleaved"),
        "{sentence}"
    );
    assert!(compare(&a[..1], &b[..1]).unwrap().design.words().contains("one run per side"));
    let (a, mut b) = sides(6, 2);
    for run in &mut b {
        run.started = run.started + Nanos::from_secs(1_000);
    }
    let comparison = compare(&a, &b).unwrap();
    assert_eq!(comparison.design.order, Order::OneAfterTheOther);
    assert_eq!(comparison.latencies[0].verdict(), Verdict::Slower);
    assert!(comparison.design.words().contains("Interleave the runs"));
    assert!(matches!(compare(&[], &b), Err(CompareError::NoRun)));
}

#[test]
fn runs_that_drift_with_the_machine_have_a_caveat() {
    let (a, b) = sides(8, 1);
    let words = |a: &[Record], b: &[Record]| compare(a, b).unwrap().design.words();
    assert!(
        words(&a, &b).contains(" The same side came first in every pair: "),
        "{}",
        words(&a, &b)
    );
    let swapped: Vec<Record> = (0..)
        .zip(&a)
        .map(|(nth, run)| {
            let late = Nanos::from_secs(if nth % 2 == 0 { 0 } else { 7 });
            Record { started: run.started + late, ..run.clone() }
        })
        .collect();
    assert!(words(&swapped, &b).ends_with("verdicts."), "{}", words(&swapped, &b));
    let mut mixed = b.clone();
    for run in &mut mixed[1..] {
        run.started = run.started + Nanos::from_secs(1_000);
    }
    let comparison = compare(&a, &mixed).unwrap();
    assert_eq!(comparison.design.order, Order::Mixed);
    assert!(comparison.design.words().contains(" The sides did not take turns: "));
}

/// The sides are two machines, whose clocks differ by more than a run takes, or one is set back.
#[test]
fn turns_are_pairs_whatever_the_clocks_say() {
    let (a, b) = sides(8, 1);
    let expected = compare_at(&a, &b, turns::last_look(8)).unwrap();
    assert_eq!(expected.design.method, Method::Paired);
    let mut ahead = b.clone();
    for run in &mut ahead {
        run.started = run.started + Nanos::from_secs(1_000);
    }
    let mut set_back = b;
    set_back[5].started = Nanos(0);
    for other in [ahead, set_back] {
        let comparison = compare_at(&a, &other, turns::last_look(8)).unwrap();
        assert_eq!(comparison, expected);
        assert!(comparison.design.words().contains("8 interleaved runs"));
    }
}

/// Only longer runs help where the first pair is too short, not more of them.
#[test]
fn pairs_of_too_short_runs_say_how_much_longer_ones_are_needed() {
    let too_short = |pairs: u64, samples: u64| {
        let side = |offset| -> Vec<Record> {
            let latencies: Vec<u64> = (0..samples).map(|n| 10_000 + 100 * n).collect();
            (0..pairs).map(|n| run("cyclic", 10 * n + offset, &latencies)).collect()
        };
        let comparison = compare_at(&side(0), &side(5), turns::last_look(8)).unwrap();
        (comparison.design.judged, comparison.too_short.map(|times| (times * 1e3).round() / 1e3))
    };
    // Of n samples, n / 2 are above the median.
    assert_eq!((too_short(1, 10), too_short(8, 10)), ((0, Some(2.0)), (0, Some(2.0))));
    assert_eq!((too_short(1, 4), too_short(8, 0)), ((0, Some(5.0)), (0, Some(f64::INFINITY))));
    assert_eq!((too_short(1, 20), too_short(8, 20)), ((0, None), (1, None)));
}

/// Of 600 periods on a busy machine, most were missed behind a few long samples.
#[test]
fn effect_leaves_out_quantiles_that_a_few_samples_decide() {
    let side = |late: u64, missed| {
        let latencies: Vec<u64> = (0..40).map(|n| if n < 4 { late } else { 90_000 }).collect();
        let mut run = run("cyclic", 0, &latencies);
        (run.series[0].counts.missed, run.series[0].interval) =
            (missed, Some(Nanos::from_millis(1)));
        run
    };
    let effect = |late, missed| {
        let comparison = compare(&[side(late, missed)], &[side(80_000, 0)]).unwrap();
        comparison.latencies[0].effect()
    };
    assert_eq!(effect(130_000_000, 520), "", "the corrected p50 is of four samples");
    assert_eq!(effect(70_000, 0).matches("p50").count(), 1, "{}", effect(70_000, 0));
}

#[test]
fn effect_has_the_median_and_the_highest_quantile_of_enough_samples() {
    let side = |scale: u64| {
        let latencies: Vec<u64> = (1..=10_000).map(|n| n * scale).collect();
        [run("cyclic", 0, &latencies)]
    };
    let effect = compare(&side(10), &side(20)).unwrap().latencies[0].effect();
    let names: Vec<&str> = effect.split(", ").filter_map(|part| part.split(' ').next()).collect();
    // Ten of them are above p99.9.
    assert_eq!(names, ["p50", "p99.9"], "{effect}");
}

#[test]
fn judged_quantile_is_the_shown_one() {
    // 9990 of 10 000 samples are 99.9 %.
    let side = |latest: u64, offset: u64| {
        let latencies: Vec<u64> =
            (0..10_000).map(|n| if n < 9_990 { 10_000 } else { latest }).collect();
        (0..6).map(|n| run("cyclic", 10 * n + offset, &latencies)).collect::<Vec<_>>()
    };
    let comparison = compare(&side(1_000_000, 0), &side(2_000_000, 5)).unwrap();
    let row = comparison.latencies[0].rows.iter().find(|row| row.name == "p99.9").unwrap();
    assert_eq!((row.a, row.b), (row.b, row.a));
    assert!(row.judged.as_ref().is_some_and(|judged| judged.verdict == Verdict::Same), "{row:?}");
}

#[test]
fn exact_times_are_judged_without_chance() {
    let exactly = |at, latencies: &[u64]| {
        let mut run = run("cyclic", at, latencies);
        run.machine.time_domain = TimeDomain::Instructions;
        [run]
    };
    let a = exactly(0, &[100, 200, 300]);
    let b = exactly(0, &[100, 201, 300]);
    let comparison = compare(&a, &b).unwrap();
    assert_eq!(comparison.design.method, Method::Exact);
    let latency = &comparison.latencies[0];
    assert_eq!(latency.sentence(), "slower: p50 +0.50 %; the same at p90, p99, p99.9, p99.99");
    assert_eq!((latency.worst.a.rate, latency.worst.a.beyond.len()), (None, 0));
    assert_eq!(compare(&a, &a).unwrap().latencies[0].verdict(), Verdict::Same);
    // An exact ratio has no interval.
    for (limit, outcome) in [("low > 1.004", Over), ("high > 1.006", Within)] {
        let limit = limit::Limit::read(&format!("cyclic.p50.ratio.{limit}")).unwrap();
        assert_eq!(comparison.check_limits(&[limit]).unwrap()[0].outcome, outcome);
    }
    let empty = compare(&a, &exactly(0, &[])).unwrap();
    assert_eq!(empty.latencies[0].unknown, "one side has no samples");
}

#[test]
fn laboratory_seeds_are_independent_runs_and_count_once() {
    let run = |seed: u64, latency: u64| {
        let mut run = run("cyclic", 0, &[latency; 2000]);
        (run.machine.time_domain, run.plan.seed) = (TimeDomain::Instructions, seed);
        run
    };
    let side = |shift: u64| (1..=6).map(|seed| run(seed, 1000 + seed + shift)).collect::<Vec<_>>();
    let design = |a: &[Record], b: &[Record]| compare(a, b).unwrap().design;
    let six = design(&side(0), &side(1));
    assert_eq!((six.method, six.order), (Method::Unpaired, Order::BySeed));
    assert!(six.words().contains("6 runs and 6 runs, with different seeds"), "{}", six.words());
    // The same result of the same seed is a duplicate.
    let again = [side(0), side(0)].concat();
    assert_eq!(design(&again, &side(1)).runs, (6, 6));
    // A different result is not: another latlab or kernel was used.
    let found = |value| {
        let (probe, name, unit) = ("netbench".to_owned(), "requests".to_owned(), String::new());
        let figure = Figure { probe, name, value, unit, load: Vec::new(), profile: None };
        Record { figures: vec![figure], ..run(1, 1000) }
    };
    assert_eq!(distinct(vec![found(1.0), run(1, 1000), found(2.0)]).len(), 3);
    assert_eq!(distinct(vec![run(1, 1000), run(1, 1001), run(1, 1000)]).len(), 2);
    assert_eq!(distinct(vec![found(1.0), found(1.0)]).len(), 1);
    let few = design(&side(0)[..2], &side(1)[..2]);
    assert_eq!(few.method, Method::None);
    assert!(few.words().contains("at least 4 runs with different seeds"), "{}", few.words());
    // Runs that do not vary are exact, but only between the same seeds.
    let alike = |latency| (1..=6).map(|seed| run(seed, latency)).collect::<Vec<_>>();
    assert_eq!(design(&alike(1000), &alike(1001)).method, Method::Exact);
    assert_eq!(design(&[run(1, 1000)], &[run(1, 1001)]).method, Method::Exact);
    let other = design(&[run(1, 1000)], &[run(2, 1001)]);
    assert_eq!(other.method, Method::None);
    assert!(other.words().contains("runs with different seeds"), "{}", other.words());
}

#[test]
fn runs_of_one_side_may_differ_in_seed_only() {
    let (mut a, b) = sides(6, 1);
    a.iter_mut().zip(1..).for_each(|(run, seed)| run.plan.seed = seed);
    assert_eq!(compare(&a, &b).unwrap().latencies[0].recorded, (12_000, 12_000));
    a[3].plan.length = Length::Count(5);
    assert!(matches!(compare(&a, &b), Err(CompareError::Incomparable(Incomparable::Plan))));
}

#[test]
fn corrected_quantiles_are_judged_where_periods_were_missed() {
    let (mut a, b) = sides(6, 1);
    a[2].series[0].counts.missed = 3;
    let comparison = compare(&a, &b).unwrap();
    let names: Vec<&str> = verdicts(&comparison.latencies[0]).iter().map(|v| v.0).collect();
    assert_eq!(names, ["corrected p50", "corrected p90", "corrected p99"]);
}

/// The correction adds 599 samples to one of 600 ms, so that corrected p50 depends on that sample
/// only; with ten samples of 60 ms it does not.
#[test]
fn corrected_samples_do_not_count_as_samples_above_a_quantile() {
    let judged = |late: &[u64]| {
        let side = |offset: u64| {
            let run = |n: u64| {
                let usual = (0..600 - late.len() as u64).map(|n| 10_000 + n);
                let latencies: Vec<u64> = usual.chain(late.iter().copied()).collect();
                let mut run = run("cyclic", 10 * n + offset, &latencies);
                run.series[0].counts.missed = 599;
                run
            };
            (0..6).map(run).collect::<Vec<_>>()
        };
        let comparison = compare(&side(0), &side(5)).unwrap();
        let names = verdicts(&comparison.latencies[0]).into_iter().map(|v| v.0.to_owned());
        names.collect::<Vec<String>>()
    };
    assert_eq!(judged(&[600_000_000]), [""; 0]);
    assert_eq!(judged(&[60_000_000; 10]), ["corrected p50", "corrected p90"]);
}

/// As above, for limits: of a side with one stall no corrected quantile is known, although
/// 600 samples have ten above p50 and p90.
#[test]
fn limits_on_corrected_quantiles_need_ten_recorded_samples_above_them() {
    let outcome = |late: &[u64], text: &str| {
        let side = |at: u64| {
            let usual = (0..600 - late.len() as u64).map(|n| 10_000 + n);
            let latencies: Vec<u64> = usual.chain(late.iter().copied()).collect();
            let mut run = run("cyclic", at, &latencies);
            run.series[0].counts.missed = 599;
            [run]
        };
        let comparison = compare(&side(0), &side(5)).unwrap();
        let limit = limit::Limit::read(text).unwrap();
        comparison.check_limits(&[limit]).unwrap().remove(0).outcome
    };
    let (stall, ten) = ([600_000_000], [60_000_000; 10]);
    assert_eq!(outcome(&stall, "cyclic.corrected.p50 > 10ms"), NotMeasured);
    assert_eq!(outcome(&stall, "baseline.cyclic.corrected.p50 > 10ms"), NotMeasured);
    assert_eq!(outcome(&stall, "cyclic.p90 > 10ms"), Within, "the recorded one is known");
    assert_eq!(outcome(&ten, "cyclic.corrected.p90 > 10ms"), Over);
}

#[test]
fn run_given_twice_counts_once() {
    let (a, b) = sides(6, 1);
    let twice = [&a[..3], &a[..3]].concat();
    let design = compare(&twice, &b).unwrap().design;
    assert_eq!((design.runs, design.method), ((3, 6), compare(&a[..3], &b).unwrap().design.method));
}

#[test]
fn limits_are_checked_over_both_sides() {
    let (a, b) = sides(8, 2);
    let comparison = compare(&a, &b).unwrap();
    let held = |text: &str| {
        let limit = limit::Limit::read(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        comparison.check_limits(&[limit]).unwrap().remove(0)
    };
    for (text, outcome) in [
        ("cyclic.p99 > baseline * 1.1", Over),
        ("cyclic.p99 > baseline * 3", Within),
        ("baseline * 1.1 < cyclic.p99", Over),
        ("cyclic.p99 > 15us and cyclic.p50 > baseline + 1us", Over),
        ("cyclic.p50.ratio.low > 1.9", Over),
        ("cyclic.p50.ratio.high < 1.1", Within),
        ("max(*.p99) > max(baseline)", Over),
        ("cyclic.max > baseline * 1.5", Over),
        ("cyclic.recorded < baseline", Within),
        ("cyclic.p99.99 > 10us", NotMeasured),
        ("cyclic.p99.99.ratio > 1", NotMeasured),
        // No period was missed: the corrected quantiles are the recorded ones.
        ("cyclic.corrected.p99 > baseline * 1.1", Over),
        ("cyclic.corrected.p50.ratio.high < 1.1", Within),
        ("cyclic.corrected.max > 1us", NotMeasured),
        ("timer.p99 > 1us", NotMeasured),
    ] {
        assert_eq!(held(text).outcome, outcome, "{text}: {}", held(text).ground);
    }
    assert!(held("cyclic.p99.99 > 10us").ground.contains("fewer than ten samples"));
    let misspelt = held("cyclic.p98 > 5us").ground;
    assert!(misspelt.starts_with("unknown result 'cyclic.p98': did you mean"), "{misspelt}");
    let short = held("p99 > 5us").ground;
    assert!(short.starts_with("unknown result 'p99': did you mean cyclic.p99"), "{short}");
    // Unequal numbers of samples: maxima are not comparable, but each has a value.
    let uneven = compare(&a[..7], &b).unwrap();
    let judged =
        |text: &str| uneven.check_limits(&[limit::Limit::read(text).unwrap()]).unwrap().remove(0);
    assert_eq!(judged("cyclic.max > baseline").outcome, NotMeasured);
    assert!(judged("cyclic.max > baseline").ground.contains("unequal numbers"));
    assert_eq!(judged("cyclic.max > 1us").outcome, Over);
}

/// A run with a scan whose detection limit is `limit`, and which found a section this long or none.
fn run_with_scan(at: u64, limit: u64, section: Option<i64>) -> Record {
    let duration = Spread { min: Nanos(limit), median: Nanos(limit), max: Nanos(limit) };
    let of = |end| Section { start: 0, end, peak: Nanos(0), function: None, nth: None };
    let scan = Scan {
        call: Part { name: "fork".to_owned(), params: serde_json::Map::new() },
        profile: None,
        cpu: 0,
        interrupt: Interrupt::Timer,
        duration,
        baseline: Nanos(3),
        noise: Nanos(0),
        // Without points, the detection limit is the longest call.
        points: Vec::new(),
        sections: section.into_iter().map(of).collect(),
        parts: Vec::new(),
    };
    Record { scans: vec![scan], ..run("cyclic", at, &[1_000; 100]) }
}

/// Of B's runs none finds a section above 30 us, or the second one finds one of 20 us; A's has 10 us.
#[test]
fn limit_below_the_detection_limit_of_a_scan_is_not_measured() {
    let a = [run_with_scan(0, 1_000, Some(10_000))];
    let held = |found: Option<i64>, text: &str| {
        let b = [run_with_scan(5, 30_000, None), run_with_scan(9, 1_000, found)];
        let comparison = compare(&a, &b).unwrap();
        let limit = limit::Limit::read(text).unwrap();
        let held = comparison.check_limits(&[limit]).unwrap().remove(0);
        (held.outcome, held.ground)
    };
    let outcome = |found, text: &str| held(found, text).0;
    let above = |limit: &str| format!("scan.fork.longest-section > {limit}");
    assert_eq!(outcome(None, &above("30us")), Within);
    assert_eq!(outcome(None, &above("29us")), NotMeasured);
    assert_eq!(outcome(None, &above("baseline")), NotMeasured);
    assert_eq!(outcome(None, &above("baseline * 3")), Within);
    assert_eq!(outcome(None, "max(scan.fork.longest-section, 40us) > 39us"), Over);
    assert_eq!(outcome(Some(20_000), &above("19us")), Over, "it was found");
    assert_eq!(outcome(Some(20_000), &above("25us")), NotMeasured);
    let reason = "scan.fork.longest-section (none found above 30 us)";
    assert_eq!(held(None, &above("30us")).1, reason);
    assert_eq!(held(None, &above("29us")).1, format!("no value for {reason}"));
    let both = held(None, &above("baseline * 3")).1;
    assert_eq!(both, format!("baseline * 3 is 30 us, {reason}"));
    let (outcome, ground) = held(None, "scan.fork.worst-pdlt > 1us");
    assert_eq!((outcome, ground.as_str()), (Within, "scan.fork.worst-pdlt is 0 ns"));
}

/// A run without its load is faster than with it, and one that --stop-above ended was meant to end.
#[test]
fn limit_over_runs_that_lost_a_load_is_not_measured() {
    let (whole, other) = sides(8, 1);
    let with = |runs: &[Record], codes: &[WarningCode]| {
        let mut runs = runs.to_vec();
        for (run, code) in runs.iter_mut().zip(codes) {
            run.warnings.push(Warning::new(*code, "a reason"));
        }
        runs
    };
    let lossy = with(&other, &[LoadEnded, CpuOffline, StoppedAbove, Interrupted]);
    let comparison = compare(&whole, &lossy).unwrap();
    assert_eq!(comparison.lost_part, (0, 2));
    assert_eq!((comparison.stopped_above, comparison.cut_short), ((0, 1), (0, 1)));
    let outcome = |a: &[Record], b: &[Record], text: &str| {
        let limit = limit::Limit::read(text).unwrap();
        let held = compare(a, b).unwrap().check_limits(&[limit]).unwrap().remove(0);
        (held.outcome, held.ground)
    };
    let (own, both) = ("cyclic.p50 > 1s", "cyclic.p50 > baseline * 2");
    let ground = "2 runs of B lost a load, a measured CPU or a setting".to_owned();
    assert_eq!(outcome(&whole, &lossy, own), (NotMeasured, ground));
    assert_eq!(outcome(&lossy, &whole, own).0, Within, "A has no part in it");
    assert_eq!(outcome(&lossy, &whole, both).0, NotMeasured);
    let ratio = "cyclic.p50.ratio.low > 2";
    assert_eq!(outcome(&lossy, &whole, ratio).0, NotMeasured);
    assert_eq!(outcome(&whole, &other, ratio).0, Within);
    let stopped = with(&other, &[StoppedAbove]);
    assert_eq!(outcome(&whole, &stopped, both).0, Within);
}

#[test]
fn wrong_limit_is_refused_with_its_position() {
    let (a, b) = sides(8, 2);
    let comparison = compare(&a, &b).unwrap();
    for (text, at, why) in [
        ("cyclic.p99 >", 12, "expected"),
        ("cyclic.p99 > 5", 13, "unit"),
        ("cyclic.p99 > baseline * 1us", 13, "a time and a time to the power of 2"),
        ("baseline > 5us", 0, "in full"),
        ("cyclic.p99 > 1us and baseline > cyclic.p99 + cyclic.p50", 21, "in full"),
    ] {
        let read = limit::Limit::read(text);
        let fault = match read {
            Err(fault) => fault,
            Ok(limit) => comparison.check_limits(&[limit]).unwrap_err().1,
        };
        assert!(fault.why.contains(why), "{text}: {fault}");
        assert_eq!(fault.at, at, "{text}: {fault}");
    }
}
