//! The pictures that a study asks for, each in the form that its paper has: records in, lines and
//! columns out, and the numbers that they show.

mod distribution;
mod over;
mod time;

use super::curve::distribution as histogram;
use super::{COLOURS, Call, Chart, scan};
use crate::format::{grouped, micro, numbered, printable};
use latlab_core::histogram::Histogram;
use latlab_core::record::Record;
use latlab_core::study::Study;
use latlab_core::study::findings::Findings;
use latlab_core::study::picture::{Kind, Picture};
use latlab_core::timeline::Timeline;

/// A picture of which something was measured.
pub(crate) struct Pictured {
    /// What its files are called.
    pub(crate) name: String,
    pub(crate) chart: Chart,
    /// Which figure of the paper it redoes, where that is said.
    pub(crate) source: String,
    /// What it shows, in numbers.
    pub(crate) numbers: Numbers,
}

/// A table with names in its first column and numbers in the others.
pub(crate) struct Numbers {
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// All samples that a figure is taken of in a cell.
struct Samples {
    name: String,
    /// From when to when they last.
    span: String,
    colour: &'static str,
    histogram: Histogram,
    timeline: Timeline,
}

/// The pictures of a study; none of what was not measured.
pub(crate) fn pictures(
    study: &Study,
    findings: &Findings<'_>,
    records: &[Option<Vec<Record>>],
) -> Vec<Pictured> {
    let of = |picture| of(picture, study, findings, records);
    study.pictures.iter().filter_map(of).collect()
}

fn of(
    picture: &Picture,
    study: &Study,
    findings: &Findings<'_>,
    records: &[Option<Vec<Record>>],
) -> Option<Pictured> {
    let (mut chart, numbers) = match picture.kind {
        Kind::Cdf | Kind::Density | Kind::OverTime => of_samples(picture, study, records)?,
        Kind::Bars | Kind::Curves => over::chart(picture, study, findings)?,
        Kind::Pdlt => of_scans(picture, study, records)?,
    };
    chart.title = printable(&picture.title);
    // On a page that has other places, too.
    chart.name = format!("picture-{}", picture.name);
    Some(Pictured { name: picture.name.clone(), chart, source: picture.source.clone(), numbers })
}

fn of_samples(
    picture: &Picture,
    study: &Study,
    records: &[Option<Vec<Record>>],
) -> Option<(Chart, Numbers)> {
    let samples = samples(picture, study, records);
    if samples.is_empty() {
        return None;
    }
    let chart = match picture.kind {
        Kind::Cdf => distribution::cdf(picture, &samples),
        Kind::Density => distribution::density(picture, &samples),
        _ => time::chart(picture, &samples),
    };
    let header = ["", "samples", "min", "p50", "p90", "p99", "p99.9", "max"];
    let row = |one: &Samples| {
        let quantiles = one.histogram.quantiles();
        let shares = [quantiles.p50, quantiles.p90, quantiles.p99, quantiles.p99_9];
        let mut row = vec![one.name.clone(), grouped(one.histogram.count())];
        row.push(micro(one.histogram.min()));
        row.extend(shares.map(micro));
        row.push(micro(one.histogram.max()));
        row
    };
    let header = header.map(str::to_owned).into();
    Some((chart, Numbers { header, rows: samples.iter().map(row).collect() }))
}

/// What a picture shows of each cell and figure that has samples: all CPUs and repetitions together.
fn samples(picture: &Picture, study: &Study, records: &[Option<Vec<Record>>]) -> Vec<Samples> {
    let names = cell_names(study, &picture.cells);
    let mut all = Vec::new();
    for (cell, name) in picture.cells.iter().zip(names) {
        for figure in picture.figures.iter().map(|figure| &study.figures[*figure]) {
            let (mut whole, mut timeline) = (Histogram::new(), Timeline::new());
            let mut span = String::new();
            for record in records.get(*cell).into_iter().flatten().flatten() {
                for series in figure.series(record) {
                    span = format!("{} → {}", series.span.0, series.span.1);
                    whole.add(&histogram(series));
                    timeline.merge(&series.timeline);
                }
            }
            if whole.count() == 0 {
                continue;
            }
            let several = picture.figures.len() > 1 || name.is_empty();
            let name = joined(&[&name, if several { &figure.title } else { "" }]);
            let colour = COLOURS[all.len() % COLOURS.len()];
            all.push(Samples { name, span, colour, histogram: whole, timeline });
        }
    }
    all
}

/// What an axis of samples is called.
fn label(samples: &[Samples]) -> String {
    let first = &samples[0].span;
    let alike = samples.iter().all(|one| one.span == *first);
    printable(if alike { first } else { "latency" })
}

/// What tells cells apart: their labels on the axes on which they differ.
fn cell_names(study: &Study, cells: &[usize]) -> Vec<String> {
    let labels: Vec<Vec<&str>> = cells.iter().map(|cell| study.labels(*cell)).collect();
    let differs = |axis: usize| labels.windows(2).any(|pair| pair[0][axis] != pair[1][axis]);
    let name = |labels: &Vec<&str>| {
        let telling = labels.iter().enumerate().filter(|(axis, _)| differs(*axis));
        joined(&telling.map(|(_, label)| *label).collect::<Vec<_>>())
    };
    labels.iter().map(name).collect()
}

/// Those of the words that say something, with dots between.
fn joined(words: &[&str]) -> String {
    let words = words.iter().copied().filter(|word| !word.is_empty());
    printable(&words.collect::<Vec<_>>().join(" · "))
}

fn of_scans(
    picture: &Picture,
    study: &Study,
    records: &[Option<Vec<Record>>],
) -> Option<(Chart, Numbers)> {
    let mut scans = Vec::new();
    for (cell, name) in picture.cells.iter().zip(cell_names(study, &picture.cells)) {
        let of_cell = records.get(*cell).into_iter().flatten().flatten();
        let of_cell = of_cell.flat_map(|record| &record.scans);
        scans.extend(
            of_cell.filter(|scan| !scan.points.is_empty()).map(|scan| (name.clone(), scan)),
        );
    }
    if scans.is_empty() {
        return None;
    }
    let names = numbered(scans.iter().map(|(name, _)| name.clone()));
    let scans: Vec<_> = names.into_iter().zip(scans.into_iter().map(|(_, scan)| scan)).collect();
    let header = ["", "shortest PDLT", "longest PDLT", "call", "triangles", "longest of them"];
    let mut rows = Vec::new();
    for (name, scan) in &scans {
        let pdlt = || scan.points.iter().map(|point| point.pdlt);
        let longest = scan.longest().map(|region| micro(region.length()));
        rows.push(vec![
            if name.is_empty() { picture.title.clone() } else { name.clone() },
            micro(pdlt().map(|spread| spread.min).min().unwrap_or_default()),
            micro(pdlt().map(|spread| spread.max).max().unwrap_or_default()),
            micro(scan.duration.median),
            grouped(u64::try_from(scan.regions.len()).unwrap_or(u64::MAX)),
            longest.unwrap_or_else(|| "–".to_owned()),
        ]);
    }
    let chart = scan::chart(picture.name.clone(), &Call { text: String::new(), scans });
    Some((chart, Numbers { header: header.map(str::to_owned).into(), rows }))
}

#[cfg(test)]
mod tests;
