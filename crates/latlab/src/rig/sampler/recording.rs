//! The recording: everything that a sampler leaves behind when it ends.

use super::Sampler;
use latlab_core::atomic_histogram::AtomicHistogram;
use latlab_core::record::{Disturbed, WarmUp};
use latlab_core::time::Nanos;
use latlab_core::timeline::Timeline;
use latlab_core::worst::{Worst, WorstSample};
use latlab_sys::{clock, usage};
use std::sync::Arc;

/// The sample above the limit that ended a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tripped {
    pub(crate) late: WorstSample,
    /// Number of the period it belongs to, from 1.
    pub(crate) period: u64,
}

/// Everything that a sampler has recorded.
pub(crate) struct Recording {
    pub(crate) series: Vec<(Arc<AtomicHistogram>, Timeline)>,
    pub(crate) worst: Worst,
    /// Whether the samples were taken by the thread itself, so that each of the worst has a mark.
    pub(crate) marked: bool,
    pub(crate) warm_up: WarmUp,
    pub(crate) first: Option<Nanos>,
    pub(crate) tripped: Option<Tripped>,
    pub(crate) disturbed: Disturbed,
    pub(crate) cpu_ns: Nanos,
}

impl Recording {
    /// Returns the histogram of the first series.
    pub(crate) fn first(&self) -> &AtomicHistogram {
        &self.series[0].0
    }
}

impl Sampler<'_> {
    /// Ends the sampler. To be called by its own thread, whose resource usage is part of the
    /// recording.
    pub(in crate::rig) fn finish(self) -> Recording {
        let now = usage::of_thread();
        let counted = !self.warming && !self.collects;
        let since = |now: u64, then: u64| if counted { now.saturating_sub(then) } else { 0 };
        Recording {
            series: self.series.into_iter().map(|live| (live.tally, live.timeline)).collect(),
            worst: self.worst,
            marked: !self.collects,
            warm_up: self.warm_up,
            first: self.first,
            tripped: self.tripped,
            disturbed: Disturbed {
                minor_faults: since(now.minor_faults, self.usage.minor_faults),
                major_faults: since(now.major_faults, self.usage.major_faults),
                preempted: since(now.preempted, self.usage.preempted).saturating_sub(self.yields),
            },
            cpu_ns: Nanos(since(clock::thread_cpu_time().0, self.cpu.0)),
        }
    }
}
