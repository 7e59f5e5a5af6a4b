//! The tables of what scans found out, and their verdicts.

use super::table::{Column, number, section, words};
use super::verdict::Verdict;
use crate::format::picture::{Call, Source, calls};
use crate::format::scan::{finding, interrupt, micros};
use crate::format::{grouped, micro, printable};
use latlab_core::scan::{Region, Scan};
use latlab_core::time::Nanos;

/// One table of all scans, and one of the regions of each that has any.
pub(super) fn tables(sources: &[Source]) -> String {
    let calls = calls(sources);
    let mut text = circumstances(&calls);
    for (name, scan) in calls.iter().flat_map(named) {
        text += &regions(&name, scan);
    }
    text
}

/// What each scan found out, in a sentence.
pub(super) fn verdicts(sources: &[Source]) -> Vec<Verdict> {
    let calls = calls(sources);
    let verdicts = calls.iter().flat_map(named).map(|(about, scan)| Verdict {
        about,
        text: finding(scan, micro),
        but: format!("PDLT outside of the call: {}", micro(scan.baseline)),
    });
    verdicts.collect()
}

/// The scans of a call with their names among all scans.
fn named<'a>(call: &'a Call<'_>) -> impl Iterator<Item = (String, &'a Scan)> {
    call.scans.iter().map(|(name, scan)| {
        let mut parts = vec![call.text.clone()];
        match &scan.profile {
            Some(profile) if call.scans.len() == 1 => parts.push(printable(profile)),
            _ => parts.extend((!name.is_empty()).then(|| name.clone())),
        }
        (parts.join(" · "), *scan)
    })
}

fn circumstances(calls: &[Call<'_>]) -> String {
    let rows: Vec<Vec<String>> = calls.iter().flat_map(named).map(row).collect();
    let columns = [
        words("Scan"),
        number("CPU"),
        words("interrupt"),
        number("call"),
        number("its min"),
        number("its max"),
        number("baseline"),
        number("noise"),
        number("points"),
        number("regions"),
        number("longest"),
    ];
    let note = "Call: how long it takes when nothing interrupts it, its median. Baseline: PDLT where the call \
                is not running. Noise: how far the median at one moment is above the minimum, \
                typically. Region: a stretch that can't be preempted; where there is none, the \
                longest that may have been missed.";
    section("Scans", note, &columns, &rows)
}

fn row((name, scan): (String, &Scan)) -> Vec<String> {
    let count = |list: usize| grouped(u64::try_from(list).unwrap_or(u64::MAX));
    let longest = match scan.longest() {
        Some(region) => micro(region.length()),
        None => format!("below {}", micro(scan.longest_unseen())),
    };
    vec![
        name,
        scan.cpu.to_string(),
        interrupt(scan.interrupt).to_owned(),
        micro(scan.duration.median),
        micro(scan.duration.min),
        micro(scan.duration.max),
        micro(scan.baseline),
        micro(scan.noise),
        count(scan.points.len()),
        count(scan.regions.len()),
        longest,
    ]
}

fn regions(name: &str, scan: &Scan) -> String {
    let mut columns: Vec<Column<'_>> =
        ["start [µs]", "end [µs]", "length [µs]", "peak PDLT [µs]"].map(number).into();
    let known = scan.regions.iter().any(|region| region.function.is_some());
    columns.extend(known.then(|| words("function")));
    let row = |region: &Region| {
        let length = |time: Nanos| micros(i64::try_from(time.0).unwrap_or(i64::MAX));
        let mut row = vec![micros(region.start), micros(region.end)];
        row.extend([region.length(), region.peak].map(length));
        row.push(region.function.as_deref().map(printable).unwrap_or_default());
        row
    };
    let rows: Vec<Vec<String>> = scan.regions.iter().map(row).collect();
    let title = format!("What can't be preempted: {name}");
    section(&title, "Times are those of the interrupt, after the call's begin.", &columns, &rows)
}
