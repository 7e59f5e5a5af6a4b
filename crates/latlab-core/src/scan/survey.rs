//! Where to look next, and what the points say: a coarse grid first, then closer and closer to
//! each edge.

use super::{Measurement, Offset, Point, Region, ScanPlan, Spread};
use crate::time::Nanos;
use std::collections::BTreeMap;
use std::ops::Range;

/// What is known of a call so far.
///
/// Moments that wake the task at the same time lie in one region: it ran when that ended. Where
/// such a run of moments begins and where it ends there is an edge. A region that is shorter than
/// the grid is seen only by chance.
/// Only minima count: whatever else the machine does makes later, and never earlier.
#[derive(Clone, Debug)]
pub struct Survey {
    resolution: i64,
    repeat: usize,
    duration: Nanos,
    measured: BTreeMap<Offset, Tries>,
    /// The shortest time that the call took with an interrupt in it.
    shortest: Nanos,
}

/// What came of asking for one moment.
#[derive(Clone, Debug, Default)]
struct Tries {
    /// What was measured there.
    hits: Vec<Measurement>,
    /// How many came too far from it: something else ran when the call was to begin.
    strays: usize,
}

/// What the points say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings {
    /// PDLT where the call is not running.
    pub baseline: Nanos,
    /// How far the median at one moment is above the minimum, typically.
    pub noise: Nanos,
    /// The points, in their order.
    pub points: Vec<Point>,
    /// The regions, in the order of their starts.
    pub regions: Vec<Region>,
}

/// Measurements that agree within this much are the same: an instruction more or less.
const SAME: u64 = 64;
/// And so are those that agree within a hundredth of them.
const SHARE: u64 = 100;
/// What is less above the baseline than this is no region, nor what is less than [`SHARE`] of the
/// longest: a loop that may be preempted at each turn would be as many regions as turns.
const LEAST: u64 = 1_000;
/// Measurements at a moment before their minimum can be trusted, at the least: where nothing
/// disturbs, they are all the same. Where something does, it may disturb three in a row.
const FEWEST: usize = 3;
/// An interrupt that comes farther from the moment that was asked for does not count there.
const STRAY: u64 = 1_000;
/// The least that another interrupt delays a call by.
const DISTURBED: u64 = 1_500;
/// Steps of the grid before the call and after it: they give the baseline.
const OUTSIDE: i64 = 5;
/// The most edges that are looked at in one round, the highest first.
const ROUND: usize = 64;

impl Survey {
    /// The survey of a call that takes `duration`.
    pub fn new(plan: &ScanPlan, duration: Nanos) -> Survey {
        let mut survey = Survey {
            resolution: signed(plan.resolution).max(1),
            repeat: plan.repeat.max(1) as usize,
            duration,
            measured: BTreeMap::new(),
            shortest: Nanos::MAX,
        };
        let points = i64::from(plan.points.max(1));
        // Nothing is looked at more closely than is wanted; but a call in ten steps at least, where
        // they are as long as what strays.
        let closest = survey.resolution.min((signed(duration) / 10).max(signed(Nanos(STRAY))));
        let step = (signed(duration) / points).max(closest);
        let steps = signed(duration) / step + 1;
        let grid = (-OUTSIDE..=steps + OUTSIDE).map(|nth| (nth * step, Tries::default()));
        survey.measured.extend(grid);
        survey
    }

    /// The moments at which to measure now, once each; none when all that was asked for is known.
    /// Those that are known least come first, and in an order in which any number of them is
    /// spread over the call: whenever time is up, all of it is known about equally.
    pub fn next(&self) -> Vec<Offset> {
        let wanting = (0u32..).zip(&self.measured);
        let wanting = wanting.filter(|(_, (_, tries))| !self.is_settled(tries));
        let wanting = wanting.map(|(nth, (offset, tries))| {
            // van der Corput's sequence: halves, then quarters, then eighths.
            (tries.count(), nth.reverse_bits(), *offset)
        });
        let mut wanting: Vec<_> = wanting.collect();
        if wanting.is_empty() {
            return self.edges();
        }
        wanting.sort_unstable();
        wanting.into_iter().map(|(_, _, offset)| offset).collect()
    }

