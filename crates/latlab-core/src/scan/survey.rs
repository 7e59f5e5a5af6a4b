//! Survey of a call: the moments to measure next, and the sections that follow.

mod sections;

use super::{Measurement, Offset, Point, Section, Spread};
use crate::plan::ScanPlan;
use crate::time::Nanos;
use sections::{BaseLevel, Moment, height, moments, runs, sections};
use std::collections::BTreeMap;
use std::ops::Range;

/// The measurements of a call so far.
///
/// Interrupts at different moments that wake the task at the same time lie in one non-preemptible
/// section: the task ran when that ended. The start and the end of such a run of moments are edges.
/// A section that is shorter than a step of the grid may be missed. Only minima count, as all
/// disturbances make a measurement later, never earlier.
#[derive(Clone, Debug)]
pub struct Survey {
    resolution: i64,
    repeat: usize,
    duration: Nanos,
    /// By the moment that was requested.
    measured: BTreeMap<Offset, Tries>,
    /// The shortest duration of the call with an interrupt in it.
    shortest: Nanos,
}

/// The measurements that were requested for one moment.
#[derive(Clone, Debug, Default)]
struct Tries {
    /// Measurements whose interrupt came at that moment.
    hits: Vec<Measurement>,
    /// Number of measurements whose interrupt came too far from that moment: something else ran
    /// when the call was to begin.
    strays: usize,
}

/// The points and sections that follow from the measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyFindings {
    /// PDLT outside of the call.
    pub baseline: Nanos,
    /// Typical difference between the median and the minimum at one moment.
    pub noise: Nanos,
    /// The points, in order of time.
    pub points: Vec<Point>,
    /// The non-preemptible sections, in order of their starts.
    pub sections: Vec<Section>,
}

/// Measurements within this difference are equal: the time of a few instructions.
const EQUAL: u64 = 64;
/// Measurements within one part in this many are equal as well.
const EQUAL_SHARE: u64 = 100;
/// A section is at least this much above the baseline, and at least one part in [`EQUAL_SHARE`] of
/// the longest: else a loop with a preemption point in each turn would be as many sections as
/// turns.
const MIN_HEIGHT: u64 = 1_000;
/// Minimum number of measurements at a moment before their minimum is trusted. Disturbances may
/// affect some in a row.
const MIN_REPEATS: usize = 3;
/// An interrupt that comes farther than this from the requested moment does not count there.
const STRAY: u64 = 1_000;
/// The least delay of a call by another interrupt.
const DISTURBED: u64 = 1_500;
/// A call was delayed if it takes a thousandth longer than the shortest, or this much longer. Before,
/// only the thousandth counted, and calls of 5 ms that a softirq delayed by 1.2 us were undisturbed.
const DELAYED: u64 = 500;
/// Number of steps of the grid before the call, and after it, which give the baseline.
const OUTSIDE: i64 = 5;
/// Maximum number of edges that are located in one round, the highest first.
const EDGES_PER_ROUND: usize = 64;

impl Survey {
    /// Creates the survey of a call that takes `duration`.
    pub fn new(plan: &ScanPlan, duration: Nanos) -> Survey {
        let mut survey = Survey {
            resolution: signed(plan.resolution).max(1),
            repeat: plan.repeat.max(1) as usize,
            duration,
            measured: BTreeMap::new(),
            shortest: Nanos::MAX,
        };
        let points = i64::from(plan.points.max(1));
        // No step is shorter than the resolution, but a call has ten steps at least if these are
        // longer than the distance of strays.
        let closest = survey.resolution.min((signed(duration) / 10).max(signed(Nanos(STRAY))));
        let step = (signed(duration) / points).max(closest);
        let steps = signed(duration) / step + 1;
        let grid = (-OUTSIDE..=steps + OUTSIDE).map(|index| (index * step, Tries::default()));
        survey.measured.extend(grid);
        survey
    }

