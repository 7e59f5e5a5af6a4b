//! Capabilities of this process (`capabilities(7)`): those that a command does not need are dropped.

use rustix::io::Errno;
use rustix::thread::{self, CapabilitySet, CapabilitySets};
use std::io;

/// A purpose for which capabilities are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Reading and writing the files of all users, as root expects, also below `sudo`.
    Files,
    /// Packages: apt downloads them as the user `_apt`.
    Packages,
    /// Measuring and explaining on this machine, and restoring every knob.
    Measuring,
    /// Adapting this machine once everything is open, and restoring it. Without `SYS_ADMIN` the
    /// kernel does not count the cost of BPF programs.
    Adapting,
}

impl Purpose {
    const fn capabilities(self) -> CapabilitySet {
        const ADAPTING: CapabilitySet = CapabilitySet::SYS_NICE
            .union(CapabilitySet::PERFMON)
            .union(CapabilitySet::BPF)
            .union(CapabilitySet::SYS_ADMIN)
            .union(CapabilitySet::SYS_RESOURCE)
            .union(CapabilitySet::IPC_LOCK)
            .union(CapabilitySet::SYS_PTRACE);
        match self {
            Purpose::Files => CapabilitySet::CHOWN
                .union(CapabilitySet::DAC_OVERRIDE)
                .union(CapabilitySet::DAC_READ_SEARCH)
                .union(CapabilitySet::FOWNER)
                .union(CapabilitySet::FSETID),
            Purpose::Packages => CapabilitySet::SETUID.union(CapabilitySet::SETGID),
            // Consoles, loopback interfaces of network namespaces, raw sockets, kernel symbols, and
            // processes of loads that have changed their user.
            Purpose::Measuring => ADAPTING
                .union(CapabilitySet::SYS_TTY_CONFIG)
                .union(CapabilitySet::NET_ADMIN)
                .union(CapabilitySet::NET_RAW)
                .union(CapabilitySet::SYSLOG)
                .union(CapabilitySet::KILL),
            Purpose::Adapting => ADAPTING,
        }
    }
}

/// Drops all capabilities but those for these purposes, in the calling thread and all that it
/// starts. Programs that they execute get no others either, whatever their user or file
/// (`PR_SET_NO_NEW_PRIVS`). Nothing changes where there is nothing to drop.
pub fn keep(purposes: &[Purpose]) -> io::Result<()> {
    let kept = purposes.iter().map(|purpose| purpose.capabilities());
    Ok(keep_only(kept.fold(CapabilitySet::empty(), CapabilitySet::union))?)
}

/// Drops the capabilities that a program started by latlab does not need: it only reads files.
/// Makes only system calls.
pub(crate) fn keep_reading() -> io::Result<()> {
    Ok(keep_only(CapabilitySet::DAC_READ_SEARCH)?)
}

fn keep_only(kept: CapabilitySet) -> Result<(), Errno> {
    let CapabilitySets { effective, permitted, inheritable } = thread::capabilities(None)?;
    if kept.contains(permitted.union(inheritable)) {
        return Ok(());
    }
    thread::set_no_new_privs(true)?;
    let sets = CapabilitySets {
        effective: effective & kept,
        permitted: permitted & kept,
        inheritable: inheritable & kept,
    };
    thread::set_capabilities(None, sets)
}
