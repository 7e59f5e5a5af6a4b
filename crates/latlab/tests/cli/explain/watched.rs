//! Explanations of tasks that latlab did not start, and of tasks that cannot be watched.

use super::explained;
use crate::program::{
    LATLAB, Running, command, field, folder, latlab, lock_machine, root, run, wait_until,
};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// Starts a shell that sleeps again and again.
fn sleeper() -> Running {
    sleeper_until("false")
}

/// Starts a shell that does so until a command succeeds.
fn sleeper_until(command: &str) -> Running {
    let script = format!("until {command}; do sleep 0.01; done");
    Running::start(Command::new("sh").arg("-c").arg(script))
}

/// Starts `latlab explain`, and waits until it watches: its main thread then waits for signals.
fn watching(words: &str) -> Running {
    let mut watching = Running::start(&mut command(&format!("explain {words}")));
    let place = format!("/proc/{}/wchan", watching.pid());
    wait_until("it watches", || {
        assert!(!watching.has_ended(), "{watching:?}");
        fs::read_to_string(&place).is_ok_and(|function| function.contains("sigtimedwait"))
    });
    watching
}

fn watch(pid: u32, words: &str) -> latlab_core::record::Record {
    let output = latlab(&format!("explain --pid {pid} --json {words}"));
    assert_eq!(output.code(), Some(0), "{output:?}");
    output.record()
}

#[test]
fn process_already_running_has_its_wake_ups_explained() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let sleeper = sleeper();
    let record = watch(sleeper.pid(), "--count 10");
    let explained = explained(&record);
    assert!(explained.late >= 10 && explained.total.0 > 0, "{explained:?}");
    assert!(record.worst.iter().all(|sample| sample.probe == "sh"), "{:?}", record.worst);
    assert!(record.series.is_empty(), "there is no probe: {:?}", record.series);
    // The shell is explained, not the program that it waits for.
    let by_name = latlab("explain --comm sleep --count 5 --for 20s --json");
    by_name.assert_refused(2, &["--count", "--for"]);
    let by_name = latlab("explain --comm sleep --count 5 --json").record();
    assert!(by_name.worst.iter().all(|sample| sample.probe == "sleep"), "{:?}", by_name.worst);
}

#[test]
fn late_wake_up_stops_explaining_and_is_explained() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let sleeper = sleeper();
    let stop = "--for 10min --stop-above 1ns --json";
    for subject in [format!("--pid {}", sleeper.pid()), "cyclic:policy=other".to_owned()] {
        let output = latlab(&format!("explain {subject} {stop}"));
        assert_eq!(output.code(), Some(1), "{output:?}");
        let record = output.record();
        assert!(explained(&record).late > 0, "{record:?}");
        let stopped = record.warnings.iter().find(|warning| warning.code == "stopped-above");
        assert!(stopped.is_some_and(|why| why.text.contains("above 1 ns")), "{record:?}");
        let history = &explained(&record).history;
        assert_eq!(history.is_some(), !record.series.is_empty(), "only before a probe's sample");
        let known = history.iter().flat_map(|history| &history.activities);
        let until = record.worst[0].at;
        assert!(known.clone().all(|one| one.at + one.ns <= until), "{history:?}");
    }
}

#[test]
fn late_wake_up_of_a_watched_task_fails_at_the_end() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let sleeper = sleeper();
    let words = format!("explain --pid {} --count 10 --fail-above 1ns --json", sleeper.pid());
    let output = latlab(&words);
    assert_eq!(output.code(), Some(1), "{output:?}");
    let record = output.record();
    let codes: Vec<&str> = record.warnings.iter().map(|one| one.code.as_str()).collect();
    assert!(codes.contains(&"failed-above") && !codes.contains(&"stopped-above"), "{codes:?}");
    assert!(explained(&record).late > 1, "it went on after the first: {record:?}");
}

#[test]
fn process_that_ends_is_explained_until_its_end() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    for length in ["--for 10min", "--count 1000000"] {
        let folder = folder();
        let end = folder.path().join("end");
        let sleeper = sleeper_until(&format!("test -e {}", end.display()));
        let watching = watching(&format!("--pid {} --json {length}", sleeper.pid()));
        let sleeps = || field(sleeper.pid(), "voluntary_ctxt_switches")?.parse::<u64>().ok();
        let before = sleeps().expect("it runs");
        // It also sleeps for a moment when it starts the program that it waits for.
        wait_until("it has slept ten times", || sleeps() >= Some(before + 20));
        fs::write(&end, "").expect("the folder is the test's own");
        assert!(sleeper.finish().status.success());
        let output = watching.finish();
        assert_eq!(output.code(), Some(0), "{output:?}");
        let record = output.record();
        let late = explained(&record);
        assert!(late.late >= 3, "{late:?}");
        assert!(late.missing.iter().any(|why| why.contains("the process ended")), "{late:?}");
    }
}

#[test]
fn process_with_reused_pid_is_another() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    for _ in 0..50 {
        let first = sleeper();
        let pid = first.pid();
        let watching = watching(&format!("--pid {pid} --for 10min"));
        watching.signal("STOP");
        let is_stopped = |state: String| state.starts_with('T');
        wait_until("it is stopped", || field(watching.pid(), "State").is_some_and(is_stopped));
        first.signal("KILL");
        first.finish();
        fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string())
            .expect("root may set the next PID");
        let second = sleeper();
        let same = second.pid() == pid;
        watching.signal("CONT");
        let output = watching.finish();
        second.signal("KILL");
        second.finish();
        assert!(output.stdout.contains("the process ended"), "{output:?}");
        // Another process may have got that PID.
        if same {
            return;
        }
    }
    panic!("other processes took all the PIDs");
}

