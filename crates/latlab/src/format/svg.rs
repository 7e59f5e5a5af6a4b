//! The pictures of a report as SVG files, for documents and slides.

use super::picture::{Axis, Chart, Line, Step, Unit};
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// In pixels of the SVG; its height grows with the number of lines named below the picture.
const WIDTH: u32 = 960;
const PLOT_HEIGHT: u32 = 470;
const NAME_HEIGHT: u32 = 22;
const NAMES_PER_ROW: usize = 2;
const LEFT: u32 = 92;

const INK: RGBColor = RGBColor(0x33, 0x38, 0x40);
const MUTED: RGBColor = RGBColor(0x6b, 0x72, 0x80);
const RULE: RGBColor = RGBColor(0xe3, 0xe6, 0xea);
const FONT: &str = "sans-serif";

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// Draws a chart. Writing to memory does not fail, and the axes of a chart are never empty.
pub(crate) fn draw(chart: &Chart) -> String {
    let mut text = String::new();
    {
        let size = (WIDTH, height(chart));
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        whole(&area, chart).expect("drawing into memory does not fail");
    }
    text
}

/// The height of the picture of a chart, in pixels.
fn height(chart: &Chart) -> u32 {
    let rows = u32::try_from(chart.lines.len().div_ceil(NAMES_PER_ROW)).unwrap_or(u32::MAX);
    PLOT_HEIGHT + NAME_HEIGHT.saturating_mul(rows) + 14
}

fn whole(area: &Area<'_>, chart: &Chart) -> Drawn {
    area.fill(&WHITE)?;
    let (top, names) = area.split_vertically(PLOT_HEIGHT);
    let title = (FONT, 19).into_font().color(&INK);
    top.draw(&Text::new(chart.title, (20, 16), title))?;
    plot(&top, chart)?;
    for (n, line) in chart.lines.iter().enumerate() {
        name(&names, n, line)?;
    }
    area.present()?;
    Ok(())
}

fn plot(area: &Area<'_>, chart: &Chart) -> Drawn {
    let small = |anchor| (FONT, 13).into_font().color(&MUTED).pos(anchor);
    let mut context = ChartBuilder::on(area)
        .margin(16)
        .margin_top(54)
        .margin_right(30)
        .x_label_area_size(52)
        .y_label_area_size(LEFT)
        .build_cartesian_2d(Ruler(&chart.x), Ruler(&chart.y))?;
    context
        .configure_mesh()
        .max_light_lines(0)
        .bold_line_style(RULE)
        .axis_style(RULE.stroke_width(1))
        .x_desc(chart.x.label)
        .y_desc(chart.y.label)
        .axis_desc_style((FONT, 14).into_font().color(&MUTED))
        .x_label_style(small(Pos::new(HPos::Center, VPos::Top)))
        .y_label_style(small(Pos::new(HPos::Right, VPos::Center)))
        .draw()?;
    for line in &chart.lines {
        let path = corners(&line.points, chart.step);
        // Where a line has a point for every few pixels, a thick one hides its neighbours.
        let width = if line.points.len() > 300 { 1 } else { 2 };
        let style = colour(line).stroke_width(width);
        if let [only] = path.as_slice() {
            context.draw_series([Circle::new(*only, 3, colour(line).filled())])?;
        } else if line.dashed {
            context.draw_series(DashedLineSeries::new(path, 6, 4, style))?;
        } else {
            context.draw_series(LineSeries::new(path, style))?;
        }
    }
    Ok(())
}

/// The name of line `n` behind a piece of it.
fn name(area: &Area<'_>, n: usize, line: &Line) -> Drawn {
    let pixel = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let column = pixel(WIDTH as usize / NAMES_PER_ROW).saturating_mul(pixel(n % NAMES_PER_ROW));
    let x = column + 24;
    let y = pixel(NAME_HEIGHT as usize).saturating_mul(pixel(n / NAMES_PER_ROW)) + 8;
    let style = colour(line).stroke_width(3);
    let piece = [(x, y), (x + 28, y)];
    if line.dashed {
        area.draw(&DashedPathElement::new(piece, 6, 4, style))?;
    } else {
        area.draw(&PathElement::new(piece, style))?;
    }
    let text = (FONT, 13).into_font().color(&INK);
    let text = text.pos(Pos::new(HPos::Left, VPos::Center));
    area.draw(&Text::new(line.name.as_str(), (x + 36, y), text))?;
    Ok(())
}

