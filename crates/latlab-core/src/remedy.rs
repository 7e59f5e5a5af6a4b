//! Remedies: what to do against a delay, one clause each. Findings of doctor and verdicts of
//! explanations use the same clauses.

use crate::machine::{Machine, Throttle};

/// Against time that the host of a virtual machine takes.
pub(crate) const PIN_VIRTUAL_CPUS: &str = "on the host, pin the virtual CPUs to dedicated CPUs";

/// Against all that only a fully preemptible kernel can preempt.
pub(crate) const REALTIME_KERNEL: &str = "boot a kernel with CONFIG_PREEMPT_RT=y";

/// Against interrupt handlers that run above every task.
pub(crate) const THREAD_INTERRUPTS: &str = "boot with `threadirqs`";

/// Against timers that expire at ticks only.
pub(crate) const HIGH_RESOLUTION: &str =
    "boot without `highres=off`, and with a kernel that has CONFIG_HIGH_RES_TIMERS=y";

/// Against idle states with a long exit latency.
pub(crate) const LIMIT_IDLE_STATES: &str = "the application should keep /dev/cpu_dma_latency open \
                                            with 0 written to it; for one measurement: `latlab run \
                                            --set cpu_dma_latency=0`";

/// Against a frequency that is low when a task wakes.
pub(crate) const CONSTANT_FREQUENCY: &str = "`cpupower frequency-set -g performance`; for one \
                                             measurement: `latlab run --set governor=performance`";

/// Against competing real-time tasks.
pub(crate) const OUTRANK_RIVALS: &str =
    "give the measured task a higher priority, or move them to other CPUs (`taskset -p`)";

/// Against waits for locks of the kernel.
pub(crate) const SHORTEN_LOCK: &str = "keep the system call that takes the lock out of time-critical code, or split up what the \
     holder does under it";

/// Against page faults.
pub(crate) const LOCK_MEMORY: &str = "lock the task's memory (mlockall)";

/// Returns the remedy against kernel code that can't be preempted, depending on whether the kernel
/// can switch its preemption model.
pub(crate) fn preemption(machine: &Machine) -> &'static str {
    if machine.preempt_modes.iter().any(|mode| mode == "full") {
        "boot with `preempt=full`"
    } else {
        "boot a kernel with CONFIG_PREEMPT=y or, better, CONFIG_PREEMPT_RT=y"
    }
}

/// Returns the remedy against throttles: all of them are switched off, for one left on would do the
/// same. Without throttles, the remedy against a limit of the task itself.
pub(crate) fn throttling(throttles: &[Throttle]) -> String {
    if throttles.is_empty() {
        return "raise the runtime of the task's cgroup or of its SCHED_DEADLINE reservation"
            .to_owned();
    }
    let settings = throttles.iter().map(|throttle| {
        let (knob, value) = throttle.switched_off_by();
        format!(" --set {knob}={value}")
    });
    format!("for one measurement: `latlab run{}`", settings.collect::<String>())
}

/// Returns the remedy against the CPU quota of a control group with this folder.
pub(crate) fn quota(group: Option<&str>) -> String {
    let of = group.unwrap_or("that group");
    format!(
        "raise the quota in `cpu.max` of {of} (version 1: `cpu.cfs_quota_us`), or move the other tasks \
         of the group elsewhere"
    )
}

/// Returns a clause as the beginning of a sentence.
pub(crate) fn sentence(clause: &str) -> String {
    let mut rest = clause.chars();
    let first = rest.next().map(|c| c.to_uppercase().collect::<String>());
    first.unwrap_or_default() + rest.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedy_against_missing_preemption_depends_on_the_kernel() {
        let mut machine = Machine::default();
        assert!(preemption(&machine).contains("CONFIG_PREEMPT=y"));
        machine.preempt_modes = vec!["none".to_owned(), "full".to_owned()];
        assert_eq!(preemption(&machine), "boot with `preempt=full`");
    }

    #[test]
    fn remedy_against_throttling_switches_off_what_is_on() {
        use Throttle::{FairServer, RtRuntime};
        let of = |throttles: &[Throttle]| throttling(throttles);
        assert_eq!(of(&[FairServer]), "for one measurement: `latlab run --set fair_server=0`");
        assert_eq!(of(&[RtRuntime]), "for one measurement: `latlab run --set rt_runtime_us=-1`");
        assert_eq!(
            of(&[RtRuntime, FairServer]),
            "for one measurement: `latlab run --set rt_runtime_us=-1 --set fair_server=0`"
        );
        assert!(of(&[]).contains("SCHED_DEADLINE reservation"), "{}", of(&[]));
    }

    #[test]
    fn sentence_begins_in_upper_case() {
        assert_eq!(sentence(THREAD_INTERRUPTS), "Boot with `threadirqs`");
        assert_eq!(sentence("`sysctl`"), "`sysctl`");
        assert_eq!(sentence(""), "");
    }
}
