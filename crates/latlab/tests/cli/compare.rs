//! Comparisons of sets of runs: verdicts, limits, and output for continuous integration.

use crate::program::{
    Output, command, entries, folder, latlab, lock_machine, lock_machine_for_a_moment, run,
};
use latlab_core::histogram::Histogram;
use latlab_core::record::Counts;
use latlab_core::time::Nanos;
use latlab_core::timeline::Timeline;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Writes eight interleaved runs each to the folders a and b. Latencies in b are `times` percent of
/// those in a.
fn runs(folder: &Path, times: u64) {
    let measured = {
        let _lock = lock_machine_for_a_moment();
        latlab("run cyclic --cpus 0 --policy other --for 50ms --warm-up 0 --json").record()
    };
    for nth in 0..8u64 {
        for (side, late, at) in [("a", 100, 0), ("b", times, 5)] {
            let mut record = measured.clone();
            record.started = Nanos::from_secs(nth * 10 + at);
            record.worst.clear();
            let series = &mut record.series[0];
            let (mut histogram, mut timeline) = (Histogram::new(), Timeline::new());
            for n in 0..5_000 {
                let latency = Nanos((10_000 + n + nth % 3 * 7) * late / 100);
                histogram.record(latency);
                timeline.record(Nanos::from_micros(n * 2_741 % 5_000 * 10), latency);
            }
            series.timeline = timeline;
            series.counts = Counts { recorded: histogram.count(), ..Counts::default() };
            series.set_histogram(&histogram);
            let place = folder.join(side);
            fs::create_dir_all(&place).expect("the folder can be written");
            fs::write(place.join(format!("{nth}.json")), record.to_json())
                .expect("the folder can be written");
        }
    }
}

fn compare(folder: &Path, words: &[&str]) -> Output {
    run(command("compare").args(words).current_dir(folder))
}

#[test]
fn verdict_comes_first_and_in_words() {
    let folder = folder();
    runs(folder.path(), 120);
    let output = compare(folder.path(), &["a", "b"]);
    assert_eq!((output.code(), output.stderr.as_str()), (Some(0), ""), "{output:?}");
    for words in ["A  a (8 runs)", "B is slower: p50 +20 %", "interleaved", "95 % upper bound"] {
        assert!(output.stdout.contains(words), "no '{words}' in {output:?}");
    }
    // A folder, a pattern and a list name the same runs.
    let all = |side: &str| (0..8).map(|n| format!("{side}/{n}.json")).collect::<Vec<_>>().join(",");
    let json = |a: &str, b: &str| compare(folder.path(), &[a, b, "--json"]).stdout;
    let expected = json("a", "b");
    assert_eq!(json("a/*.json", "b/?.json"), expected);
    assert_eq!(json(&all("a"), &all("b")), expected);
    let value: Value = serde_json::from_str(&expected).unwrap();
    assert_eq!(value["design"]["method"], "paired");
    assert_eq!(value["latencies"][0]["verdict"], "slower");
    assert!(compare(folder.path(), &["b", "a"]).stdout.contains("B is faster: p50"));
    assert!(compare(folder.path(), &["a", "a"]).stdout.contains("no difference found"));
    let one = compare(folder.path(), &["a/1.json", "b/1.json"]);
    assert!(one.stdout.contains("one run per side; at least 6 interleaved runs"), "{one:?}");
}

/// Kernels with and without preemption differ under fork by far more than two seeds of one cell.
#[test]
fn turns_are_decided_where_sides_differ_and_kept() {
    let folder = folder();
    let side = |profile: &str| format!("-- run --on lab:{profile} --load fork --count 200");
    let sides = format!("{} {}", side("rt"), side("utime"));
    let words = ["--json", "--out", "turns"].into_iter().chain(sides.split(' '));
    let output = run(command("ab").args(words).current_dir(folder.path()));
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert!(output.stderr.contains("pair 6 of at most 10: B's p50"), "{output:?}");
    assert!(output.stderr.contains("; decided") && !output.stderr.contains("pair 7"), "{output:?}");
    let value: Value = serde_json::from_str(&output.stdout).expect("it is JSON");
    assert_eq!(value["latencies"][0]["verdict"], "slower", "{value}");
    let kept = compare(folder.path(), &["turns/a", "turns/b"]);
    assert!(kept.stdout.contains("A  turns/a (6 runs)"), "{kept:?}");
    // They would be compared together with those of another comparison.
    let again = run(command("ab --out turns -- run -- run").current_dir(folder.path()));
    again.assert_refused(2, &["turns/a: it is not empty"]);
}

