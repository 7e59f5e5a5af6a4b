//! Conditions under which tests can run.

use crate::sched::{self, Policy};

/// Records that a test did not run. A Debian system as root has everything that these tests need.
pub(crate) fn not_run(test: &str, reason: &str) {
    latlab_testing::record(latlab_testing::Missing::Required, test, reason);
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
