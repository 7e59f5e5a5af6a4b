//! What explaining wants of a rig: to be told of each sample, a look at how it usually is, and to
//! watch others instead.

use super::{Lane, Rig, Watch};
use crate::failure::Result;
use latlab_core::cpulist::CpuList;
use latlab_core::feed::Feed;
use latlab_core::plan::Length;
use latlab_core::record::explained::Explained;
use latlab_core::time::Nanos;
use latlab_sys::sched;
use latlab_sys::signal::Signals;
use std::sync::Arc;

/// Who is told of each sample while it is measured.
pub(crate) trait Observer: Send + Sync {
    /// A thread, by the kernel's number, is to measure on this CPU: where it is to put its samples.
    fn joins(&self, probe: &'static str, cpu: u32, thread: u32) -> Result<Arc<Feed>>;
    /// What made samples late, as it was known soon after this was last asked; none where nothing
    /// has become known since.
    fn so_far(&self) -> Option<Explained>;
}

impl Rig<'_> {
    /// Measures for a fraction of what was asked for, and at most two seconds or two thousand
    /// repetitions.
    pub(crate) fn briefly<T>(&mut self, measure: impl FnOnce(&mut Self) -> T) -> T {
        let whole = self.conditions;
        self.conditions.length = match whole.share(4) {
            Length::For(time) => Length::For(time.min(Nanos::from_secs(2))),
            Length::Count(count) => Length::Count(count.min(2_000)),
        };
        let measured = measure(self);
        self.conditions = whole;
        measured
    }

    /// Has others be watched, who are no probes. Whether the user ended that early is kept.
    pub(crate) fn while_watching<T>(
        &mut self,
        watch: impl FnOnce(&Signals, &mut dyn Watch) -> Result<(bool, T)>,
    ) -> Result<T> {
        let (interrupted, found) = watch(self.signals, self.watch)?;
        self.interrupted |= interrupted;
        Ok(found)
    }
}

/// Has the lane of this thread tell its samples to whoever wants to know of them.
pub(super) fn observe(
    lane: &mut Lane<'_>,
    cpus: &CpuList,
    observer: Option<(&dyn Observer, &'static str)>,
) -> Result<()> {
    if let Some((observer, probe)) = observer {
        let cpu = cpus.iter().next().unwrap_or_default();
        lane.tell(observer.joins(probe, cpu, sched::thread_id().unsigned_abs())?);
    }
    Ok(())
}
