//! Marks behind the lines of an SVG picture: shaded areas, and bars on the x axis.

use super::{Canvas, Drawn, FONT, colour};
use crate::picture::{Area, Chart};
use plotters::prelude::*;

/// Greatest height of all bars together and of one bar, in pixels.
const ALL_BARS: f64 = 30.0;
const ONE_BAR: f64 = 6.0;

/// Line height of names in pixels, and the number of lines before they repeat.
const LINE: i32 = 15;
const LINES: usize = 8;

/// Returns the height of all bars, by which the labels of the x axis are moved down, in pixels.
pub(super) fn height(chart: &Chart) -> u32 {
    let bars = u32::try_from(chart.marks.bars.len()).unwrap_or(u32::MAX);
    pixel(f64::from(bars) * pitch(chart)).unsigned_abs()
}

/// Returns the distance between bars. None may cover another, as calls may be equally long.
fn pitch(chart: &Chart) -> f64 {
    let bars = u32::try_from(chart.marks.bars.len()).unwrap_or(u32::MAX);
    (ALL_BARS / f64::from(bars.max(1))).min(ONE_BAR)
}

/// Draws the marks of a chart. `place` maps a point of the chart to the canvas.
pub(super) fn draw(
    drawing: &Canvas<'_>,
    chart: &Chart,
    place: impl Fn((f64, f64)) -> (i32, i32),
) -> Drawn {
    for area in &chart.marks.areas {
        let (_, ground) = place((0.0, chart.y.min));
        let corners = [place(area.from), place(area.to)];
        shaded(drawing, area, chart.marks.shade, corners, ground)?;
    }
    let pitch = pitch(chart);
    let mut below = 1.0;
    for bar in &chart.marks.bars {
        let (left, axis) = place((0.0, chart.y.min));
        let (right, _) = place((bar.end, chart.y.min));
        let (top, bottom) = (axis + pixel(below), axis + pixel(below + pitch - 1.0));
        let corners = [(left, top), (right, bottom.max(top + 1))];
        drawing.draw(&Rectangle::new(corners, colour(bar.colour).filled()))?;
        below += pitch;
    }
    Ok(())
}

fn shaded(
    drawing: &Canvas<'_>,
    area: &Area,
    shade: f64,
    [from, to]: [(i32, i32); 2],
    ground: i32,
) -> Drawn {
    let corners = [(from.0, ground), from, to, (to.0, ground)];
    drawing.draw(&Polygon::new(corners, colour(area.colour).mix(shade)))?;
    // A letter is about 7 pixels wide. A name that does not fit is left to the table.
    let letters = i32::try_from(area.name.chars().count()).unwrap_or(i32::MAX);
    if letters > 0 && letters.saturating_mul(7) < to.0 - from.0 - 8 {
        let line = i32::try_from(area.bar % LINES).unwrap_or(0);
        let text = (FONT, 12).into_font().color(&colour(area.colour));
        let place = (from.0 + 5, ground - 24 - LINE * line);
        drawing.draw(&Text::new(area.name.as_str(), place, text))?;
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "a pixel is a small number")]
fn pixel(place: f64) -> i32 {
    place.round() as i32
}
