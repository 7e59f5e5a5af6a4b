//! The account of one thread.

use super::Cpu;
use super::gap::Own;
use super::source::{Key, Place, Source};
use crate::explain::names::Names;
use crate::explain::{Comm, Event, Task};
use crate::record::running::{RunningThread, Starved, Taken};
use crate::time::Nanos;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A watched thread: its state, and where its time went.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) task: Task,
    /// The CPU on which it runs, waits or last ran.
    pub(super) cpu: u32,
    pub(super) state: State,
    /// Up to when its time is accounted for.
    since: Nanos,
    begin: Nanos,
    pub(super) ran: Nanos,
    slept: Nanos,
    /// The sleep that has not ended.
    sleeping: Nanos,
    sleeps: u64,
    unrecorded: Nanos,
    waits: u64,
    sums: BTreeMap<Key, Sums>,
    open: [Option<Open>; 3],
    /// Tasks of lower priority that were woken and wait, with the moments.
    waiting: BTreeMap<u32, (Comm, Nanos)>,
    starved: BTreeMap<Comm, (u64, Nanos)>,
    /// Tasks that had the CPU while it was throttled.
    meanwhile: BTreeMap<Comm, Nanos>,
    /// For a busy loop: the data for its gaps.
    pub(super) own: Option<Own>,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// No event has shown it.
    #[default]
    Unknown,
    /// It has its CPU, unless an interrupt or a softirq runs on top of it.
    Runs,
    /// It is runnable, and its CPU has not switched to it.
    Waits(Wait),
    Sleeps,
}

/// A wait for the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// Its number.
    pub(super) number: u64,
    /// Whether the thread was woken and its CPU has not switched since.
    pub(super) is_fresh: bool,
}

/// Sums over the occurrences of a source.
#[derive(Clone, Copy, Debug)]
struct Sums {
    source: Source,
    count: u64,
    total: Nanos,
    longest: Nanos,
}

/// An occurrence that may go on.
#[derive(Clone, Copy, Debug)]
struct Open {
    place: Place,
    cpu: u32,
    source: Source,
    length: Nanos,
}

impl Thread {
    pub(super) fn of_loop(cpu: u32, begin: Nanos) -> Thread {
        Thread { cpu, begin, state: State::Runs, own: Some(Own::default()), ..Thread::default() }
    }

    /// Charges the time up to `to`.
    pub(super) fn pass(&mut self, (number, cpu): (u32, &Cpu), to: Nanos, stolen: Nanos) {
        let from = self.since.max(self.begin).min(to);
        self.since = self.since.max(to);
        let length = to - from;
        if length == Nanos(0) {
            return;
        }
        match self.state {
            State::Unknown => {}
            State::Sleeps => self.sleeping = self.sleeping + length,
            _ if !cpu.is_known => self.unrecorded = self.unrecorded + length,
            State::Runs | State::Waits(_) => self.charge((number, cpu), (from, to), stolen),
        }
    }

    /// Charges time in which it is to run. While a busy loop runs, its gaps show when the host took
    /// the CPU.
    fn charge(&mut self, (number, cpu): (u32, &Cpu), (from, to): (Nanos, Nanos), stolen: Nanos) {
        let taker = cpu.taker(self);
        let stolen = stolen.min(to - from);
        let stolen = match (&mut self.own, taker) {
            (Some(own), None) => {
                own.steals((cpu.last, to), stolen);
                Nanos(0)
            }
            _ => stolen,
        };
        let end = to - stolen;
        match taker {
            None => self.ran = self.ran + (end - from),
            Some((place, source)) => {
                if source == Source::Throttled
                    && let Some(task) = cpu.activity.task
                {
                    let sum = self.meanwhile.entry(task.comm).or_default();
                    *sum = *sum + (end - from);
                }
                self.take(place, number, source, end - from);
                self.note_piece(source, (from, end));
            }
        }
        if stolen > Nanos(0) {
            self.take_once(number, Source::Host, stolen);
            self.note_piece(Source::Host, (end, to));
        }
    }

    fn note_piece(&mut self, source: Source, span: (Nanos, Nanos)) {
        if let Some(own) = &mut self.own
            && span.0 < span.1
        {
            own.piece(source, span);
        }
    }

    /// A part of an occurrence.
    fn take(&mut self, place: Place, cpu: u32, source: Source, length: Nanos) {
        let index = match place {
            Place::Interrupt(_) => 0,
            Place::Softirq(_) => 1,
            Place::Task(_) => 2,
        };
        if let Some(open) = &mut self.open[index]
            && (open.place, open.cpu) == (place, cpu)
            && may_be_one(open.source, source)
        {
            // What another CPU asked for is known only after the interrupt has begun.
            (open.source, open.length) = (source, open.length + length);
            return;
        }
        let done = self.open[index].replace(Open { place, cpu, source, length });
        if let Some(open) = done {
            add(&mut self.sums, open);
        }
    }

    /// An occurrence that is whole.
    pub(super) fn take_once(&mut self, cpu: u32, source: Source, length: Nanos) {
        add(&mut self.sums, Open { place: Place::Task(0), cpu, source, length });
    }

