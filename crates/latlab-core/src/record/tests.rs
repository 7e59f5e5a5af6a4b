//! Tests of records: reading, refusing damaged ones, merging.

mod damaged;

use super::*;
use crate::compare::compare;
use crate::cpulist::CpuList;
use crate::histogram::Histogram;
use crate::machine::TimeDomain;
use crate::plan::{Length, Part};
use crate::scan::{Interrupt, Point, Section, Spread};
use crate::timeline::Timeline;
use proptest::prelude::*;
use serde_json::Value;

fn plan() -> Plan {
    let length = Length::For(Nanos::from_secs(1));
    Plan {
        probes: vec![Part { name: "cyclic".to_owned(), params: serde_json::Map::new() }],
        ..Plan::bare("native", CpuList::from_iter([0, 1]), length)
    }
}

/// Latencies and missed periods of one CPU.
type Seen = (Vec<u64>, u64);

fn series(cpu: u32, (latencies, missed): &Seen) -> Series {
    let (mut histogram, mut timeline) = (Histogram::new(), Timeline::new());
    for (nth, latency) in (0..).zip(latencies) {
        histogram.record(Nanos(*latency));
        timeline.record(Nanos::from_millis(nth), Nanos(*latency));
    }
    let recorded = histogram.count();
    let mut series = Series {
        probe: "cyclic".to_owned(),
        span: ("timer expiry".to_owned(), "thread running".to_owned()),
        cpu,
        interval: Some(Nanos::from_secs(1)),
        counts: Counts { recorded, missed: *missed, below_zero: recorded / 2 },
        first: latencies.first().copied().map(Nanos),
        warm_up: Some(WarmUp { recorded: 1, missed: 2, max: Nanos(*missed), sum: 4 }),
        disturbed: Disturbed { minor_faults: 1, major_faults: *missed, preempted: 3 },
        cpu_ns: Nanos(recorded * 7),
        timeline,
        // The fields that are derived from the histogram are set below.
        ..Series::default()
    };
    series.set_histogram(&histogram);
    series
}

/// A scan of two points and one section.
pub(crate) fn scan() -> Scan {
    let spread = |min| Spread { min: Nanos(min), median: Nanos(min + 1), max: Nanos(min + 2) };
    let point =
        |offset, pdlt| Point { offset, repeats: 3, pdlt: spread(pdlt), irt: Some(spread(1_000)) };
    Scan {
        call: Part { name: "populate".to_owned(), params: serde_json::Map::new() },
        profile: None,
        cpu: 1,
        interrupt: Interrupt::Timer,
        duration: spread(50_000),
        baseline: Nanos(3_200),
        noise: Nanos(1),
        points: vec![point(-1_000, 3_200), point(1_000, 52_200)],
        sections: vec![Section {
            start: 1_000,
            end: 50_000,
            peak: Nanos(52_200),
            function: None,
            nth: None,
        }],
        parts: Vec::new(),
    }
}

/// A record of these CPUs, with an entry in every list that is merged.
pub(crate) fn record(started: u64, seen: &[(u32, Seen)]) -> Record {
    let series: Vec<Series> = seen.iter().map(|(cpu, seen)| series(*cpu, seen)).collect();
    let late = |series: &Series| Sample {
        probe: series.probe.clone(),
        cpu: series.cpu,
        at: Nanos(started),
        latency: series.max,
        index: None,
        causes: Vec::new(),
        unexplained: None,
        path: None,
    };
    let mut worst: Vec<Sample> = series.iter().map(late).collect();
    worst_first(&mut worst);
    let load = if started.is_multiple_of(2) { "cpu" } else { "disk" };
    Record {
        schema: SCHEMA,
        tool: "latlab 0.1.0".to_owned(),
        started: Nanos(started),
        runs: 1,
        plan: plan(),
        fingerprint: None,
        machine: Machine::default(),
        series,
        scans: vec![scan()],
        figures: Vec::new(),
        worst,
        explained: Some(Explained {
            late: started,
            total: Nanos(started),
            unexplained: Nanos(started),
            ..Explained::default()
        }),
        proofs: Some(Proofs {
            not_tried: vec![format!("number {}", started % 3)],
            ..Proofs::default()
        }),
        work: vec![Work {
            load: load.to_owned(),
            unit: "units".to_owned(),
            done: started,
            cpu_ns: Nanos(started),
        }],
        changes: Vec::new(),
        warnings: vec![Warning::new(WarningCode::Skipped, format!("number {}", started % 3))],
    }
}

