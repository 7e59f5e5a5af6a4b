//! Prioritizing the interrupts that real-time tasks ask for (section 3.3 of the paper).

use super::configuration::DeviceGroup;
use super::{Mechanism, Need, Observation, Part, Thread};

/// The interrupt threads of the device groups that a process with real-time tasks has asked for
/// get the priority of those tasks; all others are ordinary tasks meanwhile.
#[derive(Clone, Debug)]
pub struct Selective {
    groups: Vec<DeviceGroup>,
    asked: bool,
}

impl Selective {
    /// Knows these device groups.
    pub fn of(groups: Vec<DeviceGroup>) -> Selective {
        Selective { groups, asked: false }
    }

    /// The interrupt threads of the group of this name.
    fn threads<'a>(&self, group: &str, threads: &'a [Thread]) -> Vec<&'a Thread> {
        let asked = |known: &&DeviceGroup| known.name.eq_ignore_ascii_case(group);
        let Some(group) = self.groups.iter().find(asked) else { return Vec::new() };
        let fits = |thread: &&Thread| {
            let driver = thread.driver.as_deref();
            let mut actions = thread.actions.iter();
            thread.interrupt.is_some() && actions.any(|action| group.has(action, driver))
        };
        threads.iter().filter(fits).collect()
    }
}

impl Mechanism for Selective {
    fn name(&self) -> &'static str {
        "selective"
    }

    fn part(&self) -> Part {
        Part::Asked
    }

    fn needs(&mut self, seen: &Observation) -> Vec<Need> {
        let mut needs = Vec::new();
        self.asked = false;
        for request in &seen.requests {
            let tasks = seen.realtime.iter().flatten();
            // Who has no real-time task waits for no interrupt in a hurry.
            for task in tasks.filter(|task| task.process == request.process) {
                self.asked = true;
                for group in &request.groups {
                    needs.extend(self.threads(group, &seen.threads).iter().map(|thread| Need {
                        thread: thread.id,
                        priority: task.priority,
                        because: format!("{} ({}) has asked for {group}", task.name, task.id),
                    }));
                }
            }
        }
        needs
    }

    fn priority(&self, own: Option<u32>, _any: u32) -> Option<u32> {
        own
    }

    fn demotes(&self) -> Option<&'static str> {
        self.asked.then_some("no real-time task has asked for it, and some have for others")
    }
}
