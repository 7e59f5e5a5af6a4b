//! Dynamic change of mode (section 3.2 of the paper).

use super::{Assessment, Description, Knob, Mechanism, Mode, Observation, Wish};
use latlab_core::time::Nanos;

/// Decides for throughput while there is no real-time task, and for latency while there is one. In
/// the latency mode it also makes the kernel free pages in small batches, as real-time tasks may
/// have to wait for a batch.
#[derive(Clone, Copy, Debug)]
pub struct ByTasks {
    /// The time without a real-time task after which it decides for throughput.
    patience: Nanos,
    mode: Option<Mode>,
    /// When a real-time task was last seen; none if there was none yet.
    last: Option<Nanos>,
}

/// Fraction of memory that the kernel keeps in per-CPU lists of free pages: pages above that are
/// freed in one batch, under the zone lock.
const PAGES: &str = "pagelist_high_fraction";
/// The least value for it: the kernel then keeps four batches, the smallest number it supports, and
/// frees at most three of them at once (`zone_highsize`, `nr_pcp_free`).
const SMALL_LISTS: u64 = 1_000_000;

impl ByTasks {
    /// Creates the mechanism, which returns to throughput after this time without a real-time task.
    pub fn after(patience: Nanos) -> ByTasks {
        ByTasks { patience, mode: None, last: None }
    }
}

impl Mechanism for ByTasks {
    fn description(&self) -> Description {
        Description {
            knobs: &[PAGES],
            serves: Mode::Latency,
            decides_mode: true,
            ..Description::new("mode")
        }
    }

    fn wish(&self, knob: &Knob) -> Result<Wish, &'static str> {
        match knob.value.parse::<u64>() {
            _ if knob.name != PAGES => Err("this mechanism does not set it"),
            Ok(found) if found < SMALL_LISTS => Ok(Wish {
                value: SMALL_LISTS.to_string(),
                because: "the kernel then frees few pages at once while it holds the zone lock",
            }),
            Ok(_) => Err("the kernel already frees few pages at once"),
            Err(_) => Err("its value is not a number"),
        }
    }

    fn assess(&mut self, seen: &Observation) -> Assessment {
        Assessment { mode: self.decide(seen), ..Assessment::default() }
    }
}

impl ByTasks {
    fn decide(&mut self, seen: &Observation) -> Option<(Mode, String)> {
        let there = seen.realtime.as_ref()?.len();
        if there > 0 {
            self.last = Some(seen.at);
        }
        let is_recent = self.last.is_some_and(|last| seen.at < last + self.patience);
        let mode = if there > 0 || (is_recent && self.mode == Some(Mode::Latency)) {
            Mode::Latency
        } else {
            Mode::Throughput
        };
        self.mode = Some(mode);
        let why = match (mode, there) {
            (Mode::Latency, 0) => {
                format!("the last real-time task ended less than {} ago", self.patience)
            }
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
        ByTasks::after(Nanos(0)).wish(&knob).ok().map(|wish| wish.value)
    }

    #[test]
    fn page_lists_become_small_and_never_larger() {
        for found in ["0", "8", "999999"] {
            assert_eq!(wished(PAGES, found).as_deref(), Some("1000000"), "{found}");
        }
        for stays in ["1000000", "2147483647", "-1", "nonsense", ""] {
            assert_eq!(wished(PAGES, stays), None, "{stays}");
        }
        assert_eq!(wished("preempt", "0"), None);
    }
}
