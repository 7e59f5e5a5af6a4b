//! `--stop-above`: it ends a run at the first sample above the limit, and keeps its circumstances.

use crate::program::{folder, latlab, lock_machine};
use latlab_core::record::Record;
use std::fs;

#[test]
fn sample_above_limit_ends_run_and_is_described() {
    let _lock = lock_machine();
    let folder = folder();
    let out = folder.path().join("over.json");
    let words = format!(
        "run cyclic --policy other --cpus 0 --for 60s --warm-up 0 --stop-above 1us --out {}",
        out.display()
    );
    let output = latlab(&words);
    assert_eq!(output.code(), Some(1), "{output:?}");
    let verdict = output.stderr.lines().last().unwrap();
    for word in ["cyclic on CPU 0: ", "above 1 us", "period ", "under no load"] {
        assert!(verdict.contains(word), "no '{word}' in: {verdict}");
    }
    assert!(output.stdout.contains("cyclic"), "the summary is shown: {output:?}");
    let record = Record::from_json(&fs::read_to_string(&out).unwrap()).unwrap();
    assert!(record.worst[0].latency.0 > 1_000);
    assert!(verdict.contains(&record.worst[0].latency.to_string()), "{verdict}");
}

#[test]
fn limit_that_holds_is_exit_0() {
    let _lock = lock_machine();
    let output = latlab("run cyclic --policy other --cpus 0 --for 100ms --stop-above 1h --json");
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert!(output.record().series[0].counts.recorded > 0);
}