#[test]
fn task_name_unknown_is_refused() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let output = latlab("explain --comm nobody-at-all --for 300ms");
    output.assert_refused(2, &["no task is named 'nobody-at-all'", "ps -eLo comm"]);
}

#[test]
fn process_that_ends_at_once_is_refused() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    // It never sleeps, so that it never wakes up.
    let busy = Running::start(Command::new("sh").args(["-c", "while :; do :; done"]));
    let pid = format!("--pid {}", busy.pid());
    let watching = watching(&format!("{pid} --for 10min"));
    busy.signal("KILL");
    busy.finish();
    watching.finish().assert_refused(2, &[&pid, "ended after", "no late wake-up"]);
}

#[test]
fn realtime_tasks_are_refused_where_there_are_none() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let words = "explain --rt --for 1s --above 10s";
    // A guest has no real-time programs. On this machine there may be some.
    let here = latlab(words);
    let without = "no program has a real-time task";
    assert!(here.code() == Some(0) || here.stderr.contains(without), "{here:?}");
    let task = Running::start(&mut command("exec --fifo 1 -- sleep 1000"));
    wait_until("it has a real-time policy", || {
        let chrt = run(Command::new("chrt").args(["-p", &task.pid().to_string()]));
        chrt.stdout.contains("SCHED_FIFO")
    });
    let with = latlab(words);
    assert_eq!(with.code(), Some(0), "{with:?}");
    assert!(with.stdout.contains("no wake-up was later than 10 s"), "{with:?}");
    task.signal("KILL");
    task.finish();
    latlab(&format!("{words} --on lab:rt --traced")).assert_refused(2, &[without]);
}

#[test]
fn process_that_cannot_be_listed_is_not_called_absent() {
    if !root() {
        return;
    }
    let sleeper = sleeper();
    let folder = format!("/proc/{}/task", sleeper.pid());
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-P", &folder, "-e", "trace=openat"]);
    strace.args(["-e", "inject=openat:error=EMFILE", LATLAB, "explain", "--for", "1s", "--pid"]);
    run(strace.arg(sleeper.pid().to_string())).assert_refused(2, &["its threads can't be listed"]);
    sleeper.signal("KILL");
}

#[test]
fn task_that_cannot_be_watched_is_refused() {
    if !root() {
        return;
    }
    // Larger than any PID.
    latlab("explain --pid 4194305 --for 1s").assert_refused(2, &["--pid 4194305", "no such task"]);
    let options =
        ["--cpus 0", "--policy other", "--preset cyclictest", "--warm-up 1s", "--cgroup x"];
    for without_effect in ["cyclic"].iter().chain(&options) {
        let output = latlab(&format!("explain {without_effect} --rt --for 1s"));
        output.assert_refused(2, &["--rt", "for probes", "leave out"]);
    }
    latlab("explain --rt --traced --for 1s").assert_refused(2, &["--traced", "laboratory"]);
    latlab("explain --always --warm-up 1s").assert_refused(2, &["--warm-up is for probes"]);
    let mut contained = Command::new("unshare");
    contained.args(["--pid", "--fork", "--mount-proc", LATLAB, "explain", "--rt", "--for", "1s"]);
    run(&mut contained).assert_refused(3, &["container", "--pid=host"]);
    let without = |capabilities: &str, words: &[&str]| {
        let mut command = Command::new("setpriv");
        command
            .args([format!("--bounding-set={capabilities}"), format!("--inh-caps={capabilities}")]);
        run(command.args([LATLAB, "explain", "--comm", "sh", "--for", "1s"]))
            .assert_refused(3, words);
    };
    without("-all", &["CAP_BPF and CAP_PERFMON", "CAP_PERFMON and CAP_BPF are missing", "root"]);
    without("-sys_admin,-bpf", &["CAP_BPF is missing", "setcap"]);
}

/// Returns the IDs of the BPF programs that a process has open.
fn programs(pid: u32) -> BTreeSet<String> {
    let files = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let number = |text: String| {
        text.lines().find_map(|line| line.strip_prefix("prog_id:")).map(str::to_owned)
    };
    texts.filter_map(number).map(|number| number.trim().to_owned()).collect()
}

/// Whether the kernel still has the BPF program of this ID. IDs are not reused.
fn is_loaded(number: &str) -> bool {
    let mut tool = Command::new("/usr/sbin/bpftool");
    run(tool.args(["prog", "show", "id", number])).status.success()
}

#[test]
fn bpf_programs_are_gone_after_explain_is_killed() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let mut killed = Running::start(&mut command("explain cyclic --for 10min"));
    // It measures without explaining first, and again when all of its programs are loaded.
    wait_until("some programs are loaded", || programs(killed.pid()).len() > 10);
    killed.wait_until_measuring();
    let loaded = programs(killed.pid());
    assert!(loaded.iter().all(|number| is_loaded(number)), "{loaded:?}");
    killed.signal("KILL");
    assert_eq!(killed.finish().signal(), Some(9));
    wait_until("its programs are gone", || !loaded.iter().any(|number| is_loaded(number)));
}
