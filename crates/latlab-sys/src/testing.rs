//! Helpers of the tests.

use crate::sched::{self, Policy};
use std::io::Write as _;

/// Reports on stderr that a test did not run. A Debian system as root has all that the tests need.
///
/// Written directly, since the test runner hides what a passing test prints with `eprintln!`.
pub(crate) fn not_run(test: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "NOT RUN: {test}: {reason}");
}

/// Whether tests may set real-time policies; reports the test as not run where they may not.
pub(crate) fn may_set_realtime(test: &str) -> bool {
    let set = || sched::set_policy(Policy::Fifo(1)).is_ok();
    let may = std::thread::spawn(set).join().unwrap_or(false);
    if !may {
        not_run(test, "real-time policies can't be set");
    }
    may
}
