//! The scheduler: its limits, its watchdogs, and who competes for the CPUs.

use serde::{Deserialize, Serialize};

/// How tasks are scheduled, and what may come between.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scheduling {
    /// The period of the limit on real-time tasks, in microseconds (`sched_rt_period_us`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rt_period_us: Option<u64>,
    /// The scheduler's features (`/sys/kernel/debug/sched/features`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// The cgroup that latlab runs in, as far as it restrains real-time tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Cgroup>,
    /// The time that ordinary tasks are granted among real-time ones (since Linux 6.12).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_server: Option<FairServer>,
    /// Whether timers of idle CPUs move to busy ones (`kernel.timer_migration`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_migration: Option<bool>,
    /// Whether memory moves to the node that uses it (`kernel.numa_balancing`; 0: no).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_balancing: Option<u32>,
    /// Whether non-maskable interrupts watch for CPUs that hang (`kernel.nmi_watchdog`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nmi_watchdog: Option<bool>,
    /// Whether timers watch for CPUs that don't schedule (`kernel.soft_watchdog`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft_watchdog: Option<bool>,
    /// Seconds until the watchdogs bark; timers fire every 2/5 of it (`kernel.watchdog_thresh`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watchdog_thresh: Option<u32>,
    /// Threads with a real-time or deadline policy, except for latlab's own and those in
    /// `rt_threads_per_cpu`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rt_threads: Vec<Thread>,
    /// How many threads of the kernel there are that every machine has on every CPU: `migration/`,
    /// `watchdog/`, `idle_inject/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rt_threads_per_cpu: Option<u32>,
}

/// A cgroup of a kernel with `CONFIG_RT_GROUP_SCHED`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    /// Its path below the mount of the `cpu` controller, as in `/proc/self/cgroup`.
    pub path: String,
    /// Microseconds per period for the real-time tasks in it (`cpu.rt_runtime_us`).
    pub rt_runtime_us: i64,
}

/// The deadline server of ordinary tasks; of several CPUs' servers, the largest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FairServer {
    /// What it grants, in nanoseconds.
    pub runtime_ns: u64,
    /// In every so many nanoseconds.
    pub period_ns: u64,
}

/// A thread that competes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Its name.
    pub comm: String,
    /// Its process.
    pub pid: u32,
    /// Itself.
    pub tid: u32,
    /// `fifo`, `rr` or `deadline`.
    pub policy: String,
    /// Real-time priority, 1 to 99; 0 for `deadline`.
    pub priority: u32,
    /// Whether it is the kernel's.
    pub kernel: bool,
}
