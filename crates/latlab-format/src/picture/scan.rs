//! Latency of a task over the offset of the interrupt that wakes it, as in figures 3 to 8 of
//! Heursch et al. 2001: one chart for each call, with all kernels.

use super::axis::{real, round_step};
use super::{
    Area, Axis, COLOURS, CallBar, Chart, ChartLine, Marks, NamedRecord, Step, Stroke, Unit,
};
use crate::{micro, numbered, printable, scan};
use latlab_core::scan::{Offset, Point, Scan};
use latlab_core::time::Nanos;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Most scans in one chart.
const MOST: usize = 24;

/// A call with all its scans.
#[derive(Debug)]
pub struct ScannedCall<'a> {
    /// As on the command line, shortened for a heading.
    pub text: String,
    /// The scans with distinct names; the name of a single scan is empty.
    pub scans: Vec<(String, &'a Scan)>,
}

/// Returns the calls that the sources scanned, in order.
pub fn calls(sources: &[NamedRecord]) -> Vec<ScannedCall<'_>> {
    let mut indices: BTreeMap<String, usize> = BTreeMap::new();
    let mut calls: Vec<(String, Vec<(&NamedRecord, &Scan)>)> = Vec::new();
    for source in sources {
        for scan in &source.record.scans {
            let text = scan::call(&scan.call);
            let next = calls.len();
            let index = *indices.entry(text.clone()).or_insert(next);
            if index == next {
                calls.push((text, Vec::new()));
            }
            calls[index].1.push((source, scan));
        }
    }
    let call = |(text, scans)| ScannedCall { text: shortened(text), scans: named(scans) };
    calls.into_iter().map(call).collect()
}

fn named<'a>(scans: Vec<(&NamedRecord, &'a Scan)>) -> Vec<(String, &'a Scan)> {
    let names = names(&scans);
    names.into_iter().zip(scans.into_iter().map(|(_, scan)| scan)).collect()
}

fn shortened(mut text: String) -> String {
    const LONGEST: usize = 60;
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Returns distinct names for the scans of a call: kernel, record, interrupt and CPU as far as
/// necessary.
fn names(scans: &[(&NamedRecord, &Scan)]) -> Vec<String> {
    let facets: [fn(&NamedRecord, &Scan) -> String; 4] = [
        |_, scan| scan.profile.clone().unwrap_or_default(),
        |source, _| source.name.clone(),
        |_, scan| scan::interrupt(scan.interrupt).to_owned(),
        |_, scan| format!("CPU {}", scan.cpu),
    ];
    let mut names = vec![String::new(); scans.len()];
    for facet in facets {
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort();
        if !sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            break;
        }
        let values: Vec<String> = scans.iter().map(|(source, scan)| facet(source, scan)).collect();
        if values.windows(2).any(|pair| pair[0] != pair[1]) {
            for (name, value) in names.iter_mut().zip(values).filter(|(_, value)| !value.is_empty())
            {
                *name = if name.is_empty() { value } else { format!("{name} · {value}") };
            }
        }
    }
    numbered(names.iter().map(|name| printable(name)))
}

/// Returns a chart for each call with measurements.
pub(super) fn charts(sources: &[NamedRecord]) -> Vec<Chart> {
    let mut calls = calls(sources);
    for call in &mut calls {
        call.scans.retain(|(_, scan)| !scan.points.is_empty());
    }
    calls.retain(|call| !call.scans.is_empty());
    let mut taken: BTreeMap<String, u32> = BTreeMap::new();
    let name = |call: &ScannedCall<'_>| {
        let name = file_name(&call.scans[0].1.call.name);
        let times = taken.entry(name.clone()).or_default();
        *times += 1;
        if *times == 1 { name } else { format!("{name}.{times}") }
    };
    let names: Vec<String> = calls.iter().map(name).collect();
    names.into_iter().zip(&calls).map(|(name, call)| chart(name, call)).collect()
}

/// Returns a name that is valid on every file system.
fn file_name(call: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = call.chars().take(40).map(fit).collect();
    format!("scan-{name}")
}

