//! Tests of the pictures of studies.

#![expect(clippy::float_cmp, reason = "whole numbers are exact")]

use super::super::tests::source;
use super::super::{Look, Stroke, Unit};
use super::*;
use latlab_testing::sample_scan;

const STUDY: &str = r#"
title = "Two kernels"
paper = "Somebody 2001"
redoes = "figure 1"

[plan]
probes = ["cyclic"]
scans = ["populate"]
on = "lab:rt"

[[axis]]
name = "kernel"
each = [{ label = "old" }, { label = "new" }]

[[axis]]
name = "tasks"
each = [{ label = "n1" }, { label = "n9" }]

[[figure]]
name = "worst"
probe = "cyclic"

[[figure]]
name = "median"
probe = "cyclic"
take = "p50"

[[figure]]
name = "least"
probe = "cyclic"
take = "min"

[[figure]]
name = "samples"
probe = "cyclic"
take = "recorded"

[published]
"old.n1" = { median = "1 s" }
"old.n9" = { median = "below 2 s" }
"#;

/// Draws four records, with latencies multiplied by one to four.
fn drawn(picture: &str) -> Option<StudyPicture> {
    let study = format!("{STUDY}[[picture]]\nname = 'fig1'\ntitle = 'A picture'\n{picture}");
    let study = Study::read(&study).unwrap();
    let record = |times| {
        let mut record = source("", times).record;
        record.scans = sample_scan::scans();
        record.scans.truncate(1);
        Some(vec![record])
    };
    let records: Vec<Option<Vec<Record>>> = (1..=4).map(record).collect();
    pictures(&study, &study.findings(&records), &records).pop()
}

fn names(chart: &Chart) -> Vec<&str> {
    chart.lines.iter().map(|line| line.name.as_str()).collect()
}

#[test]
fn cdf_rises_from_zero_to_all() {
    for log in [false, true] {
        let text = format!("kind = 'cdf'\nfigures = ['worst']\ncells = ['*.n1']\nlog = {log}");
        let picture = drawn(&text).unwrap();
        assert_eq!(names(&picture.chart), ["old", "new"]);
        assert_eq!(picture.chart.title, "A picture");
        for line in &picture.chart.lines {
            let last = line.points[line.points.len() - 1];
            assert_eq!((line.points[0].1, last.0), (0.0, picture.chart.x.max));
            // On a linear axis the stall is off scale.
            assert!(if log { last.1 == 1.0 } else { last.1 > 0.999 && last.1 < 1.0 }, "{last:?}");
            let rising = line.points.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 <= w[1].1);
            assert!(rising, "{:?}", line.points);
        }
        assert_eq!(picture.numbers.rows.len(), 2);
        assert!(picture.numbers.rows.iter().all(|row| row.len() == picture.numbers.header.len()));
    }
}

#[test]
fn density_sums_to_one() {
    let text = "kind = 'density'\nfigures = ['median']\ncells = ['old.n1']\nlog = true";
    let picture = drawn(text).unwrap();
    assert_eq!(names(&picture.chart), ["median"], "a single cell has the name of its figure");
    let all: f64 = picture.chart.lines[0].points.iter().map(|point| point.1).sum();
    assert!((0.999..1.001).contains(&all), "{all}");
}

#[test]
fn number_of_points_is_independent_of_samples() {
    let mut histogram = Histogram::new();
    let mut random = 1_u64;
    for _ in 0..100_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        histogram.record(latlab_core::time::Nanos(1_000 + (random >> 40)));
    }
    for _ in 0..7 {
        histogram.add(&histogram.clone());
    }
    assert!(histogram.count() > 10_000_000);
    let samples = [Samples {
        name: String::new(),
        span: String::new(),
        colour: COLOURS[0],
        histogram,
        timeline: Timeline::new(),
    }];
    let study =
        format!("{STUDY}[[picture]]\nname = 'a'\ntitle = 'b'\nkind = 'cdf'\nfigures = ['worst']\n");
    let mut picture = Study::read(&study).unwrap().pictures.remove(0);
    for log in [false, true] {
        picture.log = log;
        for chart in
            [distribution::cdf(&picture, &samples), distribution::density(&picture, &samples)]
        {
            let points = chart.lines[0].points.len();
            assert!((20..1_500).contains(&points), "{points} {log}");
        }
    }
}

#[test]
fn time_line_has_worst_of_all_cpus() {
    let picture = drawn("kind = 'over-time'\nfigures = ['worst']\ncells = ['old.*']").unwrap();
    assert_eq!(names(&picture.chart), ["n1", "n9"]);
    let heights = |n: usize| picture.chart.lines[n].points.iter().map(|point| point.1);
    let (lowest, highest) =
        (|n| heights(n).fold(f64::MAX, f64::min), heights(0).fold(0.0, f64::max));
    assert!(lowest(1) > lowest(0));
    assert_eq!(highest, 2e9, "the stall is on one CPU only");
    assert!(picture.chart.y.max >= highest && picture.chart.y.min == 0.0);
}

