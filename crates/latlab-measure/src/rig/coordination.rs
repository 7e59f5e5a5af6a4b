//! Coordination of the threads of a probe: their common start, stop flags, ends and failures.

use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, lock, unpoisoned};
use latlab_sys::cpu::Affinity;
use latlab_sys::signal;
use latlab_sys::{clock, sched};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard};

/// State that the threads of a probe share with the thread that monitors them.
pub(super) struct Coordination {
    stop: Vec<AtomicBool>,
    /// Thread IDs of the samplers; 0 before a sampler starts and after it has finished.
    thread_ids: Vec<AtomicI32>,
    /// Index of the sampler and thread ID of each second task.
    second_tasks: Mutex<Vec<(usize, i32)>>,
    finished: Vec<AtomicBool>,
    /// Whether threads that did not stop were demoted.
    demoted: AtomicBool,
    start: Mutex<Start>,
    changed: Condvar,
}

/// Progress of the common start.
#[derive(Default)]
struct Start {
    /// Number of samplers that are set up.
    ready: usize,
    at: Nanos,
    /// The first failure. After one during the set-up no sampler starts.
    failure: Option<Failure>,
}

impl Coordination {
    /// Returns the state for this number of samplers.
    pub(super) fn new(samplers: usize) -> Coordination {
        Coordination {
            stop: (0..samplers).map(|_| AtomicBool::new(false)).collect(),
            thread_ids: (0..samplers).map(|_| AtomicI32::new(0)).collect(),
            second_tasks: Mutex::default(),
            finished: (0..samplers).map(|_| AtomicBool::new(false)).collect(),
            demoted: AtomicBool::new(false),
            start: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Returns the number of samplers.
    pub(super) fn samplers(&self) -> usize {
        self.stop.len()
    }

    /// Whether this sampler is to stop.
    #[inline]
    pub(super) fn is_stopped(&self, index: usize) -> bool {
        self.stop[index].load(Relaxed)
    }

    /// Calls `wait` again after each signal, until it returns true. Returns false if this sampler
    /// is to stop.
    #[inline]
    pub(super) fn wait_for(
        &self,
        index: usize,
        mut wait: impl FnMut() -> io::Result<bool>,
    ) -> io::Result<bool> {
        while !self.is_stopped(index) {
            if wait()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether any sampler is to stop and has not finished.
    pub(super) fn is_stopping(&self) -> bool {
        (0..self.samplers()).any(|index| self.is_stopped(index) && !self.is_finished(index))
    }

    /// Whether this sampler has finished.
    pub(super) fn is_finished(&self, index: usize) -> bool {
        self.finished[index].load(SeqCst)
    }

    pub(super) fn stop(&self, index: usize) {
        self.stop[index].store(true, SeqCst);
    }

    pub(super) fn stop_all(&self) {
        self.stop.iter().for_each(|stop| stop.store(true, SeqCst));
    }

    /// Returns how many samplers have finished.
    pub(super) fn finished(&self) -> usize {
        (0..self.samplers()).filter(|index| self.is_finished(*index)).count()
    }

    /// Interrupts the sleep of threads that are to stop. A thread that is just about to sleep
    /// misses this, so it must be called repeatedly.
    pub(super) fn interrupt_stopped_threads(&self) {
        self.stopped_threads().into_iter().for_each(signal::interrupt_thread);
    }

    /// Interrupts the sleep of all samplers, as their clock was set: they look when they are due. A thread
    /// that is just about to sleep misses this, so it must be called repeatedly.
    pub(super) fn interrupt_samplers(&self) {
        let threads = self.thread_ids.iter().map(|thread| thread.load(SeqCst));
        threads.filter(|thread| *thread != 0).for_each(signal::interrupt_thread);
    }

    /// Makes threads that are to stop ordinary tasks and lets them run on `everywhere`: tasks of
    /// higher priority may keep the CPU from them, and their measurement is over.
    pub(super) fn demote_stopped_threads(&self, everywhere: &CpuList) {
        self.demoted.store(true, SeqCst);
        let everywhere = Affinity::to(everywhere);
        for thread in self.stopped_threads() {
            sched::make_ordinary(thread);
            // A thread that can't be moved ends as soon as it runs here.
            let _ = everywhere.bind(thread);
        }
    }

    /// Whether this sampler was to stop, did not, and was demoted.
    pub(super) fn is_demoted(&self, index: usize) -> bool {
        self.is_stopped(index) && self.demoted.load(SeqCst)
    }

    /// The threads of samplers that are to stop.
    pub(super) fn stopped_threads(&self) -> Vec<i32> {
        let samplers = self.thread_ids.iter().map(|thread| thread.load(SeqCst)).enumerate();
        let second_tasks = self.second_tasks().clone();
        let all = samplers.filter(|(_, thread)| *thread != 0).chain(second_tasks);
        all.filter(|(index, _)| self.is_stopped(*index)).map(|(_, thread)| thread).collect()
    }

    /// Waits until all samplers are set up. Returns when they start; none if one could not be set
    /// up.
    pub(super) fn wait_for_start(&self) -> Option<Nanos> {
        let mut start = self.lock_start();
        start.ready += 1;
        if start.ready == self.samplers() {
            start.at = clock::now() + Nanos::from_millis(5);
            self.changed.notify_all();
        }
        while start.ready < self.samplers() && start.failure.is_none() {
            start = unpoisoned(self.changed.wait(start));
        }
        start.failure.is_none().then_some(start.at)
    }

    /// Whether all samplers are set up.
    pub(super) fn is_set_up(&self) -> bool {
        self.lock_start().ready == self.samplers()
    }

    /// Registers the calling thread as the thread of this sampler.
    pub(super) fn register_sampler(&self, index: usize) {
        self.thread_ids[index].store(sched::thread_id(), SeqCst);
    }

    /// Registers the calling thread as a second task of this sampler, until the guard is dropped.
    pub(super) fn register_second_task(&self, index: usize) -> SecondTaskGuard<'_> {
        let thread = sched::thread_id();
        self.second_tasks().push((index, thread));
        SecondTaskGuard { coordination: self, index, thread }
    }

    /// Stops all samplers because of this failure. Only the first failure is kept.
    pub(super) fn fail(&self, failure: Failure) {
        self.lock_start().failure.get_or_insert(failure);
        self.changed.notify_all();
        self.stop_all();
    }

    pub(super) fn into_failure(self) -> Option<Failure> {
        unpoisoned(self.start.into_inner()).failure
    }

    fn lock_start(&self) -> MutexGuard<'_, Start> {
        lock(&self.start)
    }

    fn second_tasks(&self) -> MutexGuard<'_, Vec<(usize, i32)>> {
        lock(&self.second_tasks)
    }
}

/// Marks a sampler as finished when dropped: no thread may wait for one that has panicked.
pub(super) struct FinishGuard<'a>(pub(super) &'a Coordination, pub(super) usize);

impl Drop for FinishGuard<'_> {
    fn drop(&mut self) {
        fail_on_panic(self.0);
        self.0.thread_ids[self.1].store(0, SeqCst);
        self.0.finished[self.1].store(true, SeqCst);
        signal::notify();
    }
}

/// Unregisters a second task when dropped. The probe fails if the task was not told to stop.
pub(super) struct SecondTaskGuard<'a> {
    coordination: &'a Coordination,
    index: usize,
    thread: i32,
}

impl Drop for SecondTaskGuard<'_> {
    fn drop(&mut self) {
        fail_on_panic(self.coordination);
        if !self.coordination.is_stopped(self.index) {
            let why = "a second task of the probe ended before it was told to stop";
            self.coordination.fail(Failure::failed(why));
        }
        self.coordination.second_tasks().retain(|(_, thread)| *thread != self.thread);
        signal::notify();
    }
}

fn fail_on_panic(coordination: &Coordination) {
    if std::thread::panicking() {
        let why = "a measuring thread panicked; all changed settings are restored";
        coordination.fail(Failure::failed(why));
    }
}
