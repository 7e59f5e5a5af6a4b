//! The recording: everything that a sampler leaves behind when it ends.

use super::Sampler;
use latlab_core::atomic_histogram::AtomicHistogram;
use latlab_core::record::{Disturbed, Schedule, WarmUp};
use latlab_core::time::Nanos;
use latlab_core::timeline::Timeline;
use latlab_core::worst::{Worst, WorstSample};
use latlab_sys::clock;
use latlab_sys::usage::{self, Usage};
use std::sync::Arc;

/// The sample above the limit that ended a run.
#[derive(Clone, Copy, Debug)]
pub struct Tripped {
    pub late: WorstSample,
    /// Number of the period it belongs to, from 1.
    pub period: u64,
}

/// Everything that a sampler has recorded.
#[derive(Clone)]
pub struct Recording {
    /// Scheduling of the thread.
    pub schedule: Schedule,
    pub series: Vec<(Arc<AtomicHistogram>, Timeline)>,
    pub worst: Worst,
    /// Whether the samples were taken by the thread itself, so that each of the worst has a mark.
    pub marked: bool,
    pub warm_up: WarmUp,
    pub first: Option<Nanos>,
    pub tripped: Option<Tripped>,
    pub disturbed: Disturbed,
    pub cpu_ns: Nanos,
}

impl Recording {
    /// Returns an empty recording with these histograms, and allocates all of its memory.
    pub(super) fn of(histograms: impl Iterator<Item = Arc<AtomicHistogram>>) -> Recording {
        Recording {
            schedule: Schedule::default(),
            series: histograms.map(|histogram| (histogram, Timeline::new())).collect(),
            worst: Worst::new(),
            marked: false,
            warm_up: WarmUp::default(),
            first: None,
            tripped: None,
            disturbed: Disturbed::default(),
            cpu_ns: Nanos(0),
        }
    }

    /// Returns the histogram of the first series.
    pub fn first(&self) -> &AtomicHistogram {
        &self.series[0].0
    }
}

/// A thread's usage so far.
#[derive(Clone, Copy)]
pub(super) struct Used {
    usage: Usage,
    cpu: Nanos,
}

impl Used {
    /// By the calling thread.
    pub(super) fn by_thread() -> Used {
        Used { usage: usage::of_thread(), cpu: clock::thread_cpu_time() }
    }
}

impl Sampler<'_> {
    /// Ends the sampler. To be called by its own thread, whose resource usage is part of the
    /// recording.
    pub(in crate::rig) fn finish(self) -> Recording {
        // First of all: the memory of the recording costs page faults.
        let used = Used::by_thread();
        let histograms = self.series.iter().map(|live| Arc::clone(&live.tally));
        let mut recording = Recording::of(histograms);
        recording.schedule.clone_from(&self.interim.latest().schedule);
        self.fill(&mut recording, used);
        recording
    }

    /// Writes the data recorded so far into `recording`, which has the histograms of this sampler,
    /// and the usage of the sampler's thread until now. Does not allocate.
    pub(super) fn fill(&self, recording: &mut Recording, Used { usage: now, cpu }: Used) {
        let counted = !self.warming && !self.collects;
        let since = |now: u64, then: u64| if counted { now.saturating_sub(then) } else { 0 };
        for ((_, copy), live) in recording.series.iter_mut().zip(&self.series) {
            copy.clone_from(&live.timeline);
        }
        recording.worst.clone_from(&self.worst);
        recording.marked = !self.collects;
        recording.warm_up = self.warm_up;
        recording.first = self.first;
        recording.tripped = self.tripped;
        recording.disturbed = Disturbed {
            minor_faults: since(now.minor_faults, self.usage.minor_faults),
            major_faults: since(now.major_faults, self.usage.major_faults),
            preempted: since(now.preempted, self.usage.preempted).saturating_sub(self.yields),
        };
        recording.cpu_ns = Nanos(since(cpu.0, self.cpu.0));
    }
}
