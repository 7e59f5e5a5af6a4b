//! Cost of a workload besides time: context switches, TLB misses and cache misses.

use crate::rig::Rig;
use latlab_core::record::Warning;
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
pub(crate) struct Reading {
    voluntary: u64,
    involuntary: u64,
    /// Count of each of [`MISSES`], or why it can't be counted.
    misses: [Result<u64, String>; MISSES.len()],
}

/// Counts in its own process, and in the children forked after it was created.
pub(crate) struct Meter {
    switches: Switches,
    misses: [io::Result<Counter>; MISSES.len()],
}

impl Meter {
    /// Starts counting.
    pub(crate) fn start() -> Meter {
        let misses = MISSES.map(|(_, event)| Counter::open(event));
        Meter { switches: usage::switches(), misses }
    }

    /// Returns the cost since the start. Context switches of children are included once they have
    /// ended and been waited for.
    pub(crate) fn read(&self) -> Reading {
        let now = usage::switches();
        Reading {
            voluntary: now.voluntary - self.switches.voluntary,
            involuntary: now.involuntary - self.switches.involuntary,
            misses: self.misses.each_ref().map(count),
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

/// Adds figures of the total of all costs, divided by `units` of work, and a warning for each event
/// that can't be counted here.
#[expect(clippy::cast_precision_loss, reason = "a figure is shown, not counted with")]
pub(crate) fn report(rig: &mut Rig<'_>, probe: &str, costs: &[Reading], units: u64, per: &str) {
    if costs.is_empty() || units == 0 {
        return;
    }
    let each = |total: u64| total as f64 / units as f64;
    let voluntary = costs.iter().map(|cost| cost.voluntary).sum();
    rig.add_figure(probe, "voluntary context switches", each(voluntary), per);
    let involuntary = costs.iter().map(|cost| cost.involuntary).sum();
    rig.add_figure(probe, "involuntary context switches", each(involuntary), per);
    for (nth, (name, _)) in MISSES.iter().enumerate() {
        let total: Result<u64, &String> = costs.iter().map(|cost| cost.misses[nth].as_ref()).sum();
        match total {
            Ok(total) => rig.add_figure(probe, name, each(total), per),
            Err(why) => {
                let text = format!("{probe}: {name} are not available here: {why}");
                rig.warnings.push(Warning::new("not-available", text));
            }
        }
    }
}
