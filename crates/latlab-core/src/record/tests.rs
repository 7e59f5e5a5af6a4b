//! Records are read whole or refused, and merge without loss.

use super::*;
use crate::compare::compare;
use crate::cpulist::CpuList;
use crate::machine::TimeDomain;
use crate::plan::{Length, Part};
use crate::scan::{Interrupt, Point, Region, Spread};
use proptest::prelude::*;
use serde_json::Value;

fn plan() -> Plan {
    let length = Length::For(Nanos::from_secs(1));
    Plan {
        probes: vec![Part { name: "cyclic".to_owned(), params: serde_json::Map::new() }],
        ..Plan::bare("native", CpuList::from_iter([0, 1]), length)
    }
}

/// What was seen on one CPU: latencies and missed periods.
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
        // What follows from the histogram is put in below.
        ..Series::default()
    };
    series.set_histogram(&histogram);
    series
}

/// A scan of two points and one region.
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
        regions: vec![Region {
            start: 1_000,
            end: 50_000,
            peak: Nanos(52_200),
            function: None,
            nth: None,
        }],
        parts: Vec::new(),
    }
}

/// A record of these CPUs, in which all that merges has something in it.
fn record(started: u64, seen: &[(u32, Seen)]) -> Record {
    let series: Vec<Series> = seen.iter().map(|(cpu, seen)| series(*cpu, seen)).collect();
    let late = |series: &Series| Sample {
        probe: series.probe.clone(),
        cpu: series.cpu,
        at: Nanos(started),
        latency: series.max,
        nth: None,
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
        basis: None,
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
        work: vec![Work {
            load: load.to_owned(),
            unit: "units".to_owned(),
            done: started,
            cpu_ns: Nanos(started),
        }],
        changes: Vec::new(),
        warnings: vec![Warning::new("code", format!("number {}", started % 3))],
    }
}

fn sum(a: &Record, b: &Record) -> Record {
    let mut sum = a.clone();
    sum.merge(b).expect("they are of one kind");
    sum
}

/// Some latencies on some CPUs, up to above the largest that has a bucket.
fn records() -> impl Strategy<Value = Record> {
    let latencies = prop::collection::vec(0u64..5_000_000_000_000, 0..6);
    let cpus = prop::collection::btree_map(0u32..4, (latencies, 0u64..1_000), 0..4);
    (0u64..10, cpus).prop_map(|(started, cpus)| record(started, &Vec::from_iter(cpus)))
}

/// A text that is a record, with something in every list.
fn text() -> String {
    record(4, &[(0, (vec![1_000, 9_000_000], 8)), (1, (vec![5], 0))]).to_json()
}

proptest! {
    // Each case makes dozens of histograms of a quarter of a megabyte.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn merging_is_associative(a in records(), b in records(), c in records()) {
        prop_assert_eq!(sum(&sum(&a, &b), &c), sum(&a, &sum(&b, &c)));
    }

    #[test]
    fn merging_loses_nothing(a in records(), b in records()) {
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
    fn what_is_written_is_read(a in records(), b in records()) {
        let both = sum(&a, &b);
        prop_assert_eq!(Record::from_json(&both.to_json()).unwrap(), both);
    }

    #[test]
    fn a_record_cut_short_is_said_to_be(share in 0.0..1.0f64) {
        let text = text();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss,
                 reason = "any place in the text will do")]
        let end = ((text.len() - 2) as f64 * share) as usize;
        let said = Record::from_json(&text[..end]).unwrap_err().to_string();
        prop_assert!(!said.contains('\n'));
        prop_assert_eq!(said.starts_with("the record is cut short at line "), end > 0, "{}", said);
    }

    /// Whatever is done to a record's text: it is refused in one sentence, or it is a record that
    /// all the rest can work with.
    #[test]
    fn a_spoilt_record_harms_nobody(
        spoils in prop::collection::vec((any::<prop::sample::Index>(), 0usize..30, "[ -~]{0,20}|[0-9]{1,25}|-|\"|\\]|\\}"), 1..4)
    ) {
        let mut text = text();
        for (place, len, with) in spoils {
            let start = place.index(text.len());
            let end = (start + len).min(text.len());
            text.replace_range(start..end, &with);
        }
        survives(&text);
    }

    /// As above, for what still is JSON: one number becomes another.
    #[test]
    fn another_number_harms_nobody(place in any::<prop::sample::Index>(), number in any_number()) {
        let mut value: Value = serde_json::from_str(&text()).unwrap();
        let mut paths = Vec::new();
        numbers(&value, String::new(), &mut paths);
        let path = &paths[place.index(paths.len())];
        *value.pointer_mut(path).expect("it was just found") = Value::Number(number);
        survives(&value.to_string());
    }
}

fn any_number() -> impl Strategy<Value = serde_json::Number> {
    let signed = prop_oneof![Just(i64::MIN), Just(i64::MAX), any::<i64>(), -10_000i64..10_000];
    prop_oneof![Just(u64::MAX).prop_map(Into::into), signed.prop_map(Into::into)]
}

/// The JSON pointers of all numbers.
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

