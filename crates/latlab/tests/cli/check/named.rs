//! What a check names: functions of code that is made while a program runs, holders of locks, and processes that
//! wrote late.

use super::{breaches, check, compile, folder, line_of, report};
use crate::program::lock_machine;
use latlab_check::{Report, Rule};
use std::path::{Path, PathBuf};

const ASKS: &str = include_str!("asks.c");
const LOCKS: &str = include_str!("locks.c");

fn program(name: &str, folder: &Path) -> PathBuf {
    let source = format!("{}/tests/cli/check/{name}.c", env!("CARGO_MANIFEST_DIR"));
    compile(Path::new(&source), folder, &["-g", "-Wl,-z,now"])
}

/// What took the time of overruns, and of the longest cycle: cause, culprit and place.
fn reasons(report: &Report, name: &str) -> Vec<(String, String, String)> {
    let threads = report.threads.iter().filter(|thread| thread.name == name);
    let cycles = threads.map(|thread| &thread.cycle);
    let longest = |part: &latlab_check::CyclePart| part.reason();
    let all = cycles.flat_map(|cycle| {
        let parts = cycle.worst.iter().flat_map(|worst| &worst.parts);
        cycle.reasons.iter().cloned().chain(parts.map(longest))
    });
    all.map(|one| (one.cause, one.culprit, one.place.unwrap_or_default())).collect()
}

#[test]
fn code_that_a_program_makes_has_the_functions_of_its_perf_map() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = program("made", folder.path());
    let place = |argument| {
        let output = check(&["--any-policy", "--json"], &program, argument);
        let found = report(&output);
        let mut all = breaches(&found).into_iter();
        let logged = all.find(|breach| breach.rule == Rule::FileIo).expect("it writes");
        let stack: Vec<String> = logged.stack.iter().map(latlab_check::Frame::text).collect();
        (stack, found.notes)
    };
    let (stack, notes) = place("map");
    assert!(stack.iter().any(|frame| frame == "Loop.update (loop.py)"), "{stack:?}");
    assert!(stack.iter().any(|frame| frame.starts_with("main (made.c:")), "{stack:?}");
    assert!(notes.iter().all(|note| !note.contains("perf map")), "{notes:?}");
    let (stack, notes) = place("");
    assert!(stack.iter().all(|frame| !frame.contains("loop.py")), "{stack:?}");
    let how = notes.iter().filter(|note| note.contains("made makes code while it runs")).count();
    assert_eq!(how, 1, "{notes:?}");
}

#[test]
fn holder_of_a_lock_is_named() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = program("locks", folder.path());
    for (argument, rule, held) in [
        ("write", Some(Rule::Inversion), "a read-write lock held by holder ["),
        ("read", Some(Rule::Inversion), "a read-write lock held by readers, which it only counts"),
        ("inherit", None, "a mutex with priority inheritance held by holder ["),
    ] {
        let found = report(&check(&["--json"], &program, argument));
        let place = format!("update (locks.c:{})", line_of(LOCKS, argument));
        let reasons = reasons(&found, "locks");
        let is_wait = |(cause, culprit, at): &(String, String, String)| {
            cause == "blocked" && culprit.starts_with(held) && *at == place
        };
        assert!(reasons.iter().any(is_wait), "{argument}: {reasons:?}");
        let all = breaches(&found);
        let waits: Vec<_> = all.iter().filter(|one| one.subject.starts_with("wait for")).collect();
        assert!(waits.iter().all(|one| Some(one.rule) == rule), "{argument}: {waits:?}");
        let by =
            |name: &Option<String>| name.as_deref().is_some_and(|by| by.starts_with("holder ["));
        assert_eq!(waits.iter().any(|one| by(&one.by)), rule.is_some(), "{argument}: {waits:?}");
        assert!(all.iter().all(|one| one.rule != Rule::Sleep), "{argument}: {all:?}");
    }
}

#[test]
fn process_that_writes_late_is_named() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = program("asks", folder.path());
    for connection in ["pty", "tcp", "unix", "pipe"] {
        let output = check(&["--any-policy", "--json"], &program, connection);
        let found = report(&output);
        let place = format!("ask (asks.c:{})", line_of(ASKS, "ask"));
        let reasons = reasons(&found, "asks");
        let late = |(cause, culprit, at): &(String, String, String)| {
            cause == "blocked" && culprit.contains(", ended by motor [") && *at == place
        };
        assert!(reasons.iter().any(late), "{connection}: {reasons:?}");
        let foreign =
            reasons.iter().find(|(_, culprit, at)| *at == place && culprit.contains("kworker"));
        assert_eq!(foreign, None, "{connection}");
    }
}
