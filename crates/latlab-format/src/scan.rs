//! Scans in words: the call and the result.

use super::{grouped, part, printable};
use latlab_core::plan::Part;
use latlab_core::scan::{Interrupt, Offset, Scan};
use latlab_core::time::Nanos;

/// Formats a call as on the command line.
pub fn call(call: &Part) -> String {
    printable(&part(call))
}

/// Returns the name of an interrupt source on the command line.
pub fn interrupt(interrupt: Interrupt) -> &'static str {
    let known = Interrupt::ALL.iter().find(|(_, one)| *one == interrupt);
    known.map_or("", |(word, _)| word)
}

/// Returns the result of a scan as a sentence. `shown` formats times.
pub fn finding(scan: &Scan, shown: impl Fn(Nanos) -> String) -> String {
    let Some(longest) = scan.longest() else {
        let unseen = shown(scan.detection_limit());
        return format!("no non-preemptible section > {unseen} found (detection limit)");
    };
    let length = shown(longest.length());
    let start = shown(Nanos(longest.start.unsigned_abs()));
    let side = if longest.start < 0 { "before" } else { "into" };
    match u64::try_from(scan.sections.len()).unwrap_or(u64::MAX) {
        1 => format!("1 non-preemptible section: {length}, starting {start} {side} the call"),
        many => format!(
            "{} non-preemptible sections, the longest {length}, starting {start} {side} the call",
            grouped(many)
        ),
    }
}

/// Formats an offset or a length in microseconds, to the nanosecond.
pub fn micros(time: Offset) -> String {
    let (whole, rest) = (time.unsigned_abs() / 1_000, time.unsigned_abs() % 1_000);
    let sign = if time < 0 { "−" } else { "" };
    format!("{sign}{}.{rest:03}", grouped(whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use serde_json::json;

    #[test]
    fn call_is_formatted_as_on_command_line() {
        let shown = |params: Value| {
            let Value::Object(params) = params else { panic!("{params}") };
            call(&Part { name: "driver".to_owned(), params })
        };
        assert_eq!(
            shown(json!({ "length": 482_000, "points": 3 })),
            "driver:length=482us,points=3"
        );

        assert_eq!(shown(json!({ "length": 0 })), "driver:length=0ns");
    }
}
