//! Figures over the labels of an axis: as bars and as curves, with what the paper printed.

use super::super::axis::{decade_above, decade_below, real, round_above};
use super::super::{Axis, Block, COLOURS, Chart, Columns, Line, Look, Marks, Step, Stroke, Unit};
use super::{Numbers, cell_names, joined};
use crate::format::study::shown;
use latlab_core::study::Study;
use latlab_core::study::findings::Findings;
use latlab_core::study::picture::{Kind, Over, Picture};
use latlab_core::study::quantity::Quantity;
use std::fmt::Write as _;

/// How much of the room between two labels their bars take.
const WIDTH: f64 = 0.8;

/// One value for each label: measured, and as it was printed.
struct Row {
    name: String,
    /// Which of the picture's figures it is of.
    figure: usize,
    values: Vec<(Option<Quantity>, Option<f64>)>,
}

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

/// A row for each figure of each choice from the other axes.
fn rows(picture: &Picture, over: &Over, study: &Study, findings: &Findings<'_>) -> Vec<Row> {
    let others = |cell: usize| {
        let mut labels = study.labels(cell);
        labels.remove(over.axis);
        labels
    };
    let mut firsts: Vec<usize> = Vec::new();
    for cell in &picture.cells {
        if !firsts.iter().any(|first| others(*first) == others(*cell)) {
            firsts.push(*cell);
        }
    }
    // Beside the axis below, only the others tell one row from another.
    let names = cell_names(study, &firsts);
    let mut rows = Vec::new();
    for (first, name) in firsts.iter().zip(names) {
        for (nth, figure) in picture.figures.iter().enumerate() {
            let title = study.figures[*figure].title.as_str();
            let several = picture.figures.len() > 1 || firsts.len() == 1;
            let value = |label: &String| {
                let here = |cell: &&usize| {
                    others(**cell) == others(*first) && study.labels(**cell)[over.axis] == label
                };
                let cell = picture.cells.iter().find(here)?;
                Some(at(*cell, *figure, picture, study, findings))
            };
            rows.push(Row {
                name: joined(&[&name, if several { title } else { "" }]),
                figure: nth,
                values: over.labels.iter().map(|label| value(label).unwrap_or_default()).collect(),
            });
        }
    }
    rows
}

/// A cell's value of a figure, and what was printed, both relative where that is asked for.
fn at(
    cell: usize,
    figure: usize,
    picture: &Picture,
    study: &Study,
    findings: &Findings<'_>,
) -> (Option<Quantity>, Option<f64>) {
    let (value, text) = findings.rows[cell].values[figure];
    let kind = study.figures[figure].kind();
    let printed = text.and_then(|text| Quantity::printed(text, kind));
    let over = picture.over.as_ref();
    let Some((axis, label)) = over.and_then(|over| over.relative_to.as_ref()) else {
        return (value, printed);
    };
    let mut labels = study.labels(cell);
    labels[*axis] = label;
    let of_reference = labels.join(".");
    let reference = findings.rows.iter().find(|row| row.label == of_reference);
    let Some(reference) = reference else { return (None, None) };
    // What stands on each other is divided by all of the other's together.
    let whole = if over.is_some_and(|over| over.stacked) {
        // With a part missing nobody knows how much that is.
        let all = picture.figures.iter().map(|figure| reference.values[*figure].0);
        let all: Option<Vec<Quantity>> = all.collect();
        all.and_then(|all| all.into_iter().reduce(|one, other| one + other))
    } else {
        reference.values[figure].0
    };
    let ratio = value.zip(whole).map(|(value, whole)| value / whole);
    let as_ratio = text.and_then(|text| text.strip_suffix(&format!(" × {label}")));
    let printed = if let Some(text) = as_ratio {
        Quantity::printed(text, 0)
    } else {
        let its = reference.values[figure].1.and_then(|text| Quantity::printed(text, kind));
        printed.zip(its).map(|(printed, its)| printed / its)
    };
    (ratio.filter(|ratio| ratio.value.is_finite()), printed.filter(|ratio| ratio.is_finite()))
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

/// Bars of all rows beside each other, and outlines of what was printed.
fn beside(rows: &[Row], y: &Axis) -> Vec<Columns> {
    let mut all = Vec::new();
    for (nth, row) in rows.iter().enumerate() {
        let colour = COLOURS[nth % COLOURS.len()];
        let block = |place: usize, value: f64| {
            let (value, x) = (value.max(y.min), slot(place, nth, rows.len()));
            Block { x, y: (y.min, value) }
        };
        let values = row.values.iter().enumerate();
        let full =
            values.clone().filter_map(|(place, (value, _))| Some(block(place, (*value)?.value)));
        let hollow = values.filter_map(|(place, (_, printed))| Some(block(place, (*printed)?)));
        let (full, hollow): (Vec<Block>, Vec<Block>) = (full.collect(), hollow.collect());
        let columns = |name: &str, look, blocks: Vec<Block>| {
            let name = name.to_owned();
            (!blocks.is_empty()).then_some(Columns { name, colour, look, blocks })
        };
        all.extend(columns(&row.name, Look::Full, full));
        all.extend(columns(&format!("{} · published", row.name), Look::Hollow, hollow));
    }
    all
}

/// Bars on each other: a colour for each group, paler from figure to figure.
fn stacked(rows: &[Row], over: &Over, figures: usize) -> Vec<Columns> {
    let groups = rows.len() / figures;
    let mut all = Vec::new();
    for (nth, group) in rows.chunks(figures).enumerate() {
        let mut grounds = vec![0.0; over.labels.len()];
        for row in group {
            let mut blocks = Vec::new();
            for (place, (value, _)) in row.values.iter().enumerate() {
                let Some(value) = value else { continue };
                let ground = grounds[place];
                grounds[place] += value.value;
                blocks.push(Block { x: slot(place, nth, groups), y: (ground, grounds[place]) });
            }
            let look = if row.figure == 0 { Look::Full } else { Look::Faint };
            let colour = COLOURS[nth % COLOURS.len()];
            all.push(Columns { name: row.name.clone(), colour, look, blocks });
        }
    }
    all
}

/// From where to where bar `nth` of `many` stands at a label.
fn slot(place: usize, nth: usize, many: usize) -> (f64, f64) {
    let (place, nth, many) = (real(place as u64), real(nth as u64), real(many as u64));
    let begin = place - WIDTH / 2.0 + WIDTH * nth / many;
    (begin, begin + WIDTH / many)
}

/// A line for each row, and a dashed one for what was printed.
fn curves(rows: &[Row], over: &Over, y: &Axis) -> Vec<Line> {
    let mut lines = Vec::new();
    for (row, colour) in rows.iter().zip(COLOURS.iter().copied().cycle()) {
        let line = |name: String, stroke, values: Vec<Option<f64>>| {
            let points = places(over).into_iter().zip(values);
            let points = points.filter_map(|(x, value)| Some((x, value.filter(|v| *v >= y.min)?)));
            Line { name, colour, stroke, points: points.collect() }
        };
        let measured = row.values.iter().map(|(value, _)| Some((*value)?.value)).collect();
        let printed = row.values.iter().map(|(_, printed)| *printed).collect();
        lines.push(line(row.name.clone(), Stroke::Solid, measured));
        lines.push(line(format!("{} · published", row.name), Stroke::Dashed, printed));
    }
    lines.retain(|line| !line.points.is_empty());
    lines
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
