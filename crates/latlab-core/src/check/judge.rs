//! The judge of all threads of a program.

use super::breach::KEPT_BREACHES;
use super::event::{Event, EventKind};
use super::report::{Frame, Report, ThreadReport};
use super::wake_up::WakeUp;
use super::watched::Watched;
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
    /// Rules that these have breached.
    breached: BTreeSet<Rule>,
    /// Number of threads that have exited and were not kept.
    left_out: u64,
}

/// Largest number of threads that have exited and are kept for the report. Of others, those are kept
/// that breached a rule which no other has: the verdict depends on it.
const MOST: usize = 1000;

impl Judge {
    /// A judge of nothing yet. `deadline` is measured from when a cycle is due; without it, a cycle
    /// has to end before the next is due.
    pub fn new(deadline: Option<Nanos>) -> Judge {
        Judge { deadline, ..Judge::default() }
    }

    /// Adds the next event. Events of threads that are not real-time are ignored, except those of
    /// processes.
    pub fn add(&mut self, event: &Event) {
        let tid = event.thread.tid;
        match event.kind {
            EventKind::Exec | EventKind::Exit { last: false } => self.end(tid),
            EventKind::Exit { last: true } => {
                for tid in self.threads_of(event.thread.pid) {
                    self.end(tid);
                }
            }
            _ if !event.thread.is_realtime() => {}
            _ => {
                let deadline = self.deadline;
                let new = || Watched::new(event.thread, deadline);
                self.threads.entry(tid).or_insert_with(new).handle(event);
            }
        }
    }

    /// Adds a wake-up with its explanation. The events until its thread slept again must have been
    /// added before.
    pub fn explain(&mut self, wake_up: &WakeUp) {
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

    /// Watching ends at that time, until which all events have been added. A cycle in progress that is
    /// past its deadline, or without one lasts longer than a period, overran, if its thread is still
    /// real-time and in no other wait.
    pub fn stop(&mut self, at: Nanos, is_realtime: &dyn Fn(u32) -> bool) {
        for (_, thread) in self.threads.iter_mut().filter(|(tid, _)| is_realtime(**tid)) {
            thread.stop(at);
        }
    }

    fn end(&mut self, tid: u32) {
        let Some(mut thread) = self.threads.remove(&tid) else { return };
        thread.end();
        let breached = thread.breached();
        if self.ended.len() < MOST || !breached.is_subset(&self.breached) {
            self.breached.extend(breached);
            self.ended.push(thread);
        } else {
            self.left_out += 1;
        }
    }

    /// Number of real-time threads so far.
    pub fn realtime_threads(&self) -> usize {
        let left_out = usize::try_from(self.left_out).unwrap_or(usize::MAX);
        self.threads.len().saturating_add(self.ended.len()).saturating_add(left_out)
    }

    /// The real-time threads of a process that have not ended.
    pub fn threads_of(&self, pid: u32) -> Vec<u32> {
        let own = self.threads.iter().filter(|(_, watched)| watched.thread.pid == pid);
        own.map(|(tid, _)| *tid).collect()
    }

    /// The report. `frames` returns the frames of a stack of a process, `lazy` whether a process
    /// binds symbols when they are first called.
    pub fn report(
        mut self,
        frames: &mut dyn FnMut(u32, StackId) -> Vec<Frame>,
        lazy: &dyn Fn(u32) -> bool,
    ) -> Report {
        self.ended.extend(std::mem::take(&mut self.threads).into_values());
        self.ended.sort_by_key(|thread| (thread.thread.pid, thread.thread.tid));
        let mut report = Report { notes: self.left_out_threads(), ..Report::default() };
        let mut left_out = 0;
        for thread in self.ended {
            let about = thread.thread;
            let cyclic = thread.into_cyclic();
            left_out += cyclic.as_ref().map_or(0, |cyclic| cyclic.breaches.left_out());
            match cyclic.filter(|cyclic| cyclic.cycles > 0) {
                None => report.without_cycle.push(format!("{} [{}]", about.comm, about.tid)),
                Some(cyclic) => {
                    let mut cyclic = cyclic;
                    cyclic.judge_whole(lazy(about.pid));
                    let deadline = self.deadline;
                    report.threads.push(ThreadReport::of(cyclic, deadline, frames));
                }
            }
        }
        report.notes.extend((left_out > 0).then(|| {
            format!(
                "{left_out} breaches are not counted: more than {KEPT_BREACHES} in a cycle, or more \
                 different ones of a thread"
            )
        }));
        report
    }

    fn left_out_threads(&self) -> Vec<String> {
        let left_out = self.left_out;
        let note = (left_out > 0)
            .then(|| format!("{left_out} threads that ended are left out: more than {MOST}"));
        note.into_iter().collect()
    }
}

impl Watched {
    /// The rules that it has breached in its cycles.
    fn breached(&self) -> BTreeSet<Rule> {
        let cyclic = self.cyclic().filter(|cyclic| cyclic.cycles > 0);
        let in_cycles = cyclic.into_iter().flat_map(|cyclic| cyclic.breaches.rules());
        let whole = cyclic.into_iter().flat_map(|cyclic| cyclic.of_whole(false));
        in_cycles.chain(whole.map(|(rule, ..)| rule)).collect()
    }
}

impl super::thread::Cyclic {
    /// Judges what holds for all cycles: the wait, memory locks, binding of symbols.
    fn judge_whole(&mut self, lazy: bool) {
        for (rule, subject, stack, count) in self.of_whole(lazy) {
            self.breaches.add_whole((rule, subject.to_owned()), stack, count, self.cycles);
        }
    }

    /// The breaches of all cycles.
    fn of_whole(&self, lazy: bool) -> Vec<(Rule, &'static str, Option<StackId>, u64)> {
        let (on_wall_clock, wait, cycles) = (self.on_wall_clock, self.wait_stack, self.cycles);
        let (none, some) = (!self.locks.any && !self.locks.future, self.locks.any);
        let later = "later mappings are not locked";
        let bound = "library functions are bound when they are first called";
        let each = [
            (on_wall_clock > 0, (Rule::WallClock, "wait on CLOCK_REALTIME", wait, on_wall_clock)),
            (self.drifts(), (Rule::Drift, "relative sleep", wait, cycles)),
            (none, (Rule::NotLocked, "no memory is locked", None, 1)),
            (some && !self.locks.future, (Rule::LockFuture, later, None, 1)),
            (lazy, (Rule::LazyBinding, bound, None, 1)),
        ];
        each.into_iter().filter(|(found, _)| *found).map(|(_, breach)| breach).collect()
    }
}
