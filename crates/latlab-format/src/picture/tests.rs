//! Tests: charts show the numbers of the records.

#![expect(clippy::float_cmp, reason = "whole numbers and powers of ten are exact")]

use super::axis::real;
use super::histogram::bin_of;
use super::*;
use latlab_core::histogram::Histogram;
use latlab_core::record::Counts;
use latlab_core::time::Nanos;
use latlab_core::timeline::Timeline;
use latlab_testing::sample;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// Returns a record under a name, with latencies multiplied by `times`.
pub fn source(name: &str, times: u64) -> NamedRecord {
    NamedRecord::from_run(name.to_owned(), sample::record(times))
}

/// An SVG file that latlab has written, drawn.
pub fn rendered(svg: &str) -> Pixmap {
    let tree = Tree::from_str(svg, &Options::default()).expect("it is valid");
    let size = tree.size().to_int_size();
    let mut pixels = Pixmap::new(size.width(), size.height()).expect("it is not empty");
    resvg::render(&tree, Transform::default(), &mut pixels.as_mut());
    pixels
}

fn chart(sources: &[NamedRecord], name: &str) -> Chart {
    let mut charts = charts(sources).into_iter();
    charts.find(|chart| chart.name == name).unwrap()
}

#[test]
fn histogram_holds_every_sample() {
    let sources = [source("run", 1)];
    let chart = chart(&sources, "histogram");
    for (line, series) in chart.lines.iter().zip(&sources[0].record.series) {
        let drawn: f64 = line.points.iter().map(|p| p.1.floor()).sum();
        assert_eq!(drawn, real(series.counts.recorded));
        let rising = line.points.windows(2).all(|w| w[0].0 <= w[1].0);
        assert!(rising, "{:?}", line.points);
    }
}

#[test]
fn single_stall_is_visible_in_every_chart() {
    let sources = [source("run", 1)];
    let (_, stall) = sample::STALLED;
    let histogram = chart(&sources, "histogram");
    let bar = histogram.lines[1].points.iter().rfind(|p| p.1 >= 1.0);
    let (from, count) = *bar.unwrap();
    assert!(from <= real(stall.0) && from * 1.06 > real(stall.0) && count == 1.0);
    let ccdf = chart(&sources, "ccdf");
    let (latency, share) = *ccdf.lines[1].points.last().unwrap();
    assert!(latency > real(stall.0) * 0.999 && share < 1e-4);
    let timeline = chart(&sources, "timeline");
    let worst = timeline.lines[1].points.iter().find(|p| p.1 == real(stall.0));
    assert!((10.9..11.1).contains(&worst.unwrap().0));
}

#[test]
fn corrected_line_exists_only_for_missed_periods() {
    let ccdf = chart(&[source("run", 1)], "ccdf");
    let dashed: Vec<&ChartLine> =
        ccdf.lines.iter().filter(|line| line.stroke == Stroke::Dashed).collect();
    assert_eq!(dashed.len(), 1);
    assert_eq!(dashed[0].name, "cyclic · CPU 1 · corrected");
    let long = dashed[0].points.iter().rfind(|p| p.0 < 1e9).unwrap();
    assert!(long.1 > 0.04, "for 1 s of 20 s, latency was above 1 s");
}

#[test]
fn ccdf_falls_from_all_samples_to_the_last() {
    for line in chart(&[source("run", 1)], "ccdf").lines {
        assert_eq!(line.points[0].1, 1.0);
        assert!(line.points.windows(2).all(|w| w[0].1 > w[1].1));
        assert!(line.points.len() > 50 && line.points.len() < 1_500);
    }
}

#[test]
fn line_names_contain_only_differences() {
    let mut after = source("after", 2);
    after.record.series[2].load.clear();
    assert_eq!(names(&[source("run", 1)])[2], "cyclic · CPU 2");
    let names = names(&[source("before", 1), after]);
    assert_eq!(names[0], "before · cyclic · CPU 0 · disk");
    assert_eq!(names[5], "after · cyclic · CPU 2 · no load");
    let twins = [source("run", 1), source("run", 1)];
    assert_eq!(super::names(&twins)[3], "run · cyclic · CPU 0 (2)");
}

#[test]
fn line_names_contain_intervals_and_policies_that_differ_within_a_record() {
    let mut two = source("run", 1);
    two.record.series[1].interval = Some(Nanos::from_micros(200));
    assert_eq!(names(&[two])[1], "cyclic, every 200 µs · CPU 1");
    let mut two = source("run", 1);
    two.record.series[1].schedule.priority = 10;
    assert_eq!(names(&[two])[..2], ["cyclic, fifo 90 · CPU 0", "cyclic, fifo 10 · CPU 1"]);
}

#[test]
fn bin_contains_latency_and_adjoins_next_bin() {
    for latency in (1..5_000).chain([1 << 40, 1_000_000, 999_999_999]) {
        let (start, end) = bin_of(Nanos(latency));
        assert!(start <= latency && latency < end, "{start} {latency} {end}");
        assert_eq!(bin_of(Nanos(start)), (start, end));
    }
    assert_eq!(bin_of(Nanos(0)), bin_of(Nanos(1)));
}

#[test]
fn axes_end_at_powers_of_ten_around_data() {
    let chart = chart(&[source("run", 1)], "histogram");
    assert_eq!((chart.x.min, chart.x.max), (1e3, 1e10));
    assert_eq!(chart.y.max, 1e4);
}

/// A run of one sample, and runs of equal ones: all of their samples are in one bucket.
#[test]
fn equal_samples_have_axes_with_an_extent() {
    for (count, latency) in [(1, 7_000), (1, 1), (1, 0), (500, 7_000)] {
        let mut source = source("run", 1);
        for series in &mut source.record.series {
            let mut histogram = Histogram::new();
            (0..count).for_each(|_| histogram.record(Nanos(latency)));
            series.counts = Counts { recorded: count, ..Counts::default() };
            series.set_histogram(&histogram);
        }
        for chart in charts(&[source]) {
            for axis in [&chart.x, &chart.y] {
                assert!(axis.min < axis.max, "{}: {axis:?}", chart.name);
                let ends = [axis.min, axis.max].map(|end| axis.share(end));
                assert_eq!(ends, [0.0, 1.0], "{}: {axis:?}", chart.name);
            }
        }
    }
}

/// Records of `latlab watch` have distributions, but no time line.
#[test]
fn series_without_a_time_line_are_not_drawn_over_time() {
    let mut source = source("loop", 1);
    let drawn = |sources: &[NamedRecord]| -> Vec<String> {
        charts(sources).into_iter().map(|chart| chart.name).collect()
    };
    source.record.series[0].timeline = Timeline::default();
    let sources = [source];
    assert_eq!(drawn(&sources), ["histogram", "ccdf", "timeline"], "two of three have one");
    let [mut source] = sources;
    source.record.series.iter_mut().for_each(|series| series.timeline = Timeline::default());
    assert_eq!(drawn(&[source]), ["histogram", "ccdf"]);
}

#[test]
fn series_without_samples_has_no_chart() {
    let mut source = source("run", 1);
    source.record.series.truncate(1);
    source.record.series[0].counts.recorded = 0;
    assert!(charts(&[source]).is_empty());
}
