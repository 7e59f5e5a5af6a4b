//! Legend of an SVG picture, below the plot.

use super::{Canvas, Drawn, FONT, INK, LEGEND_ROW_HEIGHT, WIDTH, colour, columns, faint};
use crate::picture::{Chart, ChartLine, Stroke};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Returns the number of rows.
pub(super) fn rows(chart: &Chart) -> u32 {
    let all = chart.lines.len() + chart.marks.columns.len();
    u32::try_from(all.div_ceil(per_row(chart))).unwrap_or(u32::MAX)
}

/// Draws all names, each with a sample of its line or column.
pub(super) fn draw(area: &Canvas<'_>, chart: &Chart) -> Drawn {
    let per_row = per_row(chart);
    for (n, one) in chart.marks.columns.iter().enumerate() {
        let (x, y) = place(n, per_row);
        columns::piece(area, one, [(x + 6, y - 6), (x + 22, y + 6)])?;
        name(area, (x, y), &one.name)?;
    }
    for (n, one) in chart.lines.iter().enumerate() {
        let (x, y) = place(chart.marks.columns.len() + n, per_row);
        line(area, one, (x, y))?;
        name(area, (x, y), &one.name)?;
    }
    Ok(())
}

/// Returns the position of name `n`.
fn place(n: usize, per_row: usize) -> (i32, i32) {
    let pixel = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let column = pixel(WIDTH as usize / per_row).saturating_mul(pixel(n % per_row));
    (column + 24, pixel(LEGEND_ROW_HEIGHT as usize).saturating_mul(pixel(n / per_row)) + 8)
}

fn name(area: &Canvas<'_>, (x, y): (i32, i32), name: &str) -> Drawn {
    let text = (FONT, 13).into_font().color(&INK);
    let text = text.pos(Pos::new(HPos::Left, VPos::Center));
    area.draw(&Text::new(name, (x + 36, y), text))?;
    Ok(())
}

fn line(area: &Canvas<'_>, line: &ChartLine, (x, y): (i32, i32)) -> Drawn {
    let style = colour(line.colour).stroke_width(3);
    let piece = [(x, y), (x + 28, y)];
    match line.stroke {
        Stroke::Solid => area.draw(&PathElement::new(piece, style))?,
        Stroke::Thin => area.draw(&PathElement::new(piece, faint(line)))?,
        Stroke::Dashed => area.draw(&DashedPathElement::new(piece, 6, 4, style))?,
        Stroke::Dotted => area.draw(&DashedPathElement::new(piece, 2, 3, style))?,
    }
    Ok(())
}

/// Returns the number of names in a row: two, or those of one scan if they are short.
fn per_row(chart: &Chart) -> usize {
    const SHORT: usize = 36;
    let names = chart.lines.iter().map(|line| &line.name);
    let names = names.chain(chart.marks.columns.iter().map(|columns| &columns.name));
    let short = names.clone().all(|name| name.chars().count() <= SHORT);
    let lines = chart.lines.len().checked_div(chart.marks.bars.len());
    if short { lines.unwrap_or(2).clamp(2, 3) } else { 2 }
}
