//! Tracepoints and per-CPU variables of the running kernel, from its BTF.

use latlab_core::symbols::preemption_counter;
use latlab_core::time::Nanos;
use latlab_sys::root::Root;
use latlab_sys::{clock, machine};
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{DataSec, Func, MemberAttr, Struct, Typedef, Var};
use std::ffi::OsStr;

/// Offsets of per-CPU variables in the per-CPU section; 0 where the kernel has none of that name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Variables {
    pub(crate) hrtimer_bases: u32,
    pub(crate) irq_regs: u32,
    pub(crate) preempt_count: u32,
    pub(crate) steal_time: u32,
    pub(crate) cpustat_steal: u32,
    pub(crate) runqueues: u32,
    /// Bits of the preemption count that count interrupts, NMIs among them.
    pub(crate) interrupts: u32,
}

/// Offset of `CPUTIME_STEAL` among the times of `struct kernel_cpustat`, in bytes; unchanged since
/// Linux 2.6.
const STEAL: u32 = 7 * 8;
/// Variable of kernels from 7.3 on that count in the preemption count how often interrupts were
/// disabled, too (`HARDIRQ_DISABLE_MASK` of `include/linux/preempt.h`).
const COUNTED_DISABLING: &str = "local_interrupt_disable_state";
/// `HARDIRQ_MASK` without and with that count.
const HARDIRQ: [u32; 2] = [0x000f_0000, 0x0f00_0000];

/// Tracepoints of the recorder; its programs have the same names.
pub(crate) const TRACEPOINTS: &[&str] = &[
    "contention_begin",
    "contention_end",
    "hrtimer_expire_entry",
    "hrtimer_expire_exit",
    "irq_handler_entry",
    "irq_handler_exit",
    "sched_migrate_task",
    "sched_process_exit",
    "sched_switch",
    "sched_wakeup",
    "sched_waking",
    "softirq_entry",
    "softirq_exit",
    "timer_expire_entry",
    "timer_expire_exit",
];

/// Tracepoints of the recorder that kernels of this architecture have. arm64 has none for page
/// faults, and none for the timer: it interrupts as a device.
#[cfg(not(target_arch = "aarch64"))]
pub(crate) const OF_ARCHITECTURE: &[&str] = &[
    "call_function_entry",
    "call_function_exit",
    "call_function_single_entry",
    "call_function_single_exit",
    "local_timer_entry",
    "local_timer_exit",
    "page_fault_user",
    "reschedule_entry",
    "reschedule_exit",
];
#[cfg(target_arch = "aarch64")]
pub(crate) const OF_ARCHITECTURE: &[&str] = &["ipi_entry", "ipi_exit"];

/// Programs of the recorder that trace functions of the scheduler: those functions throttle and
/// unthrottle control groups by their CPU quota. Not every kernel can trace functions.
pub(crate) const FUNCTIONS: [&str; 2] = ["tg_throttle_down", "tg_unthrottle_up"];

/// Whether this function is to be traced: the kernel has it, and has the fields that identify the
/// group; and the task's own state does not show that it waits for quota, as it does from Linux
/// 6.18 on.
pub(crate) fn needs_function(btf: &Btf<'_>, name: &str) -> bool {
    let is_there = btf.type_by_name::<Func<'_>>(name).is_some();
    let can = is_there && has_member(btf, "cfs_rq", "tg") && has_member(btf, "rq", "cpu");
    can && !has_member(btf, "task_struct", "sched_throttle_work")
}

/// The program of the recorder for the software event of page faults.
pub(crate) const PAGE_FAULTS: &str = "page_fault_event";

/// Whether it is needed: the kernel has no tracepoint for page faults, and the program knows its
/// registers.
pub(crate) fn needs_page_faults(btf: &Btf<'_>) -> bool {
    cfg!(target_arch = "aarch64") && !has_tracepoint(btf, "page_fault_user")
}

/// Whether kernel code is not preempted by a woken task before it returns to user space or reaches
/// a scheduling point. With lazy preemption that holds for `SCHED_OTHER` tasks only.
pub(crate) fn is_non_preemptible() -> bool {
    let model = machine::read(&Root::default()).preempt;
    !matches!(model.as_deref(), Some("rt" | "full" | "lazy"))
}

