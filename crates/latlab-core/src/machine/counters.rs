//! What only grows while a machine is up: no part of its identity, but of its health.

use serde::{Deserialize, Serialize};

/// Counts since the machine was booted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// How long the machine has been up, in seconds (`/proc/uptime`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uptime_s: Option<u64>,
    /// Time that the hypervisor gave to others, of all CPUs together, in `USER_HZ` ticks of 10 ms
    /// (`/proc/stat`). It can read 0 although the host stalls the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal_ticks: Option<u64>,
    /// How often CPUs were slowed down because they were too hot (`thermal_throttle/`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttles: Option<u64>,
    /// System management interrupts: how often the firmware took CPU 0 away (Intel, MSR 0x34).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smi: Option<u64>,
}
