//! Where the threads of a probe and the thread that watches them meet: who has come to the start,
//! who is to stop, who has finished, and why it can't go on.

use crate::failure::Failure;
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_sys::cpu::Binding;
use latlab_sys::signal;
use latlab_sys::{clock, sched};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What they share.
pub(super) struct Meeting {
    stop: Vec<AtomicBool>,
    thread_ids: Vec<AtomicI32>,
    /// The threads that help a lane: its place, and the kernel's number.
    partners: Mutex<Vec<(usize, i32)>>,
    finished: Vec<AtomicBool>,
    gathering: Mutex<Gathering>,
    changed: Condvar,
}

/// Who has come to the start.
#[derive(Default)]
struct Gathering {
    arrived: usize,
    start: Nanos,
    /// What kept somebody from coming; then nobody starts.
    failure: Option<Failure>,
}

impl Meeting {
    /// One of so many lanes.
    pub(super) fn of(lanes: usize) -> Meeting {
        Meeting {
            stop: (0..lanes).map(|_| AtomicBool::new(false)).collect(),
            thread_ids: (0..lanes).map(|_| AtomicI32::new(0)).collect(),
            partners: Mutex::default(),
            finished: (0..lanes).map(|_| AtomicBool::new(false)).collect(),
            gathering: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    pub(super) fn lanes(&self) -> usize {
        self.stop.len()
    }

    /// Whether the lane at this place is to stop.
    #[inline]
    pub(super) fn is_stopped(&self, place: usize) -> bool {
        self.stop[place].load(Relaxed)
    }

    /// Waits, after each signal again, until `wait` says that it is through. False if the lane at
    /// this place is to stop.
    #[inline]
    pub(super) fn wait_for(
        &self,
        place: usize,
        mut wait: impl FnMut() -> io::Result<bool>,
    ) -> io::Result<bool> {
        while !self.is_stopped(place) {
            if wait()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether any lane is to stop and has not finished.
    pub(super) fn is_stopping(&self) -> bool {
        (0..self.lanes()).any(|place| self.is_stopped(place) && !self.is_finished(place))
    }

    /// Whether the lane at this place has finished.
    pub(super) fn is_finished(&self, place: usize) -> bool {
        self.finished[place].load(SeqCst)
    }

    pub(super) fn stop(&self, place: usize) {
        self.stop[place].store(true, SeqCst);
    }

    pub(super) fn stop_all(&self) {
        self.stop.iter().for_each(|stop| stop.store(true, SeqCst));
    }

    /// How many lanes have finished.
    pub(super) fn finished(&self) -> usize {
        (0..self.lanes()).filter(|place| self.is_finished(*place)).count()
    }

    /// Interrupts the sleep of threads that are to stop. One that is about to sleep misses it, so
    /// this is done again and again.
    pub(super) fn nudge_the_stopped(&self) {
        self.stopped_threads().into_iter().for_each(signal::nudge);
    }

    /// Takes from the threads that are to stop their priority and their CPU: something above them
    /// may keep them from it, and nothing that they do is measured any more.
    pub(super) fn let_go_of_the_stopped(&self, everywhere: &CpuList) {
        let everywhere = Binding::to(everywhere);
        for thread in self.stopped_threads() {
            sched::make_ordinary(thread);
            // Where it may not go elsewhere, it ends here when it gets to run.
            let _ = everywhere.bind(thread);
        }
    }

    fn stopped_threads(&self) -> Vec<i32> {
        let lanes = self.thread_ids.iter().map(|thread| thread.load(SeqCst)).enumerate();
        let partners = self.partners().clone();
        let all = lanes.filter(|(_, thread)| *thread != 0).chain(partners);
        all.filter(|(place, _)| self.is_stopped(*place)).map(|(_, thread)| thread).collect()
    }

    /// Waits until all threads are set up. When they start; none if one could not be.
    pub(super) fn gather(&self) -> Option<Nanos> {
        let mut gathering = self.gathering();
        gathering.arrived += 1;
        if gathering.arrived == self.lanes() {
            gathering.start = clock::now() + Nanos::from_millis(5);
            self.changed.notify_all();
        }
        while gathering.arrived < self.lanes() && gathering.failure.is_none() {
            gathering = self.changed.wait(gathering).unwrap_or_else(PoisonError::into_inner);
        }
        gathering.failure.is_none().then_some(gathering.start)
    }

    /// Whether all threads are set up.
    pub(super) fn is_gathered(&self) -> bool {
        self.gathering().arrived == self.lanes()
    }

    /// Notes that the calling thread measures on the lane at this place.
    pub(super) fn here(&self, place: usize) {
        self.thread_ids[place].store(sched::thread_id(), SeqCst);
    }

    /// Notes that the calling thread helps the lane at this place, until what comes back is
    /// dropped.
    pub(super) fn help(&self, place: usize) -> Helping<'_> {
        let thread = sched::thread_id();
        self.partners().push((place, thread));
        Helping { meeting: self, place, thread }
    }

    /// Says why the probe can't go on. The first reason counts.
    pub(super) fn fail(&self, failure: Failure) {
        self.gathering().failure.get_or_insert(failure);
        self.changed.notify_all();
        self.stop_all();
    }

    pub(super) fn into_failure(self) -> Option<Failure> {
        self.gathering.into_inner().unwrap_or_else(PoisonError::into_inner).failure
    }

    fn gathering(&self) -> MutexGuard<'_, Gathering> {
        self.gathering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn partners(&self) -> MutexGuard<'_, Vec<(usize, i32)>> {
        self.partners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says that a thread is done, however it ends: a panic must leave nobody waiting.
pub(super) struct Done<'a>(pub(super) &'a Meeting, pub(super) usize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        fail_in_panic(self.0);
        self.0.thread_ids[self.1].store(0, SeqCst);
        self.0.finished[self.1].store(true, SeqCst);
        signal::tell();
    }
}

/// A thread that helps a lane. One that ends before the lane lets it ends the probe.
pub(super) struct Helping<'a> {
    meeting: &'a Meeting,
    place: usize,
    thread: i32,
}

impl Drop for Helping<'_> {
    fn drop(&mut self) {
        fail_in_panic(self.meeting);
        if !self.meeting.is_stopped(self.place) {
            let why = "a task that takes part ended before it was told to";
            self.meeting.fail(Failure::Failed(why.to_owned()));
        }
        self.meeting.partners().retain(|(_, thread)| *thread != self.thread);
        signal::tell();
    }
}

fn fail_in_panic(meeting: &Meeting) {
    if std::thread::panicking() {
        let why = "a measuring thread panicked; what was changed is given back";
        meeting.fail(Failure::Failed(why.to_owned()));
    }
}
