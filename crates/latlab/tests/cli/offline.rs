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

#[test]
fn samples_of_a_cpu_that_goes_offline_are_kept() {
    if !root() {
        return;
    }
    if !fs::exists(ONLINE).unwrap_or(false) {
        not_run(Missing::Optional, "this machine has no second CPU that can be taken offline");
        return;
    }
    let _lock = lock_machine();
    // On a busy machine it takes the kernel seconds to take a CPU offline: 3 s were too short.
    let running = Running::start(&mut command("run cyclic --cpus 0-1 --for 9s --json"));
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
