//! The most expensive functions of a path as bars, without their callees.

use super::super::drawing::{Block, Drawing, GREY, Row, Shade, percent};
use super::{BUSIEST, FunctionColours};
use crate::explained::share;
use crate::micro;
use latlab_core::path::Path;
use latlab_core::time::Nanos;

pub(super) fn draw(path: &Path, latency: Nanos, colours: &FunctionColours<'_>) -> Drawing {
    let mut drawing = Drawing::default();
    let (busiest, others) = path.functions.split_at(path.functions.len().min(BUSIEST));
    let busiest = busiest.iter().map(|spent| {
        let colour = colours.colour(&spent.function);
        (spent.function.clone(), Nanos(spent.instructions), colour)
    });
    let rest = Nanos(others.iter().map(|spent| spent.instructions).sum());
    let rest = (rest > Nanos(0)).then(|| (format!("{} others", others.len()), rest, GREY));
    let rows: Vec<(String, Nanos, &'static str)> = busiest.chain(rest).collect();
    let longest = rows.iter().map(|(_, time, _)| *time).max().unwrap_or_default();
    for (name, time, colour) in rows {
        let value = format!("{} · {}", share(time, latency), micro(time));
        let bar = Block {
            place: (0.0, percent(time, longest)),
            colour,
            shade: Shade::Half,
            title: format!("{name}: {value}"),
            text: String::new(),
        };
        drawing.row(Row { name, value, blocks: vec![bar], note: String::new() });
    }
    drawing
}
