//! Output of explanations: report, trace, and stacks.

use super::explained;
use crate::program::{
    Running, command, field, folder, latlab, lock_machine, root, run, wait_until, workers,
};
use latlab_core::record::Record;
use serde_json::Value;
use std::fs;

/// The names of the tasks of the loads.
const LOADS: [&str; 2] = ["load:hackbench", "load:procfs"];

/// The percentage at the beginning of a line of the verdict.
fn percentage(line: &str) -> Option<u64> {
    line.split_once(" % ")?.0.parse().ok()
}

#[test]
fn explained_run_becomes_report_trace_and_stacks() {
    if !root() {
        return;
    }
    let lock = lock_machine();
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let mut words =
        command("explain cyclic --above 1us --for 3s --load hackbench --load procfs --out");
    let mut explain = Running::start(words.arg(path("run.json")));
    let mut named: Vec<String> = Vec::new();
    wait_until("each worker has its name", || {
        assert!(!explain.has_ended(), "{named:?}: {explain:?}");
        let workers = workers(explain.pid()).into_iter();
        named = workers.filter_map(|worker| field(worker, "Name")).collect();
        LOADS.iter().all(|load| named.iter().any(|name| name == load))
            && named.iter().all(|name| LOADS.contains(&&**name))
    });
    let output = explain.finish();
    drop(lock);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = Record::from_json(&fs::read_to_string(path("run.json")).unwrap()).unwrap();
    let found = explained(&record);
    assert!(found.late > 100 && !found.stacks.is_empty() && !found.cost.is_empty(), "{found:?}");
    assert!(found.causes.iter().any(|share| named.contains(&share.culprit)), "{found:?}");
    assert!(output.stdout.contains(&found.causes[0].cause), "{found:?}: {output:?}");
    let verdict: Vec<u64> = output.stdout.lines().map_while(percentage).collect();
    assert!((1..=3).contains(&verdict.len()), "{output:?}");
    assert!(
        verdict.is_sorted_by(|a, b| a >= b) && verdict.iter().sum::<u64>() <= 102,
        "{output:?}"
    );
    assert_eq!(output.stdout.matches("after the start: ").count(), 3, "{output:?}");
    assert!(!output.stdout.contains("tracing overhead"), "{output:?}");

    let mut report = command("report");
    report.arg(path("run.json")).arg("-o").arg(path("run.html"));
    report.arg("--perfetto").arg(path("trace.json")).arg("--folded").arg(path("stacks"));
    let output = run(&mut report);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let page = fs::read_to_string(path("run.html")).unwrap();
    assert!(page.contains(&found.causes[0].cause));
    let stacks = fs::read_to_string(path("stacks")).unwrap();
    let weights = stacks
        .lines()
        .map(|line| line.rsplit_once(' ').expect("a line has a stack and its weight"));
    let sum: u64 = weights
        .map(|(_, weight)| weight.parse::<u64>().expect("the weight is in nanoseconds"))
        .sum();
    assert!(sum > 0 && sum <= found.total.0, "{sum} of {}", found.total);
    assert_tracks(&serde_json::from_str(&fs::read_to_string(path("trace.json")).unwrap()).unwrap());
}

/// The memory of a page may be moved meanwhile, which is a page fault too.
#[test]
fn explained_probe_takes_no_page_fault_while_it_measures() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let faults = || {
        let record = latlab("explain cyclic --for 300ms --json").record();
        record.series.iter().map(|series| series.disturbed.minor_faults).collect::<Vec<_>>()
    };
    let tried: Vec<Vec<u64>> = (0..3).map(|_| faults()).collect();
    assert!(tried.iter().any(|faults| faults.iter().all(|number| *number == 0)), "{tried:?}");
}

/// Asserts that each slice of a trace is on a track with a name, and within its wake-up. Events are
/// read as viewers do: in the order of time, and of the file at the same moment.
fn assert_tracks(trace: &Value) {
    let events = trace["traceEvents"].as_array().expect("the trace has events");
    let of = |kind: &'static str| events.iter().filter(move |event| event["ph"] == kind);
    let tracks = of("M").filter(|event| event["name"] == "thread_name").map(|event| &event["tid"]);
    let (mut slices, mut charges) = (0, 0);
    for track in tracks {
        let mut open: Vec<&Value> = Vec::new();
        let mut now = 0.0;
        for event in events.iter().filter(|event| event["tid"] == *track && event["ph"] != "M") {
            let at = event["ts"].as_f64().expect("ts is in microseconds");
            assert!(at >= now, "{event}");
            now = at;
            if event["ph"] == "B" {
                let is_wake_up = event["args"]["latency_ns"].is_u64();
                assert_eq!(open.is_empty(), is_wake_up, "{event}");
                charges += usize::from(!is_wake_up);
                open.push(event);
            } else {
                assert_eq!(event["ph"], "E");
                assert_eq!(open.pop().expect("the slice has begun")["name"], event["name"]);
                slices += 1;
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }
    assert!(charges > 0, "there are charges");
    assert_eq!(of("B").count(), slices);
}
