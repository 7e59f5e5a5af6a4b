//! The sampler: the part of a measuring thread that records its samples.

mod interim;
mod progress;
mod recording;

pub(super) use interim::Interim;
pub use progress::Share;
pub(super) use recording::Recording;

use super::conditions::Conditions;
use super::coordination::Coordination;
use latlab_core::atomic_histogram::AtomicHistogram;
use latlab_core::feed::Feed;
use latlab_core::periods::{self, Wakeup};
use latlab_core::record::{Schedule, WarmUp};
use latlab_core::time::Nanos;
use latlab_core::timeline::Timeline;
use latlab_core::worst::{Worst, WorstSample};
use latlab_part::failure::failed;
use latlab_sys::clock;
use latlab_sys::mark::Marks;
use latlab_sys::usage::Usage;
use recording::Tripped;
use std::io;
use std::sync::Arc;

/// Records the samples of one thread. Recording is wait-free and can't fail; all memory is
/// allocated before the first sample.
pub struct Sampler<'a> {
    pub(super) coordination: &'a Coordination,
    /// Number of this sampler among those of its probe, from 0.
    index: usize,
    /// Period; 0 if there is none.
    interval: Nanos,
    conditions: Conditions,
    series: Vec<LiveSeries>,
    /// Numbers the samples of the first series, for observers that watch instructions.
    marks: Marks,
    /// Start of the first period.
    start: Nanos,
    /// Time at which counting began, after the warm-up.
    origin: Nanos,
    /// Time of `CLOCK_MONOTONIC` at which the warm-up, and then counting, began; only for samples that
    /// have the times of a clock that can be set, and so may jump ahead.
    monotonic: Option<Nanos>,
    /// End of the last period that is accounted for.
    reached: Nanos,
    /// Time at which the thread last paused.
    paused: Nanos,
    warming: bool,
    /// Whether [`Sampler::running`] did more than look at the time.
    worked: bool,
    /// Whether the samples were measured by other processes and are only collected here.
    collects: bool,
    warm_up: WarmUp,
    first: Option<Nanos>,
    worst: Worst,
    /// Also receives each sample of the first series.
    feed: Option<Arc<Feed>>,
    tripped: Option<Tripped>,
    /// Number of times the thread yielded the CPU voluntarily while runnable.
    yields: u64,
    /// Resource usage of the thread when counting began.
    usage: Usage,
    cpu: Nanos,
    /// A copy of all this for the monitor.
    interim: Arc<Interim>,
}

/// Histogram and timeline of one series while it is recorded.
struct LiveSeries {
    tally: Arc<AtomicHistogram>,
    timeline: Timeline,
}

