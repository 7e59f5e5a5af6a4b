//! Why the kernel can't be watched here, and what to do about it.

use latlab_sys::EPERM;
use latlab_sys::root::Root;
use std::io;

/// Why the recorder, or the wakers, can't work. Each message names the remedy.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The kernel does not describe its own structures.
    #[error(
        "this kernel has no /sys/kernel/btf/vmlinux, without which nobody knows where its fields \
         lie: boot one that was built with CONFIG_DEBUG_INFO_BTF, as those of distributions are"
    )]
    NoBtf,
    /// The caller has not the rights.
    #[error(
        "watching the kernel needs CAP_BPF and CAP_PERFMON, and {missing} missing: run as root, or \
         give the program both (setcap cap_bpf,cap_perfmon+ep)"
    )]
    NoRight {
        /// Which, and "is" or "are".
        missing: String,
    },
    /// Our numbers of tasks are not those that the recorder sees.
    #[error(
        "this is a container, or another pid namespace than the machine's first, where tasks have \
         other numbers than the kernel reports: run outside of it, or give the container the \
         machine's (--pid=host)"
    )]
    OtherPids,
    /// The kernel shows its memory to nobody.
    #[error(
        "the kernel is locked down for confidentiality, so that BPF may not read its memory: boot \
         with lockdown=integrity or without it"
    )]
    LockedDown,
    /// The kernel does not have what a program reads or is attached to.
    #[error(
        "this kernel has no {0}, by which it is known who wakes a task: boot one that has, as those \
         of distributions for x86 do"
    )]
    Lacks(&'static str),
    /// The kernel has no BPF, or refuses it all the same.
    #[error("the kernel refuses BPF programs ({0}){1}")]
    Refused(io::Error, &'static str),
    /// The kernel's verifier does not let a program in.
    #[error("this kernel does not accept a program that watches it: {0}")]
    NotAccepted(String),
}

const CAP_SYS_ADMIN: u32 = 21;
/// The rights that are needed one by one, and their names.
const RIGHTS: [(u32, &str); 2] = [(38, "CAP_PERFMON"), (39, "CAP_BPF")];
/// The first pid namespace of every machine: `PROC_PID_INIT_INO` of `include/linux/proc_ns.h`.
const FIRST_PIDS: &str = "pid:[4026531836]";

/// Whether the kernel can be watched here, as far as can be told without trying.
pub(crate) fn check(root: &Root) -> Result<(), RecorderError> {
    let status = root.text("proc/self/status").unwrap_or_default();
    let missing = missing(&status);
    if !missing.is_empty() {
        let verb = if missing.len() == 1 { "is" } else { "are" };
        return Err(RecorderError::NoRight {
            missing: format!("{} {verb}", missing.join(" and ")),
        });
    }
    // A kernel without pid namespaces has no such link.
    if root.link("proc/self/ns/pid").is_some_and(|pids| pids != FIRST_PIDS) {
        return Err(RecorderError::OtherPids);
    }
    let lockdown = root.text("sys/kernel/security/lockdown").unwrap_or_default();
    if lockdown.contains("[confidentiality]") {
        return Err(RecorderError::LockedDown);
    }
    if !root.has("sys/kernel/btf/vmlinux") {
        return Err(RecorderError::NoBtf);
    }
    Ok(())
}

/// Which rights are not effective, by /proc/self/status.
fn missing(status: &str) -> Vec<&'static str> {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let has = |bit: u32| mask.is_none_or(|mask| mask >> bit & 1 == 1);
    if has(CAP_SYS_ADMIN) {
        return Vec::new();
    }
    RIGHTS.iter().filter(|(bit, _)| !has(*bit)).map(|(_, name)| *name).collect()
}

/// What a failure of libbpf means. `log` is what it said.
pub(crate) fn refused(error: &libbpf_rs::Error, log: &str) -> RecorderError {
    if let Some(why) = verdict(log) {
        return RecorderError::NotAccepted(why);
    }
    let error = match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => io::Error::from_raw_os_error(EPERM),
        _ => io::Error::other(format!("{error:#}")),
    };
    let remedy = if error.raw_os_error() == Some(EPERM) {
        ": a filter of system calls is in the way, or the rights are those of a user namespace; \
         run outside of the container or service"
    } else {
        ""
    };
    RecorderError::Refused(error, remedy)
}

/// Which program the verifier refuses, and its last words before the count.
fn verdict(log: &str) -> Option<String> {
    let begin = log.find("-- BEGIN PROG LOAD LOG --")?;
    let program = log[..begin].rsplit("prog '").next()?.split('\'').next()?;
    let lines = log[begin..].lines().skip(1).take_while(|line| !line.contains("-- END PROG LOAD"));
    let last = lines.filter(|line| !line.is_empty() && !line.starts_with("processed ")).last()?;
    Some(format!("{program}: {last}"))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes the machine that it wants")]
mod tests {
    use super::*;

    #[test]
    fn missing_capabilities_are_named() {
        assert_eq!(missing("CapEff:\t0000000000000000"), ["CAP_PERFMON", "CAP_BPF"]);
        assert_eq!(missing("CapEff:\t0000008000000000"), ["CAP_PERFMON"]);
        assert_eq!(missing("CapEff:\t0000000000200000"), [] as [&str; 0]);
        assert_eq!(missing("CapEff:\t000000c000000000"), [] as [&str; 0]);
    }

    #[test]
    fn check_names_what_the_machine_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        assert!(matches!(check(&root), Err(RecorderError::NoBtf)));
        let security = folder.path().join("sys/kernel/security");
        std::fs::create_dir_all(&security).unwrap();
        std::fs::write(security.join("lockdown"), "none integrity [confidentiality]\n").unwrap();
        assert!(matches!(check(&root), Err(RecorderError::LockedDown)));
        std::fs::create_dir_all(folder.path().join("proc/self")).unwrap();
        std::fs::write(folder.path().join("proc/self/status"), "CapEff:\t0\n").unwrap();
        let said = check(&root).unwrap_err().to_string();
        assert!(said.contains("CAP_PERFMON and CAP_BPF are missing"), "{said}");
    }

    #[test]
    fn check_refuses_other_pid_namespace() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let namespaces = folder.path().join("proc/self/ns");
        std::fs::create_dir_all(&namespaces).unwrap();
        let link = namespaces.join("pid");
        std::os::unix::fs::symlink("pid:[4026532201]", &link).unwrap();
        let said = check(&root).unwrap_err().to_string();
        assert!(said.contains("container") && said.contains("--pid=host"), "{said}");
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(FIRST_PIDS, &link).unwrap();
        assert!(matches!(check(&root), Err(RecorderError::NoBtf)));
    }

    #[test]
    fn verdict_keeps_last_message_of_verifier() {
        let log = "libbpf: prog 'sched_switch': BPF program load failed: Permission denied\n\
                   libbpf: prog 'sched_switch': -- BEGIN PROG LOAD LOG --\n\
                   0: R1=ctx() R10=fp0\n\
                   R6 invalid mem access 'scalar'\n\
                   processed 7 insns (limit 1000000)\n\
                   -- END PROG LOAD LOG --\n";
        let expected = "sched_switch: R6 invalid mem access 'scalar'";
        assert_eq!(verdict(log).as_deref(), Some(expected));
        assert_eq!(verdict("libbpf: failed"), None);
    }
}
