//! The processor: what it is, how fast it runs and how deep it sleeps.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The processor, as far as it is the same on all CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processor {
    /// The architecture, as `uname -m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// The model, in its maker's words; of a board, the board.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Revision of the microcode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microcode: Option<String>,
    /// State of hardware threads: `on`, `off`, `forceoff`, `notsupported`, `notimplemented`
    /// (`/sys/devices/system/cpu/smt/control`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smt: Option<String>,
    /// How clock frequencies are chosen.
    #[serde(skip_serializing_if = "super::is_default")]
    pub frequency: Frequency,
    /// How CPUs sleep.
    #[serde(skip_serializing_if = "super::is_default")]
    pub idle: Idle,
    /// What the kernel does about flaws of the processor, of those it has
    /// (`/sys/devices/system/cpu/vulnerabilities`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub vulnerabilities: BTreeMap<String, String>,
}

/// How clock frequencies are chosen (`/sys/devices/system/cpu/cpufreq`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Frequency {
    /// The driver: `intel_pstate`, `acpi-cpufreq`, ….
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The governors that can be chosen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub governors: Vec<String>,
    /// The lowest frequency that the governor may choose, in kHz; of several, the lowest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_khz: Option<u64>,
    /// The highest, in kHz; of several, the highest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_khz: Option<u64>,
    /// Whether CPUs may run faster than their nominal frequency while it is cool enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boost: Option<bool>,
}

/// How CPUs sleep (`/sys/devices/system/cpu/cpuidle` and `cpu*/cpuidle`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Idle {
    /// The driver: `intel_idle`, `acpi_idle`, `psci_idle`, `haltpoll`, ….
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The governor, which guesses how long a CPU will sleep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// The states, the shallowest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<IdleState>,
    /// The longest time to wake up that somebody asked for, in microseconds: the least of all
    /// requests at `/dev/cpu_dma_latency`. 2 000 000 000 is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_dma_latency_us: Option<i32>,
}

/// One idle state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleState {
    /// Its name.
    pub name: String,
    /// How long it takes to wake up from it, in microseconds, in the driver's words.
    pub latency_us: u64,
    /// Whether no CPU may enter it.
    pub disabled: bool,
}