    /// What came of measuring at the moment that was asked for.
    pub fn add(&mut self, asked: Offset, measurement: Measurement) {
        let tries = self.measured.entry(asked).or_default();
        // Before the call it does not matter when: who is woken there delays the call's begin.
        if asked < 0 || measurement.offset.abs_diff(asked) <= STRAY {
            tries.hits.push(measurement);
            if within(&measurement) {
                self.shortest = self.shortest.min(measurement.duration);
            }
        } else {
            tries.strays += 1;
        }
    }

    /// What is known now.
    pub fn findings(&self) -> Findings {
        let (_, tries): (Vec<Offset>, Vec<&Tries>) = self.known().into_iter().unzip();
        let points: Vec<Point> = tries.iter().filter_map(|tries| tries.point()).collect();
        let noises = points.iter().map(|point| point.pdlt.median - point.pdlt.min);
        let noise = Spread::of(noises.collect()).unwrap_or_default().median;
        let ground = self.ground(&moments(&tries));
        let sure: Vec<&Tries> = tries.into_iter().filter(|tries| self.is_sure(tries)).collect();
        let regions = regions(&moments(&sure), &ground);
        Findings { baseline: ground.baseline, noise, points, regions }
    }

    /// The moments that were asked for and what came of them, in the order in which it was
    /// measured: an interrupt comes when it comes, not always when it was asked for.
    fn known(&self) -> Vec<(Offset, &Tries)> {
        let known = self.measured.iter().filter(|(_, tries)| !tries.hits.is_empty());
        let mut known: Vec<(Offset, &Tries)> =
            known.map(|(asked, tries)| (*asked, tries)).collect();
        known.sort_by_key(|(_, tries)| tries.cleanest().map(|m| m.offset));
        known
    }

    /// What measuring gives where the call is not running, so that all is the same.
    fn ground(&self, moments: &[Moment]) -> Ground {
        let outside = moments.iter().filter(|moment| self.is_outside(moment.offset));
        let mut late: Vec<Nanos> = outside.map(|moment| moment.late()).collect();
        late.sort_unstable();
        let at = |share: usize| late.get(late.len() * share / 100).copied().unwrap_or_default();
        let (baseline, same) = (at(50), SAME + 4 * (at(75) - at(25)).0);
        let latest = moments.iter().map(|moment| moment.late()).max().unwrap_or_default();
        let least = LEAST.max(2 * same).max((latest - baseline).0 / SHARE);
        Ground { baseline, same, least }
    }

    /// Whether there is no need to measure there again.
    fn is_settled(&self, tries: &Tries) -> bool {
        let mut late: Vec<u64> = tries.hits.iter().map(|m| m.pdlt.0).collect();
        late.sort_unstable();
        let enough = late.len() >= self.fewest().max(2);
        let agree = enough && late[1] - late[0] <= SAME + late[0] / SHARE;
        agree && tries.is_clean(self.shortest) || tries.count() >= self.repeat
    }

    /// How many measurements at one moment are enough where they agree.
    fn fewest(&self) -> usize {
        (self.repeat / 2).max(FEWEST).min(self.repeat)
    }

    /// Whether a region may begin or end there: a single measurement may have been late for any
    /// reason.
    fn is_sure(&self, tries: &Tries) -> bool {
        tries.hits.len() >= FEWEST.min(self.repeat)
    }

    fn is_outside(&self, offset: Offset) -> bool {
        offset < 0 || offset > signed(self.duration)
    }

    /// Between which points there is an edge that is not known closely enough: their middles.
    fn edges(&self) -> Vec<Offset> {
        let sure = self.known().into_iter().filter(|(_, tries)| self.is_sure(tries));
        let (asked, tries): (Vec<Offset>, Vec<&Tries>) = sure.unzip();
        let moments = moments(&tries);
        let ground = self.ground(&moments);
        let runs = runs(&moments, ground.same);
        let mut edges = Vec::new();
        for pair in runs.windows(2) {
            let (last, next) = (pair[0].end - 1, pair[1].start);
            // Nothing that could be closed in on happens before the call.
            let (from, to) = (asked[last].max(0), asked[next]);
            let middle = from + (to - from) / 2;
            // What strays from its moment each time can't be closed in on.
            let open = to - from > self.resolution && !self.measured.contains_key(&middle);
            let is_region = |run: &Range<usize>| height(&moments[run.clone()], &ground).is_some();
            if open && pair.iter().any(is_region) {
                let jump = moments[last].late().0.abs_diff(moments[next].late().0);
                edges.push((jump, middle));
            }
        }
        edges.sort_by_key(|(jump, offset)| (std::cmp::Reverse(*jump), *offset));
        edges.truncate(ROUND);
        edges.into_iter().map(|(_, offset)| offset).collect()
    }
}

