//! Time lines of the worst wake-ups, on one scale.

use super::{CauseColours, Drawing, GREY, WIDTH, fitted, scaled};
use crate::format::explained::culprit_and_function;
use crate::format::micro;
use crate::format::picture::round_step;
use latlab_core::explain::names::culprit;
use latlab_core::record::{Charge, Sample};
use latlab_core::time::Nanos;

const LEFT: f64 = 190.0;
const ROW: f64 = 26.0;
const BAR: f64 = 18.0;

pub(super) fn draw(worst: &[&Sample], colours: &CauseColours<'_>) -> Drawing {
    let mut drawing = Drawing::default();
    let longest = worst.iter().map(|sample| sample.latency).max().unwrap_or_default();
    let place = |time: Nanos| LEFT + scaled(time, longest, WIDTH - LEFT);
    for sample in worst {
        let y = drawing.height;
        let name = fitted(&format!("{} · CPU {}", sample.probe, sample.cpu), LEFT - 75.0);
        drawing.text(0.0, y + BAR - 4.5, "", &name);
        drawing.text(LEFT - 10.0, y + BAR - 4.5, "n muted", &micro(sample.latency));
        let rest = format!("unexplained: {}", micro(sample.unexplained.unwrap_or_default()));
        let width = place(sample.latency) - LEFT;
        drawing.block([LEFT, y, width.max(0.5), BAR], GREY, 0.45, &rest);
        for charge in &sample.causes {
            let (from, to) = (place(charge.from), place(charge.from + charge.ns));
            let width = (to - from).max(0.7);
            let colour = colours.colour(&charge.cause);
            drawing.block([from, y, width, BAR], colour, 1.0, &title(charge));
        }
        drawing.height += ROW;
    }
    axis(&mut drawing, longest, place);
    legend(&mut drawing, worst, colours);
    drawing
}

fn title(charge: &Charge) -> String {
    let culprit = culprit_and_function(&charge.culprit, culprit(&charge.stack));
    let stack: String = charge.stack.iter().map(|function| format!(" ← {function}")).collect();
    let (from, length) = (micro(charge.from), micro(charge.ns));
    let colon = if culprit.is_empty() { "" } else { ": " };
    format!("{} {length} after {from}{colon}{culprit}{stack}", charge.cause)
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "ticks are whole numbers of a few digits"
)]
fn axis(drawing: &mut Drawing, longest: Nanos, place: impl Fn(Nanos) -> f64) {
    let step = (round_step(longest.0 as f64) as u64).max(1);
    for tick in (0..=longest.0 / step).map(|n| Nanos(n * step)) {
        let at_end = place(tick) > WIDTH - 50.0;
        let class = if at_end { "n muted" } else { "muted" };
        drawing.text(place(tick), drawing.height + 8.0, class, &micro(tick));
    }
    drawing.height += 22.0;
}

/// Names the causes that occur in the drawing.
fn legend(drawing: &mut Drawing, worst: &[&Sample], colours: &CauseColours<'_>) {
    let mut x = LEFT;
    for cause in &colours.0 {
        let seen = worst.iter().any(|sample| sample.causes.iter().any(|c| c.cause == *cause));
        let letters = u32::try_from(cause.chars().count()).unwrap_or(u32::MAX);
        let width = f64::from(letters) * 6.7 + 34.0;
        if !seen {
            continue;
        }
        if x + width > WIDTH {
            x = LEFT;
            drawing.height += 20.0;
        }
        drawing.block([x, drawing.height, 12.0, 12.0], colours.colour(cause), 1.0, cause);
        drawing.text(x + 17.0, drawing.height + 10.5, "", cause);
        x += width;
    }
    drawing.height += 18.0;
}
