//! Tests of records that are refused: other schemas, and inconsistent parts.

use super::*;
use crate::path::{Path, Step};

#[test]
fn other_schemas_are_refused_before_anything_else_is_read() {
    let refused = |schema: u32| {
        let text = format!(r#"{{"schema": {schema}, "series": "of another kind"}}"#);
        Record::from_json(&text).unwrap_err().to_string()
    };
    let newer = "the record has schema 3, this latlab reads schema 2: use a newer latlab";
    assert_eq!(refused(3), newer);
    let older = "the record has schema 1, written by a latlab before its first release; this \
                 latlab reads schema 2 only: measure again";
    assert_eq!(refused(1), older);
    assert!(refused(0).starts_with("the record has schema 0, "), "{}", refused(0));
}

#[test]
fn record_with_a_wrong_histogram_is_refused() {
    let spoilt = |change: fn(&mut Record)| {
        let mut record = record(4, &[(0, (vec![1_000], 0)), (1, (vec![5, 7], 0))]);
        change(&mut record);
        Record::from_json(&record.to_json()).unwrap_err().to_string()
    };
    let said = spoilt(|r| r.series[1].hdr.truncate(20));
    assert!(said.starts_with("the record is damaged: series 1 (cyclic on CPU 1): "), "{said}");
    assert!(spoilt(|r| r.series[1].hdr.clear()).contains("its histogram is damaged"));
    let said = spoilt(|r| r.series[0].hdr = r.series[1].hdr.clone());
    assert!(said.ends_with("its histogram has 2 samples, but 1 were recorded"), "{said}");
    assert!(spoilt(|r| r.series[1].min = Nanos(8)).ends_with("above its maximum"));
}

#[test]
fn record_whose_figures_are_not_those_of_its_samples_is_refused() {
    let spoilt = |change: fn(&mut Record), why: &str| {
        let mut record = record(4, &[(0, (vec![1_000, 9_000_000, 70_000_000], 80))]);
        change(&mut record);
        let said = Record::from_json(&record.to_json()).unwrap_err().to_string();
        assert!(said.starts_with("the record is damaged: ") && said.ends_with(why), "{said}");
    };
    let of_histogram = "its minimum, its maximum or its sum is not that of its histogram";
    spoilt(|r| r.series[0].max = Nanos(700_000_000), of_histogram);
    spoilt(|r| r.series[0].max = Nanos(69_000_000), of_histogram);
    spoilt(|r| r.series[0].min = Nanos(1_001), of_histogram);
    spoilt(|r| r.series[0].sum = 80_000_000, of_histogram);
    spoilt(|r| r.series[0].sum *= 2, of_histogram);
    let derived = "its mean, its deviation or its quantiles are not those of its histogram";
    spoilt(|r| r.series[0].mean = Nanos(5_000_000_000_000), derived);
    spoilt(|r| r.series[0].stddev = Nanos(7), derived);
    spoilt(|r| r.series[0].quantiles.p90 = Nanos(9_000_000), derived);
    let corrected = "its corrected quantiles are not those of its histogram";
    spoilt(|r| r.series[0].corrected.p50 = Nanos(1), corrected);
    spoilt(|r| r.series[0].counts.below_zero = 4, "more samples came early than were recorded");
    let missed = "it missed more periods than pass in 500 years";
    spoilt(|r| r.series[0].counts.missed = 1 << 63, missed);
    let timeline = "its time line is above its maximum";
    spoilt(|r| r.series[0].timeline.record(Nanos(0), Nanos(70_000_001)), timeline);
    let above = "worst 0 (cyclic on CPU 0): it is above the maximum of its series";
    spoilt(|r| r.worst[0].latency = Nanos(70_000_001), above);
    let late = "worst 0 (cyclic on CPU 0): it is after the end of its series";
    spoilt(|r| r.worst[0].at = Nanos::from_secs(3_600), late);
}

/// A killed run leaves one, and its explanations go on meanwhile.
#[test]
fn unfinished_record_may_have_a_sample_after_its_series() {
    let mut record = record(4, &[(0, (vec![1_000], 0))]);
    record.worst[0].at = Nanos::from_secs(3_600);
    record.warnings.push(Warning::new(WarningCode::Unfinished, "the run had not ended"));
    assert_eq!(Record::from_json(&record.to_json()).unwrap(), record);
}

#[test]
fn long_value_is_repeated_in_part_and_its_place_is_named() {
    let record = record(4, &[]).to_json();
    let long = "x".repeat(1_000_000);
    let text =
        record.replacen("\"schema\": 2", &format!("\"schema\": 2, \"machine\": \"{long}\""), 1);
    let said = Record::from_json(&text).unwrap_err().to_string();
    assert!(said.chars().count() < 250 && said.contains("xxx… ("), "{said}");
    assert!(said.contains(" characters) at line 2 column "), "{said}");
}

#[test]
fn record_that_would_take_all_memory_or_time_is_refused() {
    let mut record = record(4, &[(0, (vec![1_000], 0))]);
    let refused = |record: &Record| Record::from_json(&record.to_json()).unwrap_err().to_string();
    let step = |depth| Step { function: "f".to_owned(), instructions: 1, depth };
    let path = Path { steps: vec![step(0), step(u32::MAX)], ..Path::default() };
    record.worst.push(Sample {
        at: Nanos(0),
        latency: Nanos(0),
        cpu: 0,
        index: None,
        probe: "cyclic".to_owned(),
        causes: Vec::new(),
        unexplained: None,
        path: Some(path),
    });
    let said = refused(&record);
    assert!(said.ends_with("a step of its path is deeper than any kernel stack"), "{said}");
    let path = record.worst.last_mut().unwrap().path.as_mut().unwrap();
    path.steps = vec![Step { instructions: u64::MAX, ..step(0) }, step(0)];
    let said = refused(&record);
    assert!(said.ends_with("its path takes longer than any run"), "{said}");
    record.worst.clear();
    record.series = vec![record.series[0].clone(); 10_001];
    let said = refused(&record);
    assert_eq!(said, "the record is damaged: series: it has 10001 series, more than 10000");
}

#[test]
fn record_with_an_inconsistent_scan_is_refused() {
    let spoilt = |change: fn(&mut Scan)| {
        let mut record = record(4, &[]);
        change(&mut record.scans[0]);
        Record::from_json(&record.to_json()).unwrap_err().to_string()
    };
    let said = spoilt(|scan| scan.points.reverse());
    let place = "the record is damaged: scan 0 (populate on CPU 1): ";
    assert_eq!(said, format!("{place}its points are not in order of time"));
    assert!(spoilt(|scan| scan.points[1].pdlt.max = Nanos(7)).ends_with("not in this order"));
    let upside_down = |scan: &mut Scan| {
        scan.points[0].irt = Some(Spread { min: Nanos(1), ..Spread::default() });
    };
    assert!(spoilt(upside_down).ends_with("not in this order"));
    assert!(spoilt(|scan| scan.duration.min = Nanos::MAX).ends_with("not in this order"));
    assert!(spoilt(|scan| scan.points[0].repeats = 0).ends_with("never measured"));
    assert!(spoilt(|scan| scan.sections[0].end = i64::MIN).ends_with("before it begins"));
    let said = spoilt(|scan| scan.sections.extend(scan.sections.clone()));
    assert!(said.ends_with("before the one before it ends"), "{said}");
}

#[test]
fn scan_may_have_equal_offsets_or_no_points() {
    let mut record = record(4, &[]);
    record.scans[0].points[1].offset = -1_000;
    assert_eq!(Record::from_json(&record.to_json()).unwrap(), record);
    record.scans[0].points.clear();
    assert_eq!(Record::from_json(&record.to_json()).unwrap(), record);
    assert_eq!(record.scans[0].detection_limit(), Nanos(50_002), "all of the call");
}
