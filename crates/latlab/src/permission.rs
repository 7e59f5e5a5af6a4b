//! Why the kernel refuses a scheduling policy, and what to do about it.

use crate::failure::{Failure, failed};
use latlab_core::doctor::{self, Finding};
use latlab_sys::root::Root;
use latlab_sys::{EBUSY, EINVAL, EPERM, machine};
use std::io;

/// The refusal of `policy` in words. Where a right is missing, what to do `instead` ends them.
pub(crate) fn refused(policy: &str, error: &io::Error, instead: &str) -> Failure {
    match error.raw_os_error() {
        Some(EPERM) => {
            missing(policy, &doctor::diagnose(&machine::read(&Root::default())), instead)
        }
        Some(EBUSY) => Failure::Unsupported(
            "the kernel admits no more deadline tasks: their runtimes together exceed what \
             sched_rt_runtime_us leaves; give a smaller runtime, or fewer CPUs"
                .to_owned(),
        ),
        Some(EINVAL) if policy == "deadline" => Failure::Failed(
            "deadline: the kernel wants a runtime of at least 1024ns and at most the period, \
             and a period of 100us to 4s"
                .to_owned(),
        ),
        _ => failed(&format!("the policy {policy} was refused"), error),
    }
}

/// What the doctor finds that explains it. The group's limit comes first: no right helps there.
const REASONS: [&str; 3] = ["rt-group", "no-realtime-right", "priority-limit"];

fn missing(policy: &str, findings: &[Finding], instead: &str) -> Failure {
    let reason = REASONS.iter().find_map(|code| findings.iter().find(|f| f.code == *code));
    let why = match reason {
        Some(finding) => format!("{}. {}", finding.what, finding.remedy.trim_end_matches('.')),
        None if policy == "deadline" => {
            "deadline tasks must be allowed on all CPUs of their domain, and need CAP_SYS_NICE"
                .to_owned()
        }
        None => "CAP_SYS_NICE is needed".to_owned(),
    };
    Failure::Unsupported(format!("the kernel refuses {policy} here: {why}{instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::machine::{Cgroup, Limit, Machine};

    fn said(machine: &Machine) -> String {
        missing("fifo", &doctor::diagnose(machine), "").to_string()
    }

    #[test]
    fn the_capability_the_limit_or_the_group_is_named() {
        let mut machine = Machine::default();
        machine.rights.capabilities = Some(Vec::new());
        machine.rights.rtprio = Some(Limit::At(0));
        let text = said(&machine);
        assert!(text.contains("CAP_SYS_NICE") && text.contains("RLIMIT_RTPRIO"), "{text}");
        machine.scheduling.cgroup =
            Some(Cgroup { path: "/user.slice".to_owned(), rt_runtime_us: 0 });
        assert!(said(&machine).contains("the cgroup '/user.slice'"));
    }
}
