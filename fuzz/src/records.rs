//! Records, and what they consist of: histograms and paths.

use arbitrary::{Arbitrary, Unstructured};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use latlab_check::marks_of_file;
use latlab_core::bound::{self, Observation, compose};
use latlab_core::histogram::Histogram;
use latlab_core::path::{Location, Misses, Path, Trace};
use latlab_core::record::Record;
use latlab_core::time::Nanos;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write as _;

/// A record as a file: what is accepted is written as a record of the same meaning.
pub fn record(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(record) = Record::from_json(text) {
        let written = record.to_json();
        let again = Record::from_json(&written).expect("latlab reads what it writes");
        assert_eq!(again.to_json(), written);
        record.worst.iter().filter_map(|sample| sample.path.as_ref()).for_each(use_path);
    }
}

/// The bytes of a histogram's inner format, which the target compresses and encodes, so that the
/// engine changes counts and not checksums.
pub fn histogram(bytes: &[u8]) {
    let _ = Histogram::decode(&String::from_utf8_lossy(bytes), Nanos(0), Nanos(0), 0);
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).expect("writing to memory does not fail");
    let packed = packed.finish().expect("writing to memory does not fail");
    let length = u32::try_from(packed.len()).expect("inputs are short").to_be_bytes();
    let text = BASE64.encode([&0x1c84_9314_u32.to_be_bytes()[..], &length, &packed].concat());
    let Ok(histogram) = Histogram::decode(&text, Nanos(1), Nanos(1_000), 5) else { return };
    let count = histogram.count();
    assert_eq!(histogram.buckets().map(|bucket| bucket.count).sum::<u64>(), count);
    assert_eq!(histogram.above().len(), histogram.buckets().count());
    let _ = (histogram.quantiles(), histogram.mean(), histogram.stddev());
    assert!(histogram.count_above(Nanos(0)) <= count);
    let (min, max, sum) = (histogram.min(), histogram.max(), histogram.sum());
    let again = Histogram::decode(&histogram.encode(), min, max, sum).expect("latlab wrote it");
    assert_eq!(again.count(), count);
    let mut sum = again;
    sum.add(&histogram);
    let _ = sum.corrected(Nanos::from_millis(1));
}

/// A trace of the plugin as text.
pub fn trace(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    for trace in Trace::read(text).unwrap_or_default() {
        check_path(&trace);
    }
}

/// What the plugin counted, as text: a mean is 0 only where a count is.
pub fn misses(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let all = Misses::read(text).unwrap_or_default();
    for (of, mean) in Misses::means(&all) {
        let of_one = || all.iter().filter(|one| one.of == of).map(|one| one.number);
        let least = of_one().min().expect("it has a mean");
        assert!(least == 0 || mean > 0.0, "{of}: {mean}");
    }
}

/// The sections and interrupts that the plugin wrote: what comes of them is composed to a bound, or to
/// none.
pub fn bound(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(trace) = bound::Trace::read(text) else { return };
    let record = Record::from_json(include_str!("../records/cyclic.json"));
    let record = record.expect("it is a record");
    let Ok(observed) = Observation::of(&trace, &record, |_| None) else { return };
    let Some(bound) = compose(std::slice::from_ref(&observed)) else { return };
    assert!(bound.ns >= observed.timer, "{bound:?}");
}

/// The notes of a program file: each mark takes more than twelve bytes.
pub fn marks(bytes: &[u8]) {
    assert!(marks_of_file(bytes).len() <= bytes.len() / 12);
}

/// A line of a trace.
#[derive(Arbitrary)]
enum Line {
    Sample { latency: u32 },
    Block { name: u8, in_kernel: bool, address: u8, effects: Vec<(u8, Kind)> },
    Run { block: u8, executed: u8, times: u16 },
    Idle(u32),
    End,
}

/// The effect of an instruction.
#[derive(Arbitrary)]
enum Kind {
    Call,
    Return,
    Leave,
    Off,
    On,
    Restore,
    Preempt(i8),
}

/// A trace of well-formed lines in any order.
pub fn path(bytes: &[u8]) {
    let Ok(lines) = Vec::<Line>::arbitrary_take_rest(Unstructured::new(bytes)) else { return };
    let text: String = lines.iter().map(written).collect();
    for trace in Trace::read(&text).unwrap_or_default() {
        check_path(&trace);
    }
}

