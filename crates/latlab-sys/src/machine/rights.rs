//! The rights of latlab itself: its capabilities and limits.

use crate::root::Root;
use latlab_core::machine::{ResourceLimit, Rights};

/// Bit and name (`linux/capability.h`) of the capabilities that latlab uses.
const CAPABILITIES: &[(u32, &str)] = &[
    (14, "CAP_IPC_LOCK"),
    (21, "CAP_SYS_ADMIN"),
    (23, "CAP_SYS_NICE"),
    (38, "CAP_PERFMON"),
    (39, "CAP_BPF"),
];

pub(super) fn read(root: &Root) -> Rights {
    let limits = root.text("proc/self/limits").unwrap_or_default();
    Rights {
        capabilities: capabilities(root),
        rtprio: limit(&limits, "Max realtime priority"),
        memlock: limit(&limits, "Max locked memory"),
        rttime: limit(&limits, "Max realtime timeout"),
    }
}

fn capabilities(root: &Root) -> Option<Vec<String>> {
    let status = root.text("proc/self/status")?;
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    let held = CAPABILITIES.iter().filter(|(bit, _)| mask >> bit & 1 == 1);
    Some(held.map(|(_, name)| (*name).to_owned()).collect())
}

/// A soft limit: the first column after its name, before the hard limit and the unit.
fn limit(limits: &str, name: &str) -> Option<ResourceLimit> {
    let columns = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match columns.split_whitespace().next()? {
        "unlimited" => Some(ResourceLimit::Unlimited),
        number => number.parse().ok().map(ResourceLimit::At),
    }
}
