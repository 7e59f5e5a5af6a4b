//! Commands that change the machine, while each of their system calls fails.

use super::scene::{OWN_JOURNALS, Scene, real_time_task};
use super::{Extent, each, each_of, some};
use crate::program::{Missing, lock_machine, not_run, root, run};
use std::collections::BTreeMap;
use std::process::Command;

/// A scene with an IRQ thread. None where this machine has none, or a real-time task for
/// which `adapt` leaves them as they are.
fn with_threads() -> Option<Scene> {
    let scene = Scene::new();
    let reason = match real_time_task() {
        Some(name) => format!("adapt lowers no IRQ thread here: {name} is a real-time task"),
        None if scene.has_threads() => return Some(scene),
        None => "this machine has no IRQ threads".to_owned(),
    };
    not_run(Missing::Optional, &reason);
    None
}

fn run_with_knob(extent: Extent) {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let scene = Scene::new();
    let words = format!("run --set stat_interval={} --for 20ms --cpus 0 --policy other", scene.new);
    extent("run --set", &|fault, nth| Some(scene.check(&scene.tampered(&words, fault, nth)?)));
}

#[test]
fn run_restores_knob_or_reports_it_if_a_call_fails() {
    run_with_knob(some);
}

#[test]
fn run_restores_knob_or_reports_it_whichever_call_fails() {
    run_with_knob(each);
}

fn restore_knob(extent: Extent) {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let scene = Scene::new();
    let words = format!("run --set stat_interval={} --for 60s --cpus 0 --policy other", scene.new);
    let killed = scene.killed(&words);
    extent("adapt --restore of a knob", &|fault, nth| {
        killed.put_back();
        Some(scene.check(&scene.tampered("adapt --restore", fault, nth)?))
    });
}

#[test]
fn restore_restores_knob_or_reports_it_if_a_call_fails() {
    restore_knob(some);
}

#[test]
fn restore_restores_knob_or_reports_it_whichever_call_fails() {
    restore_knob(each);
}

fn restore_threads(extent: Extent) {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let Some(scene) = with_threads() else { return };
    let killed = scene.killed("adapt --for 60s");
    extent("adapt --restore of threads", &|fault, nth| {
        killed.put_back();
        Some(scene.check(&scene.tampered("adapt --restore", fault, nth)?))
    });
}

#[test]
fn restore_restores_threads_or_reports_it_if_a_call_fails() {
    restore_threads(some);
}

#[test]
fn restore_restores_threads_or_reports_it_whichever_call_fails() {
    restore_threads(each);
}

fn adapt_threads(extent: Extent) {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let Some(scene) = with_threads() else { return };
    extent("adapt", &|fault, nth| {
        Some(scene.check(&scene.tampered("adapt --for 50ms --metrics 127.0.0.1:0", fault, nth)?))
    });
}

#[test]
fn adapt_restores_threads_or_reports_it_if_a_call_fails() {
    adapt_threads(some);
}

#[test]
fn adapt_restores_threads_or_reports_it_whichever_call_fails() {
    adapt_threads(each);
}

/// A list of threads that can't be read says nothing about them, nor does a policy.
#[test]
fn adapt_takes_no_failed_read_for_the_end_of_a_thread() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let Some(scene) = with_threads() else { return };
    let run_with = |fault: &[&str]| {
        let (trace, mut command) = (scene.folder().join("trace"), scene.command(OWN_JOURNALS));
        command.args(["strace", "-f", "-qq", "-o"]).arg(&trace).args(fault);
        let output = run(command.arg(super::program()).args(["adapt", "--for", "3s"]));
        assert!(!output.stderr.contains("has ended"), "{output:?}");
        scene.check(&output).unwrap();
        (output, std::fs::read_to_string(trace).expect("strace has written it"))
    };
    let lists = ["-e", "trace=openat", "-P", "/proc", "-P", "/proc/2/task/2/children"];
    let inject = ["-e", "inject=openat:error=EMFILE:when=9+"];
    let (listing, traced) = run_with(&[lists.as_slice(), &inject].concat());
    assert!(traced.contains("(INJECTED)"), "no call has failed: {listing:?}");
    assert!(listing.stderr.contains("restored to fifo"), "{listing:?}");
    // Some of its looks at policies, but for those with which it ends. One at a time: the calls by which
    // it would restore a thread succeed. On a busy machine it looks less often.
    let (_, traced) = run_with(&["-e", "trace=sched_getattr"]);
    let mut calls = BTreeMap::<&str, usize>::new();
    traced.lines().for_each(|line| *calls.entry(line.split(' ').next().unwrap()).or_default() += 1);
    let most = calls.into_values().max().expect("it looks at policies");
    let inject = format!("inject=sched_getattr:error=EPERM:when={}..{}+5", most / 4, most - 15);
    let (looking, traced) = run_with(&["-e", "trace=sched_getattr", "-e", &inject]);
    assert!(traced.contains("(INJECTED)"), "no call has failed: {looking:?}");
}

