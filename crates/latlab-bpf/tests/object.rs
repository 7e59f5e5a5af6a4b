//! The compiled programs are those of the sources, and as easy to verify as they were.
#![expect(clippy::tests_outside_test_module, reason = "a file in this folder is one test module")]
#![expect(clippy::disallowed_methods, reason = "the compiler is asked, and lives no longer")]

use latlab_bpf::{Recorder, Watch};
use latlab_core::time::Nanos;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The compiler that the object was made with.
const CLANG: &str = "clang version 14.0.6";

/// How many instructions the verifier of Linux 6.18 followed in each program.
const VERIFIED: &str = include_str!("verified.txt");

#[test]
fn object_is_what_the_sources_compile_to() {
    let version = Command::new("clang").arg("--version").output();
    let version = version.map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
    if !version.is_ok_and(|version| version.contains(CLANG)) {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room");
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["recorder.bpf.o", "slices.bpf.o", "wakers.bpf.o"] {
        let made = folder.path().join(name);
        let tool = crates.join("../../tools/bpf");
        let said = Command::new(tool).arg(&made).output().expect("it starts");
        assert!(said.status.success(), "{said:?}");
        let kept = std::fs::read(crates.join("src").join(name)).expect("it is there");
        let made = std::fs::read(made).expect("it was made");
        assert!(made == kept, "the kernel's side, {name}, has changed: make bpf");
    }
}

#[test]
fn recorder_programs_stay_as_easy_to_verify() {
    if Recorder::check().is_err() {
        return;
    }
    let recorder = Recorder::start(&Watch::RealTime, Nanos::from_secs(1)).expect("it starts");
    let lines = VERIFIED.lines().filter(|line| !line.starts_with('#'));
    let known: BTreeMap<&str, u32> = lines
        .filter_map(|line| line.split_once(' '))
        .map(|(name, count)| (name, count.trim().parse().expect("a number")))
        .collect();
    let costs = recorder.cost();
    assert_eq!(costs.len(), known.len());
    for cost in costs {
        let bound = known.get(cost.name.as_str()).map(|count| count * 3 / 2);
        assert!(Some(cost.verified) <= bound, "{cost:?}: more than {bound:?}");
    }
}
