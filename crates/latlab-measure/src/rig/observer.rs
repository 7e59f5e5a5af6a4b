//! The observer of a measurement: it receives each sample, to explain the late ones.

use super::{Keeping, Rig, Sampler};
use latlab_core::cpulist::CpuList;
use latlab_core::feed::Feed;
use latlab_core::plan::Length;
use latlab_core::record::explained::Explanations;
use latlab_core::time::Nanos;
use latlab_part::failure::Result;
use latlab_part::progress::Watch;
use latlab_sys::sched;
use latlab_sys::signal::Signals;
use std::sync::Arc;

/// Receives each sample while it is measured.
pub trait Observer: Send + Sync {
    /// Registers a measuring thread by its thread ID and CPU. Returns the feed for its samples.
    fn add_thread(&self, probe: &'static str, cpu: u32, thread: u32) -> Result<Arc<Feed>>;
    /// Receives all wake-ups of threads that are added from now on: their samples begin earlier
    /// than the kernel's events show.
    fn receive_all(&self);
    /// Returns the explanations of late samples so far, as of the last call; none if there are no
    /// new ones.
    fn so_far(&self) -> Option<Explanations>;
}

impl Rig<'_> {
    /// Measures for a quarter of the run's length, at most two seconds or two thousand
    /// repetitions, but at least for a period. No sample ends this measurement: it would not be
    /// explained.
    pub fn measure_briefly<T>(&mut self, measure: impl FnOnce(&mut Self) -> T) -> T {
        let whole = self.conditions;
        self.conditions.length = match whole.share(4) {
            Length::For(time) => Length::For(time.min(Nanos::from_secs(2))),
            Length::Count(count) => Length::Count(count.min(2_000)),
        };
        // This measurement is not a result.
        let keeping = self.keeping.take();
        (self.conditions.limit, self.conditions.brief) = (Nanos::MAX, true);
        let measured = measure(self);
        self.keeping = keeping;
        self.conditions = whole;
        measured
    }

    /// Runs `observe` to watch tasks that belong to no probe. It returns whether the user ended it
    /// early, which the rig keeps, and its result.
    pub fn observe_others<T>(
        &mut self,
        observe: impl FnOnce(&Signals, &mut dyn Watch, Option<&mut Keeping<'_>>) -> Result<(bool, T)>,
    ) -> Result<T> {
        let (interrupted, found) = observe(self.signals, self.watch, self.keeping.as_mut())?;
        self.interrupted |= interrupted;
        Ok(found)
    }
}

/// Sends the samples of the calling thread to the observer, if there is one.
pub(super) fn attach(
    sampler: &mut Sampler<'_>,
    cpus: &CpuList,
    observer: Option<(&dyn Observer, &'static str)>,
) -> Result<()> {
    if let Some((observer, probe)) = observer {
        let cpu = cpus.iter().next().unwrap_or_default();
        sampler.set_feed(observer.add_thread(probe, cpu, sched::thread_id().unsigned_abs())?);
    }
    Ok(())
}
