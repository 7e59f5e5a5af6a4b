//! Wake-ups of real-time tasks by lower-priority tasks, and the cost of watching for them.

use latlab_core::time::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Wake-ups of programs' real-time tasks by lower-priority tasks, since the start: violations of
/// the kernel's runtime monitor `rtapp/sleep` (`Documentation/trace/rv/monitor_rtapp.rst`). As
/// there, a wake-up from a lock with priority inheritance, a softirq or the idle task is no
/// violation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violations {
    /// Wake-ups by interrupt and softirq threads of the kernel.
    pub by_interrupts: u64,
    /// Wake-ups by all other tasks: programs, and other kernel threads.
    pub by_others: u64,
    /// The last wake-up by an interrupt or softirq thread.
    pub last_by_interrupt: Option<Violation>,
    /// The last wake-up by another task.
    pub last_by_other: Option<Violation>,
}

/// The wake-up of a task by one of lower priority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The task that woke the other.
    pub waker: NamedTask,
    /// The task that was woken.
    pub woken: NamedTask,
}

/// A task, identified in the initial pid namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedTask {
    /// Its thread id.
    pub id: i32,
    /// Its name; none if it has ended.
    pub name: Option<String>,
}

/// CPU time of the BPF programs. They run in the tasks that wake others, not in the daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BpfCost {
    /// The time for which they were measured.
    pub counted: Nanos,
    /// Their CPU time meanwhile on all CPUs together, the measuring itself included.
    pub taken: Nanos,
}

impl Violations {
    /// Iterates over the tasks of the last violations.
    pub fn tasks(&mut self) -> impl Iterator<Item = &mut NamedTask> {
        let last = self.last_by_interrupt.iter_mut().chain(&mut self.last_by_other);
        last.flat_map(|Violation { waker, woken }| [waker, woken])
    }
}

impl BpfCost {
    /// Returns their share of one CPU's time, 0 to the number of CPUs.
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

impl fmt::Display for NamedTask {
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
    fn tasks_of_both_last_violations_can_be_named() {
        let task = |id| NamedTask { id, name: None };
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
    fn share_is_cpu_time_over_measured_time() {
        let programs = BpfCost { counted: Nanos::from_secs(2), taken: Nanos::from_millis(4) };
        assert!((programs.share() - 0.002).abs() < 1e-12);
        assert!(BpfCost::default().share().abs() < 1e-12);
    }
}