fn written(line: &Line) -> String {
    match line {
        Line::Sample { latency } => format!("sample 1 {latency} 0\n"),
        Line::Block { name, in_kernel, address, effects } => {
            let half = if *in_kernel { u64::MAX << 32 } else { 0 };
            let mut text = format!("block {name:x} 0x{:x}", half | u64::from(*address));
            for (after, kind) in effects {
                let _ = match kind {
                    Kind::Call => write!(text, " {after}c"),
                    Kind::Return => write!(text, " {after}r"),
                    Kind::Leave => write!(text, " {after}l"),
                    Kind::Off => write!(text, " {after}d"),
                    Kind::On => write!(text, " {after}e"),
                    Kind::Restore => write!(text, " {after}p"),
                    Kind::Preempt(by) => write!(text, " {after}n{by}"),
                };
            }
            text + "\n"
        }
        Line::Run { block, executed, times } => format!("run {block:x} {executed} {times}\n"),
        Line::Idle(ns) => format!("idle {ns}\n"),
        Line::End => "end\n".to_owned(),
    }
}

/// The parts of a path add up to the latency.
fn check_path(trace: &Trace) {
    let names = ["f", "asm_exc", "_raw_spin_lock", "irq_entries_start"];
    let place = |address: u64| {
        let (nth, offset) = (usize::try_from(address >> 2 & 3).ok()?, address & 3);
        (address & 16 == 0).then(|| Location { function: names[nth], offset })
    };
    let path = Path::of(trace, place);
    let steps: u64 = path.steps.iter().map(|step| step.instructions).sum();
    assert_eq!(steps + path.unseen.0, trace.latency.0, "{path:?}");
    use_path(&path);
}

/// What reports take from a path.
fn use_path(path: &Path) {
    let frames = path.frames();
    assert!(frames.iter().all(|frame| !frame.function.is_empty() || frame.depth <= 1_000));
    let _ = (path.culprit(), path.instructions(), path.idle_before());
}

/// A change of one value in a record.
#[derive(Arbitrary, Debug)]
struct Edit {
    /// Which value, modulo their number.
    which: u16,
    to: Replacement,
}

/// The new value.
#[derive(Arbitrary, Debug)]
enum Replacement {
    Null,
    Flag(bool),
    Small(u8),
    Whole(u64),
    Negative(i64),
    Float(f64),
    Text(String),
    /// A copy of another value, modulo their number.
    Copy(u16),
    /// An empty list.
    Nothing,
    /// The number, and one added or taken away; a list twice, or without its first element.
    More,
    Less,
}

/// A valid record with some values changed: what is still accepted can be shown in every form.
pub fn report(bytes: &[u8]) {
    static RECORDS: &[&str] = &[
        include_str!("../records/cyclic.json"),
        include_str!("../records/explained.json"),
        include_str!("../records/path.json"),
        include_str!("../records/scan.json"),
    ];
    let mut input = Unstructured::new(bytes);
    let Ok(which) = input.int_in_range(0..=RECORDS.len() - 1) else { return };
    let Ok(edits) = Vec::<Edit>::arbitrary_take_rest(input) else { return };
    let mut record: Value = serde_json::from_str(RECORDS[which]).expect("it is JSON");
    for edit in &edits {
        let mut places = Vec::new();
        list(&record, String::new(), &mut places);
        let place = |nth: u16| places[usize::from(nth) % places.len()].as_str();
        let new = replacement(&edit.to, &record, place(edit.which), place);
        *record.pointer_mut(place(edit.which)).expect("it was listed") = new;
    }
    if let Ok(record) = Record::from_json(&record.to_string()) {
        crate::programs::report(record);
    }
}

/// Adds the JSON pointers of all values in this one, itself included.
fn list(value: &Value, place: String, to: &mut Vec<String>) {
    match value {
        Value::Array(all) => {
            all.iter().enumerate().for_each(|(n, one)| list(one, format!("{place}/{n}"), to));
        }
        Value::Object(all) => {
            for (key, one) in all {
                let key = key.replace('~', "~0").replace('/', "~1");
                list(one, format!("{place}/{key}"), to);
            }
        }
        _ => {}
    }
    to.push(place);
}

fn replacement<'a>(
    to: &Replacement,
    record: &Value,
    place: &str,
    other: impl Fn(u16) -> &'a str,
) -> Value {
    let at = |place: &str| record.pointer(place).cloned().unwrap_or_default();
    let step = |by: i64| match at(place) {
        Value::Number(number) => number.as_u64().map_or(0, |n| n.wrapping_add_signed(by)).into(),
        Value::Array(all) if by > 0 => [all.clone(), all].concat().into(),
        Value::Array(all) => all.into_iter().skip(1).collect(),
        other => other,
    };
    match to {
        Replacement::Null => Value::Null,
        Replacement::Flag(flag) => (*flag).into(),
        Replacement::Small(number) => (*number).into(),
        Replacement::Whole(number) => (*number).into(),
        Replacement::Negative(number) => (*number).into(),
        Replacement::Float(number) => (*number).into(),
        Replacement::Text(text) => text.as_str().into(),
        Replacement::Copy(nth) => at(other(*nth)),
        Replacement::Nothing => Value::Array(Vec::new()),
        Replacement::More => step(1),
        Replacement::Less => step(-1),
    }
}
