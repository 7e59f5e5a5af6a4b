//! Programs that leave processes when they end, as daemons do, and processes that can't be checked.

use super::{SETPRIV, breaches, check, compile, folder, line_of, report, start};
use crate::program::{LATLAB, Running, field, lock_machine, root, run, running, send, wait_until};
use latlab_check::Rule;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = include_str!("daemon.c");

fn daemon(folder: &Path) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/check/daemon.c");
    compile(Path::new(source), folder, &["-g", "-Wl,-z,now"])
}

#[test]
fn daemon_is_watched_after_the_program_has_ended() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = daemon(folder.path());
    let output = check(&["--json"], &program, "");
    assert_eq!(output.code(), Some(1), "{output:?}");
    let found = report(&output);
    let logged = breaches(&found).into_iter().find(|breach| breach.rule == Rule::FileIo);
    let place = logged.and_then(|breach| breach.place.clone());
    assert_eq!(place, Some(format!("log_state (daemon.c:{})", line_of(SOURCE, "log"))));
    assert!(found.threads[0].cycle.count >= 240, "{output:?}");
    let said = "watching the processes that it left: daemon [";
    assert!(output.stderr.contains(said), "{output:?}");
    let note = found.notes.iter().find(|note| note.contains("the processes that it left"));
    assert!(note.is_some_and(|note| note.contains(") ended after ")), "{:?}", found.notes);
}

/// Starts `sleep`, and waits until it is no longer a copy of the shell.
const LEAVES: &str = "sleep 1000 & until grep -q sleep /proc/$!/comm; do :; done";

#[test]
fn ordinary_process_that_a_program_leaves_runs_on() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let mut check = Command::new(LATLAB);
    let output = run(check.args(["check", "--", "sh", "-c", &format!("{LEAVES}; echo $! >&2")]));
    assert_eq!(output.code(), Some(2), "{output:?}");
    let words = ["watching the processes that it left: sleep [", "no thread was real-time"];
    assert!(words.iter().all(|words| output.stderr.contains(words)), "{output:?}");
    assert!(output.stderr.contains(") run on: none was real-time for 10 s"), "{output:?}");
    let pid = output.stderr.lines().find_map(|line| line.parse().ok()).expect("sh printed it");
    assert_eq!(field(pid, "Name").as_deref(), Some("sleep"), "{output:?}");
    send("KILL", pid);
}

#[test]
fn endless_daemon_is_ended_with_the_check() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = daemon(folder.path());
    // On a busy machine a short check may end before it has seen a cycle: then a longer one follows.
    let is_ended = |limit: &str| {
        let limited = check(&[limit], &program, "endless");
        assert_eq!(running(&program), [0; 0], "{limited:?}");
        println!("{limited:?}");
        limited.code() == Some(1) && limited.stdout.contains(") were ended after ")
    };
    assert!(["--for=3s", "--for=30s", "--for=5min"].into_iter().any(is_ended), "it is judged");
    let mut ended = start(&[], &program, "endless");
    wait_until("the daemon is watched", || {
        assert!(!ended.has_ended(), "{ended:?}");
        ended.stderr().contains("watching the processes")
    });
    ended.signal("INT");
    let ended = ended.finish();
    assert_eq!(running(&program), [0; 0], "{ended:?}");
    // It may not have become real-time.
    assert!(matches!(ended.code(), Some(1 | 2)), "{ended:?}");
}

#[test]
fn thread_without_a_cycle_is_named_once_and_many_are_counted() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let named = |script: &str| {
        let mut command = Command::new(LATLAB);
        command.args(["check", "--", "chrt", "--fifo", "10", "sh", "-c", script]);
        run(&mut command)
    };
    let one = named("exec true");
    let sentence = one.assert_refused(2, &["no cycle was found in true ["]).to_owned();
    assert_eq!(sentence.matches('[').count(), 1, "{sentence}");
    let many = named("for i in 1 2 3 4 5 6 7 8; do /bin/true; done");
    let sentence = many.assert_refused(2, &[" and 4 more ("]);
    assert_eq!(sentence.matches('[').count(), 5, "{sentence}");
}

#[test]
fn process_of_another_user_is_refused() {
    if !root() {
        return;
    }
    let sleep = Running::start(Command::new("sleep").arg("600"));
    let check = |pid: u32| {
        let mut check = Command::new("setpriv");
        check.args(SETPRIV).args([LATLAB, "check", "--pid", &pid.to_string()]);
        run(&mut check)
    };
    check(sleep.pid()).assert_refused(3, &["belongs to another user", "as root"]);
    if std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n") {
        check(2).assert_refused(2, &["kernel thread"]);
    }
}
