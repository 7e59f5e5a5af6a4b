//! Explanations of waits whose reason is known: in the queue of another CPU, while stopped, and without quota.

use super::{charged, explained};
use crate::program::{
    Running, compile, folder, latlab, lock_machine, not_run, root, send, wait_until,
};
use latlab_core::record::Record;
use latlab_core::record::explained::Explained;
use latlab_core::time::Nanos;
use latlab_testing::Missing;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// `waits.c`, compiled, and its process with all children, which end with it.
struct Waits {
    child: Child,
    _folder: tempfile::TempDir,
}

impl Waits {
    fn start(reason: &str) -> Waits {
        let folder = folder();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/explain/waits.c");
        let program = compile(&source, folder.path(), &[]);
        let child = Command::new(program).arg(reason).stdout(Stdio::piped()).spawn();
        Waits { child: child.expect("it starts"), _folder: folder }
    }

    /// The PID that it prints.
    fn victim(&mut self) -> u32 {
        let output = self.child.stdout.take().expect("it is a pipe");
        let line = BufReader::new(output).lines().next().expect("it prints a line");
        line.expect("it is text").parse().expect("it is a PID")
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn watch(pid: u32, words: &str) -> (Record, String) {
    let folder = folder();
    let file = folder.path().join("why.json");
    let output = latlab(&format!("explain --pid {pid} --out {} {words}", file.display()));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let text = fs::read_to_string(file).expect("the record is written");
    let verdict = output.stdout.lines().next().unwrap_or_default().to_owned();
    (Record::from_json(&text).expect("it is a record"), verdict)
}

/// The time that is charged to a culprit of this name.
fn blamed(explained: &Explained, name: &str) -> Nanos {
    let shares = explained.causes.iter().filter(|share| share.culprit.contains(name));
    Nanos(shares.map(|share| share.total.0).sum())
}

/// Another task moves the victim to a free CPU after a long wait behind a task of higher priority.
#[test]
fn wait_on_the_old_cpu_of_a_moved_task_is_charged_to_the_task_there() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    if std::thread::available_parallelism().map_or(1, Into::into) < 2 {
        not_run(Missing::Optional, "there is no second CPU to move a task to");
        return;
    }
    let mut waits = Waits::start("moved");
    let (record, verdict) = watch(waits.victim(), "--count 5 --above 60ms");
    let explained = explained(&record);
    let (hog, moves) = (blamed(explained, "hog"), charged(explained, &["migration"]));
    assert!(hog.0 > explained.total.0 / 2, "{explained:?}");
    assert!(moves.0 < explained.total.0 / 20, "{explained:?}");
    assert!(verdict.contains("tasks of higher priority (hog)"), "{verdict}");
}

/// Stops and continues a process again and again until this is dropped.
struct Stopping(Running);

impl Stopping {
    fn start(pid: u32, each: &str) -> Stopping {
        let script = format!(
            "while kill -STOP {pid}; do sleep {each}; kill -CONT {pid}; sleep {each}; done"
        );
        Stopping(Running::start(Command::new("sh").arg("-c").arg(script)))
    }
}

impl Drop for Stopping {
    fn drop(&mut self) {
        self.0.signal("KILL");
    }
}

#[test]
fn stop_of_a_task_that_sleeps_or_runs_is_named_with_who_did_it() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let mut waits = Waits::start("loop");
    let spins = Running::start(Command::new("sh").args(["-c", "while :; do :; done"]));
    for pid in [waits.child.id(), spins.pid()] {
        let stopping = Stopping::start(pid, "0.15");
        let (record, verdict) = watch(pid, "--count 3 --above 100ms");
        drop(stopping);
        send("CONT", pid);
        let explained = explained(&record);
        let stopped = charged(explained, &["stopped"]);
        assert!(stopped.0 > explained.total.0 / 2, "{explained:?}");
        assert_eq!(blamed(explained, "stopped by a signal of sh"), stopped, "{explained:?}");
        assert!(verdict.contains("the task was stopped by a signal of sh"), "{verdict}");
    }
    spins.signal("KILL");
    waits.child.kill().expect("it runs");
}

/// The process would sleep much longer anyway.
#[test]
fn stop_within_a_sleep_delays_nothing() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    if !cfg!(target_arch = "x86_64") {
        not_run(Missing::Optional, "the end of a sleep is known on x86-64 only");
        return;
    }
    let sleeps = Running::start(Command::new("sleep").arg("1000"));
    let stopping = Stopping::start(sleeps.pid(), "0.1");
    let (record, _) = watch(sleeps.pid(), "--for 1s --above 90ms");
    drop(stopping);
    sleeps.signal("KILL");
    let explained = explained(&record);
    assert_eq!(charged(explained, &["stopped"]), Nanos(0), "{explained:?}");
}

/// A control group with a quota of 20 ms in each 100 ms, whose tasks end with the test.
struct Capped(PathBuf);

impl Capped {
    /// None where no group with the `cpu` controller can be made.
    fn new() -> Option<Capped> {
        let name = format!("latlab-test-quota-{}", std::process::id());
        let group = Capped(
            ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"]
                .iter()
                .map(|root| Path::new(root).join(&name))
                .find(|folder| fs::create_dir(folder).is_ok())?,
        );
        let write = |file: &str, value: &str| fs::write(group.0.join(file), value).is_ok();
        let is_limited = write("cpu.max", "20000 100000")
            || write("cpu.cfs_period_us", "100000") && write("cpu.cfs_quota_us", "20000");
        // Others on a busy machine shall not keep it from using its quota up.
        let _ = write("cpu.weight", "10000") || write("cpu.shares", "262144");
        is_limited.then_some(group)
    }

    fn add(&self, pid: u32) {
        let file = self.0.join("cgroup.procs");
        fs::write(file, pid.to_string()).expect("root may move a process");
    }
}

impl Drop for Capped {
    fn drop(&mut self) {
        let tasks = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        tasks.lines().filter_map(|pid| pid.parse().ok()).for_each(|pid| send("KILL", pid));
        wait_until("the tasks of the group have ended", || fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn wait_for_quota_names_the_group_and_its_quota() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let Some(group) = Capped::new() else {
        not_run(Missing::Optional, "no control group here can limit CPU time");
        return;
    };
    let waits = Waits::start("capped");
    let children = format!("/proc/{0}/task/{0}/children", waits.child.id());
    let burner = || fs::read_to_string(&children).ok()?.trim().parse().ok();
    wait_until("its second task runs", || burner().is_some());
    [Some(waits.child.id()), burner()].into_iter().flatten().for_each(|pid| group.add(pid));
    let (record, verdict) = watch(waits.child.id(), "--count 5 --above 40ms");
    let explained = explained(&record);
    let quota = format!("CPU quota of the control group {}: 20 ms per 100 ms", group.0.display());
    let (named, all) = (blamed(explained, &quota), charged(explained, &["throttled"]));
    // It was all of it. On an idle CPU the task is also passed over after the quota, which is other throttling.
    let nearly_all = named.0 >= all.0 / 20 * 19;
    assert!(named.0 > explained.total.0 / 2 && nearly_all, "{explained:?}");
    assert!(verdict.contains(&quota) && verdict.contains("cpu.max"), "{verdict}");
}
