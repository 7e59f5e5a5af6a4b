//! The most expensive functions of a path as bars, without their callees.

use super::super::drawing::{Drawing, GREY, WIDTH, fitted, scaled};
use super::{BUSIEST, FunctionColours};
use crate::format::explained::share;
use crate::format::micro;
use latlab_core::path::Path;
use latlab_core::time::Nanos;

const LEFT: f64 = 250.0;
const RIGHT: f64 = 150.0;
const ROW: f64 = 22.0;
const BAR: f64 = 15.0;

pub(super) fn draw(path: &Path, latency: Nanos, colours: &FunctionColours<'_>) -> Drawing {
    let mut drawing = Drawing::default();
    let (busiest, others) = path.functions.split_at(path.functions.len().min(BUSIEST));
    let busiest = busiest.iter().map(|spent| {
        let colour = colours.colour(&spent.function);
        (spent.function.clone(), Nanos(spent.instructions), colour)
    });
    let rest = Nanos(others.iter().map(|spent| spent.instructions).sum());
    let rest = (rest > Nanos(0)).then(|| (format!("{} others", others.len()), rest, GREY));
    let rows: Vec<(String, Nanos, &str)> = busiest.chain(rest).collect();
    let longest = rows.iter().map(|(_, time, _)| *time).max().unwrap_or_default();
    for (name, time, colour) in &rows {
        let (y, line) = (drawing.height, drawing.height + BAR - 3.5);
        let width = scaled(*time, longest, WIDTH - LEFT - RIGHT);
        let amount = format!("{} · {}", share(*time, latency), micro(*time));
        drawing.text(LEFT - 8.0, line, "n", &fitted(name, LEFT - 8.0));
        drawing.block([LEFT, y, width.max(0.5), BAR], colour, 0.5, &format!("{name}: {amount}"));
        drawing.text(LEFT + width + 6.0, line, "muted", &amount);
        drawing.height += ROW;
    }
    drawing
}
