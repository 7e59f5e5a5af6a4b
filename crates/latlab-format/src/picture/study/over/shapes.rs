//! Rows of values as bars and curves, measured and published.

use super::positions;
use super::rows::ValueRow;
use crate::picture::axis::real;
use crate::picture::{Axis, Block, COLOURS, ChartLine, Columns, Look, Stroke};
use latlab_core::study::picture::CategoryAxis;

/// Share of the space between two labels that bars take.
const WIDTH: f64 = 0.8;

/// Returns bars of all rows side by side, and outlines of the published values.
pub(super) fn side_by_side(rows: &[ValueRow], y: &Axis) -> Vec<Columns> {
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

/// Returns stacked bars: a colour for each group, and faint bars after the first figure.
pub(super) fn stacked(rows: &[ValueRow], over: &CategoryAxis, figures: usize) -> Vec<Columns> {
    let groups = rows.len() / figures;
    let mut all = Vec::new();
    for (nth, group) in rows.chunks(figures).enumerate() {
        let mut tops = vec![0.0; over.labels.len()];
        for row in group {
            let mut blocks = Vec::new();
            for (place, (value, _)) in row.values.iter().enumerate() {
                let Some(value) = value else { continue };
                let bottom = tops[place];
                tops[place] += value.value;
                blocks.push(Block { x: slot(place, nth, groups), y: (bottom, tops[place]) });
            }
            let look = if row.figure == 0 { Look::Full } else { Look::Faint };
            let colour = COLOURS[nth % COLOURS.len()];
            all.push(Columns { name: row.name.clone(), colour, look, blocks });
        }
    }
    all
}

/// Returns left and right of bar `nth` of `many` at a label.
fn slot(place: usize, nth: usize, many: usize) -> (f64, f64) {
    let (place, nth, many) = (real(place as u64), real(nth as u64), real(many as u64));
    let begin = place - WIDTH / 2.0 + WIDTH * nth / many;
    (begin, begin + WIDTH / many)
}

/// Returns a line for each row, and a dashed line for its published values.
pub(super) fn curves(rows: &[ValueRow], over: &CategoryAxis, y: &Axis) -> Vec<ChartLine> {
    let mut lines = Vec::new();
    for (row, colour) in rows.iter().zip(COLOURS.iter().copied().cycle()) {
        let line = |name: String, stroke, values: Vec<Option<f64>>| {
            let points = positions(over).into_iter().zip(values);
            let points = points.filter_map(|(x, value)| Some((x, value.filter(|v| *v >= y.min)?)));
            ChartLine { name, colour, stroke, points: points.collect() }
        };
        let measured = row.values.iter().map(|(value, _)| Some((*value)?.value)).collect();
        let printed = row.values.iter().map(|(_, printed)| *printed).collect();
        lines.push(line(row.name.clone(), Stroke::Solid, measured));
        lines.push(line(format!("{} · published", row.name), Stroke::Dashed, printed));
    }
    lines.retain(|line| !line.points.is_empty());
    lines
}
