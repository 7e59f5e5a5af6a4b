//! What watching who wakes real-time tasks has found, and what it costs.

use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Wake-ups of programs' real-time tasks by tasks of lower priority, since the start. The rule that
/// they violate is that of the kernel's own monitor `rtapp/sleep`
/// (`Documentation/trace/rv/monitor_rtapp.rst`); waiting for a lock that lends priority is none here
/// either, nor is what the kernel does above all tasks, in softirqs and in the idle task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violations {
    /// By the kernel's interrupt and soft-irq threads.
    pub by_interrupts: u64,
    /// By all others: programs that wake each other, and other threads of the kernel.
    pub by_others: u64,
    /// The last one of the former.
    pub last_by_interrupt: Option<Violation>,
    /// The last one of the latter.
    pub last_by_other: Option<Violation>,
}

/// A task woke one of higher priority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Who woke.
    pub waker: Task,
    /// Who was woken.
    pub woken: Task,
}

/// A task, by its number in the machine's first pid namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its number.
    pub id: i32,
    /// What it is called; none where it has ended.
    pub name: Option<String>,
}

/// What BPF programs cost: they run in whoever wakes somebody, and in no thread of the daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Programs {
    /// For how long their runs were counted, the counting itself included in what they took.
    pub counted: Nanos,
    /// CPU time that they took meanwhile, on all CPUs together.
    pub taken: Nanos,
}

impl Violations {
    /// The tasks that are named in it.
    pub fn tasks(&mut self) -> impl Iterator<Item = &mut Task> {
        let last = self.last_by_interrupt.iter_mut().chain(&mut self.last_by_other);
        last.flat_map(|Violation { waker, woken }| [waker, woken])
    }
}

impl Programs {
    /// Which part of one CPU's time they take.
    pub fn share(&self) -> f64 {
        let counted = self.counted.as_secs_f64();
        if counted > 0.0 { self.taken.as_secs_f64() / counted } else { 0.0 }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} woke {}", self.waker, self.woken)
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} ({})", self.id),
            None => write!(f, "{} (ended)", self.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_named_wherever_they_stand() {
        let task = |id| Task { id, name: None };
        let violation = |waker, woken| Violation { waker: task(waker), woken: task(woken) };
        let mut violations = Violations {
            last_by_interrupt: Some(violation(1, 2)),
            last_by_other: Some(violation(3, 4)),
            ..Violations::default()
        };
        let odd = violations.tasks().filter(|task| task.id != 3);
        odd.for_each(|task| task.name = Some("x".to_owned()));
        let said = [violations.last_by_interrupt, violations.last_by_other].map(Option::unwrap);
        let said = said.map(|violation| violation.to_string());
        assert_eq!(said, ["x (1) woke x (2)", "3 (ended) woke x (4)"]);
    }

    #[test]
    fn the_share_is_of_the_time_in_which_runs_were_counted() {
        let programs = Programs { counted: Nanos::from_secs(2), taken: Nanos::from_millis(4) };
        assert!((programs.share() - 0.002).abs() < 1e-12);
        assert!(Programs::default().share().abs() < 1e-12);
    }
}