    /// Returns the moments to measure next, once each; none when the survey is complete. Moments
    /// with the fewest measurements come first, and in an order in which any number of them is
    /// spread over the call: whenever time is up, all of it has about equally many measurements.
    pub fn next(&self) -> Vec<Offset> {
        let unsettled = (0u32..).zip(&self.measured);
        let unsettled = unsettled.filter(|(_, (_, tries))| !self.is_settled(tries));
        let unsettled = unsettled.map(|(index, (offset, tries))| {
            // Van der Corput sequence: halves, then quarters, then eighths.
            (tries.count(), index.reverse_bits(), *offset)
        });
        let mut unsettled: Vec<_> = unsettled.collect();
        if unsettled.is_empty() {
            return self.edges();
        }
        unsettled.sort_unstable();
        unsettled.into_iter().map(|(_, _, offset)| offset).collect()
    }

    /// Adds a measurement that was requested for the moment `asked`.
    pub fn add(&mut self, asked: Offset, measurement: Measurement) {
        let tries = self.measured.entry(asked).or_default();
        // Before the call the exact moment does not matter: the woken task delays the call.
        if asked < 0 || measurement.offset.abs_diff(asked) <= STRAY {
            tries.hits.push(measurement);
            if within(&measurement) {
                self.shortest = self.shortest.min(measurement.duration);
            }
        } else {
            tries.strays += 1;
        }
    }

    /// Returns the points and sections that follow from the measurements so far.
    pub fn findings(&self) -> SurveyFindings {
        let (_, tries): (Vec<Offset>, Vec<&Tries>) = self.known().into_iter().unzip();
        let points: Vec<Point> = tries.iter().filter_map(|tries| tries.point()).collect();
        let noises = points.iter().map(|point| point.pdlt.median - point.pdlt.min);
        let noise = Spread::of(noises.collect()).unwrap_or_default().median;
        let level = self.base_level(&moments(&tries));
        let sure: Vec<&Tries> = tries.into_iter().filter(|tries| self.is_sure(tries)).collect();
        let sections = sections(&moments(&sure), &level);
        SurveyFindings { baseline: level.baseline, noise, points, sections }
    }

    /// The requested moments with their measurements, in order of the measured moments, which
    /// differ from the requested ones.
    fn known(&self) -> Vec<(Offset, &Tries)> {
        let known = self.measured.iter().filter(|(_, tries)| !tries.hits.is_empty());
        let mut known: Vec<(Offset, &Tries)> =
            known.map(|(asked, tries)| (*asked, tries)).collect();
        known.sort_by_key(|(_, tries)| tries.cleanest().map(|m| m.offset));
        known
    }

    /// The level of measurements outside of the call.
    fn base_level(&self, moments: &[Moment]) -> BaseLevel {
        let outside = moments.iter().filter(|moment| self.is_outside(moment.offset));
        let mut late: Vec<Nanos> = outside.map(|moment| moment.latency()).collect();
        late.sort_unstable();
        let at = |share: usize| late.get(late.len() * share / 100).copied().unwrap_or_default();
        // Ticks move the end of a section by some hundred nanoseconds, which the spread outside of
        // the call does not show; a section is at least twice as high as this lower bound. Before,
        // only the spread counted, and sections were cut at ticks.
        let same = (EQUAL + 4 * (at(75) - at(25)).0).max(MIN_HEIGHT / 2);
        let baseline = at(50);
        let latest = moments.iter().map(|moment| moment.latency()).max().unwrap_or_default();
        let min_height = MIN_HEIGHT.max(2 * same).max((latest - baseline).0 / EQUAL_SHARE);
        BaseLevel { baseline, same, min_height }
    }

    /// Whether the moment needs no further measurement.
    fn is_settled(&self, tries: &Tries) -> bool {
        let mut late: Vec<u64> = tries.hits.iter().map(|m| m.pdlt.0).collect();
        late.sort_unstable();
        let enough = late.len() >= self.min_repeats().max(2);
        let agree = enough && late[1] - late[0] <= EQUAL + late[0] / EQUAL_SHARE;
        agree && tries.is_clean(self.shortest) || tries.count() >= self.repeat
    }

