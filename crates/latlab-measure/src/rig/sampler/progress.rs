//! Progress of a sampler: its start, its warm-up, and when it is done.

use super::Sampler;
use crate::rig::Phase;
use latlab_core::periods::goes_on;
use latlab_core::plan::Length;
use latlab_core::time::Nanos;
use latlab_sys::{clock, mark, usage};

/// End of an equal part of the remaining run: a time, or a number of samples.
#[derive(Clone, Copy, Debug)]
pub enum Share {
    /// Until this time of CLOCK_MONOTONIC.
    Until(Nanos),
    /// For so many samples.
    Samples(u64),
}

impl Sampler<'_> {
    /// Starts periodic measuring and returns when the first wake-up is due: one period after the
    /// common start, plus this sampler's fraction of the period if the phase is shifted.
    pub fn first_due(&mut self, phase: Phase) -> Nanos {
        let shift = match phase {
            Phase::Aligned => 0,
            Phase::Shifted => {
                self.interval.0 * self.index as u64 / self.coordination.samplers() as u64
            }
        };
        self.start_at(Nanos(self.start.0 + shift));
        self.start + self.interval
    }

    /// Starts measuring at `now`.
    pub fn start_at(&mut self, now: Nanos) {
        self.start = now;
        self.reached = now;
        self.paused = now;
    }

    /// Whether to go on measuring. To be called before each period.
    #[inline]
    pub fn running(&mut self) -> bool {
        if self.coordination.is_stopped(self.index) {
            return false;
        }
        if self.warming {
            let time = self.conditions.warm_up;
            if self.is_before(self.start, time) {
                return true;
            }
            self.start_counting();
        }
        if self.interim.is_wanted() {
            self.worked = true;
            self.copy();
        }
        match self.conditions.length {
            Length::For(time) => self.is_before(self.origin, time),
            Length::Count(periods) => self.periods() < periods,
        }
    }

    /// Whether [`Sampler::running`] began counting or copied the results since this was last asked: some
    /// microseconds of latlab's own, which a probe that measures lost time must leave out.
    #[inline]
    pub fn has_worked(&mut self) -> bool {
        std::mem::take(&mut self.worked)
    }

    /// Returns the next of `left` equal shares of the remaining run.
    pub fn next_share(&self, left: u64) -> Share {
        match self.conditions.length {
            Length::For(time) => {
                let origin =
                    if self.warming { self.start + self.conditions.warm_up } else { self.origin };
                let from = self.reached.max(origin);
                Share::Until(from + Nanos((origin + time - from).0 / left))
            }
            Length::Count(samples) => Share::Samples(
                self.periods() + samples.saturating_sub(self.periods()).div_ceil(left),
            ),
        }
    }

    /// Whether to go on measuring in this share of the run; see [`Sampler::running`].
    #[inline]
    pub fn running_in(&mut self, share: Share) -> bool {
        self.running()
            && match share {
                Share::Until(end) => self.reached < end,
                Share::Samples(samples) => self.warming || self.periods() < samples,
            }
    }

    /// Whether the warm-up is over, so that samples count.
    #[inline]
    pub fn is_counting(&self) -> bool {
        !self.warming
    }

    /// Returns when counting began; none during the warm-up.
    pub fn counting_since(&self) -> Option<Nanos> {
        (!self.warming).then_some(self.origin)
    }

    /// Whether this time has not passed since `begin`.
    #[inline]
    fn is_before(&self, begin: Nanos, time: Nanos) -> bool {
        let is_within = self.reached < begin + time;
        match self.monotonic {
            None => is_within,
            Some(since) => goes_on(is_within, clock::now() - since, time, self.interval),
        }
    }

    #[cold]
    fn start_counting(&mut self) {
        self.warming = false;
        self.worked = true;
        self.origin = self.reached;
        if self.monotonic.is_some() {
            // Without a warm-up, counting begins before the first period does.
            self.monotonic = Some(clock::now().max(self.start));
        }
        if let Some(feed) = &self.feed {
            feed.begin(self.origin);
        }
        self.usage = usage::of_thread();
        self.cpu = clock::thread_cpu_time();
        mark::begin_measuring();
    }

    /// Returns the number of periods accounted for since counting began.
    pub(super) fn periods(&self) -> u64 {
        let tally = &self.series[0].tally;
        tally.recorded() + tally.missed()
    }
}
