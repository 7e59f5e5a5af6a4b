//! The dynamic change of mode (section 3.2 of the paper).

use super::{Mechanism, Mode, Observation};
use crate::time::Nanos;

/// Throughput while there is no real-time task, latency from the first one on.
#[derive(Clone, Copy, Debug)]
pub struct ByTasks {
    /// How long there must have been none before throughput counts again.
    patience: Nanos,
    mode: Option<Mode>,
    /// When a real-time task was there last; never, where there was none yet.
    last: Option<Nanos>,
}

impl ByTasks {
    /// Goes back to throughput after this time without a real-time task.
    pub fn after(patience: Nanos) -> ByTasks {
        ByTasks { patience, mode: None, last: None }
    }
}

impl Mechanism for ByTasks {
    fn name(&self) -> &'static str {
        "mode"
    }

    fn decides_mode(&self) -> bool {
        true
    }

    fn mode(&mut self, seen: &Observation) -> Option<(Mode, String)> {
        let there = seen.realtime.as_ref()?.len();
        if there > 0 {
            self.last = Some(seen.at);
        }
        let waits = self.last.is_some_and(|last| seen.at < last + self.patience);
        let mode = if there > 0 || (waits && self.mode == Some(Mode::Latency)) {
            Mode::Latency
        } else {
            Mode::Throughput
        };
        self.mode = Some(mode);
        let why = match (mode, there) {
            (Mode::Latency, 1) => "there is 1 real-time task".to_owned(),
            (Mode::Latency, _) => format!("there are {there} real-time tasks"),
            (Mode::Throughput, _) if self.last.is_some() => {
                format!("there was no real-time task for {}", self.patience)
            }
            (Mode::Throughput, _) => "there is no real-time task".to_owned(),
        };
        Some((mode, why))
    }
}
