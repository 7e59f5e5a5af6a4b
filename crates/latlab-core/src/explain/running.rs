//! The account of threads that are to run: what took the CPU from each, from the events of all CPUs.
//!
//! All time of a thread goes to exactly one of: it ran, it slept, a [`Source`] took the CPU, or
//! nothing was recorded. Unlike a [`Window`](super::Window), this needs no wake-up.

mod gap;
mod source;
#[cfg(test)]
mod tests;
mod thread;

pub use source::{NOTHING, Source};

use super::names::Names;
use super::segment::Activity;
use super::{Event, EventKind, Task};
use crate::record::running::RunningThread;
use crate::time::Nanos;
use source::Place;
use std::collections::BTreeMap;
use thread::{State, Thread};

/// The account of the watched threads.
#[derive(Debug, Default)]
pub struct Account {
    cpus: BTreeMap<u32, Cpu>,
    threads: BTreeMap<u32, Thread>,
}

/// What a CPU does.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    activity: Activity,
    /// Whether its activity is known: there was an event, and none was lost since.
    is_known: bool,
    /// The last event.
    last: Nanos,
    /// Numbers of interrupts, softirqs and context switches so far. They distinguish each from the
    /// next.
    interrupts: u64,
    softirqs: u64,
    switches: u64,
}

impl Account {
    /// Watches a thread, from the first event that shows its state.
    pub fn watch(&mut self, pid: u32) {
        self.threads.entry(pid).or_default();
    }

    /// Watches the thread of a busy loop, which measures its gaps by its own clock.
    /// [`gap`](Account::gap) explains them. From `begin` on the loop runs on this CPU, and all
    /// events of the CPU are added.
    pub fn watch_loop(&mut self, pid: u32, cpu: u32, begin: Nanos) {
        self.threads.entry(pid).or_insert_with(|| Thread::of_loop(cpu, begin));
        let there = self.cpus.entry(cpu).or_default();
        if !there.is_known {
            let task = Some(Task { pid, ..Task::default() });
            (there.activity, there.is_known) = (Activity { task, ..Activity::default() }, true);
        }
    }

    /// Whether a thread is watched.
    pub fn is_watched(&self, pid: u32) -> bool {
        self.threads.contains_key(&pid)
    }

    /// Adds the events of all CPUs since the last call, each with its CPU, and goes on to `until`,
    /// up to which no event is missing.
    pub fn add(&mut self, mut events: Vec<(u32, Event)>, until: Nanos) {
        events.sort_by_key(|(_, event)| event.at);
        for (cpu, event) in &events {
            self.pass(*cpu, event.at, event.stolen);
            self.change(*cpu, event);
        }
        let cpus: Vec<u32> = self.cpus.keys().copied().collect();
        for cpu in cpus {
            self.pass(cpu, until, Nanos(0));
        }
    }

    /// Events of a CPU were lost: its activity is unknown until its next event.
    pub fn lose(&mut self, cpu: u32) {
        self.cpus.entry(cpu).or_default().is_known = false;
    }

    /// The account of a thread so far, with the names of this machine; none if no event has shown
    /// it.
    pub fn thread(&self, pid: u32, names: &Names) -> Option<RunningThread> {
        self.threads.get(&pid)?.account(pid, names)
    }

    /// Charges the time up to a moment, in which the activity of a CPU did not change, to its threads.
    /// Of it, `stolen` was taken by the hypervisor since the event before.
    fn pass(&mut self, number: u32, to: Nanos, stolen: Nanos) {
        let cpu = self.cpus.entry(number).or_default();
        for thread in self.threads.values_mut().filter(|thread| thread.cpu == number) {
            thread.pass((number, cpu), to, stolen);
        }
    }

    fn change(&mut self, number: u32, event: &Event) {
        if let EventKind::Migrated { pid, cpu } = event.kind {
            self.migrate(pid, cpu, event.at);
        }
        let cpu = self.cpus.entry(number).or_default();
        cpu.change(event);
        if let Some(thread) = self.threads.get_mut(&event.task.pid) {
            thread.is_current(number, event);
        }
        let (waker, at) = (event.task, event.at);
        match event.kind {
            EventKind::Switch { next, preempted } => {
                self.switch(number, (at, preempted), waker, next);
            }
            EventKind::Waking { task, cpu } => self.wake(task, cpu, at),
            _ => {}
        }
    }

    fn switch(&mut self, cpu: u32, (at, preempted): (Nanos, bool), from: Task, to: Task) {
        if let Some(thread) = self.threads.get_mut(&from.pid) {
            thread.leave(cpu, at, preempted);
        }
        for thread in self.threads.values_mut() {
            thread.passed_over(cpu, to, at);
        }
        if let Some(thread) = self.threads.get_mut(&to.pid) {
            thread.enter(cpu, to, at);
        }
    }

    /// A task is woken: a watched task, or a task that has to wait for a watched one.
    fn wake(&mut self, task: Task, cpu: u32, at: Nanos) {
        match self.threads.get_mut(&task.pid) {
            Some(thread) => thread.wake(cpu, task, at),
            None => {
                for thread in self.threads.values_mut().filter(|thread| thread.cpu == cpu) {
                    thread.keeps_waiting(task, at);
                }
            }
        }
    }

    fn migrate(&mut self, pid: u32, to: u32, at: Nanos) {
        let Some(thread) = self.threads.get_mut(&pid) else { return };
        let from = (thread.cpu, &*self.cpus.entry(thread.cpu).or_default());
        thread.pass(from, at, Nanos(0));
        thread.cpu = to;
    }
}

impl Cpu {
    fn change(&mut self, event: &Event) {
        match event.kind {
            EventKind::Interrupt { .. } => self.interrupts += 1,
            EventKind::Softirq(_) => self.softirqs += 1,
            EventKind::Switch { .. } => self.switches += 1,
            _ => {}
        }
        if !self.is_known {
            (self.activity, self.is_known) = (Activity::default(), true);
        }
        self.activity.change(event);
        self.last = event.at;
    }

    /// What takes the CPU from a thread, and where: of nested ones the innermost. None if it runs.
    fn taker(&self, thread: &Thread) -> Option<(Place, Source)> {
        let Activity { task, interrupt, called, timer, softirq, .. } = self.activity;
        match (interrupt, softirq, timer) {
            (Some((line, _)), ..) => {
                Some((Place::Interrupt(self.interrupts), Source::interrupt(line, called)))
            }
            (None, Some(number), _) => {
                Some((Place::Softirq(self.softirqs), Source::Softirq(number)))
            }
            (None, None, Some(_)) => Some((
                Place::Interrupt(self.interrupts),
                Source::interrupt(super::Line::Timer, None),
            )),
            (None, None, None) => {
                let State::Waits(wait) = thread.state else { return None };
                let source = Source::instead(task?, thread.task, wait.is_fresh);
                let place = if source == Source::Throttled { wait.number } else { self.switches };
                Some((Place::Task(place), source))
            }
        }
    }
}
