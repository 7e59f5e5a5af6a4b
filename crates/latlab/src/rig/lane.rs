//! The hot side of a rig: where a thread records what it sees.

use super::Phase;
use super::conditions::Conditions;
use super::meeting::Meeting;
use latlab_core::feed::Feed;
use latlab_core::periods;
use latlab_core::plan::Length;
use latlab_core::random::Random;
use latlab_core::record::{Disturbed, WarmUp};
use latlab_core::tally::Tally;
use latlab_core::time::Nanos;
use latlab_core::timeline::Timeline;
use latlab_core::worst::{Late, Worst};
use latlab_sys::clock;
use latlab_sys::mark::Marks;
use latlab_sys::usage::{self, Usage};
use std::io;
use std::sync::Arc;

/// One thread's record of its samples. Recording is wait-free and can't fail; all memory is
/// there before the first sample.
pub(crate) struct Lane<'a> {
    pub(super) meeting: &'a Meeting,
    place: usize,
    /// 0 where there is none.
    interval: Nanos,
    conditions: Conditions,
    channels: Vec<Channel>,
    /// Where samples of the first channel are taken, for who watches instructions.
    marks: Marks,
    /// When the first period begins.
    start: Nanos,
    /// When counting began.
    origin: Nanos,
    /// The end of the last period that is accounted for.
    reached: Nanos,
    /// When the thread last rested.
    rested: Nanos,
    warming: bool,
    /// Whether others measure, whose samples it keeps.
    collects: bool,
    warm_up: WarmUp,
    first: Option<Nanos>,
    worst: Worst,
    /// To whom each sample of the first channel is told.
    feed: Option<Arc<Feed>>,
    tripped: Option<Tripped>,
    /// How often the thread gave the CPU away on purpose while it could have run.
    yields: u64,
    /// What the thread had used when counting began.
    usage: Usage,
    cpu: Nanos,
}

/// An equal part of what was left of a run: when it ends, or at how many samples.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Share {
    Until(Nanos),
    Samples(u64),
}

/// One series in the making.
struct Channel {
    tally: Arc<Tally>,
    timeline: Timeline,
}

/// The sample that ended a run, and its circumstances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tripped {
    pub(crate) late: Late,
    /// Which period it belonged to, from 1.
    pub(crate) period: u64,
}

/// What a lane has recorded.
pub(crate) struct Finished {
    pub(crate) series: Vec<(Arc<Tally>, Timeline)>,
    pub(crate) worst: Worst,
    /// Whether its samples were taken where it ran, so that each of the worst has a mark.
    pub(crate) marked: bool,
    pub(crate) warm_up: WarmUp,
    pub(crate) first: Option<Nanos>,
    pub(crate) tripped: Option<Tripped>,
    pub(crate) disturbed: Disturbed,
    pub(crate) cpu_ns: Nanos,
}

