//! The columns of an SVG picture.

use super::{Drawing, Drawn, INK, colour};
use crate::format::picture::{Chart, Columns, Look};
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
        // Seen on a full one of any colour, and on paper without colours.
        Look::Hollow => {
            let ground = (left, bottom);
            let around = [ground, (left, top), (right, top), (right, bottom), ground];
            drawing.draw(&PathElement::new(around, INK.stroke_width(2)))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::format::picture::{Axis, Block, COLOURS, Chart, Columns, Look, Marks, Step, Unit};

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
        crate::format::svg::draw(&Chart {
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

    /// Those of a study with many bars took 170 kB when each dash was an element.
    #[test]
    fn an_outline_is_one_element() {
        let [full, hollow] = [Look::Full, Look::Hollow].map(drawn);
        let elements = |svg: &str| svg.matches('<').count();
        assert_eq!(elements(&hollow), elements(&full));
        // And one for the name.
        assert_eq!(hollow.matches("stroke=\"#333840\" stroke-width=\"2\"").count(), 25, "{hollow}");
    }
}
