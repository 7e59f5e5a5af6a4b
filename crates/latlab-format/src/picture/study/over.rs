//! Figures over the labels of an axis, as bars or curves, with the published values.

mod rows;
mod shapes;

use self::rows::{ValueRow, rows};
use self::shapes::{curves, side_by_side, stacked};
use super::super::axis::{decade_above, decade_below, real, round_above};
use super::super::{Axis, Chart, Look, Marks, Step, Stroke, Unit};
use super::NumberTable;
use crate::study::shown;
use crate::with_micro;
use latlab_core::study::Study;
use latlab_core::study::findings::Findings;
use latlab_core::study::picture::{CategoryAxis, Picture, PictureKind};
use latlab_core::study::quantity::Quantity;
use std::fmt::Write as _;

/// Returns bars or curves and their numbers; none without measurements.
pub(super) fn chart(
    picture: &Picture,
    study: &Study,
    findings: &Findings<'_>,
) -> Option<(Chart, NumberTable)> {
    let over = picture.over.as_ref()?;
    let rows = rows(picture, over, study, findings);
    let measured = rows.iter().flat_map(|row| &row.values).any(|(value, _)| value.is_some());
    if !measured {
        return None;
    }
    let y = values(picture, over, study, &rows);
    let (mut lines, mut marks) = (Vec::new(), Marks::default());
    match picture.kind {
        PictureKind::Bars if over.stacked => {
            marks.columns = stacked(&rows, over, picture.figures.len());
        }
        PictureKind::Bars => marks.columns = side_by_side(&rows, &y),
        _ => lines = curves(&rows, over, &y),
    }
    let mut about = String::new();
    if let Some((_, label)) = &over.relative_to {
        let _ = write!(about, "Relative to {label}. ");
    }
    let printed = lines.iter().any(|line| line.stroke == Stroke::Dashed)
        || marks.columns.iter().any(|columns| columns.look == Look::Hollow);
    about += match (printed, picture.kind) {
        (true, PictureKind::Bars) => "Filled: measured; outlined: published.",
        (true, _) => "Solid: measured; dashed: published.",
        (false, _) => "Measured values.",
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

/// Returns the axis of the labels.
fn labels(over: &CategoryAxis, study: &Study, kind: PictureKind) -> Axis {
    let label = study.axes[over.axis].clone();
    if let (Some(at), PictureKind::Curves) = (&over.at, kind) {
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
    let named: Vec<(f64, String)> = positions(over).into_iter().zip(over.labels.clone()).collect();
    let max = real(named.len() as u64) - 0.5;
    Axis { label, unit: Unit::Number, log: false, min: -0.5, max, named }
}

/// Returns the position of each label.
fn positions(over: &CategoryAxis) -> Vec<f64> {
    over.at.clone().unwrap_or_else(|| (0..over.labels.len() as u64).map(real).collect())
}

/// Returns the axis of the values.
fn values(picture: &Picture, over: &CategoryAxis, study: &Study, rows: &[ValueRow]) -> Axis {
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
    let of = |row: &ValueRow| -> Vec<f64> {
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
    Axis { label: crate::printable(label.trim_start()), unit, log, min, max, named: Vec::new() }
}

/// Returns the heights of the stacked bars.
fn sums(rows: &[ValueRow], over: &CategoryAxis, figures: usize) -> Vec<f64> {
    let sum = |group: &[ValueRow], label: usize| {
        group.iter().filter_map(|row| Some(row.values[label].0?.value)).sum::<f64>()
    };
    let labels = 0..over.labels.len();
    rows.chunks(figures)
        .flat_map(|group| labels.clone().map(move |label| sum(group, label)))
        .collect()
}

fn numbers(rows: &[ValueRow], over: &CategoryAxis, study: &Study) -> NumberTable {
    let mut header = vec![study.axes[over.axis].clone()];
    header.extend(rows.iter().map(|row| row.name.clone()));
    let written = |value: Option<Quantity>| {
        value.map_or_else(|| "–".to_owned(), |value| with_micro(&shown(value)))
    };
    let row = |(index, label): (usize, &String)| {
        let values = rows.iter().map(|row| written(row.values[index].0));
        std::iter::once(label.clone()).chain(values).collect()
    };
    NumberTable { header, rows: over.labels.iter().enumerate().map(row).collect() }
}
