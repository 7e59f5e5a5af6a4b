//! Records: printing, storing, comparing.

use crate::program::{LATLAB, command, entries, folder, latlab, lock_machine, run};
use latlab_core::record::{Counts, Record};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Stores the record of a short run as `name` in `folder`.
fn store(folder: &Path, name: &str) -> PathBuf {
    let _lock = lock_machine();
    let path = folder.join(name);
    let words = "run cyclic timer --policy other --for 100ms --warm-up 0 --out";
    let output = run(command(words).arg(&path));
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert!(output.stdout.contains("cyclic"), "the summary is on stdout: {output:?}");
    assert!(output.stderr.contains(&format!("wrote {}", path.display())), "{output:?}");
    path
}

/// Changes a stored record.
fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let text = fs::read_to_string(path).expect("the record exists");
    let mut record: Value = serde_json::from_str(&text).expect("the record is JSON");
    change(&mut record);
    fs::write(path, record.to_string()).expect("the record can be written");
}

fn compare(a: &Path, b: &Path, more: &str) -> crate::program::Output {
    run(command("compare").arg(a).arg(b).args(more.split_whitespace()))
}

#[test]
fn json_output_is_one_document() {
    let _lock = lock_machine();
    let output = latlab("run --policy other --for 50ms --json");
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record: Value = serde_json::from_str(&output.stdout).unwrap();
    let fields = [
        "schema", "tool", "plan", "machine", "series", "figures", "worst", "work", "changes",
        "warnings",
    ];
    for field in fields {
        assert!(record.get(field).is_some(), "{field}");
    }
    assert_eq!(record["schema"], 2);
    assert_eq!(record["series"][0]["span"], json!(["timer expiry", "thread running"]));
    // Reading and writing the record gives the same bytes.
    assert_eq!(output.record().to_json(), output.stdout);
}

/// The record of hours of measuring must not depend on where the table goes.
#[test]
fn record_is_written_where_its_table_cannot_be_printed() {
    let _lock = lock_machine();
    let folder = folder();
    let path = folder.path().join("r.json");
    let script = "exec \"$0\" run --policy other --for 50ms --csv --out \"$1\" >/dev/full";
    let output = run(Command::new("sh").args(["-c", script, LATLAB]).arg(&path));
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert_eq!(output.stderr.matches("can't be written to stdout").count(), 1, "{output:?}");
    Record::from_json(&fs::read_to_string(&path).expect("it is written")).expect("it is whole");
}

/// As a service that was started without one.
#[test]
fn result_without_an_open_stdout_is_refused() {
    let _lock = lock_machine();
    for words in ["run --policy other --cpus 0 --for 50ms --json", "list probes", "doctor --json"] {
        let script = format!("exec \"$0\" {words} >&-");
        let output = run(Command::new("sh").args(["-c", &script, LATLAB]));
        assert_eq!(output.code(), Some(2), "{words}: {output:?}");
        let said = "latlab: the result can't be written to stdout: it is closed";
        assert_eq!(output.stderr.lines().last(), Some(said), "{words}: {output:?}");
    }
    // What goes elsewhere is whole.
    let output = run(Command::new("sh").args(["-c", "exec \"$0\" list probes >/dev/null", LATLAB]));
    assert_eq!(output.code(), Some(0), "{output:?}");
}

#[test]
fn record_file_is_complete_and_alone_in_its_folder() {
    let folder = folder();
    let path = store(folder.path(), "a.json");
    assert_eq!(entries(folder.path()), [path.as_path()]);
    let record = Record::from_json(&fs::read_to_string(&path).unwrap()).unwrap();
    let spans = |probe: &str| record.series.iter().filter(|s| s.probe == probe).count();
    let cpus = record.plan.cpus.len();
    assert_eq!((spans("cyclic"), spans("timer")), (cpus, 2 * cpus));
    store(folder.path(), "a.json");
    assert_eq!(entries(folder.path()), [path]);
}

#[test]
fn record_compared_with_itself_does_not_differ() {
    let folder = folder();
    let path = store(folder.path(), "a.json");
    let output = compare(&path, &path, "");
    assert_eq!((output.code(), output.stderr.as_str()), (Some(0), ""), "{output:?}");
    let rows = output.stdout.lines().filter(|line| line.trim_start().starts_with("p99"));
    let rows: Vec<&str> = rows.collect();
    assert!(rows.len() >= 9, "three quantiles of three latencies: {output:?}");
    for row in rows {
        // A quantile of 0 has no ratio: differences from the period can be that small.
        assert!(row.contains("1.000") || row.contains("0 ns"), "{row}");
    }
    assert!(output.stdout.contains("the machines do not differ"), "{output:?}");
    assert!(output.stdout.contains("the plans do not differ"), "{output:?}");
    let output = compare(&path, &path, "--json");
    let comparison: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(comparison["latencies"].as_array().unwrap().len(), 3);
    assert_eq!(comparison["machine"], json!([]));
}

#[test]
fn differences_of_records_are_named() {
    let folder = folder();
    let a = store(folder.path(), "a.json");
    let b = folder.path().join("b.json");
    fs::copy(&a, &b).unwrap();
    edit(&b, |record| {
        record["machine"]["kernel"] = json!("9.9.9");
        record["plan"]["seed"] = json!(5);
        record["series"].as_array_mut().unwrap().retain(|series| series["probe"] == "cyclic");
    });
    let output = compare(&a, &b, "");
    assert_eq!(output.code(), Some(0), "{output:?}");
    for words in [" → 9.9.9\n", "  seed: 0 → 5\n", "timer ", "is only in the first"] {
        assert!(output.stdout.contains(words), "no '{words}' in {output:?}");
    }
}

