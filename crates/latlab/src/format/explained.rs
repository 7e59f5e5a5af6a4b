//! Sentences about explanations that text and pages share.

use super::{grouped, printable};
use latlab_core::record::explained::Explained;
use latlab_core::time::Nanos;

/// Returns the number of late wake-ups and their total latency as a sentence. `wake_ups` is 0 where
/// those in time are not counted, and `above` is 0 until a threshold is known.
pub(crate) fn lateness(explained: &Explained, shown: impl Fn(Nanos) -> String) -> String {
    let wake_ups = grouped(explained.wake_ups);
    let above = shown(explained.above);
    let (total, late) = (shown(explained.total), grouped(explained.late));
    match (explained.late, explained.wake_ups) {
        (0, 0) if explained.above == Nanos(0) => "no wake-ups observed".to_owned(),
        (0, 0) => format!("no wake-up was later than {above}"),
        (0, _) => format!("none of {wake_ups} wake-ups was later than {above}"),
        (_, 0) => format!("{late} wake-ups were later than {above}, {total} in all"),
        _ => format!("{late} of {wake_ups} wake-ups were later than {above}, {total} in all"),
    }
}

/// Returns a part of a whole as a percentage.
#[expect(clippy::cast_precision_loss, reason = "a share has three digits")]
pub(crate) fn share(part: Nanos, whole: Nanos) -> String {
    format!("{:.1} %", 100.0 * part.0 as f64 / whole.0.max(1) as f64)
}

/// Returns the culprit and its function, as far as they are known.
pub(crate) fn culprit_and_function(culprit: &str, function: Option<&str>) -> String {
    match function {
        None => printable(culprit),
        Some(function) if culprit.is_empty() => printable(function),
        Some(function) => printable(&format!("{culprit} in {function}")),
    }
}
