//! The judge of all threads of a program.

use super::breach::KEPT_BREACHES;
use super::event::{Event, EventKind, Locks, Thread};
use super::memory::Memory;
use super::report::{Frame, Report, ThreadReport};
use super::request::{Requests, add_waiting};
use super::thread::Terms;
use super::wake_up::WakeUp;
use super::warm_up::WarmUp;
use super::watched::Watched;
use super::{Rule, StackId};
use latlab_core::time::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// Judges the real-time threads of a program and its child processes, or all of them.
#[derive(Debug, Default)]
pub struct Judge {
    terms: Terms,
    threads: BTreeMap<u32, Watched>,
    /// Threads that have exited, in order.
    ended: Vec<Watched>,
    /// Rules that these have breached.
    breached: BTreeSet<Rule>,
    /// Requests for real-time rights that were refused.
    requests: Requests,
    /// Number of events.
    events: u64,
    /// Number of threads that have exited and were not kept.
    left_out: u64,
}

/// Largest number of threads that have exited and are kept for the report. Beyond that, only
/// threads are kept that breached a rule which no other thread has: the verdict depends on it.
const MOST: usize = 1000;

impl Judge {
    /// A judge of nothing yet. `deadline` is measured from when a cycle is due; without it, a cycle
    /// has to end before the next is due.
    pub fn new(deadline: Option<Nanos>) -> Judge {
        Judge { terms: Terms { deadline, ..Terms::default() }, ..Judge::default() }
    }

    /// The same without the first cycles of each thread.
    #[must_use]
    pub fn with_warm_up(self, warm_up: WarmUp) -> Judge {
        Judge { terms: Terms { warm_up, ..self.terms }, ..self }
    }

    /// The same on a kernel with ticks of this length.
    #[must_use]
    pub fn with_tick(self, tick: Option<Nanos>) -> Judge {
        Judge { terms: Terms { tick, ..self.terms }, ..self }
    }

    /// The same, with threads of every policy if it is `any`. To one without a real-time policy no rule
    /// applies that is about tasks of lower priority.
    #[must_use]
    pub fn with_any_policy(self, any: bool) -> Judge {
        Judge { terms: Terms { any_policy: any, ..self.terms }, ..self }
    }

    /// Adds the next event. Events of threads that are not judged are ignored, except those of
    /// processes and requests.
    pub fn add(&mut self, event: &Event) {
        self.events += 1;
        let tid = event.thread.tid;
        match &event.kind {
            EventKind::Request(request) => {
                let threads = &self.threads;
                let is_realtime =
                    |tid| threads.get(&tid).is_some_and(|watched| watched.thread.is_realtime());
                self.requests.add(event.thread, request, &is_realtime);
            }
            EventKind::Exec | EventKind::Exit { last: false } => self.end(tid, event.at),
            EventKind::Exit { last: true } => {
                for tid in self.threads_of(event.thread.pid) {
                    self.end(tid, event.at);
                }
            }
            // Also of the parent of a program that is started, which is not part of it.
            EventKind::Fork => {}
            _ if !(event.thread.is_realtime() || self.terms.any_policy) => {}
            _ => {
                let terms = self.terms;
                let new = || Watched::new(event.thread, terms);
                self.threads.entry(tid).or_insert_with(new).handle(event);
            }
        }
    }

    /// A real-time thread has run for a part of this time. If it has caused no event, it has not
    /// slept: for example, it has its CPU for itself.
    pub fn add_silent(&mut self, thread: Thread, (from, to): (Nanos, Nanos), ran: Nanos) {
        let mut silent = Watched::new(thread, self.terms);
        silent.run_silently(from, to, ran);
        self.threads.entry(thread.tid).or_insert(silent);
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
        self.terms.deadline.or_else(|| self.threads.values().filter_map(Watched::period).min())
    }

    /// Watching ends at that time, until which all events have been added. A cycle in progress that is
    /// past its deadline, or without one lasts longer than a period, overran, if its thread still has a
    /// policy that is judged and is in no other wait.
    pub fn stop(&mut self, at: Nanos, is_realtime: &dyn Fn(u32) -> bool) {
        let any = self.terms.any_policy;
        for (_, thread) in self.threads.iter_mut().filter(|(tid, _)| any || is_realtime(**tid)) {
            thread.stop(at);
        }
    }

    /// The processes with a thread that has completed a cycle and has not ended.
    pub fn cyclic_processes(&self) -> BTreeSet<u32> {
        let cyclic = self.threads.values().filter(|watched| watched.has_cycles());
        cyclic.map(|watched| watched.thread.pid).collect()
    }

    /// The memory of a process, read after its threads had completed cycles: it replaces what was known.
    pub fn set_memory(&mut self, pid: u32, memory: Memory) {
        let own = self.threads.values_mut().filter(|watched| watched.thread.pid == pid);
        for watched in own.filter(|watched| watched.has_cycles()) {
            watched.memory = Some(memory);
        }
    }

