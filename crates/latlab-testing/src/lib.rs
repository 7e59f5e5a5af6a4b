//! Facilities of the test suites: the machine that tests share, patience with a busy one, and tests that
//! cannot run here, which say so instead of passing silently.
//!
//! `make test` prints these tests at its end. In continuous integration it fails if one of them
//! needs something that every Debian 12 has for root.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "tests wait, for programs and for the machine")]

mod asleep;
mod machine;
mod patience;
pub mod sample;
pub mod sample_explained;
pub mod sample_scan;

pub use asleep::{times_asleep, wait_until_asleep};
pub use machine::{MachineLock, lock_machine, lock_machine_for_a_moment};
pub use patience::{Patience, wait_at_most};

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::thread;

/// The environment variable with the path of the file that lists the tests that were not run.
pub const LIST: &str = "LATLAB_NOT_RUN";

/// Class of a missing facility.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// A Debian 12 has it for root, after `make test` has installed its packages. In continuous
    /// integration its absence is a failure.
    Required,
    /// Not every machine has it: a device, a feature of the kernel, a kernel that takes long to
    /// build.
    Optional,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Missing::Required => "required",
            Missing::Optional => "optional",
        })
    }
}

/// Records that the calling test, or a part of it, is not run, with the reason in a few words.
pub fn not_run(missing: Missing, reason: &str) {
    let thread = thread::current();
    record(missing, thread.name().unwrap_or("a thread without a name"), reason);
}

/// Records that `test`, or a part of it, is not run. This is for threads other than the test's own
/// thread, which has the test's name. The line goes to standard error and, where [`LIST`] is set,
/// to the end of that file.
pub fn record(missing: Missing, test: &str, reason: &str) {
    let line = line(missing, test, reason);
    // Written directly: the test harness hides the `eprintln` output of a passing test.
    let _ = write!(io::stderr(), "not run: {line}");
    if let Some(list) = std::env::var_os(LIST) {
        append(Path::new(&list), &line).expect("the list of tests not run can be written");
    }
}

fn line(missing: Missing, test: &str, reason: &str) -> String {
    format!("{missing}: {test}: {}\n", reason.replace('\n', " "))
}

/// Adds a line with one write, so that lines of tests that run in parallel do not mix.
fn append(list: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).open(list)?.write_all(line.as_bytes())
}

/// Whether the test runs as root. If not, records that it is not run.
pub fn root() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    let root = effective_user(&status) == Some("0");
    if !root {
        not_run(Missing::Required, "it needs root");
    }
    root
}

/// The effective user ID in `/proc/self/status`.
fn effective_user(status: &str) -> Option<&str> {
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    ids.split_whitespace().nth(1)
}

/// Whether this machine must be able to load BPF programs: the test runs as root and the kernel
/// describes its structs. If not, records that the test is not run.
///
/// latlab is not asked, so that a test fails where latlab wrongly finds that it cannot record.
pub fn bpf() -> bool {
    let described = Path::new("/sys/kernel/btf/vmlinux").exists();
    if !described {
        not_run(Missing::Required, "this kernel has no /sys/kernel/btf/vmlinux");
    }
    described && root()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_of_parallel_tests_has_a_line_for_each() {
        let list = std::env::temp_dir().join(format!("latlab-not-run-{}", std::process::id()));
        let _ = fs::remove_file(&list);
        thread::scope(|scope| {
            for n in 0..20 {
                let line = line(Missing::Optional, "module::test", &format!("reason\n{n}"));
                let list = &list;
                scope.spawn(move || append(list, &line).unwrap());
            }
        });
        let mut lines: Vec<String> =
            fs::read_to_string(&list).unwrap().lines().map(str::to_owned).collect();
        lines.sort();
        fs::remove_file(&list).unwrap();
        assert_eq!(lines.len(), 20);
        assert_eq!(lines[0], "optional: module::test: reason 0");
    }

    #[test]
    fn effective_user_is_the_second_id() {
        assert_eq!(effective_user("Name:\tx\nUid:\t1000\t0\t0\t0\n"), Some("0"));
        assert_eq!(effective_user("Name:\tx\n"), None);
    }
}
