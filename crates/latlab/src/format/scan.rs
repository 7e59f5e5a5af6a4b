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
    if let Some(size) = call.params.get_mut("size")
        && let Some(bytes) = size.as_u64()
    {
        *size = Value::String(Bytes(bytes).to_string());
    }
    printable(&part(&call))
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
