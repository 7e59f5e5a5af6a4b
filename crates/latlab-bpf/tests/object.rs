//! The compiled objects: they match the sources, and stay easy to verify.
#![expect(clippy::tests_outside_test_module, reason = "a file in this folder is one test module")]
#![expect(clippy::disallowed_methods, reason = "the compiler ends within the test")]

use latlab_bpf::{ProgramCost, Recorder, Watch};
use latlab_core::time::Nanos;
use latlab_testing::{Missing, not_run};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Compiler of the committed objects.
const CLANG: &str = "clang version 14.0.6";

/// Number of instructions that the verifier of Linux 6.18 processed in each program.
const VERIFIED: &str = include_str!("verified.txt");

#[test]
fn object_is_what_the_sources_compile_to() {
    let version = Command::new("clang").arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if !version.is_ok_and(|version| version.contains(CLANG)) {
        not_run(Missing::Required, &format!("it needs {CLANG}"));
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder can be created");
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["check.bpf.o", "recorder.bpf.o", "wakers.bpf.o"] {
        let made = folder.path().join(name);
        let tool = crates.join("../../tools/bpf");
        let output = Command::new(tool).arg(&made).output().expect("tools/bpf starts");
        assert!(output.status.success(), "{output:?}");
        let kept = std::fs::read(crates.join("src").join(name)).expect("the object is committed");
        let made = std::fs::read(made).expect("the object was compiled");
        assert!(made == kept, "the sources of {name} have changed: run make bpf");
    }
}

/// Programs that are loaded on other machines only: without a local APIC timer, with several CPUs.
const ELSEWHERE: [&str; 12] = [
    "call_function_entry",
    "call_function_exit",
    "call_function_single_entry",
    "call_function_single_exit",
    "csd_function_entry",
    "csd_queue_cpu",
    "hrtimer_expire_exit",
    "local_timer_entry",
    "reschedule_entry",
    "reschedule_exit",
    "sched_migrate_task",
    "sched_wakeup",
];

#[test]
fn recorder_programs_stay_as_easy_to_verify() {
    if !latlab_testing::bpf() {
        return;
    }
    let recorder = Recorder::start(&Watch::Tasks(Vec::new()), Nanos::from_secs(1))
        .expect("the recorder starts");
    let lines = VERIFIED.lines().filter(|line| !line.starts_with('#'));
    let known: BTreeMap<&str, u32> = lines
        .filter_map(|line| line.split_once(' '))
        .map(|(name, count)| (name, count.trim().parse().expect("a number")))
        .collect();
    let costs = recorder.cost();
    let is_left_out = |name: &&&str| costs.iter().all(|cost| cost.name != **name);
    let left_out: Vec<&&str> = known.keys().filter(is_left_out).collect();
    assert!(left_out.iter().all(|name| ELSEWHERE.contains(name)), "not loaded here: {left_out:?}");
    let is_harder = |cost: &&ProgramCost| {
        let count = known.get(cost.name.as_str());
        count.is_none_or(|count| cost.verified > count * 3 / 2)
    };
    let harder: Vec<_> = costs.iter().filter(is_harder).collect();
    assert!(harder.is_empty(), "more than half as many again: {harder:#?}");
}
