//! Latency by cause: a bar for each cause, divided among its culprits.

use super::{CauseColours, Drawing, GREY, WIDTH, scaled};
use crate::format::explained::{culprit_and_function, share};
use crate::format::micro;
use latlab_core::record::explained::{Explained, Share};
use latlab_core::time::Nanos;

const LEFT: f64 = 140.0;
const RIGHT: f64 = 150.0;
const ROW: f64 = 26.0;
const BAR: f64 = 18.0;

pub(super) fn draw(explained: &Explained, colours: &CauseColours<'_>) -> Drawing {
    let mut drawing = Drawing::default();
    let of = |cause: &&str| -> Vec<&Share> {
        explained.causes.iter().filter(|share| share.cause == *cause).collect()
    };
    let sum = |shares: &[&Share]| shares.iter().fold(Nanos(0), |sum, share| sum + share.total);
    let all = colours.0.iter().map(of);
    let longest = all.map(|shares| sum(&shares)).chain([explained.unexplained]).max();
    let longest = longest.unwrap_or_default();
    let length = |time| scaled(time, longest, WIDTH - LEFT - RIGHT);
    for cause in &colours.0 {
        let shares = of(cause);
        if shares.is_empty() {
            continue;
        }
        let mut x = LEFT;
        for part in &shares {
            let culprit = culprit_and_function(&part.culprit, part.function.as_deref());
            let title = format!("{cause} {} {culprit}", micro(part.total));
            let width = length(part.total);
            // A gap separates neighbours.
            let seen = (width - 1.0).max(0.5);
            drawing.block([x, drawing.height, seen, BAR], colours.colour(cause), 1.0, &title);
            x += width;
        }
        labels(&mut drawing, cause, sum(&shares), explained.total, x);
    }
    let width = length(explained.unexplained);
    drawing.block([LEFT, drawing.height, width.max(0.5), BAR], GREY, 1.0, "unexplained");
    labels(&mut drawing, "unexplained", explained.unexplained, explained.total, LEFT + width);
    drawing
}

fn labels(drawing: &mut Drawing, cause: &str, sum: Nanos, total: Nanos, end: f64) {
    let line = drawing.height + BAR - 4.5;
    drawing.text(LEFT - 10.0, line, "n", cause);
    drawing.text(end + 6.0, line, "muted", &format!("{} · {}", share(sum, total), micro(sum)));
    drawing.height += ROW;
}
