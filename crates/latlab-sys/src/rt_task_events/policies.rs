//! Events of policies that are set, by a kprobe at the end of the one kernel function through which
//! every policy is set. It costs only the task that sets a policy.

use super::readable;
use crate::bpf::Bell;
use crate::root::Root;
use crate::{perf, sched};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Reports every policy that is set on any CPU, including CPUs that come online later. One probe is
/// enough for all CPUs: perf itself would record on one CPU, but the BPF program runs on each.
#[derive(Debug)]
pub(super) struct Policies {
    /// Closed before the program that it runs.
    _probe: File,
    bell: Bell,
}

/// Why the kernel's function can't be probed.
#[derive(Debug, thiserror::Error)]
pub enum KprobeError {
    /// Perf has no kprobes.
    #[error("this kernel has no probes for perf events (CONFIG_KPROBE_EVENTS)")]
    Missing,
    /// The BPF program can't be loaded.
    #[error("BPF programs for kprobes can't be loaded ({0})")]
    Mute(io::Error),
    /// The probe can't be set.
    #[error("the kernel function __sched_setscheduler can't be probed ({0})")]
    Refused(io::Error),
    /// Kprobes can be disabled for the whole system.
    #[error(
        "kprobes report nothing: kernel.ftrace_enabled or /sys/kernel/debug/kprobes/enabled may \
         be 0"
    )]
    Silent,
}

/// In `kernel/sched/core.c`, since Linux 6.12 in `kernel/sched/syscalls.c`.
const FUNCTION: &CStr = c"__sched_setscheduler";

impl Policies {
    /// Starts to listen. The perf event of the probe belongs to the first of these CPUs.
    pub(super) fn listen(root: &Root, cpus: &CpuList) -> Result<Policies, KprobeError> {
        let kind = kind(root).ok_or(KprobeError::Missing)?;
        let cpu = cpus.iter().next().ok_or(KprobeError::Missing)?;
        let bell = Bell::new().map_err(KprobeError::Mute)?;
        let probe = perf::end_of(FUNCTION, kind, cpu, bell.program());
        let policies = Policies { _probe: probe.map_err(KprobeError::Refused)?, bell };
        sched::make_failing_call();
        if readable(&[policies.as_fd()], Nanos(0)).contains(&false) {
            return Err(KprobeError::Silent);
        }
        policies.clear();
        Ok(policies)
    }

    /// Marks the events so far as seen.
    pub(super) fn clear(&self) {
        self.bell.clear();
    }
}

/// Readable as soon as there is an event.
impl AsFd for Policies {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// The kernel's number for kprobes (Linux 4.17), and the bit that makes one probe the end of a
/// function.
fn kind(root: &Root) -> Option<(u32, u64)> {
    let folder = "sys/bus/event_source/devices/kprobe";
    let bit = root.text(format!("{folder}/format/retprobe"))?;
    let bit: u32 = bit.strip_prefix("config:")?.parse().ok()?;
    Some((root.number(format!("{folder}/type"))?, 1_u64.checked_shl(bit)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a temporary folder is not the machine")]
    fn policies_probe_kind_is_read_from_sysfs() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let unprobed = Policies::listen(&root, &"0".parse().unwrap()).unwrap_err();
        assert!(matches!(unprobed, KprobeError::Missing), "{unprobed}");
        let place = root.path("sys/bus/event_source/devices/kprobe/format");
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.with_file_name("type"), "8\n").unwrap();
        for (bit, expected) in
            [("config:0\n", Some((8, 1))), ("config:3", Some((8, 8))), ("config1:0", None)]
        {
            std::fs::write(place.join("retprobe"), bit).unwrap();
            assert_eq!(kind(&root), expected);
        }
    }
}
