//! Results of scans: the latency of a task over the moment of the interrupt that wakes it.
//!
//! The method is the "Software Monitor" of Heursch et al. 2001 (section 2.5): while a low-priority
//! task makes a system call, an interrupt wakes a high-priority task. Within a non-preemptible
//! section, this task waits for the end of the section, so that its latency falls by as much as the
//! interrupt comes later: a triangle, as high as it is long.

mod survey;
mod ticks;

pub use crate::plan::Interrupt;
pub use survey::Survey;
pub use ticks::Ticks;

use crate::plan;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// A moment, in nanoseconds after the start of the call; negative before it.
pub type Offset = i64;

/// The measurement of one interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// The moment of the interrupt.
    pub offset: Offset,
    /// Process dispatch latency time: interrupt to first instruction of the task it woke.
    pub pdlt: Nanos,
    /// Interrupt response time: interrupt to first instruction of its handler, where the test
    /// driver measured it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub irt: Option<Nanos>,
    /// Duration of the call, including the time of the high-priority task if it ran meanwhile.
    pub duration: Nanos,
}

/// A non-preemptible section that is known beforehand: a loop of the test driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopSection {
    /// When it begins.
    pub begin: Offset,
    /// When it ends.
    pub end: Offset,
}

/// The result of a scan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scan {
    /// The call with its parameters.
    pub call: plan::Part,
    /// The kernel profile, if the scan ran in the laboratory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub profile: Option<String>,
    /// The measured CPU.
    pub cpu: u32,
    /// The interrupt that was used.
    pub interrupt: Interrupt,
    /// Duration of the call without the interrupt.
    pub duration: Spread,
    /// PDLT outside of the call: the best that this kernel can do.
    pub baseline: Nanos,
    /// Typical difference between the median and the minimum at one moment.
    pub noise: Nanos,
    /// PDLT and IRT over the moment of the interrupt, in order of the moment.
    pub points: Vec<Point>,
    /// The non-preemptible sections, in order of their starts.
    pub sections: Vec<Section>,
    /// The first 64 sections of the test driver's loop by its own clock, which the scan should
    /// find.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub parts: Vec<LoopSection>,
}

/// Repeated measurements of one value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// The minimum, which is the undisturbed value.
    pub min: Nanos,
    /// The median; never below `min`, where that is not the smallest of all values.
    pub median: Nanos,
    /// The maximum.
    pub max: Nanos,
}

/// The measurements at one moment of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// The moment. If measurements differ, it is the moment of the measurement with the smallest
    /// PDLT.
    pub offset: Offset,
    /// Number of measurements.
    pub repeats: u32,
    /// PDLT. The minimum comes from calls that nothing else delayed.
    pub pdlt: Spread,
    /// IRT, where it was measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub irt: Option<Spread>,
}

/// A non-preemptible section of a call: the task that an interrupt wakes in it runs after its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// The first moment known to lie in it.
    pub start: Offset,
    /// Its end.
    pub end: Offset,
    /// The longest PDLT in it, of the minima of each moment.
    pub peak: Nanos,
    /// The kernel function that runs there, where that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub function: Option<String>,
    /// Sample index of the peak, as in [`crate::record::Sample::nth`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub nth: Option<u64>,
}

impl Section {
    /// Returns its length.
    pub fn length(&self) -> Nanos {
        Nanos(self.start.abs_diff(self.end))
    }
}

impl Spread {
    /// Returns the spread of `values`; none if there are no values.
    pub fn of(mut values: Vec<Nanos>) -> Option<Spread> {
        values.sort_unstable();
        let median = *values.get(values.len().checked_sub(1)? / 2)?;
        Some(Spread { min: *values.first()?, median, max: *values.last()? })
    }

    fn is_sound(self) -> bool {
        self.min <= self.median && self.median <= self.max
    }
}

impl Scan {
    /// Gives each section the sample index of the measurement that is nearest to its peak. The
    /// first of `measured` has the index after `before`.
    pub fn index_peaks(&mut self, measured: &[Measurement], before: u64) {
        for section in &mut self.sections {
            let within = |one: &&Measurement| (section.start..=section.end).contains(&one.offset);
            let numbered = measured.iter().zip(before + 1..).filter(|(one, _)| within(one));
            let nearest = numbered.min_by_key(|(one, _)| one.pdlt.0.abs_diff(section.peak.0));
            section.nth = nearest.map(|(_, index)| index);
        }
    }

    /// Returns the longest PDLT of the minima of each moment, which the call itself causes; none
    /// without measurements.
    pub fn peak(&self) -> Option<Nanos> {
        self.points.iter().map(|point| point.pdlt.min).max()
    }

    /// Returns the longest interrupt response time of all moments; none if it was not measured.
    pub fn longest_irt(&self) -> Option<Nanos> {
        self.points.iter().filter_map(|point| Some(point.irt.as_ref()?.max)).max()
    }

    /// Returns the longest section, if there is one.
    pub fn longest(&self) -> Option<&Section> {
        self.sections.iter().max_by_key(|section| section.length())
    }

    /// Returns the detection limit: no non-preemptible section that is longer was missed.
    ///
    /// A missed section begins after one point at the earliest, and the latency of the next point
    /// shows when it ends. So it is at most as long as the time between the two points and the
    /// latency of the second one above the baseline.
    pub fn detection_limit(&self) -> Nanos {
        let unseen = |pair: &[Point]| {
            let apart = Nanos(pair[0].offset.abs_diff(pair[1].offset));
            apart + (pair[1].pdlt.min - self.baseline)
        };
        let between = self.points.windows(2).map(unseen).max().unwrap_or(self.duration.max);
        // A section after the last point is missed as well.
        let end = i64::try_from(self.duration.median.0).unwrap_or(i64::MAX);
        let after = self.points.last().map_or(0, |last| end.saturating_sub(last.offset).max(0));
        between.max(Nanos(after.unsigned_abs()))
    }

    /// Returns an inconsistency of the data, if there is one.
    pub(crate) fn flaw(&self) -> Option<&'static str> {
        let spreads = self.points.iter().flat_map(|point| [Some(point.pdlt), point.irt]);
        let mut spreads = spreads.flatten().chain([self.duration]);
        if !spreads.all(Spread::is_sound) {
            return Some("a minimum, median and maximum are not in this order");
        }
        if !self.points.is_sorted_by_key(|point| point.offset) {
            return Some("its points are not in order of time");
        }
        if self.points.iter().any(|point| point.repeats == 0) {
            return Some("a point was never measured");
        }
        if self.sections.iter().any(|section| section.start > section.end) {
            return Some("a non-preemptible section ends before it begins");
        }
        if self.sections.windows(2).any(|pair| pair[0].end > pair[1].start) {
            return Some("a non-preemptible section begins before the one before it ends");
        }
        None
    }
}
