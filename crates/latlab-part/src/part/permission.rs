//! Reasons why the kernel refuses a scheduling policy, with remedies.

use crate::failure::{Failure, failed};
use latlab_core::doctor::{self, Finding};
use latlab_core::machine::SETCAP;
use latlab_sys::root::Root;
use latlab_sys::{EBUSY, EINVAL, EPERM, machine};
use std::io;

/// The refusal of `policy` as a failure. Where a right is missing, `instead` is appended.
pub fn refused(policy: &str, error: &io::Error, instead: &str) -> Failure {
    match error.raw_os_error() {
        Some(EPERM) => {
            missing(policy, &doctor::diagnose(&machine::read(&Root::default())), instead)
        }
        Some(EBUSY) => Failure::unsupported(
            "the kernel admits no more deadline tasks: the sum of their runtimes exceeds what \
             sched_rt_runtime_us leaves; use a smaller runtime, or fewer CPUs",
        ),
        Some(EINVAL) if policy == "deadline" => Failure::failed(
            "deadline: the kernel requires a runtime of at least 1024ns and at most the period, \
             and a period of 100us to 4s",
        ),
        // The thread or process that tries it did not start, and the error says so.
        None => Failure::failed(error.to_string()),
        _ => failed(&format!("the policy {policy} was refused"), error),
    }
}

/// Findings of the doctor that explain a refusal. First the cgroup's limit: no right overrides it.
const REASONS: [&str; 3] = ["rt-group", "no-realtime-right", "priority-limit"];

fn missing(policy: &str, findings: &[Finding], instead: &str) -> Failure {
    let reason = REASONS.iter().find_map(|code| findings.iter().find(|f| f.code == *code));
    let why = match reason {
        Some(finding) => format!("{}. {}", finding.what, finding.remedy.trim_end_matches('.')),
        None if policy == "deadline" => {
            format!(
                "deadline tasks must be allowed on all CPUs of their root domain, and need \
                 CAP_SYS_NICE: {SETCAP}"
            )
        }
        None => format!("CAP_SYS_NICE is needed: {SETCAP}"),
    };
    Failure::unsupported(format!("the kernel refuses the policy {policy} here: {why}{instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::machine::{Cgroup, Machine, ResourceLimit};

    fn refusal(machine: &Machine) -> String {
        missing("fifo", &doctor::diagnose(machine), "").to_string()
    }

    #[test]
    fn thread_that_can_not_start_is_no_refusal_of_its_policy() {
        let why = "a thread can't be started: Resource temporarily unavailable";
        let error = io::Error::new(io::ErrorKind::WouldBlock, why);
        assert_eq!(refused("fifo", &error, "").to_string(), why);
    }

    #[test]
    fn refusal_names_capability_limit_or_cgroup() {
        let mut machine = Machine::default();
        machine.rights.capabilities = Some(Vec::new());
        machine.rights.rtprio = Some(ResourceLimit::At(0));
        let text = refusal(&machine);
        assert!(text.contains("CAP_SYS_NICE") && text.contains("RLIMIT_RTPRIO"), "{text}");
        machine.scheduling.cgroup =
            Some(Cgroup { path: "/user.slice".to_owned(), rt_runtime_us: 0 });
        assert!(refusal(&machine).contains("the cgroup '/user.slice'"));
    }
}
