//! The processor: model, frequencies and idle states.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The processor; its CPUs are assumed to be alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processor {
    /// The architecture, as `uname -m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// The model, as its vendor names it; of a board, the board.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Revision of the microcode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microcode: Option<String>,
    /// State of SMT: `on`, `off`, `forceoff`, `notsupported`, `notimplemented`
    /// (`/sys/devices/system/cpu/smt/control`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smt: Option<String>,
    /// Frequency scaling.
    #[serde(skip_serializing_if = "super::is_default")]
    pub frequency: Frequency,
    /// Idle states.
    #[serde(skip_serializing_if = "super::is_default")]
    pub idle: Idle,
    /// The cooling devices that slow CPUs down now: `cpufreq-cpu0` limits the frequency, `idle-cpu0`
    /// adds idle time (`/sys/class/thermal/cooling_device*`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cooling: Vec<String>,
    /// State of each CPU vulnerability, as the kernel reports it
    /// (`/sys/devices/system/cpu/vulnerabilities`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub vulnerabilities: BTreeMap<String, String>,
}

/// Frequency scaling (`/sys/devices/system/cpu/cpufreq`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Frequency {
    /// The driver: `intel_pstate`, `acpi-cpufreq`, ….
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The available governors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub governors: Vec<String>,
    /// Lower limit of the frequency in kHz; where CPUs differ, the lowest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_khz: Option<u64>,
    /// Upper limit of the frequency in kHz; where CPUs differ, the highest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_khz: Option<u64>,
    /// Whether CPUs may exceed their nominal frequency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boost: Option<bool>,
}

/// Idle states (`/sys/devices/system/cpu/cpuidle` and `cpu*/cpuidle`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Idle {
    /// The driver: `intel_idle`, `acpi_idle`, `psci_idle`, `haltpoll`, ….
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The governor, which predicts the idle time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// The states, the shallowest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<IdleState>,
    /// Requested limit on the exit latency in microseconds: the minimum of all requests at
    /// `/dev/cpu_dma_latency`. 2 000 000 000 without requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_dma_latency_us: Option<i32>,
}

/// One idle state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleState {
    /// Its name.
    pub name: String,
    /// Exit latency in microseconds, as the driver declares it.
    pub latency_us: u64,
    /// Whether it is disabled on all CPUs.
    pub disabled: bool,
}
