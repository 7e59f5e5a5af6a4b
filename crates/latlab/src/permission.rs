//! Why the kernel refuses a scheduling policy, and what to do about it.

use crate::failure::{Failure, failed};
use latlab_sys::{EBUSY, EINVAL, EPERM};
use std::io;

/// The refusal of `policy` in words.
pub(crate) fn refused(policy: &str, error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(EPERM) => missing(policy),
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

/// What is missing for `policy`.
fn missing(policy: &str) -> Failure {
    Failure::Unsupported(format!("no permission for {policy}"))
}
