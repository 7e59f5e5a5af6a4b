//! The state of a machine, as far as it decides about latency. Data only: who reads it is
//! `latlab-sys`, who judges it is [`crate::doctor`].

use crate::cpulist::CpuList;
use serde::{Deserialize, Serialize};

/// Which time the samples of a record are made of. Two domains are never compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeDomain {
    /// A machine's own time, a virtual one included, as it appears to who measures on it.
    #[default]
    Silicon,
    /// A guest that latlab booted, in wall time.
    Virtualized,
    /// A guest whose time is the number of its instructions.
    Instructions,
}

impl TimeDomain {
    /// The word used in records.
    pub fn word(self) -> &'static str {
        match self {
            TimeDomain::Silicon => "silicon",
            TimeDomain::Virtualized => "virtualized",
            TimeDomain::Instructions => "instructions",
        }
    }
}

/// Everything about a machine that a latency depends on. What could not be read is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Release of the kernel, as `uname -r`.
    pub kernel: String,
    /// The kernel's command line.
    pub cmdline: String,
    /// Preemption model: `none`, `voluntary`, `full`, `lazy` or `rt`.
    pub preempt: Option<String>,
    /// Ticks per second (`CONFIG_HZ`).
    pub hz: Option<u32>,
    /// The clocksource in use; `tsc` is read without a system call.
    pub clocksource: Option<String>,
    /// What the samples are made of.
    pub time_domain: TimeDomain,
    /// The hypervisor under the machine, where it says so.
    pub hypervisor: Option<String>,
    /// Online CPUs.
    pub cpus: CpuList,
    /// Frequency governor, where all CPUs have the same; else each, in order.
    pub governor: Option<String>,
    /// Microseconds per period that real-time tasks may run (`sched_rt_runtime_us`, -1: no limit).
    pub rt_runtime_us: Option<i64>,
    /// What reading the clock costs, in nanoseconds: the floor under every sample.
    pub clock_read_ns: u64,
}
