//! Prioritizing the interrupts that wake real-time tasks (section 3.4 of the paper).

use super::{
    Assessment, Description, Mechanism, Need, Observation, Priority, RealTimeTask, Thread,
    ThreadRole,
};
use std::collections::{BTreeMap, BTreeSet};

/// Schedules a thread that has woken a real-time task before `SCHED_OTHER` tasks, as long as the
/// task is there.
#[derive(Clone, Debug, Default)]
pub struct Transparent {
    /// By the thread id of the task.
    wakers: BTreeMap<i32, Wakers>,
}

/// The threads that have woken a task.
#[derive(Clone, Debug)]
struct Wakers {
    process: i32,
    /// By id and name, which together identify a thread.
    threads: BTreeSet<(i32, String)>,
}

/// The priority that the kernel gives IRQ threads by default (`MAX_RT_PRIO / 2`).
const PRIORITIZED: u32 = 50;

impl Mechanism for Transparent {
    fn description(&self) -> Description {
        Description {
            threads: ThreadRole::FindsByWakes,
            priority: Priority::OfOwnNeeds { at_most: PRIORITIZED },
            ..Description::new("transparent")
        }
    }

    fn assess(&mut self, seen: &Observation) -> Assessment {
        let tasks = seen.realtime.as_deref().unwrap_or_default();
        self.forget(tasks, &seen.threads);
        self.remember(tasks, seen);
        let needs = tasks.iter().flat_map(|task| self.needs(task)).collect();
        Assessment { needs, ..Assessment::default() }
    }
}

impl Transparent {
    /// Forgets tasks that are no longer real-time tasks, and threads that have ended.
    fn forget(&mut self, tasks: &[RealTimeTask], threads: &[Thread]) {
        let is_there = |id: i32, process: i32| {
            tasks.iter().any(|task| (task.id, task.process) == (id, process))
        };
        self.wakers.retain(|&id, wakers| is_there(id, wakers.process));
        for wakers in self.wakers.values_mut() {
            wakers.threads.retain(|(id, name)| {
                threads.iter().any(|thread| (thread.id, &thread.name) == (*id, name))
            });
        }
    }

    /// Remembers the threads that have woken tasks since the last observation.
    fn remember(&mut self, tasks: &[RealTimeTask], seen: &Observation) {
        for wake in &seen.wakes {
            let woken = |task: &&RealTimeTask| (task.id, task.process) == (wake.task, wake.process);
            let Some(task) = tasks.iter().find(woken) else { continue };
            let ids = [Some(wake.thread), wake.behind];
            let found = seen.threads.iter().filter(|thread| ids.contains(&Some(thread.id)));
            let found = found.map(|thread| (thread.id, thread.name.clone()));
            let new = || Wakers { process: task.process, threads: BTreeSet::new() };
            self.wakers.entry(task.id).or_insert_with(new).threads.extend(found);
        }
    }

    fn needs(&self, task: &RealTimeTask) -> Vec<Need> {
        let threads = self.wakers.get(&task.id).into_iter().flat_map(|wakers| &wakers.threads);
        let need = |(thread, _): &(i32, String)| Need {
            thread: *thread,
            task: task.id,
            process: task.process,
            priority: task.priority,
            because: format!("it wakes {} ({})", task.name, task.id),
        };
        threads.map(need).collect()
    }
}