#[test]
fn maximum_rises_to_the_worst_sample_and_lasts_to_the_end() {
    let text = |kind| format!("kind = '{kind}'\nfigures = ['worst']\ncells = ['old.*']");
    let worst = drawn(&text("over-time")).unwrap().chart;
    let maximum = drawn(&text("maximum")).unwrap().chart;
    for (line, all) in maximum.lines.iter().zip(&worst.lines) {
        assert!(line.points.windows(2).all(|pair| pair[0].1 <= pair[1].1));
        let highest = all.points.iter().map(|point| point.1).fold(0.0, f64::max);
        assert_eq!(line.points.last().unwrap().1, highest);
        assert_eq!(line.points.last().unwrap().0, all.points.last().unwrap().0);
    }
    assert!(!maximum.marks.peaks && worst.marks.peaks);
}

#[test]
fn bars_are_side_by_side_with_published_values() {
    let picture = drawn("kind = 'bars'\nfigures = ['median']\nalong = 'tasks'").unwrap();
    let columns = &picture.chart.marks.columns;
    let names: Vec<&str> = columns.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["old", "old · published", "new"]);
    assert_eq!((columns[1].look, columns[1].blocks.len()), (Look::Hollow, 1));
    assert_eq!(columns[1].blocks[0].y, (0.0, 1e9));
    assert_eq!(columns[1].blocks[0].x, columns[0].blocks[0].x);
    let (old, new) = (&columns[0].blocks, &columns[2].blocks);
    assert!(old[0].x.1 <= new[0].x.0 && new[0].x.1 <= old[1].x.0);
    assert!((new[0].y.1 / old[0].y.1 - 3.0).abs() < 0.01);
    assert_eq!(picture.chart.x.named[1], (1.0, "n9".to_owned()));
}

#[test]
fn stacked_bars_are_relative_to_sum_of_reference() {
    let text = "kind = 'bars'\nfigures = ['median', 'least']\nalong = 'tasks'\nstacked = true";
    let columns = drawn(&format!("{text}\nrelative_to = 'old'")).unwrap().chart.marks.columns;
    assert_eq!(columns.len(), 4);
    for place in [0, 1] {
        assert_eq!(columns[0].blocks[place].y.1, columns[1].blocks[place].y.0);
        assert!((columns[1].blocks[place].y.1 - 1.0).abs() < 1e-9, "the reference is 1");
    }
    assert!((columns[3].blocks[0].y.1 - 3.0).abs() < 0.01 && columns[3].look == Look::Faint);
}

#[test]
fn curves_go_through_their_positions() {
    let text = "kind = 'curves'\nfigures = ['median']\nalong = 'tasks'\nat = [1, 9]";
    let chart = drawn(text).unwrap().chart;
    assert_eq!(names(&chart), ["old", "old · published", "new"]);
    assert_eq!((chart.lines[1].stroke, chart.lines[1].points.len()), (Stroke::Dashed, 1));
    let places: Vec<f64> = chart.lines[2].points.iter().map(|point| point.0).collect();
    assert_eq!(places, [1.0, 9.0]);
    assert_eq!(chart.y.unit, Unit::Nanos);
    let chart = drawn(&format!("{text}\nrelative_to = 'old'")).unwrap().chart;
    assert_eq!(chart.y.unit, Unit::Number);
    assert!((chart.lines.last().unwrap().points[0].1 - 3.0).abs() < 0.01);
}

#[test]
fn scans_share_chart() {
    let picture = drawn("kind = 'pdlt'\ncells = ['*.n1']").unwrap();
    assert_eq!(picture.chart.marks.bars.len(), 2);
    assert!(picture.chart.lines[0].name.starts_with("old · PDLT"), "{:?}", names(&picture.chart));
    assert_eq!((picture.name.as_str(), picture.chart.name.as_str()), ("fig1", "picture-fig1"));
    assert_eq!(picture.numbers.rows[1][0], "new");
}

#[test]
fn pictures_without_measurements_are_not_drawn() {
    let text = format!(
        "{STUDY}[[picture]]\nname = 'a'\ntitle = 'b'\nkind = 'bars'\nfigures = ['worst']\nalong = 'tasks'\n"
    );
    let study = Study::read(&text).unwrap();
    let records = vec![None; 4];
    assert!(pictures(&study, &study.findings(&records), &records).is_empty());
}
