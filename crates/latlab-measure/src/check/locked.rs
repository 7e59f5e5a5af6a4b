//! How much memory of the processes is locked, read while they run.

use crate::explain::proc;
use latlab_check::{Judge, Memory};
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::root::Root;
use std::collections::HashMap;

/// Readings of the processes whose threads have cycles.
#[derive(Default)]
pub(super) struct LockedMemory(HashMap<u32, Reading>);

/// A reading of a process.
struct Reading {
    at: Nanos,
    counters: String,
    memory: Memory,
}

/// Time between two readings of a process.
const PACE: Nanos = Nanos::from_millis(100);
/// The counters of `/proc/PID/status` by which changes are noticed: all memory, and that which is locked.
const COUNTERS: [&str; 2] = ["VmSize:", "VmLck:"];

impl LockedMemory {
    /// Tells the judge how much memory of each process is locked, where it is time to read that again.
    pub(super) fn update(&mut self, judge: &mut Judge) {
        let (now, processes) = (clock::now(), judge.cyclic_processes());
        self.0.retain(|pid, _| processes.contains(pid));
        for pid in processes {
            let known = self.0.get(&pid);
            if known.is_some_and(|known| now < known.at + PACE) {
                continue;
            }
            let Some(reading) = Reading::of(pid, now, known) else { continue };
            judge.set_memory(pid, reading.memory);
            self.0.insert(pid, reading);
        }
    }
}

impl Reading {
    /// Reads the counters of a process. Reads its mappings too if the counters do not suffice and
    /// have changed: the kernel needs much longer to list the mappings. None if the process has
    /// ended.
    fn of(pid: u32, at: Nanos, known: Option<&Reading>) -> Option<Reading> {
        let (root, folder) = (Root::default(), proc::folder(pid));
        let status = root.text(format!("{folder}/status"))?;
        let lines =
            status.lines().filter(|line| COUNTERS.iter().any(|name| line.starts_with(name)));
        let counters = lines.collect::<Vec<_>>().join("\n");
        let same = known.filter(|known| known.counters == counters).map(|known| known.memory);
        let of_mappings = || {
            let program = root.link(format!("{folder}/exe"))?;
            // Not every kernel lists them with their locks, and not of every process.
            let mappings = root.text(format!("{folder}/smaps"))?;
            mappings.contains("VmFlags:").then(|| Memory::of_mappings(&mappings, &program))
        };
        let memory = same.or_else(|| Memory::of_counters(&status)).or_else(of_mappings)?;
        Some(Reading { at, counters, memory })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tests lock no memory.
    #[test]
    fn memory_of_this_process_is_not_locked() {
        let own = std::process::id();
        let first = Reading::of(own, Nanos(0), None).expect("it runs");
        assert!(first.memory.unlocked > 0 && !first.memory.has_locked_program);
        let root = Root::default();
        let (program, mappings) = (root.link("proc/self/exe"), root.text("proc/self/smaps"));
        let memory = Memory::of_mappings(&mappings.unwrap(), &program.unwrap());
        assert!(memory.unlocked > 1 << 20 && !memory.has_locked_program, "{memory:?}");
    }
}
