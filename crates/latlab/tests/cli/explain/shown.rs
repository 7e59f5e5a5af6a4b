//! What is made of explanations: a report, a trace, stacks.

use super::explained;
use crate::program::{Running, command, field, folder, machine, root, run, workers};
use latlab_core::record::Record;
use serde_json::Value;
use std::fs;

#[test]
fn a_run_under_load_becomes_a_report_a_trace_and_stacks() {
    if !root() {
        return;
    }
    let alone = machine();
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let mut words =
        command("explain cyclic --above 1us --for 3s --load hackbench --load procfs --out");
    let mut explain = Running::start(words.arg(path("run.json")));
    explain.measuring();
    let named = workers(explain.pid()).into_iter().filter_map(|worker| field(worker, "Name"));
    let named: Vec<String> = named.collect();
    assert!(
        !named.is_empty() && named.iter().all(|name| ["hackbench", "procfs"].contains(&&**name)),
        "{named:?}"
    );
    let said = explain.finish();
    drop(alone);
    assert_eq!(said.code(), Some(0), "{said:?}");
    let record = Record::from_json(&fs::read_to_string(path("run.json")).unwrap()).unwrap();
    let found = explained(&record);
    assert!(found.late > 100 && !found.stacks.is_empty() && !found.cost.is_empty(), "{found:?}");
    assert!(found.causes.iter().any(|share| named.contains(&share.who)), "{found:?}");
    for cause in &found.causes[..3] {
        assert!(said.stdout.contains(&cause.cause), "{cause:?}: {said:?}");
    }

    let mut report = command("report");
    report.arg(path("run.json")).arg("-o").arg(path("run.html"));
    report.arg("--perfetto").arg(path("trace.json")).arg("--folded").arg(path("stacks"));
    let said = run(&mut report);
    assert_eq!(said.code(), Some(0), "{said:?}");
    let page = fs::read_to_string(path("run.html")).unwrap();
    assert!(page.contains(&found.causes[0].cause));
    let stacks = fs::read_to_string(path("stacks")).unwrap();
    let weights = stacks.lines().map(|line| line.rsplit_once(' ').expect("a stack and its weight"));
    let sum: u64 = weights.map(|(_, weight)| weight.parse::<u64>().expect("nanoseconds")).sum();
    assert!(sum > 0 && sum <= found.total.0, "{sum} of {}", found.total);
    in_tracks(&serde_json::from_str(&fs::read_to_string(path("trace.json")).unwrap()).unwrap());
}

/// Asserts that each slice of a trace is on a track that has a name, and within its wake-up.
fn in_tracks(trace: &Value) {
    let events = trace["traceEvents"].as_array().expect("events");
    let of = |kind: &'static str| events.iter().filter(move |event| event["ph"] == kind);
    let tracks: Vec<&Value> =
        of("M").filter(|event| event["name"] == "thread_name").map(|event| &event["tid"]).collect();
    let number = |value: &Value| value.as_f64().expect("microseconds");
    let span = |event: &Value| {
        let (from, length) = (number(&event["ts"]), number(&event["dur"]));
        (from, from + length)
    };
    let whole = |event: &&Value| event["args"]["latency_ns"].is_u64();
    assert!(of("X").count() > of("X").filter(whole).count(), "there are charges");
    for slice in of("X") {
        assert!(tracks.contains(&&slice["tid"]), "{slice}");
        let (from, to) = span(slice);
        // The fraction of a microsecond is a nanosecond or more.
        let around = of("X").filter(whole).filter(|wake_up| wake_up["tid"] == slice["tid"]);
        let within = |(begin, end): (f64, f64)| begin <= from + 1e-4 && to <= end + 1e-4;
        assert!({ around }.map(span).any(within), "{slice}");
        // As its viewer wants it: of two slices on a track, one holds the other or ends before.
        for (begin, end) in of("X").filter(|other| other["tid"] == slice["tid"]).map(span) {
            let holds = begin <= from + 1e-4 && to <= end + 1e-4;
            let is_held = from <= begin + 1e-4 && end <= to + 1e-4;
            assert!(holds || is_held || end <= from + 1e-4 || to <= begin + 1e-4, "{slice}");
        }
    }
}