    /// Number of measurements at one moment that are enough if they agree.
    fn min_repeats(&self) -> usize {
        (self.repeat / 2).max(MIN_REPEATS).min(self.repeat)
    }

    /// Whether there are enough measurements for an edge of a section. A single one may be late for
    /// any reason.
    fn is_sure(&self, tries: &Tries) -> bool {
        tries.hits.len() >= MIN_REPEATS.min(self.repeat)
    }

    fn is_outside(&self, offset: Offset) -> bool {
        offset < 0 || offset > signed(self.duration)
    }

    /// Moments between points that enclose an edge not located to the resolution yet.
    fn edges(&self) -> Vec<Offset> {
        let sure = self.known().into_iter().filter(|(_, tries)| self.is_sure(tries));
        let (asked, tries): (Vec<Offset>, Vec<&Tries>) = sure.unzip();
        let moments = moments(&tries);
        let level = self.base_level(&moments);
        let runs = runs(&moments, level.same);
        let mut edges = Vec::new();
        for pair in runs.windows(2) {
            let (last, next) = (pair[0].end - 1, pair[1].start);
            // Edges before the call can't be located.
            let (from, to) = (asked[last].max(0), asked[next]);
            // The middle, or a quarter where the interrupts of the middle came at other moments.
            // Edges at which all measurements stray can't be located.
            let mut places =
                [2, 1, 3].map(|quarters| from + (to - from) * quarters / 4).into_iter();
            let untried = places.find(|at| !self.measured.contains_key(at));
            let is_section = |run: &Range<usize>| height(&moments[run.clone()], &level).is_some();
            let is_open = to - from > self.resolution && pair.iter().any(is_section);
            if let Some(at) = untried.filter(|_| is_open) {
                let jump = moments[last].latency().0.abs_diff(moments[next].latency().0);
                edges.push((jump, at));
            }
        }
        edges.sort_by_key(|(jump, offset)| (std::cmp::Reverse(*jump), *offset));
        edges.truncate(EDGES_PER_ROUND);
        edges.into_iter().map(|(_, offset)| offset).collect()
    }
}

impl Tries {
    fn count(&self) -> usize {
        self.hits.len() + self.strays
    }

    /// The measurement that represents all: the one with the smallest PDLT among those whose call
    /// was not delayed. In a delayed call the interrupt came at an earlier moment than it seems.
    fn cleanest(&self) -> Option<&Measurement> {
        let shortest = self.hits.iter().map(|m| m.duration).min()?;
        let clean = shortest + Nanos(EQUAL + (shortest.0 / 1_000).min(DELAYED));
        let hits = self.hits.iter().filter(|m| m.duration <= clean || !within(m));
        hits.min_by_key(|m| (m.pdlt, m.offset))
    }

    /// Whether there is a measurement in which the call was not delayed, judged by its `shortest`
    /// duration.
    fn is_clean(&self, shortest: Nanos) -> bool {
        let clean = shortest + Nanos(DISTURBED + shortest.0 / 1_000);
        self.hits.iter().any(|m| m.duration <= clean || !within(m))
    }

    fn point(&self) -> Option<Point> {
        let Measurement { offset, pdlt: min, .. } = *self.cleanest()?;
        let pdlt = Spread::of(self.hits.iter().map(|m| m.pdlt).collect())?;
        Some(Point {
            offset,
            repeats: u32::try_from(self.hits.len()).unwrap_or(u32::MAX),
            pdlt: Spread { min, median: pdlt.median.max(min), max: pdlt.max },
            irt: Spread::of(self.hits.iter().filter_map(|m| m.irt).collect()),
        })
    }
}

/// Whether the interrupt came during the call.
fn within(measurement: &Measurement) -> bool {
    (0..=signed(measurement.duration)).contains(&measurement.offset)
}

fn signed(time: Nanos) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