/// Returns the chart of a call, which has at least one scan.
pub(super) fn chart(name: String, call: &ScannedCall<'_>) -> Chart {
    let mut lines = Vec::new();
    let mut marks = Marks::default();
    let scans = &call.scans[..call.scans.len().min(MOST)];
    let x = offsets(scans);
    for ((name, scan), colour) in scans.iter().zip(COLOURS.iter().cycle()) {
        lines.extend(self::lines(name, scan, colour));
        marks.areas.extend(triangles(scan, colour, marks.bars.len(), &x));
        marks.bars.push(CallBar { colour, end: micros(scan.duration.median) });
    }
    // With several scans each is lighter, so that all together do not hide the lines.
    marks.shade = 0.24 / (1.0 + scans.iter().map(|_| 1.0).sum::<f64>());
    let mut about =
        "PDLT: time from the interrupt to the first instruction of the woken task. Thick \
                     line on the axis: the call. Shaded triangle: a non-preemptible section, as \
                     high as it is long, because the task waits for its end. Bold: minimum at each \
                     offset; thin: maximum."
            .to_owned();
    if lines.iter().any(|line| line.stroke == Stroke::Dotted) {
        about += " Dotted: maximum IRT, the time from the interrupt to the first instruction of its \
                  service routine.";
    }
    let suffix = match (scans, &scans[0].1.profile) {
        ([_], Some(profile)) => format!(" on {}", printable(profile)),
        _ if scans.len() < call.scans.len() => format!(", {MOST} of {} scans", call.scans.len()),
        _ => String::new(),
    };
    Chart {
        name,
        title: format!("Latency of a task woken during {}{suffix}", call.text),
        about,
        x,
        y: latencies(scans),
        step: Step::None,
        lines,
        marks,
    }
}

fn lines(name: &str, scan: &Scan, colour: &'static str) -> Vec<ChartLine> {
    let line = |quantity: &str, stroke, value: &dyn Fn(&Point) -> Option<Nanos>| {
        let name =
            if name.is_empty() { quantity.to_owned() } else { format!("{name} · {quantity}") };
        let points = scan.points.iter();
        let points = points.filter_map(|p| Some((at(p.offset), micros(value(p)?)))).collect();
        ChartLine { name, colour, stroke, points }
    };
    let mut lines = vec![
        line("PDLT min", Stroke::Solid, &|point| Some(point.pdlt.min)),
        line("PDLT max", Stroke::Thin, &|point| Some(point.pdlt.max)),
        line("IRT max", Stroke::Dotted, &|point| point.irt.map(|irt| irt.max)),
    ];
    lines.retain(|line| !line.points.is_empty());
    lines
}

/// Returns the sections that are long enough to be visible, as triangles.
fn triangles(scan: &Scan, colour: &'static str, bar: usize, x: &Axis) -> Vec<Area> {
    let triangles = scan.sections.iter().map(|section| Area {
        colour,
        from: (at(section.start).max(x.min), micros(section.peak)),
        to: (at(section.end).min(x.max), micros(scan.baseline)),
        name: section.function.as_deref().map(printable).unwrap_or_default(),
        bar,
    });
    triangles.filter(|area| area.to.0 - area.from.0 > (x.max - x.min) / 1_000.0).collect()
}

/// Returns the axis of the interrupt's offset, which holds all points and all of the call.
fn offsets(scans: &[(String, &Scan)]) -> Axis {
    let points = scans.iter().flat_map(|(_, scan)| &scan.points);
    let offsets = points.map(|point| at(point.offset));
    let durations = scans.iter().map(|(_, scan)| micros(scan.duration.median));
    let ends = offsets.chain(durations);
    let (min, max) = ends.fold((0.0, 0.0), |(min, max), end| (end.min(min), end.max(max)));
    Axis {
        label: "offset of the interrupt from the start of the call (thick: the call)".to_owned(),
        unit: Unit::Micros,
        log: false,
        min,
        max: if min < max { max } else { 1.0 },
        named: Vec::new(),
    }
}

/// Returns the axis of PDLT and IRT. If few outliers would flatten everything else, they are off
/// scale, and the label has the maximum.
fn latencies(scans: &[(String, &Scan)]) -> Axis {
    let points = || scans.iter().flat_map(|(_, scan)| &scan.points);
    let least = points().map(|point| point.pdlt.min).max().unwrap_or_default();
    let most = points().flat_map(|point| [Some(point.pdlt.max), point.irt.map(|irt| irt.max)]);
    let mut most: Vec<Nanos> = most.flatten().collect();
    most.sort_unstable();
    let nearly_all = most.get(most.len() * 98 / 100).copied().unwrap_or_default().max(least);
    let highest = most.last().copied().unwrap_or_default();
    let mut label = "PDLT".to_owned();
    if points().any(|point| point.irt.is_some()) {
        label += ", IRT";
    }
    let mut top = micros(highest);
    if top > 3.0 * micros(nearly_all) {
        top = 1.5 * micros(nearly_all);
        let _ = write!(label, " (max {}, off scale)", micro(highest));
    }
    let step = round_step(top.max(0.001));
    let max = (top / step).floor().mul_add(step, step);
    Axis { label, unit: Unit::Micros, log: false, min: 0.0, max, named: Vec::new() }
}

fn micros(time: Nanos) -> f64 {
    real(time.0) / 1e3
}

fn at(offset: Offset) -> f64 {
    micros(Nanos(offset.unsigned_abs())).copysign(if offset < 0 { -1.0 } else { 1.0 })
}

#[cfg(test)]
mod tests;
