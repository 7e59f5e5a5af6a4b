//! Pictures of the page that are made here and not by scripts: marks of an SVG.

use super::table::escaped;
use crate::format::printable;
use latlab_core::time::Nanos;
use std::fmt::Write as _;

/// As wide as the page, in its pixels.
pub(super) const WIDTH: f64 = 1072.0;

/// What has no cause has no colour either.
pub(super) const GREY: &str = "#9aa1ab";

/// Marks of an SVG, and how far down they reach.
#[derive(Default)]
pub(super) struct Drawing {
    marks: String,
    pub(super) height: f64,
}

impl Drawing {
    /// The picture, under a name that is unique on the page.
    pub(super) fn svg(&self, id: &str, title: &str) -> String {
        let (title, height) = (escaped(&printable(title)), self.height);
        format!(
            "<svg class=\"drawing\" id=\"{id}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-label=\"{title}\">\n{}</svg>\n",
            self.marks
        )
    }

    /// A filled rectangle that says what it is when it is pointed at.
    pub(super) fn block(&mut self, place: [f64; 4], colour: &str, opacity: f64, title: &str) {
        let [x, y, width, height] = place;
        let title = escaped(&printable(title));
        let _ = writeln!(
            self.marks,
            "<rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{height:.1}\" \
             fill=\"{colour}\" fill-opacity=\"{opacity}\"><title>{title}</title></rect>"
        );
    }

    /// A text that begins (or, with the class `n`, ends) here.
    pub(super) fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let text = escaped(&printable(text));
        let _ =
            writeln!(self.marks, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{text}</text>");
    }
}

/// As much of a text as fits into so many pixels; nothing if that says nothing.
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

/// How long a time is drawn where `whole` is so many pixels.
#[expect(clippy::cast_precision_loss, reason = "a pixel is more than a nanosecond in 2^52")]
pub(super) fn scaled(part: Nanos, whole: Nanos, pixels: f64) -> f64 {
    pixels * part.0.min(whole.0) as f64 / whole.0.max(1) as f64
}

/// A picture with its title, and what is to be said of it.
pub(super) fn figure(id: &str, title: &str, about: &str, content: &str) -> String {
    let (title, about) = (escaped(&printable(title)), escaped(&printable(about)));
    format!(
        "<figure aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{title}</h2>\n\
         <figcaption>{about}</figcaption>\n{content}</figure>\n"
    )
}
