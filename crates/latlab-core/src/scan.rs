//! Scans: how late a task runs, over the moment of the interrupt that wakes it, across a call.
//!
//! The method is the "Software Monitor" of Heursch et al. 2001 (section 2.5): while a task of low
//! priority makes a system call, an interrupt wakes one of high priority. As long as the kernel
//! can't be preempted, the second waits for the end of that stretch, so its latency falls by just
//! as much as the interrupt comes later: a triangle, as high as it is long.

mod survey;

pub use survey::Survey;

use crate::plan;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// A moment, in nanoseconds after the call's begin; negative before it.
pub type Offset = i64;

/// What interrupts the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interrupt {
    /// The timer on which the task of high priority sleeps.
    Timer,
    /// A timer of the test driver, which also takes the time at which it is served.
    Driver,
    /// A device that the test driver makes interrupt.
    Device,
    /// The same, but its interrupt thread wakes the task.
    #[serde(rename = "device-thread")]
    DeviceThread,
}

impl Interrupt {
    /// All of them, with the words that users write.
    pub const ALL: [(&'static str, Interrupt); 4] = [
        ("timer", Interrupt::Timer),
        ("driver", Interrupt::Driver),
        ("device", Interrupt::Device),
        ("device-thread", Interrupt::DeviceThread),
    ];

    /// Whether it is a device.
    pub fn is_device(self) -> bool {
        matches!(self, Interrupt::Device | Interrupt::DeviceThread)
    }
}

/// What is to be scanned, and how finely.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScanPlan {
    /// The call with its parameters.
    pub call: plan::Part,
    /// How many moments to begin with, spread evenly over the call.
    pub points: u32,
    /// How closely to close in on the edges of what can't be preempted.
    pub resolution: Nanos,
    /// The most measurements at one moment, where they do not agree on a minimum before.
    pub repeat: u32,
    /// What is to interrupt the call; absent, what fits the call and the machine.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interrupt: Option<Interrupt>,
    /// When to stop looking closer.
    pub limit: Nanos,
}

impl ScanPlan {
    /// As a call is scanned unless something else is said. In instruction time nothing disturbs: an
    /// edge can be closed in on at no cost in noise.
    pub fn usual(call: plan::Part, in_instructions: bool) -> ScanPlan {
        let (resolution, repeat, limit) = if in_instructions {
            (Nanos(50), 6, Nanos::from_secs(120))
        } else {
            (Nanos::from_micros(1), 40, Nanos::from_secs(45))
        };
        ScanPlan { call, points: 100, resolution, repeat, interrupt: None, limit }
    }
}

/// One interrupt, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// When it came.
    pub offset: Offset,
    /// Interrupt to first instruction of the task it woke.
    pub pdlt: Nanos,
    /// Interrupt to first instruction of its service routine, where the test driver took it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub irt: Option<Nanos>,
    /// How long the call took, the time of the other task included where that ran meanwhile.
    pub duration: Nanos,
}

/// A part of a call that is known to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// When it begins.
    pub begin: Offset,
    /// When it ends.
    pub end: Offset,
}

/// What a scan found out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scan {
    /// The call with its parameters.
    pub call: plan::Part,
    /// The kernel profile, where a laboratory ran it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub profile: Option<String>,
    /// The CPU it was measured on.
    pub cpu: u32,
    /// What interrupted the call.
    pub interrupt: Interrupt,
    /// How long the call takes when nothing interrupts it.
    pub duration: Spread,
    /// PDLT where the call is not running: the least that this kernel can do.
    pub baseline: Nanos,
    /// How far the median at one moment is above the minimum, typically.
    pub noise: Nanos,
    /// PDLT and IRT over the moment of the interrupt, in its order.
    pub points: Vec<Point>,
    /// The stretches that can't be preempted, in the order of their starts.
    pub regions: Vec<Region>,
    /// The parts of the test driver's loop by its own clock, the first 64: what was to be found.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub parts: Vec<Part>,
}

/// Repeated measurements of one value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// The least: what nothing else has disturbed.
    pub min: Nanos,
    /// Half of them are at or below; never below `min`, where that is not the least of all.
    pub median: Nanos,
    /// The most.
    pub max: Nanos,
}

