//! The systemd units: they are valid, and that of the daemon is as narrow as the daemon allows.

use crate::program::{
    LATLAB, Missing, Running, capabilities as capabilities_of, field, folder, lock_machine,
    not_run, root, run, wait_until, with_own_journal,
};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const UNIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/latlab-adapt.service");
const FLIGHT_RECORDER: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/latlab-explain.service");

/// The words of a setting of the unit.
fn setting(name: &str) -> Vec<String> {
    let unit = fs::read_to_string(UNIT).expect("the unit is in examples/");
    let value = unit.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let words = value.unwrap_or_else(|| panic!("the unit sets {name}")).split(' ');
    words.map(str::to_owned).collect()
}

/// The capabilities that the unit leaves the daemon, as `cap_sys_nice`.
pub(super) fn capabilities() -> Vec<String> {
    setting("CapabilityBoundingSet").iter().map(|name| name.to_lowercase()).collect()
}

/// Runs systemd-analyze on a unit, in which the path of the program is replaced. None where it is
/// not installed.
fn analyzed(unit: &str, words: &[&str]) -> Option<String> {
    let text = fs::read_to_string(unit).expect("the unit is in examples/");
    assert!(text.contains("\nExecStart=/usr/local/bin/latlab "), "{text}");
    let folder = folder();
    let path = folder.path().join(Path::new(unit).file_name().expect("it is a file"));
    fs::write(&path, text.replace("/usr/local/bin/latlab", LATLAB))
        .expect("the folder is the test's own");
    let Ok(output) = Command::new("systemd-analyze").args(words).arg(&path).output() else {
        not_run(Missing::Required, "it needs systemd-analyze");
        return None;
    };
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    Some(String::from_utf8(output.stdout).expect("it prints UTF-8"))
}

#[test]
fn systemd_unit_is_valid() {
    for unit in [UNIT, FLIGHT_RECORDER] {
        assert_eq!(analyzed(unit, &["verify"]).unwrap_or_default(), "");
    }
}

#[test]
fn systemd_unit_is_rated_3_0_or_less() {
    [UNIT, FLIGHT_RECORDER].into_iter().for_each(assert_rated);
}

fn assert_rated(unit: &str) {
    let words = ["security", "--offline=true", "--no-pager"];
    let Some(text) = analyzed(unit, &words) else { return };
    let rating = text.lines().find_map(|line| line.split(".service: ").nth(1));
    let rating = rating.and_then(|words| words.split(' ').next()).expect("the rating is printed");
    assert!(rating.parse::<f64>().expect("it is a number") <= 3.0, "{text}");
}

#[test]
fn daemon_keeps_the_capabilities_of_its_unit_only() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let daemon = Running::start(&mut with_own_journal(folder.path(), "adapt --for 10min"));
    wait_until("the daemon adapts", || daemon.stderr().contains("adapting with"));
    let kept = capabilities_of(daemon.pid());
    let can_gain = field(daemon.pid(), "NoNewPrivs").as_deref() == Some("0");
    daemon.signal("TERM");
    assert_eq!(daemon.finish().code(), Some(0));
    // A container may lack some.
    let had = capabilities_of(std::process::id()).into_iter().collect::<BTreeSet<_>>();
    let allowed: BTreeSet<_> =
        capabilities().into_iter().filter(|name| had.contains(name)).collect();
    assert_eq!(kept.into_iter().collect::<BTreeSet<_>>(), allowed);
    assert!(!can_gain || had == allowed, "{had:?}");
}

/// The system calls of a group of systemd, or the one of this name.
fn expanded(name: &str) -> BTreeSet<String> {
    if !name.starts_with('@') {
        return BTreeSet::from([name.to_owned()]);
    }
    let output = Command::new("systemd-analyze").args(["syscall-filter", name]).output();
    let output = String::from_utf8(output.expect("it was found before").stdout);
    let output = output.expect("names are ASCII");
    let members = output.lines().skip(1).map(str::trim);
    members.filter(|word| !word.is_empty() && !word.starts_with('#')).flat_map(expanded).collect()
}

/// The daemon adapts, serves metrics and restores.
#[test]
fn daemon_makes_only_system_calls_that_its_unit_allows() {
    if !root() || analyzed(UNIT, &["verify"]).is_none() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let trace = folder.path().join("trace");
    let script = "mkdir \"$1/journals\"; mount --bind \"$1/journals\" /run/latlab
        strace -f -qq --output-append-mode -o \"$2\" \"$3\" adapt --for 300ms --metrics 127.0.0.1:0
        strace -f -qq --output-append-mode -o \"$2\" \"$3\" adapt --restore";
    fs::create_dir_all("/run/latlab").expect("root may create it");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", script, "sh"]).arg(folder.path());
    let output = run(command.arg(&trace).arg(LATLAB));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let text = fs::read_to_string(&trace).expect("strace has written it");
    let calls = text.lines().filter_map(|line| {
        let name = line.split_once(' ')?.1.trim_start().split_once('(')?.0;
        name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_').then(|| name.to_owned())
    });
    let calls: BTreeSet<String> = calls.collect();
    assert!(calls.contains("perf_event_open") || calls.contains("sched_setattr"), "{calls:?}");
    let allowed: BTreeSet<String> =
        setting("SystemCallFilter").iter().flat_map(|name| expanded(name)).collect();
    let denied: Vec<&String> = calls.difference(&allowed).collect();
    assert!(denied.is_empty(), "{denied:?}");
}
