//! Demotion of the interrupts that no real-time task waits for (algorithm 2 of the paper).

use super::{Assessment, Description, Mechanism, Observation, RealTimeTask, ThreadRole};
use latlab_core::time::Nanos;
use std::collections::BTreeSet;

/// Makes IRQ threads that no real-time task needs `SCHED_OTHER` once all real-time tasks are known:
/// each has been present for a while, and its wake-ups have shown which threads it needs.
#[derive(Clone, Debug)]
pub struct Demote {
    /// How long a task is observed before it is known.
    learning: Nanos,
    /// Thread and process ids of the tasks seen last.
    tasks: BTreeSet<(i32, i32)>,
    /// When the newest of them was first seen.
    newest: Nanos,
}

impl Demote {
    /// Creates the mechanism, which observes each real-time task for this time.
    pub fn after(learning: Nanos) -> Demote {
        Demote { learning, tasks: BTreeSet::new(), newest: Nanos(0) }
    }

    /// Whether there are real-time tasks, and all of them are known.
    fn knows_all(&mut self, tasks: &[RealTimeTask], at: Nanos) -> bool {
        let now: BTreeSet<_> = tasks.iter().map(|task| (task.id, task.process)).collect();
        if !now.is_subset(&self.tasks) {
            self.newest = at;
        }
        self.tasks = now;
        !self.tasks.is_empty() && at >= self.newest + self.learning
    }
}

impl Mechanism for Demote {
    fn description(&self) -> Description {
        Description { threads: ThreadRole::Demotes, ..Description::new("demote") }
    }

    fn assess(&mut self, seen: &Observation) -> Assessment {
        let tasks = seen.realtime.as_deref().unwrap_or_default();
        let demotes = "all real-time tasks are known, and none needs it";
        let demotes = self.knows_all(tasks, seen.at).then_some(demotes);
        Assessment { demotes, ..Assessment::default() }
    }
}