impl Tries {
    fn count(&self) -> usize {
        self.hits.len() + self.strays
    }

    /// What stands for them all: of those in which the call took no longer than it must, the one
    /// with the least PDLT. Where something else delayed the call, the interrupt came at an earlier
    /// moment of it than it seems.
    fn cleanest(&self) -> Option<&Measurement> {
        let shortest = self.hits.iter().map(|m| m.duration).min()?;
        let clean = shortest + Nanos(SAME + shortest.0 / 1_000);
        let hits = self.hits.iter().filter(|m| m.duration <= clean || !within(m));
        hits.min_by_key(|m| (m.pdlt, m.offset))
    }

    /// Whether there is one in which nothing else delayed the call, as far as that is known from
    /// the `shortest` time that it took.
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

/// Whether the interrupt came while the call was made.
fn within(measurement: &Measurement) -> bool {
    (0..=signed(measurement.duration)).contains(&measurement.offset)
}

/// What is late outside of a region, how far apart equal points can be, and how far above the
/// baseline a region begins to be one.
struct Ground {
    baseline: Nanos,
    same: u64,
    least: u64,
}

/// An interrupt, and when the task that it wakes runs.
#[derive(Clone, Copy)]
struct Moment {
    offset: Offset,
    woken: i64,
}

impl Moment {
    fn late(self) -> Nanos {
        Nanos(self.offset.abs_diff(self.woken))
    }
}

/// The least that all say together: an interrupt that comes earlier can't be answered later,
/// so what was measured at a later moment holds for all earlier ones too.
fn moments(tries: &[&Tries]) -> Vec<Moment> {
    let mut least = i64::MAX;
    let moment = |measurement: &Measurement| {
        let Measurement { offset, pdlt, .. } = *measurement;
        least = least.min(offset.saturating_add(signed(pdlt)));
        Moment { offset, woken: least.max(offset) }
    };
    let cleanest = tries.iter().rev().filter_map(|tries| tries.cleanest());
    let mut moments: Vec<Moment> = cleanest.map(moment).collect();
    moments.reverse();
    moments
}

/// Moments that wake the task at the same time, one after another: the places of each such run.
fn runs(moments: &[Moment], same: u64) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (place, moment) in moments.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if together(moments[run.start], *moment, same) => run.end = place + 1,
            _ => runs.push(place..place + 1),
        }
    }
    runs
}

/// Whether two moments lie in one region: the task that they wake runs at the same time.
fn together(a: Moment, b: Moment, same: u64) -> bool {
    a.woken.abs_diff(b.woken) <= same + a.late().min(b.late()).0 / SHARE
}

/// The longest latency of a run that is a region: one that is clearly later than the baseline.
fn height(run: &[Moment], ground: &Ground) -> Option<Nanos> {
    let peak = run.iter().map(|moment| moment.late()).max()?;
    (peak > ground.baseline + Nanos(ground.least)).then_some(peak)
}

/// The runs that are regions.
fn regions(moments: &[Moment], ground: &Ground) -> Vec<Region> {
    let runs = runs(moments, ground.same);
    let region = |(nth, run): (usize, &Range<usize>)| {
        let peak = height(&moments[run.clone()], ground)?;
        let start = moments[run.start];
        let end = match runs.get(nth + 1) {
            Some(next) => end(start, moments[next.start], height(&moments[next.clone()], ground)),
            None => start.woken - signed(ground.baseline),
        };
        Some(Region {
            start: start.offset,
            end: end.max(start.offset),
            peak,
            function: None,
            nth: None,
        })
    };
    runs.iter().enumerate().filter_map(region).collect()
}

/// Where the region that begins at `start` ends, which `next` does not belong to. If that is a
/// region too, there; else where waiting for the end takes as long as being served after it.
fn end(start: Moment, next: Moment, next_height: Option<Nanos>) -> Offset {
    let level = start.woken - signed(next.late());
    if next_height.is_some() { next.offset } else { level.clamp(start.offset, next.offset) }
}

fn signed(time: Nanos) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
