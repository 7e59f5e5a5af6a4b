//! Remains of runs: the state of the machine is compared before and after a run that ended, and a
//! run that was killed, after the next start of latlab.

use crate::measuring::wait_until_done;
use crate::program::{
    LATLAB, Running, command, entries, folder, latlab, lock_machine, root, run, running,
    wait_until, workers,
};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lists all that a run could leave on a machine, a line each.
fn remains() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for path in ["msg", "sem", "shm"].map(|kind| format!("/proc/sysvipc/{kind}")) {
        all.extend(lines(&path).map(|line| format!("{path}: {line}")));
    }
    for path in ["/proc/self/mounts", "/proc/self/net/dev", "/sys/class/tty/tty0/active"] {
        // Only the name of a network interface: its counters change.
        let name = |line: String| line.split(':').next().unwrap_or_default().to_owned();
        all.extend(lines(path).map(name).map(|line| format!("{path}: {line}")));
    }
    for folder in ["/dev/mqueue", "/dev/shm", "/run/latlab", "/sys/class/vc", "/dev"] {
        all.extend(names(folder).map(|name| format!("{folder}/{name}")));
    }
    for folder in ["/tmp", "/var/tmp"] {
        let of_latlab = names(folder).filter(|name| name.starts_with("latlab"));
        all.extend(of_latlab.map(|name| format!("{folder}/{name}")));
    }
    all
}

fn lines(path: &str) -> impl Iterator<Item = String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect::<Vec<_>>().into_iter()
}

/// Returns the names in a folder.
fn names(folder: &str) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

/// Returns the network namespace of a process. It ends with its processes.
fn network(pid: u32) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/ns/net")).expect("the process exists")
}

/// Waits until there is nothing that was not there before, and no process of the program at `path`.
/// Other programs may create such things as well, but remove them again.
fn wait_until_nothing_is_left(before: &BTreeSet<String>, path: &Path) {
    let new = || remains().difference(before).cloned().collect::<Vec<_>>();
    wait_until(&format!("no process of {}", path.display()), || running(path).is_empty());
    wait_until(&format!("nothing is left of {:?}", new()), || new().is_empty());
}

/// Returns a copy of the program and the arguments of a run under all loads.
fn copy_with_all_loads(folder: &Path) -> (PathBuf, String) {
    let program = folder.join("latlab");
    fs::copy(LATLAB, &program).expect("the program can be copied");
    let output = latlab("list loads").stdout;
    let names = output.lines().filter_map(|line| line.split_whitespace().next());
    let loads: String = names.map(|name| format!(" --load {name}")).collect();
    (program, format!("run cyclic --policy other --cpus 0 --warm-up 0 --skip-missing{loads}"))
}

fn with(program: &Path, words: &str) -> Command {
    let mut command = Command::new(program);
    command.args(words.split_whitespace());
    command
}

#[test]
fn run_under_all_loads_leaves_nothing() {
    let _lock = lock_machine();
    let folder = folder();
    let (program, words) = copy_with_all_loads(folder.path());
    let before = remains();
    let output = run(&mut with(&program, &format!("{words} --for 1s --json")));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let skipped = record.warnings.iter().filter(|warning| warning.code == "skipped").count();
    let listed = words.matches("--load").count();
    assert_eq!(record.work.len() + skipped, listed, "{record:?}");
    assert!(record.changes.iter().all(|change| change.restored), "{:?}", record.changes);
    wait_until_nothing_is_left(&before, &program);
    assert_eq!(entries(folder.path()), [program]);
}

#[test]
fn killed_run_under_all_loads_leaves_nothing_after_next_start() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let (program, words) = copy_with_all_loads(folder.path());
    let before = remains();
    let mut killed = Running::start(&mut with(&program, &format!("{words} --for 10min")));
    killed.wait_until_measuring();
    wait_until_done(&killed, 1);
    let own = network(std::process::id());
    let mut loads = workers(killed.pid()).into_iter();
    assert!(loads.any(|pid| network(pid) != own), "no network namespace");
    killed.signal("KILL");
    assert_eq!(killed.finish().signal(), Some(9));
    let doctor = run(&mut command("doctor"));
    assert!(doctor.stderr.lines().all(|line| !line.contains("can't be")), "{doctor:?}");
    wait_until_nothing_is_left(&before, &program);
    assert_eq!(entries(folder.path()), [program]);
}
