//! Pictures of a study, each in the form that its paper uses: reduces records to lines and columns,
//! and to a table of their numbers.

mod distribution;
mod over;
mod time;

use super::curve::distribution as histogram;
use super::{COLOURS, Chart, ScannedCall, scan};
use crate::{grouped, micro, numbered, printable};
use latlab_core::histogram::Histogram;
use latlab_core::record::Record;
use latlab_core::study::Study;
use latlab_core::study::findings::Findings;
use latlab_core::study::picture::{Picture, PictureKind};
use latlab_core::timeline::Timeline;

/// A picture with measurements.
pub struct StudyPicture {
    /// Name of its files.
    pub name: String,
    /// The picture.
    pub chart: Chart,
    /// The figure of the paper that it reproduces, or nothing.
    pub source: String,
    /// Numbers that it shows.
    pub numbers: NumberTable,
}

/// A table with names in its first column and numbers in the others.
pub struct NumberTable {
    /// The names of its columns.
    pub header: Vec<String>,
    /// Its rows, each as long as the header.
    pub rows: Vec<Vec<String>>,
}

/// All samples of a figure in a cell.
struct Samples {
    name: String,
    /// Start and end of the measured time.
    span: String,
    colour: &'static str,
    histogram: Histogram,
    timeline: Timeline,
}

/// Returns the pictures of a study that have measurements.
pub fn pictures(
    study: &Study,
    findings: &Findings<'_>,
    records: &[Option<Vec<Record>>],
) -> Vec<StudyPicture> {
    let draw = |picture| draw(picture, study, findings, records);
    study.pictures.iter().filter_map(draw).collect()
}

fn draw(
    picture: &Picture,
    study: &Study,
    findings: &Findings<'_>,
    records: &[Option<Vec<Record>>],
) -> Option<StudyPicture> {
    let (mut chart, numbers) = match picture.kind {
        PictureKind::Cdf | PictureKind::Density | PictureKind::OverTime | PictureKind::Maximum => {
            samples_chart(picture, study, records)?
        }
        PictureKind::Bars | PictureKind::Curves => over::chart(picture, study, findings)?,
        PictureKind::Pdlt => scans_chart(picture, study, records)?,
    };
    chart.title = printable(&picture.title);
    // On the page, other elements have ids too.
    chart.name = format!("picture-{}", picture.name);
    Some(StudyPicture {
        name: picture.name.clone(),
        chart,
        source: picture.source.clone(),
        numbers,
    })
}

fn samples_chart(
    picture: &Picture,
    study: &Study,
    records: &[Option<Vec<Record>>],
) -> Option<(Chart, NumberTable)> {
    let samples = samples(picture, study, records);
    if samples.is_empty() {
        return None;
    }
    let chart = match picture.kind {
        PictureKind::Cdf => distribution::cdf(picture, &samples),
        PictureKind::Density => distribution::density(picture, &samples),
        PictureKind::Maximum => time::maximum(picture, &samples),
        _ => time::worst(picture, &samples),
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
    Some((chart, NumberTable { header, rows: samples.iter().map(row).collect() }))
}

/// Returns the samples of each cell and figure that has any, of all CPUs and repetitions together.
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

/// Returns the label of the axis of samples.
fn label(samples: &[Samples]) -> String {
    let first = &samples[0].span;
    let alike = samples.iter().all(|one| one.span == *first);
    printable(if alike { first } else { "latency" })
}

/// Returns distinct names of cells: their labels on the axes on which they differ.
fn cell_names(study: &Study, cells: &[usize]) -> Vec<String> {
    let labels: Vec<Vec<&str>> = cells.iter().map(|cell| study.labels(*cell)).collect();
    let differs = |axis: usize| labels.windows(2).any(|pair| pair[0][axis] != pair[1][axis]);
    let name = |labels: &Vec<&str>| {
        let distinct = labels.iter().enumerate().filter(|(axis, _)| differs(*axis));
        joined(&distinct.map(|(_, label)| *label).collect::<Vec<_>>())
    };
    labels.iter().map(name).collect()
}

/// Joins the words that are not empty with dots.
fn joined(words: &[&str]) -> String {
    let words = words.iter().copied().filter(|word| !word.is_empty());
    printable(&words.collect::<Vec<_>>().join(" · "))
}

fn scans_chart(
    picture: &Picture,
    study: &Study,
    records: &[Option<Vec<Record>>],
) -> Option<(Chart, NumberTable)> {
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
    let header = ["", "min PDLT", "max PDLT", "call", "sections", "longest section"];
    let mut rows = Vec::new();
    for (name, scan) in &scans {
        let pdlt = || scan.points.iter().map(|point| point.pdlt);
        let longest = scan.longest().map(|section| micro(section.length()));
        rows.push(vec![
            if name.is_empty() { picture.title.clone() } else { name.clone() },
            micro(pdlt().map(|spread| spread.min).min().unwrap_or_default()),
            micro(pdlt().map(|spread| spread.max).max().unwrap_or_default()),
            micro(scan.duration.median),
            grouped(u64::try_from(scan.sections.len()).unwrap_or(u64::MAX)),
            longest.unwrap_or_else(|| "–".to_owned()),
        ]);
    }
    let chart = scan::chart(picture.name.clone(), &ScannedCall { text: String::new(), scans });
    Some((chart, NumberTable { header: header.map(str::to_owned).into(), rows }))
}

#[cfg(test)]
mod tests;
