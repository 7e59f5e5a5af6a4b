//! Counters that only grow while a machine is up: they describe its health, not its identity.

use serde::{Deserialize, Serialize};

/// Counts since the machine was booted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Uptime in seconds (`/proc/uptime`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uptime_s: Option<u64>,
    /// Steal time of all CPUs together, in `USER_HZ` ticks of 10 ms (`/proc/stat`). It can be 0
    /// even though the host stalls the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal_ticks: Option<u64>,
    /// Thermal throttling events of all CPUs (`thermal_throttle/`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttles: Option<u64>,
    /// System management interrupts of CPU 0 (Intel, MSR 0x34).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smi: Option<u64>,
}

impl Counters {
    /// Describes what has disturbed the machine since `earlier`, a sentence each: steal time,
    /// throttling, and SMIs.
    pub fn disturbances_since(&self, earlier: &Counters) -> Vec<String> {
        let grown = |now: Option<u64>, then: Option<u64>| {
            now.zip(then).map(|(now, then)| now.saturating_sub(then)).filter(|grown| *grown > 0)
        };
        let steal = grown(self.steal_ticks, earlier.steal_ticks)
            .map(|ticks| format!("{} ms of steal time during the run", ticks * 10));
        let throttles = grown(self.throttles, earlier.throttles)
            .map(|times| format!("{times} thermal throttling events during the run"));
        let smi = grown(self.smi, earlier.smi)
            .map(|times| format!("{times} system management interrupts (SMI) during the run"));
        [steal, throttles, smi].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_report_only_growth() {
        let before = Counters { steal_ticks: Some(10), smi: Some(5), ..Counters::default() };
        let after = Counters { steal_ticks: Some(13), smi: Some(5), throttles: Some(1), ..before };
        let told = after.disturbances_since(&before);
        assert_eq!(told, ["30 ms of steal time during the run"]);
        assert!(before.disturbances_since(&after).is_empty());
    }
}
