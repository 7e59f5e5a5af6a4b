//! Errors of loading BPF programs, each with its remedy.

use latlab_core::machine::SETCAP;
use latlab_sys::EPERM;
use latlab_sys::root::Root;
use std::io;

/// Why BPF programs cannot be loaded. Each message names the remedy.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The kernel has no BTF.
    #[error(
        "this kernel has no /sys/kernel/btf/vmlinux, which describes the layout of its structs: \
         boot a kernel built with CONFIG_DEBUG_INFO_BTF, as those of distributions are"
    )]
    NoBtf,
    /// The process lacks capabilities.
    #[error(
        "tracing the kernel needs CAP_BPF and CAP_PERFMON, and {missing} missing: run as root, or \
         give latlab all that it uses: {SETCAP}"
    )]
    MissingCapabilities {
        /// Names of the missing capabilities, followed by "is" or "are".
        missing: String,
    },
    /// The process is not in the initial PID namespace, so its PIDs differ from the kernel's.
    #[error(
        "this process runs in a container or another PID namespace, where tasks have other PIDs \
         than the kernel reports: run outside of it, or give the container the host's PID \
         namespace (--pid=host)"
    )]
    PidNamespace,
    /// The kernel is locked down for confidentiality.
    #[error(
        "the kernel is locked down for confidentiality and does not let BPF programs read its \
         memory: boot with lockdown=integrity or without lockdown"
    )]
    LockedDown,
    /// The kernel lacks something that a program reads or attaches to.
    #[error(
        "this kernel has no {0}, which latlab needs for this: boot a kernel that \
         has it, such as a distribution's for x86"
    )]
    MissingFeature(&'static str),
    /// The kernel has no BPF, or refuses the programs for another reason.
    #[error("the kernel refuses BPF programs ({0}){1}")]
    Refused(io::Error, &'static str),
    /// The verifier rejects a program.
    #[error("this kernel's BPF verifier rejects a program of latlab: {0}")]
    Rejected(String),
}

const CAP_SYS_ADMIN: u32 = 21;
/// Required capabilities, with their names.
const CAPABILITIES: [(u32, &str); 2] = [(38, "CAP_PERFMON"), (39, "CAP_BPF")];
/// The initial PID namespace: `PROC_PID_INIT_INO` of `include/linux/proc_ns.h`.
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Checks whether BPF programs can be loaded here, without trying.
pub(crate) fn check(root: &Root) -> Result<(), RecorderError> {
    let status = root.text("proc/self/status").unwrap_or_default();
    let missing = missing(&status);
    if !missing.is_empty() {
        let verb = if missing.len() == 1 { "is" } else { "are" };
        return Err(RecorderError::MissingCapabilities {
            missing: format!("{} {verb}", missing.join(" and ")),
        });
    }
    // A kernel without PID namespaces has no such link.
    if root.link("proc/self/ns/pid").is_some_and(|namespace| namespace != INITIAL_PID_NAMESPACE) {
        return Err(RecorderError::PidNamespace);
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

/// Returns the capabilities that are not effective, given the text of `/proc/self/status`.
fn missing(status: &str) -> Vec<&'static str> {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let has = |bit: u32| mask.is_none_or(|mask| mask >> bit & 1 == 1);
    if has(CAP_SYS_ADMIN) {
        return Vec::new();
    }
    CAPABILITIES.iter().filter(|(bit, _)| !has(*bit)).map(|(_, name)| *name).collect()
}

/// Explains an error of libbpf. `log` has its messages.
pub(crate) fn explain(error: &libbpf_rs::Error, log: &str) -> RecorderError {
    if let Some(why) = verdict(log) {
        return RecorderError::Rejected(why);
    }
    let error = match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => io::Error::from_raw_os_error(EPERM),
        _ => io::Error::other(format!("{error:#}")),
    };
    let remedy = if error.raw_os_error() == Some(EPERM) {
        ": a seccomp filter denies it, or the capabilities are those of a user namespace; run \
         outside of the container or service"
    } else {
        ""
    };
    RecorderError::Refused(error, remedy)
}

/// Returns the name of the program that the verifier rejects, and the last message before its
/// summary.
fn verdict(log: &str) -> Option<String> {
    let begin = log.find("-- BEGIN PROG LOAD LOG --")?;
    let program = log[..begin].rsplit("prog '").next()?.split('\'').next()?;
    let lines = log[begin..].lines().skip(1).take_while(|line| !line.contains("-- END PROG LOAD"));
    let last = lines.filter(|line| !line.is_empty() && !line.starts_with("processed ")).last()?;
    Some(format!("{program}: {last}"))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test builds the file tree of a machine")]
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
        let message = check(&root).unwrap_err().to_string();
        assert!(message.contains("CAP_PERFMON and CAP_BPF are missing"), "{message}");
    }

    #[test]
    fn check_refuses_other_pid_namespace() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let namespaces = folder.path().join("proc/self/ns");
        std::fs::create_dir_all(&namespaces).unwrap();
        let link = namespaces.join("pid");
        std::os::unix::fs::symlink("pid:[4026532201]", &link).unwrap();
        let message = check(&root).unwrap_err().to_string();
        assert!(message.contains("container") && message.contains("--pid=host"), "{message}");
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(INITIAL_PID_NAMESPACE, &link).unwrap();
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
