//! A CPU that goes offline during a run.

use crate::program::{Missing, Running, command, lock_machine, not_run, pause, root};
use std::fs;
use std::time::Duration;

const ONLINE: &str = "/sys/devices/system/cpu/cpu1/online";

/// Brings the CPU back online when dropped, also if the test fails.
struct Offline;

impl Offline {
    fn take() -> Offline {
        fs::write(ONLINE, "0").expect("root may take a CPU offline");
        Offline
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        let _ = fs::write(ONLINE, "1");
    }
}

/// Whether a CPU can be taken offline here.
fn is_possible() -> bool {
    if !root() {
        return false;
    }
    let is_there = fs::exists(ONLINE).unwrap_or(false);
    if !is_there {
        not_run(Missing::Optional, "this machine has no second CPU that can be taken offline");
    }
    is_there
}

#[test]
fn run_whose_only_cpu_goes_offline_fails_and_keeps_samples() {
    if !is_possible() {
        return;
    }
    let _lock = lock_machine();
    let mut running = Running::start(&mut command("run cyclic --cpus 1 --for 60s --json"));
    running.wait_until_measuring();
    pause(Duration::from_millis(500));
    let offline = Offline::take();
    let output = running.finish();
    drop(offline);
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("cyclic was not measured to the end: CPU 1"), "{output:?}");
    assert!(output.record().series[0].counts.recorded > 0, "{output:?}");
}

#[test]
fn samples_of_a_cpu_that_goes_offline_are_kept() {
    if !is_possible() {
        return;
    }
    let _lock = lock_machine();
    // On a busy machine it takes the kernel seconds to take a CPU offline: 3 s were too short.
    let mut running = Running::start(&mut command("run cyclic --cpus 0-1 --for 9s --json"));
    running.wait_until_measuring();
    pause(Duration::from_millis(1_200));
    let offline = Offline::take();
    let output = running.finish();
    drop(offline);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    assert!(record.warnings.iter().any(|warning| warning.code == "cpu-offline"), "{output:?}");
    let periods = |n: usize| record.series[n].counts.recorded + record.series[n].counts.missed;
    assert!(periods(0) >= 9_000, "the other CPU must continue: {}", periods(0));
    assert!((1..9_000).contains(&periods(1)), "{}", periods(1));
}
