//! Hearing that a task is given a policy, at the end of the one function of the kernel that all ways
//! to one go through. It costs whoever gives a policy something, and nobody else.

use super::poll;
use crate::bpf::Bell;
use crate::root::Root;
use crate::{perf, sched};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// Hears of every policy that is given on any CPU, those that come later among them. One probe does
/// for all of them: what the kernel notes for perf it notes on one CPU, but BPF runs on each.
#[derive(Debug)]
pub(super) struct Policies {
    /// Closed before the bell is.
    _probe: File,
    bell: Bell,
}

/// Why the kernel's function can't be probed.
#[derive(Debug, thiserror::Error)]
pub enum Unprobed {
    /// Perf has no probes.
    #[error("this kernel has no probes for perf events (CONFIG_KPROBE_EVENTS)")]
    Missing,
    /// There is nothing to run.
    #[error("BPF programs of probes can't be loaded ({0})")]
    Mute(io::Error),
    /// It can't be put where it belongs.
    #[error("the kernel's function __sched_setscheduler can't be probed ({0})")]
    Refused(io::Error),
    /// Probes can be switched off for all.
    #[error(
        "probes say nothing: kernel.ftrace_enabled or /sys/kernel/debug/kprobes/enabled may be 0"
    )]
    Silent,
}

/// In `kernel/sched/core.c`, since Linux 6.12 in `kernel/sched/syscalls.c`.
const FUNCTION: &CStr = c"__sched_setscheduler";

impl Policies {
    /// Begins to hear, by an event that is counted among one of these CPUs.
    pub(super) fn listen(root: &Root, cpus: &CpuList) -> Result<Policies, Unprobed> {
        let kind = kind(root).ok_or(Unprobed::Missing)?;
        let cpu = cpus.iter().next().ok_or(Unprobed::Missing)?;
        let bell = Bell::new().map_err(Unprobed::Mute)?;
        let probe = perf::end_of(FUNCTION, kind, cpu, bell.program());
        let policies = Policies { _probe: probe.map_err(Unprobed::Refused)?, bell };
        sched::ask_in_vain();
        if poll(std::iter::once(policies.as_raw_fd()), Nanos(0)).contains(&false) {
            return Err(Unprobed::Silent);
        }
        policies.note();
        Ok(policies)
    }

    /// What was heard so far is known.
    pub(super) fn note(&self) {
        self.bell.silence();
    }
}

/// Can be read as soon as something is heard.
impl AsRawFd for Policies {
    fn as_raw_fd(&self) -> RawFd {
        self.bell.as_raw_fd()
    }
}

/// The kernel's number for probes (since Linux 4.17), and the bit that has one be of a function's end.
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
    fn the_kernel_says_how_a_probe_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let unprobed = Policies::listen(&root, &"0".parse().unwrap()).unwrap_err();
        assert!(matches!(unprobed, Unprobed::Missing), "{unprobed}");
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
