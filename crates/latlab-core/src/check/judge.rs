//! The judge of all threads of a program.

use super::event::{Event, EventKind};
use super::report::{Frame, Report, ThreadReport};
use super::thread::Watched;
use super::wake_up::WakeUp;
use super::{Rule, StackId};
use crate::time::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// Judges the real-time threads of a program and its child processes.
#[derive(Debug, Default)]
pub struct Judge {
    deadline: Option<Nanos>,
    threads: BTreeMap<u32, Watched>,
    /// Threads that have exited, in order.
    ended: Vec<Watched>,
    /// Processes that have executed another program.
    replaced: BTreeSet<u32>,
}

/// Largest number of threads that have exited and are kept for the report.
const MOST: usize = 1000;

impl Judge {
    /// A judge of nothing yet. `deadline` is measured from when a cycle is due; without it, a cycle
    /// has to end before the next is due.
    pub fn new(deadline: Option<Nanos>) -> Judge {
        Judge { deadline, ..Judge::default() }
    }

    /// Adds the next event. Events of threads that are not real-time are ignored, except those of
    /// processes.
    pub fn add(&mut self, event: Event) {
        /// The kernel's priority from which on tasks are not real-time.
        const ORDINARY: i16 = 100;
        let tid = event.thread.tid;
        match event.kind {
            EventKind::Exec => {
                self.replaced.insert(event.thread.pid);
                self.end(tid);
            }
            EventKind::Exit => self.end(tid),
            _ if event.thread.prio >= ORDINARY => {}
            _ => {
                let deadline = self.deadline;
                let new = || Watched::new(event.thread, deadline);
                self.threads.entry(tid).or_insert_with(new).handle(event);
            }
        }
    }

    /// Adds a wake-up with its explanation. The events until its thread slept again must have been
    /// added before.
    pub fn explain(&mut self, wake_up: WakeUp) {
        let ended = self.ended.iter_mut().rev();
        let thread = self.threads.get_mut(&wake_up.tid);
        let thread = thread.or(ended.into_iter().find(|one| one.thread.tid == wake_up.tid));
        if let Some(thread) = thread {
            thread.explain(wake_up);
        }
    }

    /// The deadline, or the shortest period of a thread so far.
    pub fn shortest_deadline(&self) -> Option<Nanos> {
        self.deadline.or_else(|| self.threads.values().filter_map(Watched::period).min())
    }

    fn end(&mut self, tid: u32) {
        let Some(mut thread) = self.threads.remove(&tid) else { return };
        thread.choose();
        if self.ended.len() < MOST {
            self.ended.push(thread);
        }
    }

    /// Number of real-time threads so far.
    pub fn realtime_threads(&self) -> usize {
        self.threads.len() + self.ended.len()
    }

    /// The report. `frames` returns the frames of a stack of a process, `lazy` whether a process
    /// binds symbols when they are first called.
    pub fn report(
        mut self,
        frames: &mut dyn FnMut(u32, StackId) -> Vec<Frame>,
        lazy: &dyn Fn(u32) -> bool,
    ) -> Report {
        while let Some(tid) = self.threads.keys().next().copied() {
            let Some(mut thread) = self.threads.remove(&tid) else { break };
            thread.choose();
            self.ended.push(thread);
        }
        self.ended.sort_by_key(|thread| (thread.thread.pid, thread.thread.tid));
        let mut report = Report::default();
        for thread in self.ended {
            let about = thread.thread;
            match thread.cyclic.filter(|cyclic| cyclic.cycles > 0) {
                None => report.without_cycle.push(format!("{} [{}]", about.comm, about.tid)),
                Some(cyclic) => {
                    let mut cyclic = cyclic;
                    cyclic.judge_whole(lazy(about.pid));
                    let deadline = self.deadline;
                    report.threads.push(ThreadReport::of(cyclic, deadline, frames));
                }
            }
        }
        report
    }
}

impl super::thread::Cyclic {
    /// Judges what holds for all cycles: the wait, memory locks, binding of symbols.
    fn judge_whole(&mut self, lazy: bool) {
        let on_wall_clock = self.wait.is_on_wall_clock();
        let wait = self.wait_stack;
        let each = [
            (on_wall_clock, Rule::WallClock, "wait on CLOCK_REALTIME", wait, self.cycles),
            (self.drifts(), Rule::Drift, "relative sleep", wait, self.cycles),
            (
                !self.locks.any && !self.locks.future,
                Rule::NotLocked,
                "no memory is locked",
                None,
                1,
            ),
            (
                self.locks.any && !self.locks.future,
                Rule::LockFuture,
                "later mappings are not locked",
                None,
                1,
            ),
            (
                lazy,
                Rule::LazyBinding,
                "library functions are bound when they are first called",
                None,
                1,
            ),
        ];
        for (found, rule, subject, stack, count) in each {
            if found {
                self.breaches.add_whole((rule, subject.to_owned()), stack, count, self.cycles);
            }
        }
    }
}
