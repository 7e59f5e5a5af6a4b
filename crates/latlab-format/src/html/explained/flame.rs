//! Flame graph of late wake-ups (Gregg, "The Flame Graph", 2016): frames as wide as the time
//! charged to them, each on top of its caller.

use super::{Block, CauseColours, Drawing, GREY, NARROWEST, Row, Shade, percent};
use crate::explained::share;
use crate::micro;
use latlab_core::record::explained::Explained;
use latlab_core::time::Nanos;

/// Most frames of a stack that are drawn; kernel stacks are less deep.
const DEEPEST: usize = 64;

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
        let blocks = level(&stacks, depth, explained.total, colours);
        // Above the last visible frame nothing is drawn.
        if !blocks.is_empty() {
            drawing.row(Row { blocks, ..Row::default() });
        }
    }
    let title = format!("all late wake-ups: {}", micro(explained.total));
    let root = frame((0.0, 100.0), GREY, title.clone(), &title);
    drawing.row(Row { blocks: vec![root], ..Row::default() });
    drawing
}

/// Returns the frames at one depth.
fn level(
    stacks: &[Stack<'_>],
    depth: usize,
    total: Nanos,
    colours: &CauseColours<'_>,
) -> Vec<Block> {
    let (mut reached, mut blocks) = (Nanos(0), Vec::new());
    for run in stacks.chunk_by(|(a, _), (b, _)| a.get(..=depth) == b.get(..=depth)) {
        let length = run.iter().fold(Nanos(0), |sum, (_, ns)| sum + *ns);
        let (from, width) = (percent(reached, total), percent(length, total));
        reached = reached + length;
        let Some(name) = run[0].0.get(depth).filter(|_| width >= NARROWEST) else { continue };
        let title = format!("{name}: {} ({})", micro(length), share(length, total));
        blocks.push(frame((from, width), colours.colour(run[0].0[0]), title, name));
    }
    blocks
}

fn frame(place: (f64, f64), colour: &'static str, title: String, name: &str) -> Block {
    Block { place, colour, shade: Shade::Half, title, text: name.to_owned() }
}
