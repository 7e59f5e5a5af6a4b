//! Latency by cause: a bar for each cause, divided among its culprits.

use super::{Block, CauseColours, Drawing, GREY, Row, Shade, percent};
use crate::explained::{culprit_in, share};
use crate::micro;
use latlab_core::record::Record;
use latlab_core::record::explained::{Explained, Share};
use latlab_core::time::Nanos;

pub(super) fn draw(record: &Record, explained: &Explained, colours: &CauseColours<'_>) -> Drawing {
    let mut drawing = Drawing::default();
    let of = |cause: &&str| -> Vec<&Share> {
        explained.causes.iter().filter(|share| share.cause == *cause).collect()
    };
    let sum = |shares: &[&Share]| shares.iter().fold(Nanos(0), |sum, share| sum + share.total);
    let all = colours.0.iter().map(of);
    let longest = all.map(|shares| sum(&shares)).chain([explained.unexplained]).max();
    let longest = longest.unwrap_or_default();
    let value = |sum| format!("{} · {}", share(sum, explained.total), micro(sum));
    for cause in &colours.0 {
        let shares = of(cause);
        if shares.is_empty() {
            continue;
        }
        let mut reached = 0.0;
        let block = |part: &&Share| {
            let place = (reached, percent(part.total, longest));
            reached += place.1;
            let (who, function) = ((&*part.cause, &*part.culprit), part.function.as_deref());
            let culprit = culprit_in(record, who, function, part.worst);
            let title = format!("{cause} {} {culprit}", micro(part.total));
            let colour = colours.colour(cause);
            Block { place, colour, shade: Shade::Full, title, text: String::new() }
        };
        drawing.row(Row {
            name: (*cause).to_owned(),
            value: value(sum(&shares)),
            blocks: shares.iter().map(block).collect(),
            note: String::new(),
        });
    }
    let rest = Block {
        place: (0.0, percent(explained.unexplained, longest)),
        colour: GREY,
        shade: Shade::Full,
        title: format!("unexplained {}", micro(explained.unexplained)),
        text: String::new(),
    };
    drawing.row(Row {
        name: "unexplained".to_owned(),
        value: value(explained.unexplained),
        blocks: vec![rest],
        note: String::new(),
    });
    drawing
}
