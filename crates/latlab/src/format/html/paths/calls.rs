//! Calls over time: below each function its callees, at the top the times when interrupts and
//! preemption were off.

use super::super::drawing::{Drawing, GREY, WIDTH, fitted, scaled};
use super::FunctionColours;
use crate::format::micro;
use crate::format::picture::round_step;
use latlab_core::path::{DisabledSection, Frame, IDLE, Off, Path};
use latlab_core::time::Nanos;

const LEFT: f64 = 104.0;
const ROW: f64 = 17.0;
const STRIP: f64 = 14.0;

/// Narrower functions are left out, in pixels: they are invisible, and there may be thousands.
const NARROWEST: f64 = 0.4;

/// Deeper calls are not drawn.
const DEEPEST: u32 = 40;

/// The part of a path that is drawn: from its first instruction.
struct DrawnSpan {
    from: Nanos,
    length: Nanos,
}

impl DrawnSpan {
    fn of(path: &Path) -> DrawnSpan {
        let from = path.idle_before();
        let all = path.steps.iter().map(|step| step.instructions).sum();
        DrawnSpan { from, length: Nanos(all) - from }
    }

    /// Returns where an interval begins and ends, in pixels.
    fn place(&self, from: Nanos, ns: Nanos) -> (f64, f64) {
        let place = |time: Nanos| LEFT + scaled(time, self.length, WIDTH - LEFT);
        (place(from - self.from), place((from + ns) - self.from))
    }
}

pub(super) fn draw(path: &Path, colours: &FunctionColours<'_>) -> Drawing {
    let span = DrawnSpan::of(path);
    let mut drawing = Drawing::default();
    let strips =
        [(Off::Interrupts, "interrupts off", 0.85), (Off::Preemption, "preemption off", 0.5)];
    for (what, name, opacity) in strips {
        strip(&mut drawing, path, &span, what, (name, opacity));
    }
    drawing.height += 4.0;
    let top = drawing.height;
    let frames = path.frames();
    let ran = |frame: &&Frame<'_>| frame.from + frame.ns > span.from && frame.depth < DEEPEST;
    let frames: Vec<&Frame<'_>> = frames.iter().filter(ran).collect();
    let highest = frames.iter().map(|frame| frame.depth).min().unwrap_or_default();
    for frame in frames {
        let y = top + ROW * f64::from(frame.depth - highest);
        if block(&mut drawing, frame, &span, y, colours) {
            drawing.height = drawing.height.max(y + ROW);
        }
    }
    axis(&mut drawing, &span);
    drawing
}

/// Draws when interrupts or preemption were off, with the function that disabled them.
fn strip(
    drawing: &mut Drawing,
    path: &Path,
    span: &DrawnSpan,
    what: Off,
    (name, opacity): (&str, f64),
) {
    let y = drawing.height;
    drawing.text(LEFT - 8.0, y + STRIP - 4.0, "n muted", name);
    for held in path.held.iter().filter(|held| held.what == what) {
        let (from, to) = span.place(held.from, held.ns);
        let width = (to - from).max(0.5);
        drawing.block([from, y, width, STRIP - 3.0], GREY, opacity, &disabled_by(held, name));
    }
    drawing.height += STRIP;
}

fn disabled_by(held: &DisabledSection, name: &str) -> String {
    if held.from == Nanos(0) {
        return format!(
            "{name} for {} since before the trace, in {}",
            micro(held.ns),
            held.function
        );
    }
    format!("{name} for {} by {}", micro(held.ns), held.function)
}

/// Draws one function; returns whether it is long enough to be visible.
fn block(
    drawing: &mut Drawing,
    frame: &Frame<'_>,
    span: &DrawnSpan,
    y: f64,
    colours: &FunctionColours<'_>,
) -> bool {
    let (from, to) = span.place(frame.from, frame.ns);
    let width = to - from;
    if width < NARROWEST {
        return false;
    }
    let colour = colours.colour(frame.function);
    let opacity = if frame.function == IDLE { 0.15 } else { 0.5 };
    let title = format!("{}: {}", frame.function, micro(frame.ns));
    drawing.block([from, y, (width - 0.6).max(NARROWEST), ROW - 1.0], colour, opacity, &title);
    let text = fitted(frame.function, width - 6.0);
    if !text.is_empty() {
        drawing.text(from + 3.0, y + ROW - 5.0, "", &text);
    }
    true
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "ticks are whole numbers of a few digits"
)]
fn axis(drawing: &mut Drawing, span: &DrawnSpan) {
    let step = (round_step(span.length.0 as f64) as u64).max(1);
    for tick in (0..=span.length.0 / step).map(|n| Nanos(n * step)) {
        let (at, _) = span.place(span.from + tick, Nanos(0));
        let class = if at > WIDTH - 50.0 { "n muted" } else { "muted" };
        drawing.text(at, drawing.height + 12.0, class, &micro(tick));
    }
    drawing.height += 22.0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::path::{Spent, Step};

    #[test]
    fn call_long_enough_is_drawn_in_its_place() {
        let step = |function: &str, instructions, depth| Step {
            function: function.to_owned(),
            instructions,
            depth,
        };
        let path = Path {
            idle: Nanos(5_000),
            steps: vec![
                step(IDLE, 5_000, 0),
                step("handler", 100, 1),
                step("<wake>", 800, 2),
                step("short", 0, 2),
                step("handler", 100, 1),
            ],
            functions: vec![Spent { function: "<wake>".to_owned(), instructions: 800 }],
            held: vec![DisabledSection {
                what: Off::Interrupts,
                function: "handler".to_owned(),
                from: Nanos(5_500),
                ns: Nanos(500),
            }],
            ..Path::default()
        };
        let marks = draw(&path, &FunctionColours::of(&path)).svg("path", "a path").into_string();
        let whole = WIDTH - LEFT;
        let at = |share: f64| format!("x=\"{:.2}\"", LEFT + share * whole);
        for part in [
            "handler: 1 µs",
            "&lt;wake&gt;: 800 ns",
            "interrupts off for 500 ns by handler",
            &at(0.1),
            &at(0.5),
        ] {
            assert!(marks.contains(part), "no {part} in {marks}");
        }
        assert!(!marks.contains("short"), "{marks}");
        assert!(!marks.contains("NaN") && !marks.contains("x=\"-"), "{marks}");
    }
}
