//! Where to look next, and what the points say: a coarse grid first, then closer and closer to
//! each edge.

use super::{Measurement, Offset, Point, Region, ScanPlan, Spread};
use crate::time::Nanos;
use std::collections::BTreeMap;

/// What is known of a call so far.
///
/// Two moments lie in the same region if the task that they wake runs at the same time, and the
/// kernel can be preempted at both if it is equally late. Between two moments of which neither
/// is true there is an edge. A region that is shorter than the grid is seen only by chance.
/// Only minima count: whatever else the machine does makes later, and never earlier.
#[derive(Clone, Debug)]
pub struct Survey {
    resolution: i64,
    repeat: usize,
    duration: Nanos,
    measured: BTreeMap<Offset, Vec<Measurement>>,
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
/// And so are those that agree within this share of them.
const SHARE: u64 = 100;
/// What is less above the baseline than this is no region.
const LEAST: u64 = 500;
/// Measurements at a moment before their minimum can be trusted.
const FEWEST: usize = 3;
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
        };
        let points = i64::from(plan.points.max(1));
        let step = (signed(duration) / points).max(survey.resolution);
        let steps = signed(duration) / step + 1;
        let grid = (-OUTSIDE..=steps + OUTSIDE).map(|nth| (nth * step, Vec::new()));
        survey.measured.extend(grid);
        survey
    }

    /// The moments at which to measure now, each as often as it stands here; none when all that
    /// was asked for is known.
    pub fn next(&self) -> Vec<Offset> {
        let wanting = self.measured.iter().filter(|(_, measured)| !self.is_settled(measured));
        let wanting = wanting.flat_map(|(offset, measured)| {
            let times = FEWEST.min(self.repeat).saturating_sub(measured.len()).max(1);
            std::iter::repeat_n(*offset, times)
        });
        let wanting: Vec<Offset> = wanting.collect();
        if wanting.is_empty() { self.edges() } else { wanting }
    }

    /// What came of measuring at the moment that was asked for.
    pub fn add(&mut self, asked: Offset, measurement: Measurement) {
        self.measured.entry(asked).or_default().push(measurement);
    }

    /// What is known now.
    pub fn findings(&self) -> Findings {
        let points: Vec<Point> = self.measured.values().filter_map(|m| point(m)).collect();
        let noises = points.iter().map(|point| point.pdlt.median - point.pdlt.min);
        let noise = Spread::of(noises.collect()).unwrap_or_default().median;
        let moments = moments(&points);
        let Ground { baseline, same } = self.ground(&moments);
        let regions = regions(&moments, baseline, same);
        Findings { baseline, noise, points, regions }
    }

    /// What measuring gives where the call is not running, so that all is the same.
    fn ground(&self, moments: &[Moment]) -> Ground {
        let outside = moments.iter().filter(|moment| self.is_outside(moment.offset));
        let mut late: Vec<Nanos> = outside.map(|moment| moment.late()).collect();
        late.sort_unstable();
        let at = |share: usize| late.get(late.len() * share / 100).copied().unwrap_or_default();
        Ground { baseline: at(50), same: SAME + 2 * (at(90) - at(0)).0 }
    }

    /// Whether there is no need to measure there again.
    fn is_settled(&self, measured: &[Measurement]) -> bool {
        let mut late: Vec<u64> = measured.iter().map(|m| m.pdlt.0).collect();
        late.sort_unstable();
        let agree = late.len() >= FEWEST && late[1] - late[0] <= SAME + late[0] / SHARE;
        agree || late.len() >= self.repeat
    }

    fn is_outside(&self, offset: Offset) -> bool {
        offset < 0 || offset > signed(self.duration)
    }

    /// Between which points there is an edge that is not known closely enough: their middles.
    fn edges(&self) -> Vec<Offset> {
        let known = self.measured.iter().filter_map(|(asked, m)| Some((*asked, point(m)?)));
        let (asked, points): (Vec<Offset>, Vec<Point>) = known.unzip();
        let moments = moments(&points);
        let Ground { baseline, same } = self.ground(&moments);
        let mut edges = Vec::new();
        for (asked, pair) in asked.windows(2).zip(moments.windows(2)) {
            let (from, to, a, b) = (asked[0], asked[1], pair[0], pair[1]);
            let jump = a.late().0.abs_diff(b.late().0);
            let high = a.late().max(b.late()) > baseline + Nanos(least(same) / 2);
            if to - from > self.resolution && high && jump > same && !together(a, b, same) {
                edges.push((jump, from + (to - from) / 2));
            }
        }
        edges.sort_by_key(|(jump, offset)| (std::cmp::Reverse(*jump), *offset));
        edges.truncate(ROUND);
        edges.into_iter().map(|(_, offset)| offset).collect()
    }
}

/// What outside of a region is late, and how far apart equal points can be.
struct Ground {
    baseline: Nanos,
    same: u64,
}

/// How far above the baseline a region begins to be one.
fn least(same: u64) -> u64 {
    LEAST.max(2 * same)
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

/// The least that the points say together: an interrupt that comes earlier can't be answered
/// later, so what was measured at a later moment holds for all earlier ones too.
fn moments(points: &[Point]) -> Vec<Moment> {
    let mut least = i64::MAX;
    let moment = |point: &Point| {
        least = least.min(point.offset.saturating_add(signed(point.pdlt.min)));
        Moment { offset: point.offset, woken: least.max(point.offset) }
    };
    let mut moments: Vec<Moment> = points.iter().rev().map(moment).collect();
    moments.reverse();
    moments
}

/// Whether two moments lie in one region: the task that they wake runs at the same time.
fn together(a: Moment, b: Moment, same: u64) -> bool {
    a.woken.abs_diff(b.woken) <= same + a.late().max(b.late()).0 / SHARE
}

fn point(measured: &[Measurement]) -> Option<Point> {
    let offset = measured.iter().min_by_key(|m| (m.pdlt, m.offset))?.offset;
    Some(Point {
        offset,
        repeats: u32::try_from(measured.len()).unwrap_or(u32::MAX),
        pdlt: Spread::of(measured.iter().map(|m| m.pdlt).collect())?,
        irt: Spread::of(measured.iter().filter_map(|m| m.irt).collect()),
    })
}

/// The moments that wake the task at the same time, and clearly later than the baseline.
fn regions(moments: &[Moment], baseline: Nanos, same: u64) -> Vec<Region> {
    let mut regions: Vec<Region> = Vec::new();
    for run in moments.chunk_by(|a, b| together(*a, *b, same)) {
        let Moment { offset: start, woken } = run[0];
        let peak = run.iter().map(|moment| moment.late()).max().unwrap_or_default();
        if (peak - baseline).0 <= least(same) {
            continue;
        }
        // A region reaches to the next one at most: there the task that waited runs.
        if let Some(before) = regions.last_mut() {
            before.end = before.end.min(start);
        }
        regions.push(Region { start, end: woken - signed(baseline), peak, function: None });
    }
    regions
}

fn signed(time: Nanos) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
