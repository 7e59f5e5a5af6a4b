//! The flame graph (Gregg, "The Flame Graph", 2016): frames as wide as the time charged to them,
//! each on top of the one that called it.

use super::{Drawing, GREY, Palette, WIDTH, fitted, scaled};
use crate::format::explained::share;
use crate::format::micro;
use latlab_core::record::explained::Explained;
use latlab_core::time::Nanos;

const ROW: f64 = 19.0;

/// No stack of the kernel is as deep.
const DEEPEST: usize = 64;

/// A frame that is narrower is not seen, and there may be thousands.
const NARROWEST: f64 = 0.3;

/// Frames from the outermost on, and how long.
type Stack<'a> = (Vec<&'a str>, Nanos);

pub(super) fn draw(explained: &Explained, palette: &Palette<'_>) -> Drawing {
    let mut stacks: Vec<Stack<'_>> = explained
        .stacks
        .iter()
        .map(|stack| (stack.stack.split(';').take(DEEPEST).collect(), stack.ns))
        .collect();
    stacks.push((vec!["unexplained"], explained.unexplained));
    // So that stacks that begin alike are neighbours, and a frame is one run of them.
    stacks.sort();
    let deepest = stacks.iter().map(|(frames, _)| frames.len()).max().unwrap_or_default();
    let mut drawing = Drawing::default();
    for depth in (0..deepest).rev() {
        level(&mut drawing, &stacks, depth, explained.total, palette);
        drawing.height += ROW;
    }
    let title = format!("all late wake-ups: {}", micro(explained.total));
    frame(&mut drawing, 0.0, WIDTH, GREY, [&title, &title]);
    drawing.height += ROW;
    drawing
}

/// The frames with so many below them.
fn level(
    drawing: &mut Drawing,
    stacks: &[Stack<'_>],
    depth: usize,
    total: Nanos,
    palette: &Palette<'_>,
) {
    let mut reached = Nanos(0);
    for run in stacks.chunk_by(|(a, _), (b, _)| a.get(..=depth) == b.get(..=depth)) {
        let length = run.iter().fold(Nanos(0), |sum, (_, ns)| sum + *ns);
        let (x, width) = (scaled(reached, total, WIDTH), scaled(length, total, WIDTH));
        reached = reached + length;
        let Some(name) = run[0].0.get(depth).filter(|_| width >= NARROWEST) else { continue };
        let title = format!("{name}: {} ({})", micro(length), share(length, total));
        frame(drawing, x, width, palette.colour(run[0].0[0]), [name, &title]);
    }
}

fn frame(drawing: &mut Drawing, x: f64, width: f64, colour: &str, [name, title]: [&str; 2]) {
    let y = drawing.height;
    let seen = (width - 0.7).max(NARROWEST);
    drawing.block([x, y, seen, ROW - 1.0], colour, 0.5, title);
    let text = fitted(name, width - 8.0);
    if !text.is_empty() {
        drawing.text(x + 4.0, y + ROW - 6.0, "", &text);
    }
}