fn sum(a: &Record, b: &Record) -> Record {
    let mut sum = a.clone();
    sum.merge(b).expect("they repeat one plan");
    sum
}

/// Records with some latencies on some CPUs, up to beyond the largest bucket.
fn records() -> impl Strategy<Value = Record> {
    let latencies = prop::collection::vec(0u64..5_000_000_000_000, 0..6);
    let cpus = prop::collection::btree_map(0u32..4, (latencies, 0u64..1_000), 0..4);
    (0u64..10, cpus).prop_map(|(started, cpus)| record(started, &Vec::from_iter(cpus)))
}

/// The text of a record with an entry in every list.
fn text() -> String {
    record(4, &[(0, (vec![1_000, 9_000_000], 8)), (1, (vec![5], 0))]).to_json()
}

proptest! {
    // Each case allocates dozens of histograms of a quarter of a megabyte.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn merge_is_associative(a in records(), b in records(), c in records()) {
        prop_assert_eq!(sum(&sum(&a, &b), &c), sum(&a, &sum(&b, &c)));
    }

    #[test]
    fn merge_preserves_all_sums(a in records(), b in records()) {
        let both = sum(&a, &b);
        let total = |of: fn(&Series) -> u128, record: &Record| -> u128 {
            record.series.iter().map(of).sum()
        };
        let sums: [fn(&Series) -> u128; 7] = [
            |s| s.counts.recorded.into(),
            |s| s.counts.missed.into(),
            |s| s.counts.below_zero.into(),
            |s| s.sum,
            |s| s.disturbed.major_faults.into(),
            |s| s.cpu_ns.0.into(),
            |s| s.histogram().expect("it was just made").count().into(),
        ];
        for of in sums {
            prop_assert_eq!(total(of, &both), total(of, &a) + total(of, &b));
        }
        let max = |record: &Record| record.series.iter().map(|s| s.max).max();
        prop_assert_eq!(max(&both), max(&a).max(max(&b)));
        let done = |record: &Record| record.work.iter().map(|work| work.done).sum::<u64>();
        prop_assert_eq!(done(&both), done(&a) + done(&b));
        prop_assert_eq!((both.runs, both.scans.len()), (2, 2));
        prop_assert!(a.warnings.iter().chain(&b.warnings).all(|w| both.warnings.contains(w)));
    }

    #[test]
    fn record_survives_writing_and_reading(a in records(), b in records()) {
        let both = sum(&a, &b);
        prop_assert_eq!(Record::from_json(&both.to_json()).unwrap(), both);
    }

    /// A modified text is either refused in one sentence, or a record that everything else accepts.
    #[test]
    fn modified_text_is_refused_or_usable(
        spoils in prop::collection::vec((any::<prop::sample::Index>(), 0usize..30, "[ -~]{0,20}|[0-9]{1,25}|-|\"|\\]|\\}"), 1..4)
    ) {
        let mut text = text();
        for (place, len, with) in spoils {
            let start = place.index(text.len());
            let end = (start + len).min(text.len());
            text.replace_range(start..end, &with);
        }
        assert_refused_or_usable(&text);
    }

    /// The same for valid JSON in which one number is replaced.
    #[test]
    fn modified_number_is_refused_or_usable(
        place in any::<prop::sample::Index>(),
        number in any_number(),
    ) {
        let mut value: Value = serde_json::from_str(&text()).unwrap();
        let mut paths = Vec::new();
        numbers(&value, String::new(), &mut paths);
        let path = &paths[place.index(paths.len())];
        *value.pointer_mut(path).expect("the path exists") = Value::Number(number);
        assert_refused_or_usable(&value.to_string());
    }
}