/// What was measured at one moment of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// The moment; of the measurement with the least PDLT, where they differ.
    pub offset: Offset,
    /// How many measurements.
    pub repeats: u32,
    /// Interrupt to first instruction of the task it woke; the least is of the calls that nothing
    /// else delayed.
    pub pdlt: Spread,
    /// Interrupt to first instruction of its service routine, where it was taken.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub irt: Option<Spread>,
}

/// A stretch of a call that can't be preempted: an interrupt within it is answered at its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// The first moment that is known to lie in it.
    pub start: Offset,
    /// Where it ends.
    pub end: Offset,
    /// The longest PDLT seen in it, of the least of each moment.
    pub peak: Nanos,
    /// The kernel function that is running there, where that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub function: Option<String>,
    /// The how manieth sample of the run the peak is, as [`crate::record::Sample::nth`] counts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub nth: Option<u64>,
}

impl Region {
    /// How long it is.
    pub fn length(&self) -> Nanos {
        Nanos(self.start.abs_diff(self.end))
    }
}

impl Spread {
    /// The spread of `values`; none of none.
    pub fn of(mut values: Vec<Nanos>) -> Option<Spread> {
        values.sort_unstable();
        let median = *values.get(values.len().checked_sub(1)? / 2)?;
        Some(Spread { min: *values.first()?, median, max: *values.last()? })
    }
}

impl Spread {
    fn is_sound(self) -> bool {
        self.min <= self.median && self.median <= self.max
    }
}

impl Scan {
    /// Gives each region the number of the measurement that is nearest to its peak: of `measured`,
    /// in their order, the first has the number after `before`.
    pub fn number(&mut self, measured: &[Measurement], before: u64) {
        for region in &mut self.regions {
            let within = |one: &&Measurement| (region.start..=region.end).contains(&one.offset);
            let numbered = measured.iter().zip(before + 1..).filter(|(one, _)| within(one));
            let nearest = numbered.min_by_key(|(one, _)| one.pdlt.0.abs_diff(region.peak.0));
            region.nth = nearest.map(|(_, nth)| nth);
        }
    }

    /// The longest PDLT, of the least of each moment: what the call causes, and not what else came
    /// in between; none where nothing was measured.
    pub fn peak(&self) -> Option<Nanos> {
        self.points.iter().map(|point| point.pdlt.min).max()
    }

    /// The longest region, if there is any.
    pub fn longest(&self) -> Option<&Region> {
        self.regions.iter().max_by_key(|region| region.length())
    }

    /// How long a stretch that can't be preempted may be and still be no region.
    ///
    /// It begins after one point at the earliest, and how late the next one is says when it is
    /// over: so it is no longer than the way between both and what the second is above the
    /// baseline.
    pub fn longest_unseen(&self) -> Nanos {
        let unseen = |pair: &[Point]| {
            let apart = Nanos(pair[0].offset.abs_diff(pair[1].offset));
            apart + (pair[1].pdlt.min - self.baseline)
        };
        let between = self.points.windows(2).map(unseen).max().unwrap_or(self.duration.max);
        // Nor is anything known of what comes after the last point.
        let end = i64::try_from(self.duration.median.0).unwrap_or(i64::MAX);
        let after = self.points.last().map_or(0, |last| end.saturating_sub(last.offset).max(0));
        between.max(Nanos(after.unsigned_abs()))
    }

    /// What can't be, if anything: a scan is believed only when its parts agree.
    pub(crate) fn flaw(&self) -> Option<&'static str> {
        let spreads = self.points.iter().flat_map(|point| [Some(point.pdlt), point.irt]);
        let mut spreads = spreads.flatten().chain([self.duration]);
        if !spreads.all(Spread::is_sound) {
            return Some("a minimum, median and maximum are not in this order");
        }
        if !self.points.is_sorted_by_key(|point| point.offset) {
            return Some("its points are not in their order");
        }
        if self.points.iter().any(|point| point.repeats == 0) {
            return Some("a point was never measured");
        }
        if self.regions.iter().any(|region| region.start > region.end) {
            return Some("a region ends before it begins");
        }
        if self.regions.windows(2).any(|pair| pair[0].end > pair[1].start) {
            return Some("a region begins before the one before it ends");
        }
        None
    }
}
