//! Output: text, tables, pages and pictures of results.
#![forbid(unsafe_code)]

pub mod adapting;
pub mod bound;
pub mod check;
pub mod command;
pub mod comparison;
pub mod csv;
pub mod explained;
pub mod folded;
pub mod foreign;
pub mod html;
pub mod junit;
pub mod ktap;
pub mod late;
pub mod live;
pub mod metrics;
pub mod output;
pub mod outputs;
pub mod parquet;
mod part;
pub mod perfetto;
pub mod picture;
pub mod progress;
mod record;
pub mod scan;
pub mod signature;
pub mod study;
pub mod svg;
pub mod table;
pub mod testcase;
pub mod text;
pub mod watch;
pub mod width;

pub use part::part;

use self::width::Width;
use latlab_core::brief;
use latlab_core::record::{Record, Series};
use latlab_core::time::Nanos;
use latlab_part::progress::Stream;
use latlab_sys::stdout;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Writes a message to stderr.
pub fn say(sentence: &str) {
    // If this fails, there is nowhere to report it.
    let sentence = harmless(&brief::message(sentence));
    let message = Width::of_stderr().lay_out(&format!("latlab: {sentence}"));
    let _ = writeln!(std::io::stderr().lock(), "{message}");
}

/// Writes text for people to stdout, laid out for its width.
pub fn show(text: &str) -> latlab_part::failure::Result<()> {
    put(&Width::of_stdout().lay_out(text))
}

/// Writes a result to stdout. A closed pipe, as `head` leaves behind, is no error.
pub fn put(result: &str) -> latlab_part::failure::Result<()> {
    put_styled(&harmless(result))
}

/// Whether a write to stdout found its pipe closed.
static UNREAD: AtomicBool = AtomicBool::new(false);

/// Whether nobody reads stdout any more, as far as writes have found out.
pub fn is_unread() -> bool {
    UNREAD.load(Relaxed)
}

/// Writes a result with latlab's own escape sequences to stdout. All texts from elsewhere in it are
/// [`printable`].
pub fn put_styled(result: &str) -> latlab_part::failure::Result<()> {
    if result.is_empty() {
        return Ok(());
    }
    if stdout::was_closed() {
        return Err(latlab_part::failure::failed(UNWRITTEN, "it is closed"));
    }
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(result.as_bytes()).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => {
            UNREAD.store(true, Relaxed);
            Ok(())
        }
        Err(e) => Err(latlab_part::failure::failed(UNWRITTEN, e)),
        Ok(()) => Ok(()),
    }
}

const UNWRITTEN: &str = "the result can't be written to stdout";

/// Forwards output of a program on another machine.
pub fn pass(stream: Stream, bytes: &[u8]) -> std::io::Result<()> {
    match stream {
        Stream::Stdout if stdout::was_closed() => Err(std::io::Error::other("stdout is closed")),
        Stream::Stdout => {
            std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush())
        }
        Stream::Stderr => std::io::stderr().write_all(bytes),
    }
}

/// Formats a time for pages and pictures, where every font has a µ.
pub fn micro(time: Nanos) -> String {
    with_micro(&time.to_string())
}

/// The mean or a corrected quantile of a series as `shown`, after `≥` where it is only known to be at least as long.
pub fn lower_bound(series: &Series, value: Nanos, shown: impl Fn(Nanos) -> String) -> String {
    let sign = if series.beyond.is_some() { "≥ " } else { "" };
    format!("{sign}{}", shown(value))
}

/// A quantile of a series as `shown`, after `≥` where it is only known to be at least as long.
pub fn at_least(series: &Series, value: Nanos, shown: impl Fn(Nanos) -> String) -> String {
    match series.beyond {
        Some(beyond) if value >= beyond.limit => format!("≥ {}", shown(beyond.limit)),
        _ => shown(value),
    }
}

/// Writes the microseconds of a text with a µ, for pages and pictures.
pub fn with_micro(text: &str) -> String {
    let mut parts = text.split(" us");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_unit = whole.ends_with(|c: char| c.is_ascii_digit())
            && !part.starts_with(|c: char| c.is_alphanumeric());
        whole += if is_unit { " µs" } else { " us" };
        whole += part;
    }
    whole
}

