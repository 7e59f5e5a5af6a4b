//! What only grows while a machine is up: no part of its identity, but of its health.

use serde::{Deserialize, Serialize};

/// Counts since the machine was booted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

impl Counters {
    /// What has happened to the machine since `earlier`, a sentence each: time and clock speed
    /// that were taken away while latlab measured.
    pub fn happened_since(&self, earlier: &Counters) -> Vec<String> {
        let grown = |now: Option<u64>, then: Option<u64>| {
            now.zip(then).map(|(now, then)| now.saturating_sub(then)).filter(|grown| *grown > 0)
        };
        let steal = grown(self.steal_ticks, earlier.steal_ticks).map(|ticks| {
            format!("the host took {} ms of CPU time away during the run", ticks * 10)
        });
        let throttles = grown(self.throttles, earlier.throttles)
            .map(|times| format!("CPUs were slowed down {times} times for being too hot"));
        let smi = grown(self.smi, earlier.smi)
            .map(|times| format!("the firmware interrupted the run {times} times (SMI)"));
        [steal, throttles, smi].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_grown_is_told() {
        let before = Counters { steal_ticks: Some(10), smi: Some(5), ..Counters::default() };
        let after = Counters { steal_ticks: Some(13), smi: Some(5), throttles: Some(1), ..before };
        let told = after.happened_since(&before);
        assert_eq!(told, ["the host took 30 ms of CPU time away during the run"]);
        assert!(before.happened_since(&after).is_empty());
    }
}