    fn end(&mut self, tid: u32, at: Nanos) {
        let Some(mut thread) = self.threads.remove(&tid) else { return };
        thread.end(at);
        let breached = thread.breached();
        if self.ended.len() < MOST || !breached.is_subset(&self.breached) {
            self.breached.extend(breached);
            self.ended.push(thread);
        } else {
            self.left_out += 1;
        }
    }

    /// Number of threads so far that are judged or have no cycle yet.
    pub fn watched_threads(&self) -> usize {
        let left_out = usize::try_from(self.left_out).unwrap_or(usize::MAX);
        self.threads.len().saturating_add(self.ended.len()).saturating_add(left_out)
    }

    /// The threads of a process that are judged and have not ended.
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
        let mut report =
            Report { notes: self.left_out_threads(), events: self.events, ..Report::default() };
        let (mut left_out, mut without_cycle) = (0, Vec::new());
        let of = |is: &dyn Fn(Thread) -> bool| {
            self.ended.iter().any(|one| one.thread.is_realtime() && is(one.thread))
        };
        report.findings =
            self.requests.findings(frames, &|tid| of(&|thread| thread.tid == tid), &|pid| {
                of(&|thread| thread.pid == pid)
            });
        for mut thread in self.ended {
            let (about, memory, findings) = (thread.thread, thread.memory, thread.findings(frames));
            let is_found = !findings.is_empty();
            report.findings.extend(findings);
            let cyclic = thread.into_cyclic();
            left_out += cyclic.as_ref().map_or(0, |cyclic| cyclic.breaches.left_out());
            let name = format!("{} [{}]", about.comm, about.tid);
            match cyclic.filter(|cyclic| cyclic.cycles + cyclic.warmed_up > 0) {
                None if is_found => {}
                None => without_cycle.push((about.tid, name)),
                Some(cyclic) if cyclic.cycles == 0 => report.in_warm_up.push(name),
                Some(cyclic) => {
                    let mut cyclic = cyclic;
                    cyclic.judge_whole(lazy(about.pid), memory);
                    let deadline = self.terms.deadline;
                    report.threads.push(ThreadReport::of(cyclic, deadline, frames));
                }
            }
        }
        add_waiting(&mut report);
        // A thread that has executed another program is judged anew, but is one thread.
        without_cycle.reverse();
        let mut known: BTreeSet<u32> = report.threads.iter().map(|thread| thread.tid).collect();
        without_cycle.retain(|(tid, _)| known.insert(*tid));
        report.without_cycle = without_cycle.into_iter().rev().map(|(_, name)| name).collect();
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
        let whole = cyclic.into_iter().flat_map(|cyclic| cyclic.of_whole(false, self.memory));
        let outside = self.busy().map(|finding| finding.rule);
        in_cycles.chain(whole.map(|(rule, ..)| rule)).chain(outside).collect()
    }
}

impl super::thread::Cyclic {
    /// Judges what holds for all cycles: the wait, memory locks, binding of symbols.
    fn judge_whole(&mut self, lazy: bool, memory: Option<Memory>) {
        for (rule, subject, stack, count) in self.of_whole(lazy, memory) {
            self.breaches.add_whole((rule, subject), stack, count, self.cycles);
        }
    }

    /// The breaches of all cycles.
    fn of_whole(
        &self,
        lazy: bool,
        memory: Option<Memory>,
    ) -> Vec<(Rule, String, Option<StackId>, u64)> {
        let (on_wall_clock, wait, cycles) = (self.on_wall_clock, self.wait_stack, self.cycles);
        let not_locked = not_locked(self.locks, memory);
        let is_later_unlocked = not_locked.is_none() && self.locks.any && !self.locks.future;
        let bound = "library functions are bound when they are first called";
        let mut each = Vec::new();
        let mut add = |found: bool, rule, subject: &str, stack, count| {
            each.extend(found.then(|| (rule, subject.to_owned(), stack, count)));
        };
        let on_clock = "wait on CLOCK_REALTIME";
        add(on_wall_clock > 0, Rule::WallClock, on_clock, wait, on_wall_clock);
        let (stops, stopped) = (self.stops.report(), Rule::Stopped);
        let times = stops.as_ref().map_or(0, |stops| stops.count);
        add(times > 0, stopped, "stop", None, times);
        add(self.drifts(), Rule::Drift, "relative sleep", wait, cycles);
        add(not_locked.is_some(), Rule::NotLocked, &not_locked.unwrap_or_default(), None, 1);
        add(is_later_unlocked, Rule::LockFuture, "later mappings are not locked", None, 1);
        add(lazy, Rule::LazyBinding, bound, None, 1);
        each
    }
}

/// Why the memory of a process is not locked as it should be: nothing is locked, or not all that
/// was mapped before the locking call.
fn not_locked(locks: Locks, memory: Option<Memory>) -> Option<String> {
    if !locks.any && !locks.future {
        return Some("no memory is locked".to_owned());
    }
    memory.and_then(|memory| memory.lack())
}