/// Returns a sentence with its first letter in upper case.
pub fn capital(sentence: &str) -> String {
    let mut rest = sentence.chars();
    let first = rest.next().map(|c| c.to_uppercase().collect::<String>());
    first.unwrap_or_default() + rest.as_str()
}

/// Formats a count in groups of three digits, separated by narrow no-break spaces; [`show`] and
/// [`say`] remove these where a program may read.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(width::SEPARATOR);
        }
        text.push(digit);
    }
    text
}

/// Formats a value with four significant digits; whole or large ones with all digits of their
/// integer part.
pub fn decimal(value: f64) -> String {
    if value.fract() == 0.0 || value.abs() >= 1_000.0 {
        return format!("{value:.0}");
    }
    let (mut digits, mut scaled) = (0, value.abs());
    while scaled < 1_000.0 && digits < 12 {
        (digits, scaled) = (digits + 1, scaled * 10.0);
    }
    format!("{value:.digits$}")
}

/// Returns the probe of a series, with the end of its span if the probe has several spans, and with
/// its [`configuration`].
pub fn series_name(record: &Record, series: &Series) -> String {
    let several = record.series.iter().any(|s| s.probe == series.probe && s.span != series.span);
    let name = &series.probe;
    let name = if several { format!("{name}: {}", series.span.1) } else { name.clone() };
    name + &configuration(record, series)
}

/// Returns the interval and the scheduling of a series, each with a comma before it, where the record
/// has the same latency with others.
pub fn configuration(record: &Record, series: &Series) -> String {
    let same = |s: &&Series| (&s.probe, &s.span) == (&series.probe, &series.span);
    let same = || record.series.iter().filter(same);
    let mut parts = Vec::new();
    if same().any(|s| s.interval != series.interval) {
        parts.push(match series.interval {
            Some(interval) => format!(", every {interval}"),
            None => ", without an interval".to_owned(),
        });
    }
    if same().any(|s| s.schedule != series.schedule) {
        parts.push(format!(", {}", scheduling(series)));
    }
    parts.concat()
}

/// Formats the policy and the priority of a series: `fifo 80`.
pub fn scheduling(series: &Series) -> String {
    let schedule = &series.schedule;
    match schedule.priority {
        0 => schedule.policy.clone(),
        priority => format!("{} {priority}", schedule.policy),
    }
}

/// Formats a value without the quotes and brackets of JSON.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name} {}", plain(value)));
            fields.collect::<Vec<_>>().join(" ")
        }
        _ => value.to_string(),
    }
}

/// Replaces the control characters of a text of several lines, which a terminal would obey.
pub fn harmless(text: &str) -> String {
    text.replace(|c: char| c.is_control() && !matches!(c, '\n' | '\t'), " ")
}

/// Replaces the control characters of a text: XML forbids them, even escaped, and a terminal would
/// obey them.
pub fn printable(text: &str) -> String {
    text.replace(|c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'), " ")
}

/// Appends a number to every name that occurred before.
pub fn numbered(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let numbered = names.map(|name| {
        let times = seen.entry(name.clone()).or_default();
        *times += 1;
        if *times == 1 { name } else { format!("{name} ({times})").trim_start().to_owned() }
    });
    numbered.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_value_has_no_json_punctuation() {
        let threads = serde_json::json!([{ "comm": "irq/9-acpi", "pid": 39, "kernel": true }, 1]);
        assert_eq!(plain(&threads), "comm irq/9-acpi pid 39 kernel true, 1");
    }

    #[test]
    fn only_units_get_a_micro_sign() {
        let shown = with_micro("up to 4.69 us; usually 3 us (5 used, 7 us)");
        assert_eq!(shown, "up to 4.69 µs; usually 3 µs (5 used, 7 µs)");
    }

    #[test]
    fn text_for_terminals_has_lines_and_no_escape_sequences() {
        assert_eq!(harmless("a\tb\n\u{1b}]0;owned\u{7}\u{9b}2J\r"), "a\tb\n ]0;owned  2J ");
    }

    #[test]
    fn decimal_has_four_significant_digits() {
        let shown = [0.0, 12.0, 123_456.7, 12.345_67, 0.012_345, -3.5, 1e-9].map(decimal);
        assert_eq!(shown, ["0", "12", "123457", "12.35", "0.01235", "-3.500", "0.000000001000"]);
    }
}
