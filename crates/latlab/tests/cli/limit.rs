//! `--stop-above`: it ends a run at the first sample above the limit, and keeps its circumstances.

use crate::program::{folder, latlab, machine};
use latlab_core::record::Record;
use std::fs;

#[test]
fn sample_above_limit_ends_run_and_is_described() {
    let _alone = machine();
    let folder = folder();
    let out = folder.path().join("over.json");
    let words = format!(
        "run cyclic --policy other --cpus 0 --for 60s --warm-up 0 --stop-above 1us --out {}",
        out.display()
    );
    let said = latlab(&words);
    assert_eq!(said.code(), Some(1), "{said:?}");
    let verdict = said.stderr.lines().last().unwrap();
    for word in ["cyclic on CPU 0: ", "above 1 us", "period ", "under no load"] {
        assert!(verdict.contains(word), "no '{word}' in: {verdict}");
    }
    assert!(said.stdout.contains("cyclic"), "the summary is shown: {said:?}");
    let record = Record::from_json(&fs::read_to_string(&out).unwrap()).unwrap();
    assert!(record.worst[0].latency.0 > 1_000);
    assert!(verdict.contains(&record.worst[0].latency.to_string()), "{verdict}");
}

#[test]
fn limit_that_holds_is_exit_0() {
    let _alone = machine();
    let said = latlab("run cyclic --policy other --cpus 0 --for 100ms --stop-above 1h --json");
    assert_eq!(said.code(), Some(0), "{said:?}");
    assert!(said.record().series[0].counts.recorded > 0);
}
