//! Results of scans as text for a terminal.

use super::plain_table;
use crate::scan::{call, finding, interrupt, micros};
use crate::table::fitted;
use crate::width::Width;
use crate::{grouped, printable};
use latlab_core::record::Record;
use latlab_core::scan::{Scan, Section};
use latlab_core::time::Nanos;
use std::fmt::Write as _;

/// Most sections shown of one scan; the record has all.
const SHOWN: usize = 10;

/// Returns the scans of a record, one after another.
pub(super) fn summary(record: &Record, width: Width) -> String {
    record.scans.iter().map(|scan| format!("\n{}", scan_text(scan, width))).collect()
}

fn scan_text(scan: &Scan, width: Width) -> String {
    let kernel = scan.profile.as_deref().map(printable);
    let mut text = format!(
        "{}{} on CPU {}: takes {}, baseline {}, noise {}, {} points, interrupt: {}\n{}\n",
        call(&scan.call),
        kernel.map(|profile| format!(" on {profile}")).unwrap_or_default(),
        scan.cpu,
        scan.duration.median,
        scan.baseline,
        scan.noise,
        grouped(u64::try_from(scan.points.len()).unwrap_or(u64::MAX)),
        interrupt(scan.interrupt),
        finding(scan, |time| time.to_string()),
    );
    if !scan.sections.is_empty() {
        text += &sections(scan, width);
    }
    text
}

/// The longest sections, in order of their start.
fn sections(scan: &Scan, width: Width) -> String {
    let mut longest: Vec<&Section> = scan.sections.iter().collect();
    longest.sort_by_key(|section| std::cmp::Reverse(section.length()));
    longest.truncate(SHOWN);
    longest.sort_by_key(|section| section.start);
    let mut header = vec!["start [us]", "end [us]", "length [us]", "peak PDLT [us]"];
    let known = longest.iter().any(|section| section.function.is_some());
    header.extend(known.then_some("function"));
    let mut table = plain_table(&header);
    for section in &longest {
        let length = |time: Nanos| micros(i64::try_from(time.0).unwrap_or(i64::MAX));
        let mut row = vec![micros(section.start), micros(section.end)];
        row.extend([section.length(), section.peak].map(length));
        if known {
            row.push(section.function.as_deref().map(printable).unwrap_or_default());
        }
        table.add_row(row);
    }
    // A narrow terminal does not show the peak, then the end.
    let mut text = format!("{}\n", fitted(table, width, &[3, 1]).text);
    let more = scan.sections.len() - longest.len();
    if more > 0 {
        let _ = writeln!(text, "and {more} shorter sections");
    }
    text
}

#[cfg(test)]
mod tests;