    /// An event shows that it has a CPU.
    pub(super) fn is_current(&mut self, cpu: u32, event: &Event) {
        self.task = event.task;
        if self.state != State::Runs || self.cpu != cpu {
            self.run_on(cpu, event.at);
        }
    }

    pub(super) fn enter(&mut self, cpu: u32, task: Task, at: Nanos) {
        self.task = task;
        self.run_on(cpu, at);
    }

    fn run_on(&mut self, cpu: u32, at: Nanos) {
        self.wakes_up();
        (self.cpu, self.state, self.since) = (cpu, State::Runs, self.since.max(at));
    }

    fn wakes_up(&mut self) {
        self.slept = self.slept + std::mem::take(&mut self.sleeping);
    }

    pub(super) fn leave(&mut self, cpu: u32, at: Nanos, preempted: bool) {
        (self.cpu, self.since) = (cpu, self.since.max(at));
        if preempted {
            self.wait(false);
        } else {
            self.state = State::Sleeps;
            self.sleeps += u64::from(at >= self.begin);
        }
    }

    fn wait(&mut self, is_fresh: bool) {
        self.waits += 1;
        self.state = State::Waits(Wait { number: self.waits, is_fresh });
    }

    pub(super) fn wake(&mut self, cpu: u32, task: Task, at: Nanos) {
        if matches!(self.state, State::Sleeps | State::Unknown) {
            self.wakes_up();
            (self.cpu, self.task, self.since) = (cpu, task, self.since.max(at));
            self.wait(true);
        }
    }

    /// A CPU switched to a task.
    pub(super) fn passed_over(&mut self, cpu: u32, next: Task, at: Nanos) {
        if let Some((comm, since)) = self.waiting.remove(&next.pid) {
            self.starve(comm, at - since);
        }
        if let State::Waits(wait) = &mut self.state
            && self.cpu == cpu
        {
            wait.is_fresh = false;
        }
    }

    /// A task was woken on its CPU: it waits for the thread if its priority is lower.
    pub(super) fn keeps_waiting(&mut self, task: Task, at: Nanos) {
        let is_lower = self.task.is_realtime() && task.prio > self.task.prio;
        if self.state == State::Runs && is_lower && at >= self.begin {
            self.waiting.entry(task.pid).or_insert((task.comm, at));
        }
    }

    fn starve(&mut self, comm: Comm, time: Nanos) {
        let (count, longest) = self.starved.entry(comm).or_default();
        (*count, *longest) = (*count + 1, (*longest).max(time));
    }

    /// The account so far. A sleep that has not ended is left out: the thread may have ended.
    pub(super) fn account(&self, pid: u32, names: &Names) -> Option<RunningThread> {
        let mut sums = self.sums.clone();
        self.open.iter().flatten().for_each(|open| add(&mut sums, *open));
        let mut taken: Vec<Taken> = sums.iter().map(|(key, sums)| sums.named(key, names)).collect();
        taken.sort_by_key(|one| (one.cpu, Reverse(one.total)));
        let mut starved = self.starved.clone();
        for (comm, since) in self.waiting.values() {
            let (count, longest) = starved.entry(*comm).or_default();
            (*count, *longest) = (*count + 1, (*longest).max(self.since - *since));
        }
        let starved = starved.into_iter().map(|(comm, (count, longest))| Starved {
            task: comm.to_string(),
            count,
            longest,
        });
        let mut meanwhile: Vec<(Comm, Nanos)> =
            self.meanwhile.iter().map(|(comm, ns)| (*comm, *ns)).collect();
        meanwhile.sort_by_key(|(_, ns)| Reverse(*ns));
        (self.state != State::Unknown).then(|| RunningThread {
            name: self.task.comm.to_string(),
            pid,
            priority: self.task.is_realtime().then(|| 99 - i32::from(self.task.prio)),
            ran: self.ran,
            slept: self.slept,
            sleeps: self.sleeps,
            unrecorded: self.unrecorded,
            faults: 0,
            gaps: self.own.as_ref().map_or(0, |own| own.gaps),
            taken,
            starved: starved.collect(),
            meanwhile: meanwhile.into_iter().map(|(comm, _)| comm.to_string()).collect(),
        })
    }
}

impl Sums {
    fn named(&self, key: &Key, names: &Names) -> Taken {
        let culprit = self.source.culprit();
        Taken {
            cpu: key.cpu(),
            cause: self.source.cause().to_owned(),
            culprit: names.kind(&culprit),
            function: names.function(&culprit),
            count: self.count,
            total: self.total,
            longest: self.longest,
        }
    }
}

fn add(sums: &mut BTreeMap<Key, Sums>, Open { cpu, source, length, .. }: Open) {
    let none = Sums { source, count: 0, total: Nanos(0), longest: Nanos(0) };
    let sum = sums.entry(source.key(cpu)).or_insert(none);
    sum.count += 1;
    sum.total = sum.total + length;
    sum.longest = sum.longest.max(length);
}

/// Whether two parts are of one occurrence, if they have the same place.
fn may_be_one(before: Source, after: Source) -> bool {
    match (before, after) {
        (Source::Interrupt(begun, _), Source::Interrupt(line, _)) => begun == line,
        _ => before == after,
    }
}