fn any_number() -> impl Strategy<Value = serde_json::Number> {
    let signed = prop_oneof![Just(i64::MIN), Just(i64::MAX), any::<i64>(), -10_000i64..10_000];
    prop_oneof![Just(u64::MAX).prop_map(Into::into), signed.prop_map(Into::into)]
}

/// Collects the JSON pointers of all numbers.
fn numbers(value: &Value, path: String, found: &mut Vec<String>) {
    use serde_json::Value::{Array, Number, Object};
    match value {
        Number(_) => found.push(path),
        Array(items) => {
            items.iter().enumerate().for_each(|(n, v)| numbers(v, format!("{path}/{n}"), found));
        }
        Object(map) => map.iter().for_each(|(k, v)| numbers(v, format!("{path}/{k}"), found)),
        _ => {}
    }
}

/// Reads a text and, if it is a record, uses it in every way that records are used.
fn assert_refused_or_usable(text: &str) {
    match Record::from_json(text) {
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
        Ok(record) => {
            let _ = compare(std::slice::from_ref(&record), std::slice::from_ref(&record));
            for scan in &record.scans {
                let _ = (scan.longest(), scan.detection_limit());
            }
            let both = sum(&record, &record);
            assert!(both.series.iter().all(|series| series.timeline.points().count() <= 1024));
            let _ = compare(std::slice::from_ref(&both), std::slice::from_ref(&record));
            assert_eq!(Record::from_json(&record.to_json()).unwrap(), record);
        }
    }
}

#[test]
fn merge_refuses_other_plans_and_machines_and_changes_nothing() {
    let a = record(1, &[(0, (vec![5, 6], 0))]);
    let refused = |change: fn(&mut Record)| {
        let (mut sum, mut other) = (a.clone(), a.clone());
        change(&mut other);
        let why = sum.merge(&other).unwrap_err();
        assert_eq!(sum, a, "a refused merge must change nothing");
        why
    };
    assert_eq!(refused(|r| r.plan.seed = 1), Incomparable::Plan);
    assert_eq!(refused(|r| r.plan.warm_up = Nanos(1)), Incomparable::Plan);
    let time = refused(|r| r.machine.time_domain = TimeDomain::Instructions);
    assert_eq!(time, Incomparable::TimeDomain("silicon", "instructions"));
    assert!(time.to_string().contains("not comparable"));
    let machine = |why| assert!(matches!(why, Incomparable::Machine(_)), "{why}");
    machine(refused(|r| r.machine.kernel = "9.9".to_owned()));
    machine(refused(|r| r.machine.cmdline = "nohz_full=1".to_owned()));
    machine(refused(|r| r.machine.preempt = Some("full".to_owned())));
    machine(refused(|r| r.machine.cpus = CpuList::from_iter([7])));
}

#[test]
fn merge_keeps_series_of_other_conditions_apart() {
    let a = record(1, &[(0, (vec![5, 6], 0))]);
    let mut b = a.clone();
    b.series[0].load = vec!["disk".to_owned()];
    assert_eq!(sum(&a, &b).series.len(), 2);
    assert_eq!(sum(&a, &a).series.len(), 1);
}

#[test]
fn distribution_that_takes_hours_to_correct_is_refused() {
    let hour = 3_600_000_000_000;
    let mut histogram = Histogram::new();
    for nth in 0..600 {
        histogram.record(Nanos(hour - nth * hour / 1_500));
    }
    let counts = Counts { recorded: 600, ..Counts::default() };
    let mut series = Series { interval: Some(Nanos::from_micros(1)), counts, ..Series::default() };
    series.set_histogram(&histogram);
    assert!(series.flaw(&mut 0).is_some_and(|flaw| flaw.contains("missed periods")));
    series.interval = Some(Nanos::from_millis(10));
    assert_eq!(series.flaw(&mut 0), None);
}

#[test]
fn truncated_record_is_reported_as_cut_short() {
    let text = text();
    for end in 1..text.len() - 2 {
        let said = Record::from_json(&text[..end]).unwrap_err().to_string();
        assert!(said.starts_with("the record is cut short at line "), "{said}");
        assert!(!said.contains('\n'), "{said}");
    }
}
