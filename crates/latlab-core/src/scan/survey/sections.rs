//! Sections of a call that follow from the moments at which interrupts wake a task.

use super::{EQUAL_SHARE, Tries, signed, within};
use crate::scan::{Measurement, Offset, Section};
use crate::time::Nanos;
use std::ops::Range;

/// The level of latencies outside of the call.
pub(super) struct BaseLevel {
    pub(super) baseline: Nanos,
    /// The greatest difference between equal points.
    pub(super) same: u64,
    /// The height above the baseline from which on a run is a section.
    pub(super) min_height: u64,
}

/// The moment of an interrupt, and the moment at which the task that it wakes runs.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub(super) offset: Offset,
    woken: i64,
    /// Whether the interrupt came during the call.
    within: bool,
}

impl Moment {
    pub(super) fn latency(self) -> Nanos {
        Nanos(self.offset.abs_diff(self.woken))
    }
}

/// The moments, corrected by each other: an earlier interrupt can't wake the task later, so that a
/// measurement at a later moment limits all earlier ones.
pub(super) fn moments(tries: &[&Tries]) -> Vec<Moment> {
    let mut least = i64::MAX;
    let moment = |measurement: &Measurement| {
        let Measurement { offset, pdlt, .. } = *measurement;
        least = least.min(offset.saturating_add(signed(pdlt)));
        Moment { offset, woken: least.max(offset), within: within(measurement) }
    };
    let cleanest = tries.iter().rev().filter_map(|tries| tries.cleanest());
    let mut moments: Vec<Moment> = cleanest.map(moment).collect();
    moments.reverse();
    moments
}

/// Runs of consecutive moments that wake the task at the same time, as ranges of indices.
pub(super) fn runs(moments: &[Moment], same: u64) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (index, moment) in moments.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if together(moments[run.start], *moment, same) => run.end = index + 1,
            _ => runs.push(index..index + 1),
        }
    }
    runs
}

/// Whether two moments lie in one section: the task that they wake runs at the same time.
fn together(a: Moment, b: Moment, same: u64) -> bool {
    a.woken.abs_diff(b.woken) <= same + a.latency().min(b.latency()).0 / EQUAL_SHARE
}

/// The longest latency of a run within the call if it is a section: if that is clearly above the
/// baseline.
pub(super) fn height(run: &[Moment], level: &BaseLevel) -> Option<Nanos> {
    let peak = run.iter().filter(|moment| moment.within).map(|moment| moment.latency()).max()?;
    (peak > level.baseline + Nanos(level.min_height)).then_some(peak)
}

/// The runs that are sections.
pub(super) fn sections(moments: &[Moment], level: &BaseLevel) -> Vec<Section> {
    let runs = runs(moments, level.same);
    let section = |(index, run): (usize, &Range<usize>)| {
        let peak = height(&moments[run.clone()], level)?;
        let start = moments[run.start];
        let next = runs.get(index + 1);
        let next = next.map(|run| (moments[run.start], height(&moments[run.clone()], level)));
        Some(Section {
            start: start.offset,
            end: end(start, next, level),
            peak,
            function: None,
            nth: None,
        })
    };
    runs.iter().enumerate().filter_map(section).collect()
}

/// The end of the section that begins at `start`. If the first moment after it, `next`, begins a
/// section too, the end is there; else where waiting for the end takes as long as the latency after
/// it. If moments between the two were not measured, it is where the longest wait ends.
fn end(start: Moment, next: Option<(Moment, Option<Nanos>)>, level: &BaseLevel) -> Offset {
    let latest = start.woken - signed(level.baseline);
    let Some((next, next_height)) = next else { return latest.max(start.offset) };
    let same = level.same + start.latency().0 / EQUAL_SHARE;
    match next_height {
        Some(_) if next.offset <= latest.saturating_add_unsigned(same) => next.offset,
        Some(_) => latest.max(start.offset),
        None => (start.woken - signed(next.latency())).min(latest).clamp(start.offset, next.offset),
    }
}