#[test]
fn records_of_different_time_domains_are_not_compared() {
    let folder = folder();
    let a = store(folder.path(), "a.json");
    let b = folder.path().join("b.json");
    fs::copy(&a, &b).unwrap();
    edit(&b, |record| record["machine"]["time_domain"] = json!("instructions"));
    compare(&a, &b, "").assert_refused(2, &["instructions time", "a.json", "b.json"]);
    edit(&b, |record| record["machine"]["time_domain"] = json!("sundial"));
    compare(&a, &b, "").assert_refused(2, &["sundial", "b.json"]);
}

#[test]
fn records_without_common_series_are_not_compared() {
    let folder = folder();
    let a = store(folder.path(), "a.json");
    let b = folder.path().join("b.json");
    fs::copy(&a, &b).unwrap();
    edit(&b, |record| record["series"] = json!([]));
    compare(&a, &b, "").assert_refused(2, &["nothing", "cyclic"]);
}

#[test]
fn folder_of_repetitions_is_one_record() {
    let (folder, elsewhere) = (folder(), folder());
    let a = store(folder.path(), "a.json");
    let one = Record::from_json(&fs::read_to_string(&a).unwrap()).unwrap();
    let (b, other) = (folder.path().join("b.json"), elsewhere.path().join("one.json"));
    fs::copy(&a, &b).unwrap();
    fs::copy(&a, &other).unwrap();
    let cyclic = one.series.iter().filter(|series| series.probe == "cyclic");
    let recorded: u64 = cyclic.map(|series| series.counts.recorded).sum();
    let compared = || {
        let output = compare(folder.path(), &other, "--json");
        let comparison: Value = serde_json::from_str(&output.stdout).unwrap();
        comparison["latencies"][0]["recorded"].clone()
    };
    assert_eq!(compared(), json!([recorded, recorded]), "a copy is no repetition");
    edit(&b, |record| record["started"] = json!(one.started.0 + 1));
    assert_eq!(compared(), json!([2 * recorded, recorded]));
    // Repetitions may have seeds of their own; everything else of the plan is the same.
    edit(&a, |record| record["plan"]["seed"] = json!(5));
    assert_eq!(compare(folder.path(), &other, "").code(), Some(0));
    let page = elsewhere.path().join("report.html");
    let report = |what: &Path| run(command("report").arg(what).arg("-o").arg(&page));
    for runs in [folder.path(), &folder.path().join("*.json")] {
        assert_eq!(report(runs).code(), Some(0), "{:?}", report(runs));
    }
    edit(&a, |record| record["plan"]["warm_up"] = json!(5));
    compare(folder.path(), &other, "").assert_refused(2, &["b.json", "plans differ"]);
    compare(elsewhere.path().join("empty").as_path(), &other, "").assert_refused(2, &["empty"]);
}

#[test]
fn probes_of_the_same_name_stay_separate() {
    let _lock = lock_machine();
    let folder = folder();
    let words = "run cyclic:10ms,policy=other cyclic:20ms,policy=other --cpus 0 --for 200ms --out";
    let records = ["1.json", "2.json"].map(|name| {
        let path = folder.path().join(name);
        let output = run(command(words).arg(&path));
        assert_eq!(output.code(), Some(0), "{output:?}");
        Record::from_json(&fs::read_to_string(path).unwrap()).unwrap()
    });
    let output = run(command("compare --json").args([folder.path(), folder.path()]));
    let comparison: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(comparison["latencies"].as_array().unwrap().len(), 2, "{output:?}");
    // Two runs of 200 ms each, at 10 and at 20 ms; a late wake-up may miss periods after the end.
    for (nth, least) in [40, 20].into_iter().enumerate() {
        let sum = |count: fn(Counts) -> u64| -> u64 {
            records.iter().map(|record| count(record.series[nth].counts)).sum()
        };
        let (recorded, missed) = (sum(|counts| counts.recorded), sum(|counts| counts.missed));
        let latency = &comparison["latencies"][nth];
        assert_eq!(
            (&latency["recorded"][0], &latency["missed"][0]),
            (&json!(recorded), &json!(missed))
        );
        assert!(recorded + missed >= least, "{output:?}");
    }
}

#[test]
fn report_reads_a_pipe_once() {
    let folder = folder();
    let path = store(folder.path(), "record.json");
    let script = "cat \"$1\" | \"$0\" report /dev/stdin -o \"$2\"";
    let page = folder.path().join("report.html");
    let mut piped = Command::new("sh");
    piped.args(["-c", script, LATLAB]).arg(&path).arg(&page);
    let output = run(&mut piped);
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert!(fs::read_to_string(&page).expect("it was written").contains("cyclic"));
    // An endless file is read up to the limit only.
    latlab("report /dev/zero").assert_refused(2, &["/dev/zero", "longer than"]);
}

#[test]
fn folder_that_cannot_be_listed_to_its_end_is_refused() {
    let folder = folder();
    let runs = folder.path().join("runs");
    fs::create_dir(&runs).unwrap();
    store(&runs, "a.json");
    let page = folder.path().join("report.html");
    let report = |what: &Path, call: &str| {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=getdents64", "-P"]).arg(&runs);
        strace.args(["-e", &format!("inject=getdents64:error=EIO:when={call}"), LATLAB, "report"]);
        run(strace.arg(what).arg("-o").arg(&page))
    };
    // All its names are in what the first call returns.
    for (what, call) in [(&runs, "1"), (&runs, "2"), (&runs.join("*.json"), "2")] {
        report(what, call).assert_refused(2, &[&*runs.to_string_lossy(), "Input/output error"]);
    }
    assert_eq!(report(&runs, "9").code(), Some(0));
}
