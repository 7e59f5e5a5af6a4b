//! What is seen from outside while the threads of a probe measure: how far they are, and whether
//! they go on.

use super::meeting::Meeting;
use crate::failure::Failure;
use latlab_core::cpulist::CpuList;
use latlab_core::tally::Tally;
use latlab_core::time::Nanos;
use latlab_sys::{clock, cpu};
use std::sync::Arc;

/// What is seen from outside of the lanes of a probe.
pub(super) struct Looking<'a> {
    pub(super) meeting: &'a Meeting,
    pub(super) places: &'a [CpuList],
    views: &'a [(String, Arc<Tally>)],
    pub(super) threads: usize,
    pub(super) began: Nanos,
    /// Samples of the warm-up are not counted.
    warm_up: Nanos,
    /// For each lane, how many samples it had when that last changed, and when that was.
    seen: Vec<(u64, Nanos)>,
    /// Whether all lanes have been seen to be set up.
    gathered: bool,
    /// When a lane was first seen to be told to stop.
    stopping: Option<Nanos>,
}

impl<'a> Looking<'a> {
    pub(super) fn on(
        meeting: &'a Meeting,
        places: &'a [CpuList],
        views: &'a [(String, Arc<Tally>)],
        threads: usize,
        warm_up: Nanos,
    ) -> Looking<'a> {
        let began = clock::now();
        let seen = vec![(0, began); views.len()];
        let (gathered, stopping) = (false, None);
        Looking { meeting, places, views, threads, began, warm_up, seen, gathered, stopping }
    }

    /// The samples of the lane that has the fewest.
    pub(super) fn fewest(&self) -> u64 {
        self.views.iter().map(|(_, tally)| tally.recorded()).min().unwrap_or(0)
    }

    /// Lets go of threads that are to stop and do not.
    pub(super) fn look_for_those_who_stay(&mut self) {
        const LONG: Nanos = Nanos::from_secs(1);
        if !self.meeting.is_stopping() {
            self.stopping = None;
            return;
        }
        let now = clock::now();
        if now - *self.stopping.get_or_insert(now) > LONG
            && let Ok(everywhere) = cpu::allowed()
        {
            self.meeting.let_go_of_the_stopped(&everywhere);
        }
    }

    /// Ends a probe of which a lane has recorded nothing for too long. Until it is set up, it is an
    /// ordinary task, and on a busy machine waits for the CPU as all others do.
    pub(super) fn look_for_the_stuck(&mut self, probe: &str, limit: Nanos) {
        const SET_UP: u64 = 12;
        let now = clock::now();
        if !self.gathered && self.meeting.is_gathered() {
            self.gathered = true;
            let since = now + self.warm_up;
            self.seen.iter_mut().for_each(|seen| seen.1 = since);
        }
        let (limit, why) = if self.gathered {
            (limit, "a wake-up was lost, or a task that takes part is dead or never runs")
        } else {
            (Nanos(limit.0.saturating_mul(SET_UP)), "its thread did not get to run there")
        };
        for (place, ((cpus, tally), seen)) in self.views.iter().zip(&mut self.seen).enumerate() {
            let recorded = tally.recorded();
            // One that is done, or will be, has nothing more to record.
            if recorded != seen.0 || self.meeting.is_finished(place) {
                *seen = (recorded, now);
            }
            if now - seen.1 > limit && !self.meeting.is_stopped(place) {
                let what = format!("{probe} on CPU {cpus}: nothing came for {limit}: {why}");
                self.meeting.fail(Failure::Failed(what));
            }
        }
    }
}
