//! Runs that measure: their threads, their first samples, and the work of their loads.

use crate::program::{Running, field, wait_until, workers};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;

/// Returns the threads of a process that measure. Their names end with their CPUs.
pub(crate) fn measuring_threads(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let ids = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    ids.filter(|id| field(*id, "Name").is_some_and(|name| name.contains('/'))).collect()
}

/// Returns how often a task has given up its CPU or lost it.
pub(crate) fn switches(task: u32) -> u64 {
    let count = |name| field(task, name).and_then(|count| count.parse::<u64>().ok());
    let kinds = ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"];
    kinds.into_iter().filter_map(count).sum()
}

/// Waits until each measuring thread of a process without a warm-up has samples: it gives up its CPU
/// for each, and a few times before the first. A process that has ended is not waited for.
pub(crate) fn wait_until_sampled(pid: u32) {
    const SWITCHES: u64 = 100;
    let has_ended = || field(pid, "State").is_none_or(|state| state.starts_with('Z'));
    wait_until("each thread has taken samples", || {
        let threads = measuring_threads(pid);
        let is_sampled = !threads.is_empty() && threads.iter().all(|id| switches(*id) >= SWITCHES);
        is_sampled || has_ended()
    });
}

/// Waits until each worker of a run has done so many units of work, which it counts at the beginning of
/// the page that it shares with the run.
pub(crate) fn wait_until_done(run: &Running, units: u64) {
    let is_done = |worker| units_done(worker).is_some_and(|done| done >= units);
    wait_until("each worker has worked", || workers(run.pid()).into_iter().all(is_done));
}

/// Returns the units of work that a worker has done. Its orders, the second argument, have the
/// descriptor of the page.
fn units_done(worker: u32) -> Option<u64> {
    let words = fs::read(format!("/proc/{worker}/cmdline")).ok()?;
    let orders = words.split(|byte| *byte == 0).nth(2)?;
    let orders: Value = serde_json::from_slice(orders).ok()?;
    let page = File::open(format!("/proc/{worker}/fd/{}", orders["shared"])).ok()?;
    let mut units = [0; 8];
    page.read_exact_at(&mut units, 0).ok()?;
    Some(u64::from_ne_bytes(units))
}
