//! What text and page both say of explanations.

use super::{grouped, printable};
use latlab_core::record::explained::Explained;
use latlab_core::time::Nanos;

/// How many wake-ups were late, and by how much.
pub(crate) fn lateness(explained: &Explained, shown: impl Fn(Nanos) -> String) -> String {
    let wake_ups = grouped(explained.wake_ups);
    let above = shown(explained.above);
    let (total, late) = (shown(explained.total), grouped(explained.late));
    match (explained.late, explained.wake_ups) {
        (0, 0) => format!("no wake-up was later than {above}"),
        (0, _) => format!("none of {wake_ups} wake-ups was later than {above}"),
        (_, 0) => format!("{late} wake-ups were later than {above}, {total} in all"),
        _ => format!("{late} of {wake_ups} wake-ups were later than {above}, {total} in all"),
    }
}

/// A part of a whole in hundredths.
#[expect(clippy::cast_precision_loss, reason = "a share has three digits")]
pub(crate) fn share(part: Nanos, whole: Nanos) -> String {
    format!("{:.1} %", 100.0 * part.0 as f64 / whole.0.max(1) as f64)
}

/// Who is to blame and in which function, as far as that is known.
pub(crate) fn where_and_who(who: &str, function: Option<&str>) -> String {
    match function {
        None => printable(who),
        Some(function) if who.is_empty() => printable(function),
        Some(function) => printable(&format!("{who} in {function}")),
    }
}
