//! Prioritizing the interrupts that wake real-time tasks (section 3.4 of the paper).

use super::{Mechanism, Need, Observation, Part, RealTimeTask, Thread, Wake};
use std::collections::{BTreeMap, BTreeSet};

/// A thread that was seen to wake a real-time task goes before ordinary tasks while that is there.
#[derive(Clone, Debug, Default)]
pub struct Transparent {
    chains: BTreeMap<i32, Chain>,
}

/// The threads that have woken a task.
#[derive(Clone, Debug)]
struct Chain {
    process: i32,
    /// By number and name, which together say who it is.
    threads: BTreeSet<(i32, String)>,
}

/// What the kernel gives interrupt threads, in the middle of what there is (`MAX_RT_PRIO / 2`).
const PRIORITIZED: u32 = 50;

impl Mechanism for Transparent {
    fn name(&self) -> &'static str {
        "transparent"
    }

    fn part(&self) -> Part {
        Part::Wakes
    }

    fn needs(&mut self, seen: &Observation) -> Vec<Need> {
        let tasks = seen.realtime.as_deref().unwrap_or_default();
        self.forget(tasks, &seen.threads);
        self.remember(tasks, seen);
        let mut needs = Vec::new();
        for task in tasks {
            let Some(chain) = self.chains.get(&task.id) else { continue };
            needs.extend(chain.threads.iter().map(|(thread, _)| Need {
                thread: *thread,
                priority: task.priority,
                because: format!("it wakes {} ({})", task.name, task.id),
            }));
        }
        needs
    }

    fn knows(&self, wake: &Wake) -> bool {
        let has = |chain: &Chain, id: i32| chain.threads.iter().any(|(thread, _)| *thread == id);
        self.chains.get(&wake.task).is_some_and(|chain| {
            chain.process == wake.process
                && has(chain, wake.thread)
                && wake.behind.is_none_or(|behind| has(chain, behind))
        })
    }

    fn priority(&self, own: Option<u32>, _any: u32) -> Option<u32> {
        own.map(|highest| highest.min(PRIORITIZED))
    }
}

impl Transparent {
    /// Forgets tasks that are real-time ones no more, and threads that have gone.
    fn forget(&mut self, tasks: &[RealTimeTask], threads: &[Thread]) {
        let is_there = |id: i32, chain: &Chain| {
            tasks.iter().any(|task| (task.id, task.process) == (id, chain.process))
        };
        self.chains.retain(|&id, chain| is_there(id, chain));
        for chain in self.chains.values_mut() {
            chain.threads.retain(|(id, name)| {
                threads.iter().any(|thread| (thread.id, &thread.name) == (*id, name))
            });
        }
    }

    fn remember(&mut self, tasks: &[RealTimeTask], seen: &Observation) {
        for wake in &seen.wakes {
            let woken = |task: &&RealTimeTask| (task.id, task.process) == (wake.task, wake.process);
            let Some(task) = tasks.iter().find(woken) else { continue };
            let wakers = [Some(wake.thread), wake.behind];
            let found = seen.threads.iter().filter(|thread| wakers.contains(&Some(thread.id)));
            let found = found.map(|thread| (thread.id, thread.name.clone()));
            let new = || Chain { process: task.process, threads: BTreeSet::new() };
            self.chains.entry(task.id).or_insert_with(new).threads.extend(found);
        }
    }
}
