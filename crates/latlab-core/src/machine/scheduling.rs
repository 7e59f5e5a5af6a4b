//! The scheduler: its limits, its watchdogs, and competing threads.

use serde::{Deserialize, Serialize};

/// Scheduler settings, watchdogs, and competing threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scheduling {
    /// Period of real-time throttling in microseconds (`sched_rt_period_us`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rt_period_us: Option<u64>,
    /// Scheduler features (`/sys/kernel/debug/sched/features`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// latlab's cgroup, if it limits real-time tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Cgroup>,
    /// Runtime reserved for `SCHED_OTHER` tasks (since Linux 6.12).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_server: Option<FairServer>,
    /// How long a program may keep its CPU beyond its time slice, in nanoseconds
    /// (`/sys/kernel/debug/rseq/slice_ext_nsec`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice_extension_ns: Option<u64>,
    /// Whether timers of idle CPUs migrate to busy ones (`kernel.timer_migration`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_migration: Option<bool>,
    /// Automatic NUMA balancing (`kernel.numa_balancing`; 0: off).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_balancing: Option<u32>,
    /// Whether the hard lockup detector is on (`kernel.nmi_watchdog`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nmi_watchdog: Option<bool>,
    /// Whether the soft lockup detector is on (`kernel.soft_watchdog`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft_watchdog: Option<bool>,
    /// Seconds until a hard lockup is reported; the timers' period is 2/5 of it
    /// (`kernel.watchdog_thresh`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watchdog_thresh: Option<u32>,
    /// Threads with a real-time or deadline policy, except for latlab's own and those counted in
    /// `rt_threads_per_cpu`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rt_threads: Vec<RealtimeThread>,
    /// Number of kernel threads that exist on every CPU of every machine: `migration/`,
    /// `watchdog/`, `idle_inject/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rt_threads_per_cpu: Option<u32>,
}

/// A cgroup of a kernel with `CONFIG_RT_GROUP_SCHED`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    /// Path below the mount point of the `cpu` controller, as in `/proc/self/cgroup`.
    pub path: String,
    /// Runtime of its real-time tasks in microseconds per period (`cpu.rt_runtime_us`).
    pub rt_runtime_us: i64,
}

/// The deadline server of `SCHED_OTHER` tasks; of the CPUs that are online, the one with the longest
/// runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FairServer {
    /// Runtime in nanoseconds.
    pub runtime_ns: u64,
    /// Period in nanoseconds.
    pub period_ns: u64,
}

/// A competing real-time thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RealtimeThread {
    /// Name.
    pub comm: String,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// `fifo`, `rr` or `deadline`.
    pub policy: String,
    /// Real-time priority, 1 to 99; 0 for `deadline`.
    pub priority: u32,
    /// Whether it is a kernel thread.
    pub kernel: bool,
}
