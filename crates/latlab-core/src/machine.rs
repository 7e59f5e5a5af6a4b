//! The state of a machine, as far as it affects latency. Plain data: `latlab-sys` reads it, and
//! [`crate::doctor`] judges it.

use crate::cpulist::CpuList;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod counters;
mod isolation;
mod memory;
mod processor;
mod rights;
mod scheduling;
mod throttle;

pub use counters::Counters;
pub use isolation::Isolation;
pub use memory::Memory;
pub use processor::{Frequency, Idle, IdleState, Processor};
pub use rights::{ResourceLimit, Rights, SETCAP};
pub use scheduling::{Cgroup, FairServer, RealtimeThread, Scheduling};
pub use throttle::Throttle;

/// The time base of a record's samples. Two time domains are never compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeDomain {
    /// Time of the machine's own clock; of a virtual machine, as seen inside it.
    #[default]
    Silicon,
    /// Wall-clock time in a guest that latlab booted.
    Virtualized,
    /// Number of executed instructions of a guest.
    Instructions,
}

impl TimeDomain {
    /// Returns the word used in records.
    pub fn word(self) -> &'static str {
        match self {
            TimeDomain::Silicon => "silicon",
            TimeDomain::Virtualized => "virtualized",
            TimeDomain::Instructions => "instructions",
        }
    }
}

/// Kernel configuration options that affect latency, or whether it can be explained; a record holds
/// these and no others.
pub const CONFIG: &[&str] = &[
    "CONFIG_ARCH_HAS_PREEMPT_LAZY",
    "CONFIG_BPF_SYSCALL",
    "CONFIG_CPU_FREQ",
    "CONFIG_CPU_FREQ_GOV_CONSERVATIVE",
    "CONFIG_CPU_FREQ_GOV_ONDEMAND",
    "CONFIG_CPU_FREQ_GOV_SCHEDUTIL",
    "CONFIG_CPU_IDLE",
    "CONFIG_DEBUG_INFO_BTF",
    "CONFIG_DEBUG_KMEMLEAK",
    "CONFIG_DEBUG_LOCK_ALLOC",
    "CONFIG_DEBUG_OBJECTS",
    "CONFIG_DEBUG_PAGEALLOC_ENABLE_DEFAULT",
    "CONFIG_EFI_DISABLE_RUNTIME",
    "CONFIG_HIGH_RES_TIMERS",
    "CONFIG_HZ",
    "CONFIG_IRQSOFF_TRACER",
    "CONFIG_IRQ_FORCED_THREADING",
    "CONFIG_KASAN",
    "CONFIG_KCOV",
    "CONFIG_KCSAN",
    "CONFIG_KMSAN",
    "CONFIG_LOCKUP_DETECTOR",
    "CONFIG_LOCK_STAT",
    "CONFIG_NO_HZ_FULL",
    "CONFIG_NO_HZ_IDLE",
    "CONFIG_OSNOISE_TRACER",
    "CONFIG_PREEMPT",
    "CONFIG_PREEMPT_DYNAMIC",
    "CONFIG_PREEMPT_LAZY",
    "CONFIG_PREEMPT_NONE",
    "CONFIG_PREEMPT_RT",
    "CONFIG_PREEMPT_TRACER",
    "CONFIG_PREEMPT_VOLUNTARY",
    "CONFIG_PROVE_LOCKING",
    "CONFIG_RCU_NOCB_CPU",
    "CONFIG_RCU_NOCB_CPU_DEFAULT_ALL",
    "CONFIG_RSEQ_SLICE_EXTENSION",
    "CONFIG_RT_GROUP_SCHED",
    "CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED",
    "CONFIG_SCHED_PROXY_EXEC",
    "CONFIG_SLUB_DEBUG_ON",
    "CONFIG_TIMERLAT_TRACER",
    "CONFIG_TRACING",
];

/// Everything about a machine that affects latency. Facts that could not be read are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Kernel release, as `uname -r`.
    pub kernel: String,
    /// Kernel build, as `uname -v`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Kernel command line.
    pub cmdline: String,
    /// Preemption model: `none`, `voluntary`, `full`, `lazy` or `rt`.
    pub preempt: Option<String>,
    /// Preemption models that this kernel can switch to at run time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preempt_modes: Vec<String>,
    /// How a `PREEMPT_RT` kernel preempts `SCHED_OTHER` tasks, `full` or `lazy`, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preempt_ordinary: Option<String>,
    /// The options of [`CONFIG`] that are set. Empty where the kernel's configuration can't be
    /// read.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// Ticks per second (`CONFIG_HZ`).
    pub hz: Option<u32>,
    /// The active clocksource; `tsc` is read without a system call.
    pub clocksource: Option<String>,
    /// The other available clocksources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clocksources: Vec<String>,
    /// Timer resolution in nanoseconds: 1 with high-resolution timers, else a tick.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_resolution_ns: Option<u64>,
    /// Time base of the samples.
    pub time_domain: TimeDomain,
    /// The hypervisor, where it identifies itself.
    pub hypervisor: Option<String>,
    /// Online CPUs.
    pub cpus: CpuList,
    /// The hardware threads of each online CPU's core, including itself.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub siblings: BTreeMap<u32, CpuList>,
    /// Frequency governor; where CPUs differ, all of them, in the order of the CPUs.
    pub governor: Option<String>,
    /// Runtime of real-time tasks per period in microseconds (`sched_rt_runtime_us`, -1: no limit).
    pub rt_runtime_us: Option<i64>,
    /// Cost of reading the clock in nanoseconds: the lower limit of every sample.
    pub clock_read_ns: u64,
    /// Cost of recording a sample in nanoseconds, spent between two samples.
    pub record_ns: u64,
    /// The processor, its frequencies and its idle states.
    #[serde(skip_serializing_if = "is_default")]
    pub processor: Processor,
    /// CPUs that are kept free of work.
    #[serde(skip_serializing_if = "is_default")]
    pub isolation: Isolation,
    /// The scheduler, its watchdogs, and real-time threads of others.
    #[serde(skip_serializing_if = "is_default")]
    pub scheduling: Scheduling,
    /// Background activities of the memory management.
    #[serde(skip_serializing_if = "is_default")]
    pub memory: Memory,
    /// Permissions of latlab itself.
    #[serde(skip_serializing_if = "is_default")]
    pub rights: Rights,
    /// Counters that only grow while the machine is up.
    #[serde(skip_serializing_if = "is_default")]
    pub counters: Counters,
    /// Drivers of the graphics cards.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpu_drivers: Vec<String>,
    /// Whether the kernel calls the firmware's EFI runtime services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efi_runtime: Option<bool>,
    /// Firmware that runs on the CPUs beside the kernel, as the device tree names it: `psci`,
    /// `optee`, `scmi`, `sdei`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub firmware: Vec<String>,
    /// The active tracer of the main trace buffer; `nop` is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracer: Option<String>,
    /// Kernel lockdown: `none`, `integrity` or `confidentiality` (`kernel_lockdown(7)`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lockdown: Option<String>,
}

