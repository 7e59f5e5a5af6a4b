//! Flame graph of late wake-ups (Gregg, "The Flame Graph", 2016): frames as wide as the time
//! charged to them, each on top of its caller.

use super::{CauseColours, Drawing, GREY, WIDTH, fitted, scaled};
use crate::format::explained::share;
use crate::format::micro;
use latlab_core::record::explained::Explained;
use latlab_core::time::Nanos;

const ROW: f64 = 19.0;

/// Most frames of a stack that are drawn; kernel stacks are less deep.
const DEEPEST: usize = 64;

/// Narrower frames are left out, in pixels: they are invisible, and there may be thousands.
const NARROWEST: f64 = 0.3;

/// Frames from the outermost to the innermost, and the time charged.
type Stack<'a> = (Vec<&'a str>, Nanos);

pub(super) fn draw(explained: &Explained, colours: &CauseColours<'_>) -> Drawing {
    let mut stacks: Vec<Stack<'_>> = explained
        .stacks
        .iter()
        .map(|stack| (stack.stack.split(';').take(DEEPEST).collect(), stack.ns))
        .collect();
    stacks.push((vec!["unexplained"], explained.unexplained));
    // Stacks with a common prefix become neighbours, so that each frame is one run of them.
    stacks.sort();
    let deepest = stacks.iter().map(|(frames, _)| frames.len()).max().unwrap_or_default();
    let mut drawing = Drawing::default();
    for depth in (0..deepest).rev() {
        level(&mut drawing, &stacks, depth, explained.total, colours);
        drawing.height += ROW;
    }
    let title = format!("all late wake-ups: {}", micro(explained.total));
    frame(&mut drawing, 0.0, WIDTH, GREY, [&title, &title]);
    drawing.height += ROW;
    drawing
}

/// Draws the frames at one depth.
fn level(
    drawing: &mut Drawing,
    stacks: &[Stack<'_>],
    depth: usize,
    total: Nanos,
    colours: &CauseColours<'_>,
) {
    let mut reached = Nanos(0);
    for run in stacks.chunk_by(|(a, _), (b, _)| a.get(..=depth) == b.get(..=depth)) {
        let length = run.iter().fold(Nanos(0), |sum, (_, ns)| sum + *ns);
        let (x, width) = (scaled(reached, total, WIDTH), scaled(length, total, WIDTH));
        reached = reached + length;
        let Some(name) = run[0].0.get(depth).filter(|_| width >= NARROWEST) else { continue };
        let title = format!("{name}: {} ({})", micro(length), share(length, total));
        frame(drawing, x, width, colours.colour(run[0].0[0]), [name, &title]);
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
