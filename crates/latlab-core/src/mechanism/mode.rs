//! The dynamic change of mode (section 3.2 of the paper).

use super::{Knob, Mechanism, Mode, Observation, Wish};
use crate::time::Nanos;

/// Throughput while there is no real-time task, latency from the first one on. Then the kernel is
/// to do what it does for ordinary tasks in small pieces, for real-time tasks may wait for one.
#[derive(Clone, Copy, Debug)]
pub struct ByTasks {
    /// How long there must have been none before throughput counts again.
    patience: Nanos,
    mode: Option<Mode>,
    /// When a real-time task was there last; never, where there was none yet.
    last: Option<Nanos>,
}

/// Which part of memory the kernel keeps as free pages for each CPU: what is more than that, it
/// gives back at once, under one lock.
const PAGES: &str = "pagelist_high_fraction";
/// What it is to be at least: the kernel then keeps four batches, as few as it can, and gives back
/// three of them at most (`zone_highsize`, `nr_pcp_free`).
const FEW: u64 = 1_000_000;

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

    fn knobs(&self) -> &'static [&'static str] {
        &[PAGES]
    }

    fn turns_for(&self) -> Mode {
        Mode::Latency
    }

    fn wish(&self, knob: &Knob, _all: &[Knob]) -> Result<Wish, &'static str> {
        match knob.value.parse::<u64>() {
            _ if knob.name != PAGES => Err("nothing is wished of it"),
            Ok(found) if found < FEW => Ok(Wish {
                value: FEW.to_string(),
                because: "the kernel then gives back few pages at once while it holds their lock",
            }),
            Ok(_) => Err("the kernel gives back few pages at once already"),
            Err(_) => Err("it is no number"),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn wished(name: &str, value: &str) -> Option<String> {
        let [name, path, value] = [name, "", value].map(str::to_owned);
        let knob = Knob { name, path, value, possible: Vec::new() };
        ByTasks::after(Nanos(0)).wish(&knob, &[]).ok().map(|wish| wish.value)
    }

    #[test]
    fn few_pages_are_kept_and_never_more_than_before() {
        for found in ["0", "8", "999999"] {
            assert_eq!(wished(PAGES, found).as_deref(), Some("1000000"), "{found}");
        }
        for stays in ["1000000", "2147483647", "-1", "nonsense", ""] {
            assert_eq!(wished(PAGES, stays), None, "{stays}");
        }
        assert_eq!(wished("preempt", "0"), None);
    }
}
