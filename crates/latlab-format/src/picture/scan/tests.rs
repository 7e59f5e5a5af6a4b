//! Tests of the charts of scans, also of invalid records.

#![expect(clippy::float_cmp, reason = "whole microseconds are exact")]

use super::*;
use crate::picture::tests::rendered;
use crate::picture::tests::source;
use crate::svg;
use latlab_core::scan::{Section, Spread};
use latlab_testing::sample_scan;

/// Returns a record with some of the sample scans and without series.
fn scanned(name: &str, which: &[usize]) -> NamedRecord {
    let mut source = source(name, 1);
    source.record.series.clear();
    let scans = sample_scan::scans();
    source.record.scans = which.iter().map(|n| scans[*n].clone()).collect();
    source
}

fn only(sources: &[NamedRecord]) -> Chart {
    let mut charts = charts(sources);
    assert_eq!(charts.len(), 1);
    charts.remove(0)
}

#[test]
fn triangle_is_as_high_as_long() {
    let chart = only(&[scanned("run", &[0])]);
    assert_eq!(chart.title, "Latency of a task woken during populate:size=4MiB on standard");
    assert_eq!((chart.name.as_str(), chart.step), ("scan-populate", Step::None));
    let names: Vec<&str> = chart.lines.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names, ["PDLT min", "PDLT max", "IRT max"]);
    let at = |x: f64| chart.lines[0].points.iter().rfind(|point| point.0 <= x).unwrap().1;
    assert_eq!((at(-1.0), at(0.0), at(482.0)), (3.2, 485.2, 3.2));
    let within = chart.lines[0].points.iter().filter(|point| (0.0..482.0).contains(&point.0));
    assert!(within.clone().count() > 90);
    for (x, y) in within {
        assert!((x + y - 485.2).abs() < 0.001, "{x} {y}");
    }
    assert_eq!((chart.y.min, chart.y.max), (0.0, 500.0));
    assert!(chart.x.min < 0.0 && chart.x.max > 482.0);
}

#[test]
fn call_and_section_are_marked() {
    let chart = only(&[scanned("run", &[0])]);
    assert_eq!(chart.marks.bars[0].end, 482.0);
    let area = &chart.marks.areas[0];
    assert_eq!((area.from, area.to), ((0.0, 485.2), (482.0, 3.2)));
    assert_eq!(area.name, "clear_huge_page");
    let both = only(&[scanned("run", &[0, 1])]);
    let bars: Vec<usize> = both.marks.areas.iter().map(|area| area.bar).collect();
    assert_eq!(bars, [0, 1, 1, 1, 1]);
}

#[test]
fn kernels_share_chart_with_distinct_names() {
    let chart = only(&[scanned("a", &[0, 1]), scanned("b", &[2])]);
    let names: Vec<&str> = chart.lines.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names[..2], ["standard · PDLT min", "standard · PDLT max"]);
    assert_eq!((names.len(), names[8]), (9, "rt · IRT max"));
    assert_eq!(chart.marks.bars.len(), 3);
    let of = |sources: &[NamedRecord]| -> Vec<String> {
        calls(sources)[0].scans.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(of(&[scanned("a", &[0]), scanned("b", &[0])]), ["a", "b"]);
    assert_eq!(
        of(&[scanned("a", &[0, 2]), scanned("b", &[0])]),
        ["standard · a", "rt · a", "standard · b"]
    );
    assert_eq!(of(&[scanned("a", &[0, 0])]), ["", "(2)"]);
}

#[test]
fn calls_have_separate_charts() {
    let mut source = scanned("run", &[0, 0, 0]);
    source.record.scans[1].call.params.insert("size".to_owned(), (1 << 20).into());
    source.record.scans[2].call.name = "../x y".to_owned();
    let charts = charts(&[source]);
    let names: Vec<&str> = charts.iter().map(|chart| chart.name.as_str()).collect();
    assert_eq!(names, ["scan-populate", "scan-populate.2", "scan----x-y"]);
    assert!(charts[1].title.contains("populate:size=1MiB on"));
}

#[test]
fn scans_above_limit_are_left_out_and_counted() {
    let chart = only(&[scanned("run", &[2; 30])]);
    assert_eq!((chart.marks.bars.len(), chart.lines.len()), (MOST, 3 * MOST));
    assert!(chart.title.ends_with("populate:size=4MiB, 24 of 30 scans"), "{}", chart.title);
}

#[test]
fn outlier_is_off_scale() {
    let mut source = scanned("run", &[2]);
    source.record.scans[0].points[50].pdlt.max = Nanos::from_millis(7);
    let chart = only(&[source]);
    assert_eq!(chart.y.label, "PDLT, IRT (max 7 ms, off scale)");
    assert!(chart.y.max > 3.8 && chart.y.max < 12.0, "{}", chart.y.max);
    assert_eq!(chart.lines[1].points[50].1, 7_000.0);
}

#[test]
fn series_of_scan_have_no_other_chart() {
    let mut source = source("run", 1);
    source.record.scans = sample_scan::scans();
    for series in &mut source.record.series[1..] {
        series.probe = "scan.populate".to_owned();
    }
    let drawn = crate::picture::charts(&[source]);
    let lines: Vec<(&str, usize)> =
        drawn.iter().map(|chart| (chart.name.as_str(), chart.lines.len())).collect();
    let rest = [("histogram", 1), ("ccdf", 1), ("timeline", 1), ("scan-populate", 12)];
    assert_eq!(lines, rest);
}

#[test]
fn invalid_scan_is_drawn_without_panic() {
    let one = sample_scan::scans().swap_remove(0);
    let section = |start, end| Section { start, end, peak: Nanos::MAX, function: None, nth: None };
    let most = Spread { min: Nanos(0), median: Nanos(0), max: Nanos::MAX };
    let changes: [&dyn Fn(&mut Scan); 6] = [
        &|scan| scan.points.clear(),
        &|scan| scan.points.truncate(1),
        &|scan| scan.points[0].offset = Offset::MIN,
        &|scan| {
            scan.points.iter_mut().for_each(|point| point.offset = Offset::MAX);
            scan.duration = Spread::default();
        },
        &|scan| {
            scan.sections = (0..50_000).map(|n| section(n, n)).collect();
            scan.sections.extend([section(Offset::MIN, -1), section(Offset::MAX, Offset::MAX)]);
        },
        &|scan| {
            (scan.duration, scan.baseline) = (most, Nanos::MAX);
            scan.points.iter_mut().for_each(|point| point.pdlt = most);
        },
    ];
    for change in changes {
        let mut source = scanned("run", &[]);
        source.record.scans = vec![one.clone()];
        change(&mut source.record.scans[0]);
        for chart in charts(&[source]) {
            assert!(chart.x.min < chart.x.max && chart.y.max > 0.0, "{chart:?}");
            assert!(rendered(&svg::draw(&chart)).width() > 0);
        }
    }
}
