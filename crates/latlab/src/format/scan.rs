//! Scans in words: what was called, what was found.

use super::{grouped, part, printable};
use latlab_core::plan::Part;
use latlab_core::scan::{Interrupt, Offset, Scan};
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use serde_json::Value;

/// A call as it is written on the command line.
pub(crate) fn call(call: &Part) -> String {
    let mut call = call.clone();
    for (name, value) in &mut call.params {
        let Some(number) = value.as_u64() else { continue };
        // As plans keep them, numbers have no units.
        match name.as_str() {
            "size" => *value = Value::String(Bytes(number).to_string()),
            "length" => *value = Value::String(written(Nanos(number))),
            _ => {}
        }
    }
    printable(&part(&call))
}

/// A time as it is written on the command line.
pub(crate) fn written(time: Nanos) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
    let fits = |(_, scale): &&(&str, u64)| time.0 >= *scale && time.0.is_multiple_of(*scale);
    let (unit, scale) = units.iter().find(fits).unwrap_or(&("ns", 1));
    format!("{}{unit}", time.0 / scale)
}

/// What interrupts a call, as users write it.
pub(crate) fn interrupt(interrupt: Interrupt) -> &'static str {
    let known = Interrupt::ALL.iter().find(|(_, one)| *one == interrupt);
    known.map_or("", |(word, _)| word)
}

/// What a scan found out, in a sentence, with times as `shown` shows them.
pub(crate) fn finding(scan: &Scan, shown: impl Fn(Nanos) -> String) -> String {
    let Some(longest) = scan.longest() else {
        let unseen = shown(scan.longest_unseen());
        return format!("no stretch that can't be preempted is longer than {unseen}");
    };
    let length = shown(longest.length());
    let start = shown(Nanos(longest.start.unsigned_abs()));
    let side = if longest.start < 0 { "before" } else { "into" };
    match u64::try_from(scan.regions.len()).unwrap_or(u64::MAX) {
        1 => format!("one stretch can't be preempted: {length}, beginning {start} {side} the call"),
        many => format!(
            "{} stretches can't be preempted, the longest for {length}, beginning {start} {side} \
             the call",
            grouped(many)
        ),
    }
}

/// A moment or a length in microseconds, to the nanosecond.
pub(crate) fn micros(time: Offset) -> String {
    let (whole, rest) = (time.unsigned_abs() / 1_000, time.unsigned_abs() % 1_000);
    let sign = if time < 0 { "−" } else { "" };
    format!("{sign}{}.{rest:03}", grouped(whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_is_shown_as_it_was_written() {
        let shown = |params: Value| {
            let Value::Object(params) = params else { panic!("{params}") };
            call(&Part { name: "driver".to_owned(), params })
        };
        assert_eq!(
            shown(json!({ "length": 482_000, "points": 3 })),
            "driver:length=482us,points=3"
        );
        assert_eq!(shown(json!({ "size": 4 << 20 })), "driver:size=4MiB");
        assert_eq!(shown(json!({ "length": 0 })), "driver:length=0ns");
    }
}