impl Machine {
    /// Returns the value of an option of [`CONFIG`], `n` if it is not set; none if the kernel's
    /// configuration is unknown.
    pub fn config(&self, option: &str) -> Option<&str> {
        debug_assert!(CONFIG.contains(&option), "{option} is not recorded");
        (!self.config.is_empty()).then(|| self.config.get(option).map_or("n", String::as_str))
    }

    /// Whether kernel code runs on to its next scheduling point after the interrupt that wakes a
    /// task: it is not preemptible.
    pub fn runs_to_scheduling_point(&self) -> bool {
        matches!(self.preempt.as_deref(), Some("none" | "voluntary"))
    }

    /// Whether an option of [`CONFIG`] is known to be compiled in.
    pub fn has_config(&self, option: &str) -> bool {
        self.config(option) == Some("y")
    }

    /// Returns the value of a parameter on the kernel command line; the last one counts. It is
    /// empty for a parameter without a value. Parameters after `--` are for init, and ignored.
    pub fn boot_parameter(&self, name: &str) -> Option<&str> {
        self.cmdline
            .split_whitespace()
            .take_while(|word| *word != "--")
            .filter_map(|word| match word.split_once('=') {
                Some((key, value)) => (key == name).then_some(value),
                None => (word == name).then_some(""),
            })
            .last()
    }

    /// Returns what differs between the kernels of two machines, in words: the build, the command
    /// line or the preemption model.
    pub fn kernel_difference(&self, other: &Machine) -> Option<&'static str> {
        let same = [
            ("their kernel", (&self.kernel, &self.version) == (&other.kernel, &other.version)),
            ("their kernel's command line", self.cmdline == other.cmdline),
            ("their preemption model", self.preempt == other.preempt),
        ];
        same.iter().find(|(_, same)| !same).map(|(what, _)| *what)
    }

    /// Returns major and minor version of the kernel.
    pub fn kernel_version(&self) -> Option<(u32, u32)> {
        let mut numbers = self.kernel.split(|c: char| !c.is_ascii_digit());
        let mut next = || numbers.next()?.parse().ok();
        Some((next()?, next()?))
    }
}

/// Whether nothing could be read of a part, which a record then omits.
fn is_default<T: Default + PartialEq>(part: &T) -> bool {
    *part == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_boot_parameter_before_the_dashes_counts() {
        let machine = Machine {
            cmdline: "quiet preempt=none preempt=full efi=noruntime -- preempt=lazy".to_owned(),
            ..Machine::default()
        };
        assert_eq!(machine.boot_parameter("preempt"), Some("full"));
        assert_eq!(machine.boot_parameter("quiet"), Some(""));
        assert_eq!(machine.boot_parameter("isolcpus"), None);
    }

    #[test]
    fn kernel_version_is_read_from_the_release() {
        let version = |kernel: &str| {
            let kernel = kernel.to_owned();
            Machine { kernel, ..Machine::default() }.kernel_version()
        };
        assert_eq!(version("6.18.44-fc-v657"), Some((6, 18)));
        assert_eq!(version("7.0"), Some((7, 0)));
        assert_eq!(version("7.1-rc3"), Some((7, 1)));
        assert_eq!(version("linux"), None);
        assert_eq!(version(""), None);
    }

    #[test]
    fn unset_option_differs_from_unknown_option() {
        let mut machine = Machine::default();
        assert_eq!(machine.config("CONFIG_KASAN"), None);
        machine.config.insert("CONFIG_HZ".to_owned(), "250".to_owned());
        assert_eq!(machine.config("CONFIG_KASAN"), Some("n"));
        assert_eq!(machine.config("CONFIG_HZ"), Some("250"));
    }

    #[test]
    fn config_options_are_sorted() {
        assert!(CONFIG.is_sorted());
    }

    #[test]
    fn machine_with_missing_fields_is_read() {
        let machine: Machine = serde_json::from_str(r#"{"kernel":"6.1","cpus":"0-1"}"#).unwrap();
        assert_eq!(machine.cpus.len(), 2);
        assert_eq!(machine.processor, Processor::default());
        let text = serde_json::to_string(&machine).unwrap();
        assert!(!text.contains("processor"), "{text}");
    }
}
