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