/// No number of such pairs is judged.
#[test]
fn turns_end_where_runs_are_too_short_for_a_verdict() {
    let _lock = lock_machine();
    let side = "-- run cyclic --cpus 0 --policy other --warm-up 0 --count";
    let output = latlab(&format!("ab {side} 15 {side} 15"));
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("pair 1 of at most 10\n"), "{output:?}");
    let why = "the runs are too short for a verdict, which needs ten samples above a quantile";
    let remedy = "give A --count ";
    assert!([why, remedy].iter().all(|part| output.stderr.contains(part)), "{output:?}");
    assert!(output.stdout.starts_with("Ended early, after 1 of 10 pairs."), "{output:?}");
}

#[test]
fn turns_keep_runs_that_exceed_a_limit() {
    let _lock = lock_machine();
    let folder = folder();
    let side = "-- run hackbench:groups=1,fan=1,loops=10 --cpus 0 --warm-up 0 --count 100";
    let turns = |words: &str| run(command(words).current_dir(folder.path()));
    let output = turns(&format!("ab -n 6 --out failed {side} --fail-above 1ns {side}"));
    assert_eq!(output.code(), Some(1), "{output:?}");
    let summary = "side A: samples above --fail-above in 6 of its runs";
    assert!(output.stderr.contains(summary), "{output:?}");
    assert!(output.stdout.contains("6 pairs"), "{output:?}");
    assert_eq!(entries(&folder.path().join("failed/a")).len(), 6);
    let output = turns(&format!("ab --out stopped {side} {side} --stop-above 1ns"));
    assert_eq!(output.code(), Some(1), "{output:?}");
    assert!(output.stderr.contains("side B: hackbench on CPU 0: "), "{output:?}");
    assert_eq!(entries(&folder.path().join("stopped")).len(), 1, "not as half of a pair");
    let stopped = fs::read_to_string(folder.path().join("stopped/stopped.json")).unwrap();
    assert!(stopped.contains("stopped-above"), "{stopped}");
}

#[test]
fn sides_of_turns_are_checked_before_they_run() {
    let refused = [
        ("ab -- run", "two run commands are needed"),
        ("ab -- run -- scan munmap", "side B: it is no run command"),
        ("ab -- run --fro 1s -- run", "side A: unexpected argument '--fro'"),
        ("ab -n 5 -- run -- run", "a number from 6 to 100 is needed"),
        ("ab -- run -- run --out x", "side B: --out is for latlab ab"),
    ];
    for (words, message) in refused {
        latlab(words).assert_refused(2, &[message]);
    }
}

#[test]
fn limit_exceeded_is_exit_1_and_limit_undecided_exit_2() {
    let folder = folder();
    runs(folder.path(), 120);
    let limited = |claims: &[&str]| {
        let mut words = vec!["a", "b"];
        for claim in claims {
            words.extend(["--fail-if", claim]);
        }
        compare(folder.path(), &words)
    };
    assert_eq!(limited(&["cyclic.p99 > baseline * 1.5"]).code(), Some(0));
    let over = limited(&["cyclic.p99 > baseline * 1.1", "cyclic.p99 > 1s"]);
    assert_eq!(over.code(), Some(1), "{over:?}");
    let expected = "over the limit: cyclic.p99 > baseline * 1.1 (cyclic.p99 is ";
    assert!(over.stderr.contains(expected) && !over.stderr.contains("1s"), "{over:?}");
    let missing = limited(&["cyclic.p99.99 > 1us"]);
    assert_eq!(missing.code(), Some(2), "{missing:?}");
    assert!(missing.stderr.contains("fewer than ten samples are above it"), "{missing:?}");
    // An exceeded limit counts, even if another limit cannot be evaluated.
    assert_eq!(limited(&["cyclic.p99.99 > 1us", "cyclic.p99 > 1us"]).code(), Some(1));
    limited(&["cyclic.p99 > 5"]).assert_refused(2, &["column 14", "unit"]);
    let misspelt = limited(&["cylic.p99 > 5us"]);
    assert_eq!(misspelt.code(), Some(2), "{misspelt:?}");
    assert!(
        misspelt.stderr.contains("unknown result 'cylic.p99': did you mean cyclic.p99"),
        "{misspelt:?}"
    );
    assert_eq!(limited(&["cylic.p99 > 5us", "cyclic.p99 > 1us"]).code(), Some(1));
    // No period was missed, so that the corrected distribution is the recorded one.
    assert_eq!(limited(&["cyclic.corrected.p99 > baseline * 1.1"]).code(), Some(1));
}

