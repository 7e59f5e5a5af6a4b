//! Cost of a workload besides time: context switches, TLB misses and cache misses.

use crate::rig::Rig;
use latlab_core::record::{Warning, WarningCode};
use latlab_sys::perf::{Counter, HardwareEvent};
use latlab_sys::usage::{self, Switches};
use serde::{Deserialize, Serialize};
use std::io;

/// Events that not every processor counts.
const MISSES: [(&str, HardwareEvent); 2] = [
    ("data TLB misses", HardwareEvent::TlbMisses),
    ("last-level cache misses", HardwareEvent::CacheMisses),
];

/// Cost of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    voluntary: u64,
    involuntary: u64,
    /// Count of each of [`MISSES`], or why it can't be counted.
    misses: [Result<u64, String>; MISSES.len()],
}

/// Counts in its own process, and in the children forked after it was created.
pub struct Meter {
    switches: Switches,
    misses: [io::Result<Counter>; MISSES.len()],
}

impl Meter {
    /// Starts counting.
    pub fn start() -> Meter {
        let misses = MISSES.map(|(_, event)| Counter::open(event));
        Meter { switches: usage::switches(), misses }
    }

    /// Returns the cost since the start. Context switches of children are included once they have
    /// ended and been waited for.
    pub fn read(&self) -> Reading {
        let now = usage::switches();
        Reading {
            voluntary: now.voluntary - self.switches.voluntary,
            involuntary: now.involuntary - self.switches.involuntary,
            misses: self.misses.each_ref().map(count),
        }
    }
}

impl Reading {
    /// Adds the cost of other work. An event that can't be counted has no total, and the first reason
    /// is kept.
    pub fn add(&mut self, other: Reading) {
        self.voluntary += other.voluntary;
        self.involuntary += other.involuntary;
        for (total, count) in self.misses.iter_mut().zip(other.misses) {
            match (total.as_mut(), count) {
                (Ok(total), Ok(count)) => *total += count,
                (Ok(_), uncountable) => *total = uncountable,
                (Err(_), _) => {}
            }
        }
    }
}

fn count(counter: &io::Result<Counter>) -> Result<u64, String> {
    let counter = counter.as_ref().map_err(why_not)?;
    let count = counter.count().map_err(|e| why_not(&e))?;
    count.ok_or_else(|| "all hardware counters are in use".to_owned())
}

fn why_not(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::Unsupported => {
            "the processor has no counter for them, or the hypervisor does not expose it".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "kernel.perf_event_paranoid forbids it: run as root, or set it to 1".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Adds figures of this cost, divided by `units` of work, and a warning for each event that can't be
/// counted here.
#[expect(clippy::cast_precision_loss, reason = "a figure is shown, not counted with")]
pub fn report(rig: &mut Rig<'_>, probe: &str, cost: &Reading, units: u64, per: &str) {
    if units == 0 {
        return;
    }
    let each = |total: u64| total as f64 / units as f64;
    rig.add_figure(probe, "voluntary context switches", each(cost.voluntary), per);
    rig.add_figure(probe, "involuntary context switches", each(cost.involuntary), per);
    for ((name, _), misses) in MISSES.iter().zip(&cost.misses) {
        match misses {
            Ok(total) => rig.add_figure(probe, name, each(*total), per),
            Err(why) => {
                let text = format!("{probe}: {name} are not available here: {why}");
                rig.warnings.push(Warning::new(WarningCode::NotAvailable, text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_add_up_and_keep_the_first_reason_why_not() {
        let refused = |why: &str| Err(why.to_owned());
        let reading = |misses| Reading { voluntary: 2, involuntary: 3, misses };
        let mut total = reading([Ok(5), Ok(7)]);
        total.add(reading([Ok(1), refused("in use")]));
        total.add(reading([Ok(1), Ok(1)]));
        total.add(reading([Ok(1), refused("gone")]));
        let misses = [Ok(8), refused("in use")];
        assert_eq!(total, Reading { voluntary: 8, involuntary: 12, misses });
    }
}
