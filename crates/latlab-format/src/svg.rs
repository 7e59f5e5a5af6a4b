//! Charts as SVG files, for documents and slides.

mod columns;
mod legend;
mod marks;
mod path;
mod ruler;

use super::output::{Destination, Format, write_charts};
use super::picture::{Axis, Chart, ChartLine, Step, Stroke};
use latlab_part::part::About;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use ruler::Ruler;

/// The format in the table of output formats.
pub(super) const FORMAT: Format = Format {
    about: About {
        name: "svg",
        summary: "Write the charts (histogram, ccdf, timeline, scan-CALL) as SVG files",
    },
    option: "svg",
    short: None,
    destination: Destination::Folder,
    needs_explanation: false,
    write: |contents, folder| {
        write_charts(folder, contents.charts, "svg", |chart| draw(chart).into_bytes())
    },
};

/// Sizes in pixels; the height also grows with the number of rows in the legend.
const WIDTH: u32 = 960;
const PLOT_HEIGHT: u32 = 470;
const LEGEND_ROW_HEIGHT: u32 = 22;
const LEFT: u32 = 92;

/// A line without steps has a mark at each point if it has at most this many points.
const FEW: usize = 16;

const INK: RGBColor = RGBColor(0x33, 0x38, 0x40);
const MUTED: RGBColor = RGBColor(0x6b, 0x72, 0x80);
const RULE: RGBColor = RGBColor(0xe3, 0xe6, 0xea);
const FONT: &str = "sans-serif";

type Canvas<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// Returns a chart as SVG. Drawing into memory does not fail, and the axes of a chart are never
/// empty.
pub fn draw(chart: &Chart) -> String {
    let mut text = String::new();
    {
        let size = (WIDTH, height(chart));
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        whole(&area, chart).expect("drawing into memory does not fail");
    }
    text
}

/// Returns the height of the picture in pixels.
fn height(chart: &Chart) -> u32 {
    PLOT_HEIGHT + LEGEND_ROW_HEIGHT.saturating_mul(legend::rows(chart)) + 14
}

fn whole(area: &Canvas<'_>, chart: &Chart) -> Drawn {
    area.fill(&WHITE)?;
    let (top, legend) = area.split_vertically(PLOT_HEIGHT);
    let title = (FONT, 19).into_font().color(&INK);
    top.draw(&Text::new(chart.title.as_str(), (20, 16), title))?;
    plot(&top, chart)?;
    legend::draw(&legend, chart)?;
    area.present()?;
    Ok(())
}

fn plot(area: &Canvas<'_>, chart: &Chart) -> Drawn {
    let small = |anchor| (FONT, 13).into_font().color(&MUTED).pos(anchor);
    let mut context = ChartBuilder::on(area)
        .margin(16)
        .margin_top(54)
        .margin_right(30)
        .x_label_area_size(52 + marks::height(chart))
        .y_label_area_size(LEFT)
        .build_cartesian_2d(Ruler(&chart.x), Ruler(&chart.y))?;
    let mut mesh = context.configure_mesh();
    if !chart.x.named.is_empty() {
        mesh.disable_x_mesh();
    }
    mesh.max_light_lines(0)
        .bold_line_style(RULE)
        .axis_style(RULE.stroke_width(1))
        .x_desc(chart.x.label.as_str())
        .y_desc(chart.y.label.as_str())
        // plotters puts labels at twice the length of the ticks.
        .set_tick_mark_size(LabelAreaPosition::Bottom, 5 + marks::height(chart) / 2)
        .axis_desc_style((FONT, 14).into_font().color(&MUTED))
        .x_label_style(small(Pos::new(HPos::Center, VPos::Top)))
        .y_label_style(small(Pos::new(HPos::Right, VPos::Center)))
        .draw()?;
    marks::draw(area, chart, |point| context.backend_coord(&point))?;
    let (wide, high) = context.plotting_area().dim_in_pixel();
    let place = |pixels: u32, axis: &Axis, value| f64::from(pixels) * axis.share(value);
    let pixel = |(x, y)| (place(wide, &chart.x, x), place(high, &chart.y, y));
    columns::draw(area, chart, |point| context.backend_coord(&point))?;
    for line in &chart.lines {
        let path = path::corners(&line.points, chart.step, pixel);
        let style = colour(line.colour).stroke_width(width(line, chart.step));
        if let [only] = path.as_slice() {
            context.draw_series([Circle::new(*only, 3, colour(line.colour).filled())])?;
            continue;
        }
        if line.points.len() <= FEW && chart.step == Step::None {
            let style = colour(line.colour).filled();
            context.draw_series(line.points.iter().map(|point| Circle::new(*point, 3, style)))?;
        }
        match line.stroke {
            Stroke::Solid => context.draw_series(LineSeries::new(path, style))?,
            Stroke::Thin => context.draw_series(LineSeries::new(path, faint(line)))?,
            Stroke::Dashed => context.draw_series(DashedLineSeries::new(path, 6, 4, style))?,
            Stroke::Dotted => context.draw_series(DashedLineSeries::new(path, 2, 3, style))?,
        };
    }
    Ok(())
}

/// A line with a step every few pixels is drawn thin, so that it does not hide others.
fn width(line: &ChartLine, step: Step) -> u32 {
    if line.points.len() > 300 && step != Step::None { 1 } else { 2 }
}

fn faint(line: &ChartLine) -> ShapeStyle {
    colour(line.colour).mix(0.6).stroke_width(1)
}

fn colour(hex: &str) -> RGBColor {
    let part = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16);
    match (part(1), part(3), part(5)) {
        (Ok(r), Ok(g), Ok(b)) => RGBColor(r, g, b),
        _ => INK,
    }
}

#[cfg(test)]
mod tests {
    use crate::picture::charts;
    use crate::picture::tests::{rendered, source};
    use latlab_testing::sample_scan;

    #[test]
    fn svg_escapes_names() {
        let mut hostile = source("run", 1);
        hostile.record.series[0].probe = "</svg>&\u{1}\u{1b}[31m\"".to_owned();
        hostile.record.scans = sample_scan::scans();
        hostile.record.scans[0].call.name = hostile.record.series[0].probe.clone();
        hostile.record.scans.truncate(1);
        for chart in charts(&[hostile]) {
            let svg = super::draw(&chart);
            assert_eq!(svg.matches("</svg>").count(), 1);
            assert!(svg.contains("&lt;/svg&gt;&amp;"), "{}", chart.name);
            assert!(rendered(&svg).width() > 0);
        }
    }
}