/// In another time namespace each thread seems to have been started at another time.
#[test]
fn restore_takes_no_failed_read_for_another_start_of_a_thread() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let Some(scene) = with_threads() else { return };
    let killed = scene.killed("adapt --for 60s");
    killed.put_back();
    let mut command = scene.command(OWN_JOURNALS);
    command.args(["unshare", "--time", "--fork", "--boottime", "1000"]);
    command.args(["strace", "-f", "-qq", "-o", "/dev/null", "-P", "/proc/self/ns/time"]);
    command.args(["-e", "trace=statx", "-e", "inject=statx:error=ENOMEM"]);
    let output = run(command.arg(super::program()).args(["adapt", "--restore"]));
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stdout.contains("can't be restored yet"), "{output:?}");
    scene.check(&output).unwrap();
}

/// What it took is of no interest where it did not start.
#[test]
fn daemon_without_a_socket_says_only_why() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let scene = Scene::new();
    let mut command = scene.command(OWN_JOURNALS);
    command.args(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=bind"]);
    command.args(["-e", "inject=bind:error=EMFILE"]).arg(super::program());
    let output = run(command.args(["adapt", "--mechanisms", "transparent,inherit"]));
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("the socket for requests can't be opened"), "{output:?}");
    assert!(!output.stderr.contains("adapting took"), "{output:?}");
}

/// As by a filter of system calls. A thread that would try again for ever would keep its CPU to itself.
#[test]
fn probe_whose_sleep_is_refused_fails_in_one_sentence() {
    let _lock = lock_machine();
    for (probe, error) in [
        ("cyclic", "EPERM"),
        ("cyclic:clock=tai", "ENOSYS"),
        ("nanosleep", "EINVAL"),
        ("noise", "ENOMEM"),
        ("schedule", "EPERM"),
    ] {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=clock_nanosleep"]);
        command.args(["-e", &format!("inject=clock_nanosleep:error={error}")]);
        command.arg(super::program()).args(["run", probe, "--policy", "other"]);
        let output = run(command.args(["--cpus", "0", "--for", "10min", "--warm-up", "0"]));
        let said = output
            .stderr
            .lines()
            .last()
            .is_some_and(|last| last.contains(": clock_nanosleep(2): "));
        assert!(output.code() == Some(2) && said, "{output:?}");
    }
}

/// The standard library's own tables would panic.
#[test]
fn command_without_random_numbers_fails_in_one_sentence() {
    for error in ["ENOMEM", "EINVAL"] {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=getrandom"]);
        command.args(["-e", &format!("inject=getrandom:error={error}")]);
        let output = run(command.arg(super::program()).args(["list", "probes"]));
        output.assert_refused(2, &["gives no random numbers", "getrandom(2): "]);
    }
}

/// Calls by which the daemon serves clients.
const SERVING: &[(&str, &str)] = &[
    ("socket", "error=EMFILE"),
    ("bind", "error=EACCES"),
    ("accept4", "error=EMFILE"),
    ("accept4", "error=EINTR"),
    ("epoll_ctl", "error=ENOMEM"),
    ("ppoll", "error=EINTR"),
    ("setsockopt", "error=ENOMEM"),
    ("getsockopt", "error=ENOMEM"),
];

#[test]
fn serving_daemon_restores_threads_or_reports_it_whichever_call_fails() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let Some(scene) = with_threads() else { return };
    let script = "mount --bind \"$1/journals\" /run/latlab || exit
        for _ in 1 2 3; do sleep 0.3; \"$latlab\" adapt status; done >/dev/null 2>&1 &";
    each_of("adapt with clients", SERVING, &|fault, nth| {
        Some(scene.check(&scene.tampered_beside(script, "adapt --for 800ms", fault, nth)?))
    });
}