/// Redundant programs on kernels whose [timers expire in the local timer
/// interrupt](has_local_timer).
const IMPLIED: [&str; 2] = ["hrtimer_expire_exit", "local_timer_entry"];
/// Programs that are useless with one CPU: inter-processor interrupts and migrations.
const BETWEEN_CPUS: [&str; 10] = [
    "call_function_entry",
    "call_function_exit",
    "call_function_single_entry",
    "call_function_single_exit",
    "csd_function_entry",
    "csd_queue_cpu",
    "reschedule_entry",
    "reschedule_exit",
    "sched_migrate_task",
    "sched_wakeup",
];

/// Programs that follow a task after it was switched in: part of its latency may come later.
const AFTER_SWITCH: [&str; 4] =
    ["contention_begin", "contention_end", "page_fault_user", PAGE_FAULTS];

/// Whether a program is of use on this machine. `later`: latencies are judged when the task sleeps
/// again.
pub(crate) fn is_of_use(name: &str, local_timer: bool, cpus: usize, later: bool) -> bool {
    let implied = local_timer && IMPLIED.contains(&name);
    let no_other_cpu = cpus == 1 && BETWEEN_CPUS.contains(&name);
    let too_late = !later && AFTER_SWITCH.contains(&name);
    !implied && !no_other_cpu && !too_late
}

/// Whether the scheduler's own accounting gives the enqueue time that this program would record for
/// a task that is switched in.
pub(crate) fn is_accounted(name: &str, btf: &Btf<'_>) -> bool {
    let accounts = [("sched_info", "last_queued"), ("sched_entity", "cfs_rq")];
    name == "sched_wakeup" && accounts.iter().all(|(of, member)| has_member(btf, of, member))
}

/// Whether high-resolution timers expire in the interrupt of the local APIC only, where tracepoints
/// report its end. Kernels whose CPU bases have `deferred_rearm`, as Linux 7.2, do not always report the end
/// of an interrupt after an expiry: in the laboratory, callbacks seemed to last until the next interrupt.
pub(crate) fn has_local_timer(btf: &Btf<'_>) -> bool {
    if has_member(btf, "hrtimer_cpu_base", "deferred_rearm") {
        return false;
    }
    let device = Root::default().word("sys/devices/system/clockevents/clockevent0/current_device");
    let lapic = device.is_some_and(|device| device.starts_with("lapic"));
    lapic && clock::resolution() == Nanos(1)
}

/// Whether a hypervisor may report steal time.
fn may_report_steal() -> bool {
    let hypervisor = machine::read(&Root::default()).hypervisor;
    hypervisor.is_some_and(|name| name != "qemu-tcg")
}

/// Whether the kernel has that tracepoint.
pub(crate) fn has_tracepoint(btf: &Btf<'_>, name: &str) -> bool {
    btf.type_by_name::<Typedef<'_>>(&format!("btf_trace_{name}")).is_some()
}

/// Whether a struct of the kernel has that member.
pub(crate) fn has_member(btf: &Btf<'_>, name: &str, member: &str) -> bool {
    offset(btf, name, member).is_some()
}

/// The offset of a member in a struct of the kernel, in bytes. For a bit field it is the offset of
/// the field's first byte.
fn offset(btf: &Btf<'_>, name: &str, member: &str) -> Option<u32> {
    let found = btf.type_by_name::<Struct<'_>>(name)?;
    let attr = found.iter().find(|one| one.name == Some(OsStr::new(member)))?.attr;
    let (MemberAttr::Normal { offset } | MemberAttr::BitField { offset, .. }) = attr;
    Some(offset / 8)
}

/// Looks up the variables: of steal time where a hypervisor may report it.
pub(crate) fn variables(btf: &Btf<'_>) -> Variables {
    let mut found = Variables { interrupts: HARDIRQ[0], ..Variables::default() };
    let steal = may_report_steal();
    let times = offset(btf, "kernel_cpustat", "cpustat").unwrap_or_default();
    let Some(section) = btf.type_by_name::<DataSec<'_>>(".data..percpu") else { return found };
    for entry in section.iter() {
        let Some(variable) = btf.type_by_id::<Var<'_>>(entry.ty) else { continue };
        let Some(name) = variable.name().and_then(OsStr::to_str) else { continue };
        if let Some(offset) = preemption_counter(name) {
            found.preempt_count = entry.offset + offset;
        }
        match name {
            "hrtimer_bases" => found.hrtimer_bases = entry.offset,
            "__irq_regs" => found.irq_regs = entry.offset,
            "runqueues" => found.runqueues = entry.offset,
            "steal_time" if steal => found.steal_time = entry.offset,
            "kernel_cpustat" if steal => found.cpustat_steal = entry.offset + times + STEAL,
            COUNTED_DISABLING => found.interrupts = HARDIRQ[1],
            _ => {}
        }
    }
    found
}
