//! Prioritizing the interrupts that real-time tasks request (section 3.3 of the paper).

use super::configuration::DeviceGroup;
use super::{
    Assessment, DEADLINE, Description, Mechanism, Need, Observation, Priority, RealTimeTask,
    Request, Thread, ThreadRole,
};

/// Gives the IRQ threads of the device groups that a process with real-time tasks, or one of these
/// tasks, has requested the priority of those tasks; all other IRQ threads are `SCHED_OTHER` meanwhile.
#[derive(Clone, Debug)]
pub struct Selective {
    groups: Vec<DeviceGroup>,
}

impl Selective {
    /// Creates the mechanism for these device groups.
    pub fn of(groups: Vec<DeviceGroup>) -> Selective {
        Selective { groups }
    }

    /// The IRQ threads of the group of this name.
    fn threads<'a>(&self, group: &str, threads: &'a [Thread]) -> Vec<&'a Thread> {
        let is_named = |known: &&DeviceGroup| known.name.eq_ignore_ascii_case(group);
        let Some(group) = self.groups.iter().find(is_named) else { return Vec::new() };
        let fits = |thread: &&Thread| {
            let driver = thread.driver.as_deref();
            let mut actions = thread.actions.iter();
            thread.interrupt.is_some() && actions.any(|action| group.has(action, driver))
        };
        threads.iter().filter(fits).collect()
    }

    fn needs(&self, request: &Request, task: &RealTimeTask, seen: &Observation) -> Vec<Need> {
        let of_group = |group: &String| {
            let because = format!("{} ({}) has asked for {group}", task.name, task.id);
            let need = |thread: &Thread| Need {
                thread: thread.id,
                task: task.id,
                process: task.process,
                priority: task.priority,
                because: because.clone(),
            };
            self.threads(group, &seen.threads).into_iter().map(need).collect::<Vec<Need>>()
        };
        request.groups.iter().flat_map(of_group).collect()
    }
}

impl Mechanism for Selective {
    fn description(&self) -> Description {
        Description {
            threads: ThreadRole::FindsByRequests,
            priority: Priority::OfOwnNeeds { at_most: DEADLINE },
            ..Description::new("selective")
        }
    }

    fn assess(&mut self, seen: &Observation) -> Assessment {
        let mut assessment = Assessment::default();
        for request in &seen.requests {
            let tasks = seen.realtime.iter().flatten();
            // A process without a real-time task has no use for an urgent interrupt.
            for task in tasks.filter(|task| request.is_for(task)) {
                assessment.demotes =
                    Some("no real-time task has asked for it, and some have for others");
                assessment.needs.extend(self.needs(request, task, seen));
            }
        }
        assessment
    }
}
