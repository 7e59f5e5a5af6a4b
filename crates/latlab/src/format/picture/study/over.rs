//! Figures over the labels of an axis: as bars and as curves, with what the paper printed.

mod rows;
mod shapes;

use self::rows::{Row, rows};
use self::shapes::{beside, curves, stacked};
use super::super::axis::{decade_above, decade_below, real, round_above};
use super::super::{Axis, Chart, Look, Marks, Step, Stroke, Unit};
use super::Numbers;
use crate::format::study::shown;
use latlab_core::study::Study;
use latlab_core::study::findings::Findings;
use latlab_core::study::picture::{Kind, Over, Picture};
use latlab_core::study::quantity::Quantity;
use std::fmt::Write as _;

/// Bars or curves, and their numbers; nothing where nothing was measured.
pub(super) fn chart(
    picture: &Picture,
    study: &Study,
    findings: &Findings<'_>,
) -> Option<(Chart, Numbers)> {
    let over = picture.over.as_ref()?;
    let rows = rows(picture, over, study, findings);
    let measured = rows.iter().flat_map(|row| &row.values).any(|(value, _)| value.is_some());
    if !measured {
        return None;
    }
    let y = values(picture, over, study, &rows);
    let (mut lines, mut marks) = (Vec::new(), Marks::default());
    match picture.kind {
        Kind::Bars if over.stacked => marks.columns = stacked(&rows, over, picture.figures.len()),
        Kind::Bars => marks.columns = beside(&rows, &y),
        _ => lines = curves(&rows, over, &y),
    }
    let mut about = String::new();
    if let Some((_, label)) = &over.relative_to {
        let _ = write!(about, "Divided by what {label} has. ");
    }
    let printed = lines.iter().any(|line| line.stroke == Stroke::Dashed)
        || marks.columns.iter().any(|columns| columns.look == Look::Hollow);
    about += match (printed, picture.kind) {
        (true, Kind::Bars) => "Full: measured; outlines: as the paper printed it.",
        (true, _) => "Solid: measured; dashed: as the paper printed it.",
        (false, _) => "As measured.",
    };
    let chart = Chart {
        name: picture.name.clone(),
        title: String::new(),
        about,
        x: labels(over, study, picture.kind),
        y,
        step: Step::None,
        lines,
        marks,
    };
    Some((chart, numbers(&rows, over, study)))
}

/// Where the labels stand.
fn labels(over: &Over, study: &Study, kind: Kind) -> Axis {
    let label = study.axes[over.axis].clone();
    if let (Some(at), Kind::Curves) = (&over.at, kind) {
        let (first, last) = (at[0], at[at.len() - 1]);
        let max = if last > first { last } else { first + 1.0 };
        return Axis {
            label,
            unit: Unit::Number,
            log: false,
            min: first.min(0.0),
            max,
            named: Vec::new(),
        };
    }
    let named: Vec<(f64, String)> = places(over).into_iter().zip(over.labels.clone()).collect();
    let max = real(named.len() as u64) - 0.5;
    Axis { label, unit: Unit::Number, log: false, min: -0.5, max, named }
}

/// Where each label stands.
fn places(over: &Over) -> Vec<f64> {
    over.at.clone().unwrap_or_else(|| (0..over.labels.len() as u64).map(real).collect())
}

/// The axis of the values.
fn values(picture: &Picture, over: &Over, study: &Study, rows: &[Row]) -> Axis {
    let figure = &study.figures[picture.figures[0]];
    let unit = match figure.kind() {
        1 if over.relative_to.is_none() => Unit::Nanos,
        _ => Unit::Number,
    };
    let mut label = match picture.figures.as_slice() {
        [_] => figure.title.clone(),
        _ if unit == Unit::Nanos => "time".to_owned(),
        _ => String::new(),
    };
    if let Some((_, reference)) = &over.relative_to {
        let _ = write!(label, " relative to {reference}");
    }
    let of = |row: &Row| -> Vec<f64> {
        let values = row.values.iter().flat_map(|(value, printed)| {
            [value.map(|value| value.value), printed.filter(|_| !over.stacked)]
        });
        values.flatten().collect()
    };
    let heights: Vec<f64> = if over.stacked {
        sums(rows, over, picture.figures.len())
    } else {
        rows.iter().flat_map(of).collect()
    };
    let highest = heights.iter().copied().fold(0.0, f64::max);
    let least = heights.iter().copied().filter(|value| *value > 0.0).reduce(f64::min);
    let (min, max) = match least {
        Some(least) if picture.log => (decade_below(least), decade_above(highest)),
        _ => (0.0, round_above(if highest > 0.0 { highest } else { 1.0 })),
    };
    let log = picture.log && least.is_some();
    Axis {
        label: crate::format::printable(label.trim_start()),
        unit,
        log,
        min,
        max,
        named: Vec::new(),
    }
}

/// The heights of what stands on each other.
fn sums(rows: &[Row], over: &Over, figures: usize) -> Vec<f64> {
    let sum = |group: &[Row], place: usize| {
        group.iter().filter_map(|row| Some(row.values[place].0?.value)).sum::<f64>()
    };
    let places = 0..over.labels.len();
    rows.chunks(figures)
        .flat_map(|group| places.clone().map(move |place| sum(group, place)))
        .collect()
}

fn numbers(rows: &[Row], over: &Over, study: &Study) -> Numbers {
    let mut header = vec![study.axes[over.axis].clone()];
    header.extend(rows.iter().map(|row| row.name.clone()));
    let written = |value: Option<Quantity>| {
        value.map_or_else(|| "–".to_owned(), |value| shown(value).replace(" us", " µs"))
    };
    let row = |(place, label): (usize, &String)| {
        let values = rows.iter().map(|row| written(row.values[place].0));
        std::iter::once(label.clone()).chain(values).collect()
    };
    Numbers { header, rows: over.labels.iter().enumerate().map(row).collect() }
}
