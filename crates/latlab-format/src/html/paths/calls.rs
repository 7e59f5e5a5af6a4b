//! Calls over time: below each function its callees, at the top the times when interrupts and
//! preemption were off.

use super::super::drawing::{Block, Drawing, GREY, NARROWEST, Row, Shade, percent};
use super::FunctionColours;
use crate::micro;
use latlab_core::path::{DisabledSection, Frame, IDLE, Off, Path};
use latlab_core::time::Nanos;

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

    /// Returns the begin and the width of an interval, in percent.
    fn place(&self, from: Nanos, ns: Nanos) -> (f64, f64) {
        let place = |time: Nanos| percent(time, self.length);
        let (from, to) = (place(from - self.from), place((from + ns) - self.from));
        (from, to - from)
    }
}

pub(super) fn draw(path: &Path, colours: &FunctionColours<'_>) -> Drawing {
    let span = DrawnSpan::of(path);
    let mut drawing = Drawing::default();
    let strips = [
        (Off::Interrupts, "interrupts off", Shade::Full),
        (Off::Preemption, "preemption off", Shade::Half),
    ];
    for (what, name, shade) in strips {
        let held = path.held.iter().filter(|held| held.what == what);
        let blocks = held.map(|held| Block {
            place: span.place(held.from, held.ns),
            colour: GREY,
            shade,
            title: disabled_by(held, name),
            text: String::new(),
        });
        drawing.row(Row { name: name.to_owned(), blocks: blocks.collect(), ..Row::default() });
    }
    for blocks in levels(path, &span, colours) {
        drawing.row(Row { blocks, ..Row::default() });
    }
    drawing.axis(span.length);
    drawing
}

/// Returns the functions that are long enough to be visible, by depth.
fn levels(path: &Path, span: &DrawnSpan, colours: &FunctionColours<'_>) -> Vec<Vec<Block>> {
    let frames = path.frames();
    let ran = |frame: &&Frame<'_>| frame.from + frame.ns > span.from && frame.depth < DEEPEST;
    let frames: Vec<&Frame<'_>> = frames.iter().filter(ran).collect();
    let highest = frames.iter().map(|frame| frame.depth).min().unwrap_or_default();
    let mut levels: Vec<Vec<Block>> = Vec::new();
    for frame in frames {
        let place = span.place(frame.from, frame.ns);
        if place.1 < NARROWEST {
            continue;
        }
        let level = (frame.depth - highest) as usize;
        levels.resize_with(levels.len().max(level + 1), Vec::new);
        levels[level].push(Block {
            place,
            colour: colours.colour(frame.function),
            shade: if frame.function == IDLE { Shade::Faint } else { Shade::Half },
            title: format!("{}: {}", frame.function, micro(frame.ns)),
            text: frame.function.to_owned(),
        });
    }
    levels
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
        let marks = draw(&path, &FunctionColours::of(&path)).markup("path").into_string();
        for part in [
            "handler: 1 µs",
            "&lt;wake&gt;: 800 ns",
            "interrupts off for 500 ns by handler",
            "left:10.00%",
            "left:50.00%",
        ] {
            assert!(marks.contains(part), "no {part} in {marks}");
        }
        assert!(!marks.contains("short"), "{marks}");
        assert!(!marks.contains("NaN") && !marks.contains("left:-"), "{marks}");
    }
}
