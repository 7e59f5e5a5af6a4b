//! The tasks whose wake-ups are read.

use latlab_core::explain::Task;
use latlab_core::plan::Watched;
use std::collections::HashMap;

/// The watched tasks, and what is known about processes.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    watched: Option<Watched>,
    /// The process of each thread, where the trace names it and it matters.
    processes: HashMap<u32, u32>,
}

/// The begin of the names of the kernel's threads: a trace has no other sign of them.
const KERNEL: &[&str] = &[
    "backlog_napi/",
    "cpuhp/",
    "idle_inject/",
    "irq/",
    "irq_work/",
    "jbd2/",
    "kcompactd",
    "khugepaged",
    "ksoftirqd/",
    "kswapd",
    "ktimers/",
    "kthreadd",
    "kworker/",
    "migration/",
    "rcu_",
    "rcub/",
    "rcuc/",
    "rcuog/",
    "rcuop/",
    "swapper/",
    "watchdog",
];

impl Watching {
    pub(crate) fn new(watched: Option<Watched>) -> Watching {
        Watching { watched, processes: HashMap::new() }
    }

    /// The watched tasks; none where all are.
    pub(crate) fn watched(&self) -> Option<&Watched> {
        self.watched.as_ref()
    }

    /// Whether no tasks were chosen and this one is real-time: only such tasks are watched from now on.
    pub(crate) fn prefers(&mut self, task: &Task) -> bool {
        let is_first = self.watched.is_none() && task.is_realtime();
        if is_first {
            self.watched = Some(Watched::Realtime);
        }
        is_first
    }

    /// A thread belongs to a process.
    pub(crate) fn belongs(&mut self, pid: u32, process: Option<u32>) {
        if let (Some(Watched::Task(_)), Some(process)) = (&self.watched, process) {
            self.processes.insert(pid, process);
        }
    }

    /// Whether a task is watched.
    pub(crate) fn has(&self, task: &Task) -> bool {
        let name = task.comm.to_string();
        let is_kernel = || task.is_idle() || KERNEL.iter().any(|begin| name.starts_with(begin));
        match &self.watched {
            None => !is_kernel(),
            Some(Watched::Realtime) => task.is_realtime() && !is_kernel(),
            Some(Watched::Name(watched)) => name == *watched,
            Some(Watched::Task(pid)) => {
                task.pid == *pid || self.processes.get(&task.pid) == Some(pid)
            }
        }
    }

    /// Whether timerlat's own threads are.
    pub(crate) fn is_of_timerlat(&self) -> bool {
        match &self.watched {
            None | Some(Watched::Realtime) => true,
            Some(Watched::Name(name)) => name.starts_with("timerlat"),
            Some(Watched::Task(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::explain::Comm;

    #[test]
    fn threads_of_the_kernel_are_watched_by_name_or_id_only() {
        let task = |comm: &str, pid, prio| Task { pid, prio, comm: Comm::from(comm) };
        let (motor, irq) = (task("motor", 7, 19), task("irq/24-nvme0q1", 8, 49));
        let has = |watched: Option<Watched>| {
            let watching = Watching::new(watched);
            (watching.has(&motor), watching.has(&irq))
        };
        assert_eq!(has(None), (true, false));
        assert_eq!(has(Some(Watched::Realtime)), (true, false));
        assert_eq!(has(Some(Watched::Name("irq/24-nvme0q1".to_owned()))), (false, true));
        assert_eq!(has(Some(Watched::Task(8))), (false, true));
        assert!(!Watching::new(Some(Watched::Realtime)).has(&task("bash", 9, 120)));
    }

    #[test]
    fn process_has_all_its_threads() {
        let mut watching = Watching::new(Some(Watched::Task(40)));
        watching.belongs(42, Some(40));
        let task = |pid| Task { pid, prio: 120, comm: Comm::default() };
        assert!(watching.has(&task(40)) && watching.has(&task(42)) && !watching.has(&task(41)));
    }
}
