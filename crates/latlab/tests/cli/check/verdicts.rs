//! Verdicts on programs without a correct cycle, on those that are refused real time, and on stopped ones.

use super::{SETPRIV, breaches, check, child, compile, folder, is_fifo, line_of, report, start};
use crate::program::{LATLAB, lock_machine, pause, run, wait_until};
use latlab_check::{Finding, Rule};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const SOURCE: &str = include_str!("verdicts.c");

fn compiled(folder: &Path) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/check/verdicts.c");
    compile(Path::new(source), folder, &["-g", "-Wl,-z,now"])
}

#[test]
fn thread_without_sleep_and_wait_without_end_are_found() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = compiled(folder.path());
    let place =
        |function: &str, mark: &str| format!("{function} (verdicts.c:{})", line_of(SOURCE, mark));
    for (fault, rule, words, place) in [
        // It may have slept once, until its file was read.
        ("busy", Rule::Busy, &["never slept in ", "did not sleep for "][..], None),
        (
            "spin",
            Rule::Spin,
            &["clock_nanosleep returned at once"],
            Some(place("wait_on_another_clock", "spin")),
        ),
        (
            "poll",
            Rule::Spin,
            &["poll returned at once"],
            Some(place("poll_without_reading", "poll")),
        ),
    ] {
        let output = check(&["--json"], &program, fault);
        assert_eq!(output.code(), Some(1), "{output:?}");
        let report = report(&output);
        let found = report.findings.iter().find(|one| one.rule == rule);
        let found: &Finding = found.unwrap_or_else(|| panic!("{fault}: {report:?}"));
        assert!(words.iter().any(|words| found.subject.contains(words)), "{found:?}");
        assert_eq!(found.policy, "SCHED_FIFO 60", "{found:?}");
        if place.is_some() {
            assert_eq!(found.place, place, "{found:?}");
        }
        if fault == "spin" {
            assert!(found.details[0].contains("is one of CLOCK_MONOTONIC"), "{found:?}");
        }
    }
    let output = check(&["--json"], &program, "timeout");
    let report = report(&output);
    let timeout = breaches(&report).into_iter().find(|breach| breach.rule == Rule::Timeout);
    let timeout = timeout.unwrap_or_else(|| panic!("{output:?}"));
    assert!(
        timeout.subject.starts_with("time-out of recvfrom on a socket of a tick"),
        "{timeout:?}"
    );
}

#[test]
fn program_that_is_refused_real_time_is_told_what_is_missing() {
    if !latlab_testing::bpf() {
        return;
    }
    let folder = folder();
    let program = compiled(folder.path());
    let rights = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), rights).expect("it is ours");
    let mut command = Command::new(LATLAB);
    command.args(["check", "--json", "--", "setpriv"]).args(SETPRIV).arg(&program).arg("want");
    let output = run(&mut command);
    assert_eq!(output.code(), Some(1), "{output:?}");
    let found = report(&output).findings;
    let all: Vec<(&str, &str)> = { found.iter() }
        .map(|one| (one.subject.as_str(), one.details.first().map_or("", String::as_str)))
        .collect();
    let [fifo, rr, memory] = all[..] else { panic!("{output:?}") };
    assert!(fifo.0.starts_with("was refused SCHED_FIFO 80: pthread_setschedparam"), "{fifo:?}");
    assert!(fifo.0.ends_with("failed with EPERM") && fifo.1.contains("CAP_SYS_NICE"), "{fifo:?}");
    assert!(fifo.1.contains("RLIMIT_RTPRIO of at least 80 (it is 0)"), "{fifo:?}");
    assert!(rr.0.starts_with("was refused SCHED_RR 80: pthread_create"), "{rr:?}");
    assert!(memory.0.starts_with("was refused locked memory: mlockall"), "{memory:?}");
    assert!(memory.1.contains("CAP_IPC_LOCK"), "{memory:?}");
    let place = format!("want (verdicts.c:{})", line_of(SOURCE, "want"));
    assert_eq!(found[0].place.as_deref(), Some(&*place));
}

#[test]
fn stopped_program_is_no_overrun_of_its_cycles() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = compiled(folder.path());
    let checked = start(&["--json"], &program, "loop");
    wait_until("the loop runs", || child(checked.pid()).is_some_and(is_fifo));
    let pid = child(checked.pid()).expect("it runs");
    let kill = |signal: &str| {
        assert_eq!(run(Command::new("kill").args([signal, &pid.to_string()])).code(), Some(0));
    };
    // For longer than its first cycles take.
    pause(Duration::from_secs(1));
    kill("-STOP");
    pause(Duration::from_millis(300));
    kill("-CONT");
    pause(Duration::from_millis(300));
    checked.signal("INT");
    let output = checked.finish();
    let report = report(&output);
    let stops = report.threads[0].cycle.stops.as_ref();
    let stops = stops.unwrap_or_else(|| panic!("{output:?}"));
    assert_eq!(stops.count, 1, "{stops:?}");
    assert!(stops.longest.0 >= 300_000_000 && stops.cycles >= 300, "{stops:?}");
    assert!(stops.by.starts_with("kill ["), "{stops:?}");
    assert!(breaches(&report).iter().any(|breach| breach.rule == Rule::Stopped), "{report:?}");
}
