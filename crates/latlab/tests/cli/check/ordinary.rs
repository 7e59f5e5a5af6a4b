//! Threads that stay SCHED_OTHER: their cycles are judged where the user wants that.

use super::{check, compile, folder, line_of, report};
use crate::program::{Running, latlab, lock_machine};
use latlab_check::{Report, Rule, ThreadReport};
use latlab_core::time::Nanos;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = include_str!("asks.c");

/// A loop of 10 ms without a real-time policy, which waits for another process.
fn asking(folder: &Path) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/check/asks.c");
    compile(Path::new(source), folder, &["-g", "-Wl,-z,now"])
}

fn thread<'a>(report: &'a Report, name: &str) -> &'a ThreadReport {
    let found = report.threads.iter().find(|thread| thread.name == name);
    found.unwrap_or_else(|| panic!("{name}: {report:?}"))
}

#[test]
fn loop_that_stays_ordinary_has_its_cycle_and_its_causes() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = asking(folder.path());
    let output = check(&["--any-policy", "--json", "--fail-on", "overrun"], &program, "pty");
    assert_eq!(output.code(), Some(1), "{output:?}");
    let found = report(&output);
    let asks = thread(&found, "asks");
    let is_idle_task = |name: &String| name.starts_with("swapper");
    assert!(!found.without_cycle.iter().any(is_idle_task), "{output:?}");
    assert_eq!((asks.policy.as_str(), asks.is_realtime()), ("SCHED_OTHER", false));
    assert_eq!(asks.cycle.period, Some(Nanos::from_millis(10)), "{output:?}");
    // The motor sleeps for two periods in each fifth cycle.
    assert!(asks.cycle.overruns >= 10, "{output:?}");
    let place = format!("ask (asks.c:{})", line_of(SOURCE, "ask"));
    let is_asking = |place_of: &Option<String>| place_of.as_deref() == Some(&place);
    let mut reasons = asks.cycle.reasons.iter();
    assert!(
        reasons.any(|one| one.cause == "blocked" && is_asking(&one.place)),
        "{:?}",
        asks.cycle.reasons
    );
    let over = asks.breaches.iter().find(|breach| breach.rule == Rule::Overrun);
    assert!(over.is_some_and(|over| over.longest >= Nanos::from_millis(20)), "{output:?}");
    for foreign in [Rule::Throttled, Rule::Inversion, Rule::Waker, Rule::NonPi] {
        assert!(asks.breaches.iter().all(|breach| breach.rule != foreign), "{output:?}");
    }
}

#[test]
fn loop_without_a_real_time_policy_is_refused_with_the_option_that_checks_it() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = asking(folder.path());
    check(&[], &program, "pipe").assert_refused(2, &["no thread was real-time", "--any-policy"]);
    // A process that does not run has no thread to judge, whatever its policy.
    let sleeper = Running::start(Command::new("sleep").arg("1000"));
    let words = format!("check --any-policy --pid {} --for 100ms", sleeper.pid());
    latlab(&words).assert_refused(2, &["no thread ran"]);
}
