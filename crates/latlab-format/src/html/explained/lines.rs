//! Time lines of the worst wake-ups, on one scale.

use super::{Block, CauseColours, Drawing, GREY, Row, Shade, largest, percent};
use crate::explained::culprit_in;
use crate::micro;
use latlab_core::explain::names::culprit;
use latlab_core::record::{Charge, Record, Sample};

pub(super) fn draw(record: &Record, worst: &[&Sample], colours: &CauseColours<'_>) -> Drawing {
    let mut drawing = Drawing::default();
    let longest = worst.iter().map(|sample| sample.latency).max().unwrap_or_default();
    for sample in worst {
        let rest = Block {
            place: (0.0, percent(sample.latency, longest)),
            colour: GREY,
            shade: Shade::Half,
            title: format!("unexplained: {}", micro(sample.unexplained.unwrap_or_default())),
            text: String::new(),
        };
        let charges = sample.causes.iter().map(|charge| Block {
            place: (percent(charge.from, longest), percent(charge.ns, longest)),
            colour: colours.colour(&charge.cause),
            shade: Shade::Full,
            title: title(record, charge),
            text: String::new(),
        });
        drawing.row(Row {
            name: format!("{} · {}", sample.probe, record.cpus_of(sample).in_words()),
            value: micro(sample.latency),
            blocks: std::iter::once(rest).chain(charges).collect(),
            note: largest(record, sample),
        });
    }
    drawing.axis(longest);
    for cause in &colours.0 {
        if worst.iter().any(|sample| sample.causes.iter().any(|c| c.cause == *cause)) {
            drawing.explain(colours.colour(cause), cause);
        }
    }
    drawing
}

fn title(record: &Record, charge: &Charge) -> String {
    let who = (&*charge.cause, &*charge.culprit);
    let culprit = culprit_in(record, who, culprit(&charge.stack), charge.ns);
    let stack: String = charge.stack.iter().map(|function| format!(" ← {function}")).collect();
    let (from, length) = (micro(charge.from), micro(charge.ns));
    let colon = if culprit.is_empty() { "" } else { ": " };
    format!("{} {length} after {from}{colon}{culprit}{stack}", charge.cause)
}
