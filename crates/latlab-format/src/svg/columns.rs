//! Columns of an SVG picture.

use super::{Canvas, Drawn, INK, colour};
use crate::picture::{Chart, Columns, Look};
use plotters::prelude::*;

/// Gap between two columns, in pixels.
const GAP: i32 = 1;

/// Draws the columns of a chart. `place` maps a point of the chart to the canvas.
pub(super) fn draw(
    drawing: &Canvas<'_>,
    chart: &Chart,
    place: impl Fn((f64, f64)) -> (i32, i32),
) -> Drawn {
    for columns in &chart.marks.columns {
        for block in &columns.blocks {
            let (left, top) = place((block.x.0, block.y.1));
            let (right, bottom) = place((block.x.1, block.y.0));
            // A column is at least one pixel high.
            let corners = [(left, top.min(bottom - 1)), ((right - GAP).max(left + 1), bottom)];
            piece(drawing, columns, corners)?;
        }
    }
    Ok(())
}

/// Draws a rectangle in the style of these columns.
pub(super) fn piece(drawing: &Canvas<'_>, columns: &Columns, corners: [(i32, i32); 2]) -> Drawn {
    let colour = colour(columns.colour);
    let [(left, top), (right, bottom)] = corners;
    match columns.look {
        Look::Full => drawing.draw(&Rectangle::new(corners, colour.filled()))?,
        Look::Faint => drawing.draw(&Rectangle::new(corners, colour.mix(0.4).filled()))?,
        // An outline is visible on a filled column of any colour, and in black and white.
        Look::Hollow => {
            let start = (left, bottom);
            let around = [start, (left, top), (right, top), (right, bottom), start];
            drawing.draw(&PathElement::new(around, INK.stroke_width(2)))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::picture::{Axis, Block, COLOURS, Chart, Columns, Look, Marks, Step, Unit};

    fn drawn(look: Look) -> String {
        let axis = || Axis {
            label: String::new(),
            unit: Unit::Number,
            log: false,
            min: 0.0,
            max: 24.0,
            named: Vec::new(),
        };
        let block = |nth: u32| Block { x: (nth.into(), (nth + 1).into()), y: (0.0, 20.0) };
        let blocks = (0..24).map(block).collect();
        let columns = Columns { name: "one".to_owned(), colour: COLOURS[0], look, blocks };
        crate::svg::draw(&Chart {
            name: String::new(),
            title: String::new(),
            about: String::new(),
            x: axis(),
            y: axis(),
            step: Step::None,
            lines: Vec::new(),
            marks: Marks { columns: vec![columns], ..Marks::default() },
        })
    }

    /// A study with many dashed bars had 170 kB, as each dash was an element.
    #[test]
    fn outline_is_one_element() {
        let [full, hollow] = [Look::Full, Look::Hollow].map(drawn);
        let elements = |svg: &str| svg.matches('<').count();
        assert_eq!(elements(&hollow), elements(&full));
        // One more is in the legend.
        assert_eq!(hollow.matches("stroke=\"#333840\" stroke-width=\"2\"").count(), 25, "{hollow}");
    }
}
