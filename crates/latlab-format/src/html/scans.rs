//! Tables and headlines of scans.

use super::Scope;
use super::figure::Level;
use super::headline::Headline;
use super::table::{TableColumn, number, section, words};
use crate::picture::{NamedRecord, ScannedCall, calls};
use crate::scan::{finding, interrupt, micros};
use crate::{grouped, micro, printable};
use latlab_core::scan::{Scan, Section};
use latlab_core::time::Nanos;
use maud::{Markup, html};

/// A table of all scans, and one with the non-preemptible sections of each scan that found any.
pub(super) fn tables(scope: Scope<'_>) -> Markup {
    let calls = calls(scope.sources);
    html! {
        (results(scope.level, &calls))
        @for (name, scan) in calls.iter().flat_map(named) {
            (sections(scope.level, &name, scan))
        }
    }
}

/// A headline for each scan.
pub(super) fn headlines(sources: &[NamedRecord]) -> Vec<Headline> {
    let calls = calls(sources);
    let headlines = calls.iter().flat_map(named).map(|(subject, scan)| Headline {
        subject,
        text: finding(scan, micro),
        notes: vec![format!("PDLT outside of the call: {}", micro(scan.baseline))],
    });
    headlines.collect()
}

/// The scans of a call with names that are distinct among all scans.
fn named<'a>(call: &'a ScannedCall<'_>) -> impl Iterator<Item = (String, &'a Scan)> {
    call.scans.iter().map(|(name, scan)| {
        let mut parts = vec![call.text.clone()];
        match &scan.profile {
            Some(profile) if call.scans.len() == 1 => parts.push(printable(profile)),
            _ => parts.extend((!name.is_empty()).then(|| name.clone())),
        }
        (parts.join(" · "), *scan)
    })
}

fn results(level: Level, calls: &[ScannedCall<'_>]) -> Markup {
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
        number("sections"),
        number("longest"),
    ];
    let note = "Call: median duration of the call without an interrupt. Baseline: PDLT outside of \
                the call. Noise: typical distance between the median and the minimum at one \
                offset. Sections: non-preemptible sections; if none was found, longest is the \
                detection limit.";
    section(level, "Scans", note, &columns, &rows)
}

fn row((name, scan): (String, &Scan)) -> Vec<String> {
    let count = |list: usize| grouped(u64::try_from(list).unwrap_or(u64::MAX));
    let longest = match scan.longest() {
        Some(section) => micro(section.length()),
        None => format!("below {}", micro(scan.detection_limit())),
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
        count(scan.sections.len()),
        longest,
    ]
}

fn sections(level: Level, name: &str, scan: &Scan) -> Markup {
    let mut columns: Vec<TableColumn<'_>> =
        ["start [µs]", "end [µs]", "length [µs]", "peak PDLT [µs]"].map(number).into();
    let known = scan.sections.iter().any(|section| section.function.is_some());
    columns.extend(known.then(|| words("function")));
    let row = |section: &Section| {
        let length = |time: Nanos| micros(i64::try_from(time.0).unwrap_or(i64::MAX));
        let mut row = vec![micros(section.start), micros(section.end)];
        row.extend([section.length(), section.peak].map(length));
        row.push(section.function.as_deref().map(printable).unwrap_or_default());
        row
    };
    let rows: Vec<Vec<String>> = scan.sections.iter().map(row).collect();
    let title = format!("Non-preemptible sections: {name}");
    let note = "Start and end are offsets of the interrupt from the start of the call.";
    section(level, &title, note, &columns, &rows)
}
