//! The daemon that adapts a machine: its requests, its status, and its robustness. On this machine
//! it sets plain files in place of knobs.

mod asked;
mod examples;
mod flood;
mod guest;
mod log;
mod policies;
mod tasks;
mod unit;
mod unread;

use crate::program::{LATLAB, Output, command, folder, latlab, root, run};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Creates plain files in place of the knobs, and `/run/latlab` in `$2`.
const FAKE_KNOBS: &str = "\
set -e; program=$1; folder=$2; mkdir -p /run/latlab \"$folder/run\"
mount --bind \"$folder/run\" /run/latlab
mount -t tmpfs none /sys/kernel/debug; mkdir /sys/kernel/debug/sched
echo 'none voluntary (full) lazy' > /sys/kernel/debug/sched/preempt
echo WAKEUP_PREEMPTION > /sys/kernel/debug/sched/features
set +e; latlab() { \"$program\" \"$@\"; }
begun() { until latlab adapt status > /dev/null 2>&1; do sleep 0.02; done; }
";

/// Runs a script in namespaces of its own, in which `latlab` is this program and the knobs are
/// plain files. It sees no processes but its own, so that it cannot change a thread of this
/// machine. It may write to `$folder`.
fn in_namespaces(folder: &Path, script: &str) -> Output {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c"]);
    command.arg(format!("{FAKE_KNOBS}{script}"));
    run(command.arg("sh").arg(LATLAB).arg(folder))
}

#[test]
fn request_without_daemon_is_refused() {
    if !root() {
        return;
    }
    let folder = folder();
    let output = in_namespaces(
        folder.path(),
        "latlab exec --irq-group audio -- echo done; echo $?; latlab adapt status; echo $?",
    );
    assert_eq!(output.stdout, "3\n3\n", "{output:?}");
    let why = "latlab: no latlab adapts this machine: start `latlab adapt` first, as root\n";
    assert_eq!(output.stderr, why.repeat(2), "{output:?}");
}

#[test]
fn configuration_with_an_error_is_refused_with_its_line() {
    let folder = folder();
    let config = folder.path().join("adapt.toml");
    let with = |text: &str| {
        fs::write(&config, text).unwrap();
        run(command("adapt --dry-run --config").arg(&config))
    };
    let place = config.display().to_string();
    with("\nceilin = 3")
        .assert_refused(2, &[&place, "line 2: unknown field `ceilin`, expected one of"]);
    with("ceiling = 99").assert_refused(2, &["line 1: ceiling is 99: it is a priority, 1 to 98"]);
    with("allow = 'no-such-group'").assert_refused(2, &["which is not in /etc/group"]);
    latlab("adapt --config /no/such/file").assert_refused(2, &["/no/such/file: No such file"]);
    latlab("adapt --metrics 0.0.0.0:9464").assert_refused(2, &["can be reached by other machines"]);
}

#[test]
fn configuration_printed_is_accepted() {
    let shipped = latlab("generate adapt.toml");
    assert!(shipped.stdout.starts_with("# Configuration of `latlab adapt`"), "{shipped:?}");
    let folder = folder();
    let config = folder.path().join("adapt.toml");
    fs::write(&config, &shipped.stdout).unwrap();
    let words = "adapt --dry-run --mechanisms suppress --config";
    let output = run(command(words).arg(&config));
    assert_eq!(output.stderr, latlab("adapt --dry-run --mechanisms suppress").stderr);
}

/// As before Linux 6.6, or where debugfs has only some of the files.
#[test]
fn knobs_missing_in_kernel_are_named_and_others_set() {
    if !root() {
        return;
    }
    let folder = folder();
    let script = "latlab adapt --dry-run --mechanisms suppress; echo $?
        latlab adapt --mechanisms suppress --for 100ms 2> /dev/null; echo $?
        echo 3500000 > /sys/kernel/debug/sched/base_slice_ns
        latlab adapt --dry-run --mechanisms suppress 2> /dev/null";
    let output = in_namespaces(folder.path(), script);
    let (dry, rest) = output.stdout.split_once("\n0\n").expect("the dry run succeeds");
    assert_eq!(dry.lines().count(), 3, "{output:?}");
    assert!(dry.contains("would go from full to lazy"), "{output:?}");
    let lacking =
        "base_slice can't be set: this kernel has no /sys/kernel/debug/sched/base_slice_ns";
    assert!(dry.contains(lacking), "{output:?}");
    assert!(rest.starts_with("0\n") && rest.contains("slices are already long"), "{output:?}");
}

/// Knobs that serve real-time tasks only are no reason to adapt a machine. Most machines have them.
#[test]
fn daemon_without_knobs_for_ordinary_tasks_does_not_start() {
    if !root() {
        return;
    }
    let folder = folder();
    let script = "rm -r /sys/kernel/debug/sched; for all in suppress,mode mode,suppress; do
        latlab adapt --mechanisms $all --dry-run; echo $?; done";
    let output = in_namespaces(folder.path(), script);
    assert_eq!(output.stdout, "3\n3\n", "{output:?}");
    assert_eq!(output.stderr.matches("debugfs is not mounted").count(), 2, "{output:?}");
    assert!(!output.stderr.contains("pagelist"), "{output:?}");
}

#[test]
fn restore_without_journal_does_nothing_and_succeeds() {
    if !root() {
        return;
    }
    let folder = folder();
    let script = "latlab adapt --restore; echo $?; chmod 755 \"$folder\" \"$program\" 2> /dev/null
        setpriv --reuid=65534 --clear-groups \"$program\" adapt --restore";
    let output = in_namespaces(folder.path(), script);
    assert!(output.stdout.starts_with("no knob needs to be restored\n0\n"), "{output:?}");
}