/// The line with the corners of its steps.
fn corners(points: &[(f64, f64)], step: Step) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = points.first().copied().into_iter().collect();
    for pair in points.windows(2) {
        let [from, to] = [pair[0], pair[1]];
        match step {
            Step::Start => corners.push((from.0, to.1)),
            Step::End => corners.push((to.0, from.1)),
        }
        corners.push(to);
    }
    corners
}

/// An axis in the eyes of plotters.
struct Ruler<'a>(&'a Axis);

impl Ranged for Ruler<'_> {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    #[expect(clippy::cast_possible_truncation, reason = "a pixel is a small number")]
    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let place = |v: f64| if self.0.log { v.log10() } else { v };
        let (min, max) = (place(self.0.min), place(self.0.max));
        let share = (place(*value) - min) / (max - min);
        (f64::from(from) + f64::from(to - from) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            return Vec::new();
        }
        ticks(self.0)
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.0.min..self.0.max
    }
}

impl ValueFormatter<f64> for Ruler<'_> {
    fn format(value: &f64) -> String {
        value.to_string()
    }

    fn format_ext(&self, value: &f64) -> String {
        shown(*value, self.0.unit)
    }
}

/// Powers of ten, or four to eight round values.
fn ticks(axis: &Axis) -> Vec<f64> {
    let mut ticks = Vec::new();
    if axis.unit == Unit::Count {
        ticks.push(axis.min);
    }
    if axis.log {
        let mut exponent = axis.min.log10().ceil();
        while exponent <= axis.max.log10() + 1e-9 {
            ticks.push(10f64.powf(exponent));
            exponent += 1.0;
        }
    } else {
        let power = 10f64.powf((axis.max / 5.0).log10().floor());
        let rounds = [1.0, 2.0, 5.0, 10.0].map(|round| round * power);
        let step = rounds.into_iter().find(|step| axis.max / step <= 8.0);
        let step = step.unwrap_or(axis.max);
        let mut tick = axis.min;
        while tick <= axis.max {
            ticks.push(tick);
            tick += step;
        }
    }
    ticks
}

/// A tick in the words of its unit.
fn shown(value: f64, unit: Unit) -> String {
    // Undoes what the logarithm did to a round number.
    let brief = |value: f64| ((value * 1e4).round() / 1e4).to_string();
    match unit {
        // The end of a logarithmic axis stands for the 0 it does not have.
        Unit::Count if value < 1.0 => "0".to_owned(),
        Unit::Count => grouped(value),
        Unit::Share if value < 0.9e-4 => format!("1 in {}", grouped(1.0 / value)),
        Unit::Share => format!("{} %", brief(value * 100.0)),
        Unit::Second => format!("{} s", brief(value)),
        Unit::Nanos if value < 0.999e3 => format!("{} ns", brief(value)),
        Unit::Nanos if value < 0.999e6 => format!("{} µs", brief(value / 1e3)),
        Unit::Nanos if value < 0.999e9 => format!("{} ms", brief(value / 1e6)),
        Unit::Nanos => format!("{} s", brief(value / 1e9)),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of samples is positive and below 2⁶⁴"
)]
fn grouped(value: f64) -> String {
    super::grouped(value.round() as u64)
}

fn colour(line: &Line) -> RGBColor {
    let part = |at: usize| u8::from_str_radix(&line.colour[at..at + 2], 16);
    match (part(1), part(3), part(5)) {
        (Ok(r), Ok(g), Ok(b)) => RGBColor(r, g, b),
        _ => INK,
    }
}

#[cfg(test)]
mod tests {
    use crate::format::picture::{charts, tests::source};
    use crate::format::png;

    #[test]
    fn a_hostile_name_is_only_a_name() {
        let mut hostile = source("run", 1);
        hostile.record.series[0].probe = "</svg>&\u{1}\u{1b}[31m\"".to_owned();
        for chart in charts(&[hostile]) {
            let svg = super::draw(&chart);
            assert_eq!(svg.matches("</svg>").count(), 1);
            assert!(svg.contains("&lt;/svg&gt;&amp;"));
            assert!(!png::draw(&svg).is_empty());
        }
    }
}