impl<'a> Sampler<'a> {
    pub(super) fn new(
        index: usize,
        spans: usize,
        interval: Option<Nanos>,
        conditions: Conditions,
        coordination: &'a Coordination,
    ) -> Sampler<'a> {
        let new_series =
            |_| LiveSeries { tally: Arc::new(AtomicHistogram::new()), timeline: Timeline::new() };
        let series: Vec<LiveSeries> = (0..spans).map(new_series).collect();
        let histograms = series.iter().map(|live| Arc::clone(&live.tally));
        let interim = Arc::new(Interim::new(Recording::of(histograms)));
        Sampler {
            coordination,
            index,
            interval: interval.unwrap_or(Nanos(0)),
            conditions,
            series,
            marks: Marks::begin(),
            start: Nanos(0),
            origin: Nanos(0),
            monotonic: None,
            reached: Nanos(0),
            paused: Nanos(0),
            warming: true,
            worked: false,
            collects: false,
            warm_up: WarmUp::default(),
            first: None,
            worst: Worst::new(),
            feed: None,
            tripped: None,
            yields: 0,
            usage: Usage::default(),
            cpu: Nanos(0),
            interim,
        }
    }

    /// Returns the histogram of the first series, which other threads may read meanwhile.
    pub(super) fn shared_histogram(&self) -> Arc<AtomicHistogram> {
        Arc::clone(&self.series[0].tally)
    }

    /// Returns the place of the copies that this sampler makes.
    pub(super) fn interim(&self) -> Arc<Interim> {
        Arc::clone(&self.interim)
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// Sends each sample of the first series to `feed`, too.
    pub(super) fn set_feed(&mut self, feed: Arc<Feed>) {
        self.feed = Some(feed);
    }

    /// Sets the scheduling of the thread, for the recording.
    pub(super) fn set_schedule(&mut self, schedule: Schedule) {
        self.interim.latest().schedule = schedule;
    }

    /// Declares that other processes measure and this thread only collects their samples: its own
    /// page faults, preemptions and CPU time say nothing about them.
    pub fn set_collecting(&mut self) {
        self.collects = true;
    }

    /// Declares that the samples have the times of a clock that can be set: a step ahead does not end
    /// the measurement. To be called before the first period.
    pub fn set_settable_clock(&mut self) {
        self.monotonic = Some(self.start);
    }

    /// Calls `wait` again after each signal, until it returns true. Returns false if the sampler is
    /// to stop.
    #[inline]
    pub fn wait_for(&self, wait: impl FnMut() -> io::Result<bool>) -> io::Result<bool> {
        self.coordination.wait_for(self.index, wait)
    }

    /// Returns the number of samples of a series.
    #[inline]
    pub fn recorded(&self, series: usize) -> u64 {
        self.series[series].tally.recorded()
    }

    /// Records a wake-up that was due at `due` and happened at `now`, and the periods missed in
    /// between. Returns when the next wake-up is due.
    #[inline]
    pub fn record_wakeup(&mut self, due: Nanos, now: Nanos) -> Nanos {
        let wakeup = periods::judge(due, self.interval, now);
        self.record_judged(now, wakeup);
        wakeup.next
    }

    /// Begins new periods, as the clock was set back to `now` before the wake-up that is due at `due`.
    /// Returns when the next wake-up is due. Recorded samples stay as they are.
    #[cold]
    pub fn begin_anew(&mut self, due: Nanos, now: Nanos) -> Nanos {
        let due = periods::after_set_back(due, self.interval, now);
        self.reached = due - self.interval;
        due
    }

    /// Records the end of a sleep that was due at `due`, with a timer of this resolution, and the
    /// periods missed beyond that.
    #[inline]
    pub fn record_sleep(&mut self, due: Nanos, now: Nanos, resolution: Nanos) {
        self.record_judged(now, periods::judge_sleep(due, self.interval, now, resolution));
    }

    #[inline]
    fn record_judged(&mut self, now: Nanos, wakeup: Wakeup) {
        if wakeup.early {
            self.count_below_zero();
        }
        self.record(0, now, wakeup.latency);
        self.advance(wakeup.next - self.interval, wakeup.missed);
    }

    /// Records one latency, taken at `at`. The worst samples and the limit are those of series 0.
    #[inline]
    pub fn record(&mut self, series: usize, at: Nanos, latency: Nanos) {
        let mut index = 0;
        if series == 0 {
            index = self.marks.mark();
            self.first.get_or_insert(latency);
        }
        if self.warming {
            self.record_warm_up(series, latency);
            return;
        }
        if let Some(feed) = self.feed.as_ref().filter(|_| series == 0 && !self.collects) {
            feed.put(at, latency);
        }
        let at = at - self.origin;
        let live = &mut self.series[series];
        live.tally.record(latency);
        live.timeline.record(at, latency);
        if series == 0 {
            self.worst.record(index, at, latency);
            if latency > self.conditions.limit {
                self.trip(WorstSample { index, at, latency });
            }
        }
    }

    /// Accounts for the time up to `reached`, in which `missed` periods have no sample.
    #[inline]
    pub fn advance(&mut self, reached: Nanos, missed: u64) {
        self.reached = reached;
        if missed > 0 {
            self.miss(missed);
        }
    }

    /// Accounts for the time up to `now` without missed periods. After 50 ms of work it sleeps for
    /// as long: a real-time task that never sleeps starves all others on its CPU and is throttled
    /// once a second (sched(7)). To be called between two repetitions of a probe without a period.
    #[inline]
    pub fn advance_and_pause(&mut self, now: Nanos) {
        const WORK: Nanos = Nanos::from_millis(50);
        self.reached = now;
        if now - self.paused > WORK {
            self.pause(WORK);
        }
    }

    #[cold]
    fn pause(&mut self, time: Nanos) {
        // Without a sleep, the thread would keep its CPU to itself for the rest of the run.
        if let Err(error) = clock::wait_for(time) {
            self.coordination.fail(failed("a pause between measurements", error));
        }
        self.paused = clock::now();
        self.reached = self.paused;
    }

    /// Notes that the thread switched to another with `sched_yield`, which the kernel counts as an
    /// involuntary context switch.
    #[inline]
    pub fn note_yield(&mut self) {
        if !self.warming {
            self.yields += 1;
        }
    }

    /// Counts the sample recorded next as one below zero: a wake-up before its time, or a latency
    /// shorter than the cost subtracted from it.
    #[cold]
    pub fn count_below_zero(&mut self) {
        if !self.warming {
            self.series[0].tally.early();
        }
    }

    #[cold]
    fn miss(&mut self, missed: u64) {
        if self.warming {
            self.warm_up.missed += missed;
        } else {
            self.series.iter().for_each(|live| live.tally.miss(missed));
        }
    }

    fn record_warm_up(&mut self, series: usize, latency: Nanos) {
        if series == 0 {
            self.warm_up.recorded += 1;
            self.warm_up.max = self.warm_up.max.max(latency);
            self.warm_up.sum += u128::from(latency.0);
        }
    }

    #[cold]
    fn trip(&mut self, late: WorstSample) {
        self.tripped.get_or_insert(Tripped { late, period: self.periods() });
        self.coordination.stop_all();
    }
}