impl<'a> Lane<'a> {
    pub(super) fn new(
        place: usize,
        spans: usize,
        interval: Option<Nanos>,
        conditions: Conditions,
        meeting: &'a Meeting,
    ) -> Lane<'a> {
        Lane {
            meeting,
            place,
            interval: interval.unwrap_or(Nanos(0)),
            conditions,
            channels: (0..spans).map(|_| Channel::new()).collect(),
            marks: Marks::begin(),
            start: Nanos(0),
            origin: Nanos(0),
            reached: Nanos(0),
            rested: Nanos(0),
            warming: true,
            collects: false,
            warm_up: WarmUp::default(),
            first: None,
            worst: Worst::new(),
            feed: None,
            tripped: None,
            yields: 0,
            usage: Usage::default(),
            cpu: Nanos(0),
        }
    }

    /// What is counted on the first channel, to look at from another thread.
    pub(super) fn view(&self) -> Arc<Tally> {
        Arc::clone(&self.channels[0].tally)
    }

    pub(super) fn place(&self) -> usize {
        self.place
    }

    pub(super) fn prepare(&mut self, start: Nanos) {
        self.start = start;
        self.reached = start;
        self.rested = start;
    }

    /// When the first wake-up is due: one period after all lanes start, later by this lane's
    /// share of the period where they are to be shifted.
    pub(crate) fn begin(&mut self, phase: Phase) -> Nanos {
        let shift = match phase {
            Phase::Aligned => 0,
            Phase::Shifted => self.interval.0 * self.place as u64 / self.meeting.lanes() as u64,
        };
        self.begin_at(Nanos(self.start.0 + shift));
        self.start + self.interval
    }

    /// Begins now rather than with the other lanes.
    pub(crate) fn begin_at(&mut self, now: Nanos) {
        self.start = now;
        self.reached = now;
        self.rested = now;
    }

    /// Has each sample of the first channel told to another thread, too.
    pub(super) fn tell(&mut self, feed: Arc<Feed>) {
        self.feed = Some(feed);
    }

    /// Says that others measure, whose samples it keeps: what befalls this thread befalls none of
    /// them.
    pub(crate) fn collect(&mut self) {
        self.collects = true;
    }

    /// Whether to measure on. To be asked before each period.
    #[inline]
    pub(crate) fn running(&mut self) -> bool {
        if self.meeting.is_stopped(self.place) {
            return false;
        }
        if self.warming {
            if self.reached < self.start + self.conditions.warm_up {
                return true;
            }
            self.count_from_here();
        }
        match self.conditions.length {
            Length::For(time) => self.reached < self.origin + time,
            Length::Count(periods) => self.periods() < periods,
        }
    }

    /// The next of `left` equal parts of what is left of the run.
    pub(crate) fn share(&self, left: u64) -> Share {
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

    /// Whether to measure on in this share, as [`Lane::running`] says it of the whole run.
    #[inline]
    pub(crate) fn running_in(&mut self, share: Share) -> bool {
        self.running()
            && match share {
                Share::Until(end) => self.reached < end,
                Share::Samples(samples) => self.warming || self.periods() < samples,
            }
    }

    /// Whether samples count by now: those of the warm-up do not.
    #[inline]
    pub(crate) fn counts(&self) -> bool {
        !self.warming
    }

    /// When counting began; none while the lane warms up.
    pub(crate) fn counting_since(&self) -> Option<Nanos> {
        (!self.warming).then_some(self.origin)
    }

    /// Waits with `wait`, which says whether it is through or was interrupted by a signal. False
    /// if the lane is to stop.
    #[inline]
    pub(crate) fn wait_for(&self, wait: impl FnMut() -> io::Result<bool>) -> io::Result<bool> {
        self.meeting.wait_for(self.place, wait)
    }

    /// How many samples a channel has.
    #[inline]
    pub(crate) fn recorded(&self, channel: usize) -> u64 {
        self.channels[channel].tally.recorded()
    }

    #[cold]
    fn count_from_here(&mut self) {
        self.warming = false;
        self.origin = self.reached;
        if let Some(feed) = &self.feed {
            feed.begin(self.origin);
        }
        self.usage = usage::of_thread();
        self.cpu = clock::of_thread();
    }

    /// Periods accounted for since counting began.
    fn periods(&self) -> u64 {
        let tally = &self.channels[0].tally;
        tally.recorded() + tally.missed()
    }

    /// Records a wake-up that was due at `due` and came at `now`, and the periods it slept
    /// through. When the next is due.
    #[inline]
    pub(crate) fn wakeup(&mut self, due: Nanos, now: Nanos) -> Nanos {
        let wakeup = periods::judge(due, self.interval, now);
        if wakeup.early {
            self.early();
        }
        self.sample(0, now, wakeup.latency);
        self.pass(wakeup.next - self.interval, wakeup.missed);
        wakeup.next
    }

    /// Records one latency, seen at `at`. The first channel is the one that the worst samples are
    /// of, and that a limit applies to.
    #[inline]
    pub(crate) fn sample(&mut self, channel: usize, at: Nanos, latency: Nanos) {
        let mut nth = 0;
        if channel == 0 {
            nth = self.marks.mark();
            self.first.get_or_insert(latency);
        }
        if self.warming {
            self.warm(channel, latency);
            return;
        }
        if let Some(feed) = self.feed.as_ref().filter(|_| channel == 0 && !self.collects) {
            feed.put(at, latency);
        }
        let at = at - self.origin;
        let series = &mut self.channels[channel];
        series.tally.record(latency);
        series.timeline.record(at, latency);
        if channel == 0 {
            self.worst.record(nth, at, latency);
            if latency > self.conditions.limit {
                self.trip(Late { nth, at, latency });
            }
        }
    }

    /// Accounts for time: everything up to `reached` is recorded, but for `missed` periods.
    #[inline]
    pub(crate) fn pass(&mut self, reached: Nanos, missed: u64) {
        self.reached = reached;
        if missed > 0 {
            self.miss(missed);
        }
    }

    /// Accounts for time as [`Lane::pass`] does with no period missed, and sleeps as long as the
    /// thread has worked, where that has become long: a task of real-time priority that takes all
    /// of a CPU keeps everything else from it, and loses it by force once a second (sched(7)).
    /// To be called between two repetitions of a probe that has no period.
    #[inline]
    pub(crate) fn rest(&mut self, now: Nanos) {
        const WORK: Nanos = Nanos::from_millis(50);
        self.reached = now;
        if now - self.rested > WORK {
            self.sleep_after(WORK);
        }
    }

    #[cold]
    fn sleep_after(&mut self, work: Nanos) {
        clock::sleep_for(work);
        self.rested = clock::now();
        self.reached = self.rested;
    }

    /// Notes that the thread gave the CPU to another with `sched_yield`, which the kernel counts as
    /// if it had been taken away.
    #[inline]
    pub(crate) fn yielded(&mut self) {
        if !self.warming {
            self.yields += 1;
        }
    }

    /// Notes that the sample to be recorded came before it was due, or is below zero.
    #[cold]
    pub(crate) fn early(&mut self) {
        if !self.warming {
            self.channels[0].tally.early();
        }
    }

    #[cold]
    fn miss(&mut self, missed: u64) {
        if self.warming {
            self.warm_up.missed += missed;
        } else {
            self.channels.iter().for_each(|channel| channel.tally.miss(missed));
        }
    }

    fn warm(&mut self, channel: usize, latency: Nanos) {
        if channel == 0 {
            self.warm_up.recorded += 1;
            self.warm_up.max = self.warm_up.max.max(latency);
            self.warm_up.sum += u128::from(latency.0);
        }
    }

    #[cold]
    fn trip(&mut self, late: Late) {
        self.tripped.get_or_insert(Tripped { late, period: self.periods() });
        self.meeting.stop_all();
    }

    pub(super) fn finish(self) -> Finished {
        let now = usage::of_thread();
        let counted = !self.warming && !self.collects;
        let since = |now: u64, then: u64| if counted { now.saturating_sub(then) } else { 0 };
        Finished {
            series: self.channels.into_iter().map(|c| (c.tally, c.timeline)).collect(),
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
            cpu_ns: Nanos(since(clock::of_thread().0, self.cpu.0)),
        }
    }
}

