//! What is seen from outside while the threads of a probe measure: how far they are, and whether
//! they go on.

use super::meeting::Meeting;
use super::{Rhythm, Rig};
use crate::failure::Failure;
use latlab_core::cpulist::CpuList;
use latlab_core::tally::Tally;
use latlab_core::time::Nanos;
use latlab_sys::root::Root;
use latlab_sys::signal::Event;
use latlab_sys::{clock, cpu};
use std::sync::Arc;

/// What is seen from outside of the lanes of a probe.
pub(super) struct Looking<'a> {
    meeting: &'a Meeting,
    places: &'a [CpuList],
    views: &'a [(String, Arc<Tally>)],
    threads: usize,
    began: Nanos,
    /// Samples of the warm-up are not counted.
    warm_up: Nanos,
    /// For each lane, how many samples it had when that last changed, and when that was.
    seen: Vec<(u64, Nanos)>,
    /// Whether all lanes have been seen to be set up.
    gathered: bool,
    /// When a lane was first seen to be told to stop.
    stopping: Option<Nanos>,
}

impl Rig<'_> {
    /// Waits until all threads have finished; meanwhile shows what they do, passes requests to
    /// end on to them, and sees whether their CPUs are still there and samples still come.
    pub(super) fn look_on(&mut self, probe: &str, looking: &mut Looking<'_>, rhythm: Rhythm) {
        const URGENT: Nanos = Nanos::from_millis(20);
        let meeting = looking.meeting;
        while meeting.finished() < looking.threads {
            let pace = match rhythm.limit() {
                _ if meeting.is_stopping() => URGENT,
                None => self.watch.pace(),
                Some(limit) => self.watch.pace().min(limit),
            };
            if self.signals.wait(pace) == Event::End {
                self.interrupted = true;
                meeting.stop_all();
            }
            self.look_for_lost_cpus(meeting, looking.places);
            if let Some(limit) = rhythm.limit() {
                looking.look_for_the_stuck(probe, limit);
            }
            meeting.nudge_the_stopped();
            looking.look_for_those_who_stay();
            let elapsed = clock::now() - looking.began;
            self.watch.update(elapsed, self.conditions.about(rhythm, elapsed, looking.fewest()));
            if let Some(observer) = &self.observer {
                self.watch.causes(elapsed, &mut || observer.so_far());
            }
        }
    }

    /// A thread whose CPU goes offline is moved by the kernel, and what it measures from then on
    /// is another CPU's: it is stopped.
    fn look_for_lost_cpus(&mut self, meeting: &Meeting, places: &[CpuList]) {
        let online = cpu::online(&Root::default());
        if online.is_empty() {
            return;
        }
        for (place, cpus) in places.iter().enumerate() {
            let gone = cpus.minus(&online);
            if !gone.is_empty() {
                meeting.stop(place);
                self.lost = self.lost.iter().chain(gone.iter()).collect();
            }
        }
    }
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
    fn fewest(&self) -> u64 {
        self.views.iter().map(|(_, tally)| tally.recorded()).min().unwrap_or(0)
    }

    /// Lets go of threads that are to stop and do not.
    fn look_for_those_who_stay(&mut self) {
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
    fn look_for_the_stuck(&mut self, probe: &str, limit: Nanos) {
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
