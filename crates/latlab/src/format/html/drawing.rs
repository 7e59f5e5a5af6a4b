//! Drawings of a page that are made without scripts, as inline SVG.

use crate::format::printable;
use latlab_core::time::Nanos;
use maud::{Markup, html};

/// Width of every drawing, which is that of the page's text, in pixels.
pub(super) const WIDTH: f64 = 1072.0;

/// Colour of unexplained time.
pub(super) const GREY: &str = "#9aa1ab";

/// Shapes of a drawing, and its height so far in pixels.
#[derive(Default)]
pub(super) struct Drawing {
    shapes: Vec<Shape>,
    pub(super) height: f64,
}

enum Shape {
    Block { place: [f64; 4], colour: String, opacity: f64, title: String },
    Text { place: [f64; 2], class: &'static str, text: String },
}

impl Drawing {
    /// Returns the SVG element. `id` must be unique on the page.
    pub(super) fn svg(&self, id: &str, title: &str) -> Markup {
        let view_box = format!("0 0 {WIDTH} {}", self.height);
        html! {
            svg class="drawing" id=(id) viewBox=(view_box) role="img" aria-label=(printable(title)) {
                @for shape in &self.shapes { (shape.markup()) }
            }
        }
    }

    /// Adds a filled rectangle (x, y, width, height) with a tooltip.
    pub(super) fn block(&mut self, place: [f64; 4], colour: &str, opacity: f64, title: &str) {
        let (colour, title) = (colour.to_owned(), printable(title));
        self.shapes.push(Shape::Block { place, colour, opacity, title });
    }

    /// Adds a text that begins (or, with the class `n`, ends) at `x`.
    pub(super) fn text(&mut self, x: f64, y: f64, class: &'static str, text: &str) {
        self.shapes.push(Shape::Text { place: [x, y], class, text: printable(text) });
    }
}

impl Shape {
    fn markup(&self) -> Markup {
        match self {
            Shape::Block { place: [x, y, width, height], colour, opacity, title } => html! {
                rect x=(format_args!("{x:.2}")) y=(format_args!("{y:.1}"))
                    width=(format_args!("{width:.2}")) height=(format_args!("{height:.1}"))
                    fill=(colour) fill-opacity=(opacity) {
                    title { (title) }
                }
            },
            Shape::Text { place: [x, y], class, text } => html! {
                text x=(format_args!("{x:.1}")) y=(format_args!("{y:.1}")) class=(class) { (text) }
            },
        }
    }
}

/// Returns as much of a text as fits into `pixels`; nothing if too little would be left.
pub(super) fn fitted(text: &str, pixels: f64) -> String {
    const LETTER: f64 = 6.7;
    const FEWEST: usize = 3;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pixels of a page")]
    let room = (pixels.max(0.0) / LETTER) as usize;
    let letters = text.chars().count();
    if letters <= room {
        return text.to_owned();
    }
    if room < FEWEST {
        return String::new();
    }
    text.chars().take(room - 1).chain(['…']).collect()
}

/// Returns the length of `part` in pixels where `whole` is `pixels` long.
#[expect(clippy::cast_precision_loss, reason = "a pixel is more than a nanosecond in 2^52")]
pub(super) fn scaled(part: Nanos, whole: Nanos, pixels: f64) -> f64 {
    pixels * part.0.min(whole.0) as f64 / whole.0.max(1) as f64
}