impl Finished {
    /// What was counted on the first channel.
    pub(crate) fn first(&self) -> &Tally {
        &self.series[0].0
    }
}

impl Channel {
    fn new() -> Channel {
        Channel { tally: Arc::new(Tally::new()), timeline: Timeline::new() }
    }
}

/// What recording one sample costs: the least of several batches on a lane of its own. Its
/// samples vary as real ones do, so that the buckets are not all in the cache.
pub(crate) fn record_cost() -> Nanos {
    const SAMPLES: u16 = 2_000;
    let meeting = Meeting::of(1);
    let conditions =
        Conditions { length: Length::Count(u64::MAX), warm_up: Nanos(0), limit: Nanos::MAX };
    let mut lane = Lane::new(0, 1, Some(Nanos::from_millis(1)), conditions, &meeting);
    let mut due = lane.begin(Phase::Aligned);
    let delays: Vec<Nanos> =
        Random::new(0).map(|n| Nanos(3_000 + n % 30_000)).take(SAMPLES.into()).collect();
    let mut batch = || {
        let begin = clock::now();
        for delay in &delays {
            lane.running();
            due = lane.wakeup(due, due + *delay);
        }
        (clock::now() - begin).0 / u64::from(SAMPLES)
    };
    Nanos((0..5).map(|_| batch()).min().unwrap_or(0))
}
