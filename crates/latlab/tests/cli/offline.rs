//! A CPU that goes offline during a run.

use crate::measuring::wait_until_sampled;
use crate::program::{Missing, Output, Running, command, lock_machine, not_run, root};
use std::fs;

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

/// Takes CPU 1 offline while a run with these options has samples, and returns the output of the run.
fn without_cpu_1(options: &str) -> Output {
    let words = format!("run cyclic {options} --warm-up 0 --json");
    let mut running = Running::start(&mut command(&words));
    running.wait_until_measuring();
    wait_until_sampled(running.pid());
    let _offline = Offline::take();
    running.finish()
}

#[test]
fn run_whose_only_cpu_goes_offline_fails_and_keeps_samples() {
    if !is_possible() {
        return;
    }
    let _lock = lock_machine();
    let output = without_cpu_1("--cpus 1 --for 10min");
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("cyclic was not measured to the end: CPU 1"), "{output:?}");
    assert!(output.record().series[0].counts.recorded > 0, "{output:?}");
}

/// On a busy machine it takes the kernel long to take a CPU offline: a run that was over by then is
/// followed by a longer one.
#[test]
fn samples_of_a_cpu_that_goes_offline_are_kept() {
    if !is_possible() {
        return;
    }
    let _lock = lock_machine();
    let lost_a_cpu = |seconds: u64| {
        let output = without_cpu_1(&format!("--cpus 0-1 --for {seconds}s"));
        assert_eq!(output.code(), Some(0), "{output:?}");
        let record = output.record();
        let periods = |n: usize| record.series[n].counts.recorded + record.series[n].counts.missed;
        let (all, [other, lost]) = (1_000 * seconds, [0, 1].map(periods));
        assert!(other >= all && lost > 0, "the other CPU must continue: {other}, {lost}");
        lost < all && record.warnings.iter().any(|warning| warning.code == "cpu-offline")
    };
    assert!([3, 30, 300].into_iter().any(lost_a_cpu), "a run must notice it");
}
