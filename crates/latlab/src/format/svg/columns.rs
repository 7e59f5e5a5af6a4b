//! The columns of an SVG picture.

use super::{Drawing, Drawn, INK, colour};
use crate::format::picture::{Chart, Columns, Look};
use plotters::element::DashedPathElement;
use plotters::prelude::*;

/// Between two columns, in pixels.
const GAP: i32 = 1;

/// Draws the columns of a chart. `place` says where a point of the chart is on the drawing.
pub(super) fn draw(
    drawing: &Drawing<'_>,
    chart: &Chart,
    place: impl Fn((f64, f64)) -> (i32, i32),
) -> Drawn {
    for columns in &chart.marks.columns {
        for block in &columns.blocks {
            let (left, top) = place((block.x.0, block.y.1));
            let (right, bottom) = place((block.x.1, block.y.0));
            // What is hardly above the ground is seen to be there.
            let corners = [(left, top.min(bottom - 1)), ((right - GAP).max(left + 1), bottom)];
            piece(drawing, columns, corners)?;
        }
    }
    Ok(())
}

/// A rectangle that looks like a column.
pub(super) fn piece(drawing: &Drawing<'_>, columns: &Columns, corners: [(i32, i32); 2]) -> Drawn {
    let colour = colour(columns.colour);
    let [(left, top), (right, bottom)] = corners;
    match columns.look {
        Look::Full => drawing.draw(&Rectangle::new(corners, colour.filled()))?,
        Look::Faint => drawing.draw(&Rectangle::new(corners, colour.mix(0.4).filled()))?,
        // Seen on a full one of its colour, too.
        Look::Hollow => {
            let outline = [(left, bottom), (left, top), (right, top), (right, bottom)];
            drawing.draw(&DashedPathElement::new(outline, 4, 2, INK.stroke_width(1)))?;
        }
    }
    Ok(())
}