#[test]
fn limits_and_verdicts_are_reported_as_test_cases() {
    let folder = folder();
    runs(folder.path(), 120);
    let words = ["a", "b", "--ktap", "--junit", "out.xml", "--fail-if"];
    let over = compare(folder.path(), &[&words[..], &["cyclic.p99 > baseline * 1.1"]].concat());
    assert_eq!(over.code(), Some(1), "{over:?}");
    let lines: Vec<&str> = over.stdout.lines().collect();
    assert_eq!(lines[..2], ["KTAP version 1", "1..1"], "{over:?}");
    assert_eq!(lines[3], "not ok 1 not cyclic.p99 > baseline * 1.1", "{over:?}");
    let xml = fs::read_to_string(folder.path().join("out.xml")).unwrap();
    assert!(xml.contains("tests=\"1\" failures=\"1\""), "{xml}");
    assert!(xml.contains("name=\"not cyclic.p99 &gt; baseline * 1.1\""), "{xml}");
    // If the limit cannot be parsed, the older JUnit file is removed.
    let wrong = compare(folder.path(), &[&words[..], &["cyclic.p99 >"]].concat());
    wrong.assert_refused(2, &["column 13", "expected"]);
    assert!(!folder.path().join("out.xml").exists());
    let verdicts = compare(folder.path(), &["a", "a", "--ktap"]);
    assert!(verdicts.stdout.ends_with("ok 1 cyclic\n"), "{verdicts:?}");
    let unknown = compare(folder.path(), &["a/1.json", "b/1.json", "--ktap"]);
    assert!(unknown.stdout.contains("ok 1 cyclic # SKIP p50 20 % longer"), "{unknown:?}");
    assert!(unknown.stdout.contains("; inconclusive: one run"), "{unknown:?}");
}

#[test]
fn limit_that_is_exceeded_is_reported_beside_test_cases_that_cannot_be_written() {
    let folder = folder();
    runs(folder.path(), 120);
    let words = ["a", "b", "--junit", "/dev/full", "--fail-if", "cyclic.p99 > baseline * 1.1"];
    let output = compare(folder.path(), &words);
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stdout.contains("B is slower"), "{output:?}");
    assert!(output.stderr.contains("over the limit"), "{output:?}");
    assert!(output.stderr.contains("/dev/full: "), "{output:?}");
}

/// The order of the arguments is easily confused.
#[test]
fn record_is_never_overwritten_by_test_cases() {
    let folder = folder();
    let record = folder.path().join("after.json");
    fs::write(&record, "{}").expect("the folder can be written");
    for words in [["before.json", "out.xml"], ["before.json", "after.json"]] {
        let output = compare(folder.path(), &[&words[..], &["--junit", "after.json"]].concat());
        output.assert_refused(2, &["after.json", "no XML"]);
        assert_eq!(fs::read_to_string(&record).expect("it is kept"), "{}");
    }
}

/// A probe that is missing in one record must not look like a success.
#[test]
fn latency_of_one_side_only_is_a_test_case() {
    let folder = folder();
    let words = "run cyclic nanosleep --cpus 0 --policy other --for 50ms --warm-up 0 --json";
    let mut record = {
        let _lock = lock_machine_for_a_moment();
        latlab(words).record()
    };
    fs::write(folder.path().join("two.json"), record.to_json()).expect("the folder can be written");
    record.series.retain(|series| series.probe == "cyclic");
    fs::write(folder.path().join("one.json"), record.to_json()).expect("the folder can be written");
    let output = compare(folder.path(), &["two.json", "one.json", "--ktap"]);
    let lines: Vec<&str> = output.stdout.lines().filter(|line| line.starts_with("ok")).collect();
    assert_eq!(lines.len(), 2, "{output:?}");
    assert!(
        lines[1].contains("nanosleep") && lines[1].contains("is only in the first"),
        "{output:?}"
    );
    assert!(lines[1].contains("# SKIP there is nothing to compare it with"), "{output:?}");
    let words = ["two.json", "one.json", "--fail-if", "nanosleep.p50 > 1us"];
    let output = compare(folder.path(), &words);
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("is only in the first"), "{output:?}");
}

#[test]
fn report_of_two_folders_has_the_same_verdict() {
    let folder = folder();
    runs(folder.path(), 120);
    let output = run(command("report a b -o page.html").current_dir(folder.path()));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("cyclic · b against a"), "the verdict is missing");
    assert!(page.contains("Slower: p50 +20 %"), "the verdict is missing");
}

#[test]
fn seed_twice_in_a_folder_is_reported_once() {
    let record = latlab("run cyclic --on lab:standard --count 50 --json").record().to_json();
    let page = |copies: &[&str]| {
        let folder = folder();
        fs::create_dir(folder.path().join("runs")).expect("the folder can be written");
        for copy in copies {
            fs::write(folder.path().join("runs").join(copy), &record)
                .expect("the folder can be written");
        }
        let output = run(command("report runs -o page.html").current_dir(folder.path()));
        assert_eq!(output.code(), Some(0), "{output:?}");
        fs::read_to_string(folder.path().join("page.html")).unwrap()
    };
    assert!(page(&["1.json"]) == page(&["1.json", "again.json"]), "the copy changed the page");
}