/// Reads a text and, where it is a record, does with it all that is done with records.
fn survives(text: &str) {
    match Record::from_json(text) {
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
        Ok(record) => {
            let _ = compare(std::slice::from_ref(&record), std::slice::from_ref(&record));
            for scan in &record.scans {
                let _ = (scan.longest(), scan.longest_unseen());
            }
            let both = sum(&record, &record);
            assert!(both.series.iter().all(|series| series.timeline.points().count() <= 1024));
            let _ = compare(std::slice::from_ref(&both), std::slice::from_ref(&record));
            assert_eq!(Record::from_json(&record.to_json()).unwrap(), record);
        }
    }
}

#[test]
fn what_is_of_another_kind_is_refused_and_nothing_is_merged() {
    let a = record(1, &[(0, (vec![5, 6], 0))]);
    let refused = |change: fn(&mut Record)| {
        let (mut sum, mut other) = (a.clone(), a.clone());
        change(&mut other);
        let why = sum.merge(&other).unwrap_err();
        assert_eq!(sum, a, "a refusal leaves it as it was");
        why
    };
    assert_eq!(refused(|r| r.plan.seed = 1), Incomparable::Plan);
    assert_eq!(refused(|r| r.plan.warm_up = Nanos(1)), Incomparable::Plan);
    let time = refused(|r| r.machine.time_domain = TimeDomain::Instructions);
    assert_eq!(time, Incomparable::TimeDomain("silicon", "instructions"));
    assert!(time.to_string().contains("not the same thing"));
    let machine = |why| assert!(matches!(why, Incomparable::Machine(_)), "{why}");
    machine(refused(|r| r.machine.kernel = "9.9".to_owned()));
    machine(refused(|r| r.machine.cmdline = "nohz_full=1".to_owned()));
    machine(refused(|r| r.machine.preempt = Some("full".to_owned())));
    machine(refused(|r| r.machine.cpus = CpuList::from_iter([7])));
}

#[test]
fn series_of_other_conditions_stand_side_by_side() {
    let a = record(1, &[(0, (vec![5, 6], 0))]);
    let mut b = a.clone();
    b.series[0].load = vec!["disk".to_owned()];
    assert_eq!(sum(&a, &b).series.len(), 2);
    assert_eq!(sum(&a, &a).series.len(), 1);
}

#[test]
fn a_newer_schema_is_refused_whatever_else_it_has() {
    let newer = r#"{"schema": 2, "series": "of another kind"}"#;
    let said = Record::from_json(newer).unwrap_err().to_string();
    assert_eq!(said, "the record has schema 2, this latlab reads up to 1: use a newer latlab");
}

#[test]
fn a_histogram_that_can_not_be_the_one_is_refused() {
    let spoilt = |change: fn(&mut Record)| {
        let mut record = record(4, &[(0, (vec![1_000], 0)), (1, (vec![5, 7], 0))]);
        change(&mut record);
        Record::from_json(&record.to_json()).unwrap_err().to_string()
    };
    let said = spoilt(|r| r.series[1].hdr.truncate(20));
    assert!(said.starts_with("the record is damaged: series 1 (cyclic on CPU 1): "), "{said}");
    assert!(spoilt(|r| r.series[1].hdr.clear()).contains("its histogram is damaged"));
    let said = spoilt(|r| r.series[0].hdr = r.series[1].hdr.clone());
    assert!(said.ends_with("its histogram holds 2 samples, 1 were recorded"), "{said}");
    assert!(spoilt(|r| r.series[1].min = Nanos(8)).ends_with("above its maximum"));
}

#[test]
fn a_scan_that_can_not_be_is_refused() {
    let spoilt = |change: fn(&mut Scan)| {
        let mut record = record(4, &[]);
        change(&mut record.scans[0]);
        Record::from_json(&record.to_json()).unwrap_err().to_string()
    };
    let said = spoilt(|scan| scan.points.reverse());
    let place = "the record is damaged: scan 0 (populate on CPU 1): ";
    assert_eq!(said, format!("{place}its points are not in their order"));
    assert!(spoilt(|scan| scan.points[1].pdlt.max = Nanos(7)).ends_with("not in this order"));
    let upside_down = |scan: &mut Scan| {
        scan.points[0].irt = Some(Spread { min: Nanos(1), ..Spread::default() });
    };
    assert!(spoilt(upside_down).ends_with("not in this order"));
    assert!(spoilt(|scan| scan.duration.min = Nanos::MAX).ends_with("not in this order"));
    assert!(spoilt(|scan| scan.points[0].repeats = 0).ends_with("never measured"));
    assert!(spoilt(|scan| scan.regions[0].end = i64::MIN).ends_with("before it begins"));
    let said = spoilt(|scan| scan.regions.extend(scan.regions.clone()));
    assert!(said.ends_with("before the one before it ends"), "{said}");
}

#[test]
fn points_at_one_moment_and_no_points_at_all_are_a_scan() {
    let mut record = record(4, &[]);
    record.scans[0].points[1].offset = -1_000;
    assert_eq!(Record::from_json(&record.to_json()).unwrap(), record);
    record.scans[0].points.clear();
    assert_eq!(Record::from_json(&record.to_json()).unwrap(), record);
    assert_eq!(record.scans[0].longest_unseen(), Nanos(50_002), "all of the call");
}
