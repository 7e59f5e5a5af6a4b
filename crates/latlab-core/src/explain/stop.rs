//! Stops: a task that neither waits nor may run, until another lets it go on.

use super::Task;
use crate::time::Nanos;

/// A stop that ended with the wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// What stopped the task.
    pub kind: StopKind,
    /// Start of the delay: when it was stopped, or when the sleep ended from which it was taken to
    /// be stopped, if the recorder knows that.
    pub since: Nanos,
    /// The task that stopped it, if events show it: it sent the signal, traces the task, or froze
    /// its control group.
    pub by: Option<Task>,
}

/// What can stop a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopKind {
    /// A signal: SIGSTOP, SIGTSTP, SIGTTIN or SIGTTOU (signal(7)).
    Signal,
    /// A tracer, such as a debugger (ptrace(2)).
    Tracer,
    /// The freezer of its control group (`cgroup.freeze`, `freezer.state`; cgroups(7)).
    Freezer,
}

impl StopKind {
    /// Returns the name, with who did it if that is known: `stopped by a signal of kill`.
    pub fn name(self, by: Option<&str>) -> String {
        let (what, link) = match self {
            StopKind::Signal => ("stopped by a signal", " of "),
            StopKind::Tracer => ("stopped by a tracer", ", "),
            StopKind::Freezer => ("frozen with its control group", " by "),
        };
        what.to_owned() + &by.map(|by| link.to_owned() + by).unwrap_or_default()
    }
}
