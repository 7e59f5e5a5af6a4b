//! `latlab watch`: loops that run, end, or are none.

use super::library::{library, start};
use crate::program::{
    LATLAB, Output, Running, command, field, folder, latlab, root, run, wait_until,
};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The first loop of a line of JSON.
fn first(line: &str) -> Value {
    let mut value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    value["loops"][0].take()
}

#[test]
fn loop_is_shown_with_its_settings_and_counts() {
    if !root() {
        return;
    }
    let folder = folder();
    let running = start(&library().compile("control", folder.path()));
    let words = format!("watch {} --once", running.pid());
    let seen = || first(&latlab(&format!("{words} --json")).stdout);
    let number = |one: &Value, name: &str| one[name].as_u64().unwrap_or_else(|| panic!("{one}"));
    let before = number(&seen(), "cycles");
    let mut after = seen();
    wait_until("its cycles are counted", || {
        after = seen();
        number(&after, "cycles") > before
    });
    assert_eq!((after["name"].as_str(), after["policy"].as_str()), (Some("control"), Some("fifo")));
    assert_eq!((number(&after, "priority"), number(&after, "period")), (80, 1_000_000));
    assert_eq!((number(&after, "thread"), number(&after, "spin")), (running.pid().into(), 0));
    assert_eq!((number(&after, "minor_faults"), number(&after, "major_faults")), (0, 0));
    let times =
        |name: &str| ["min", "median", "p99.9", "max"].map(|which| number(&after[name], which));
    for name in ["lateness", "running"] {
        assert!(times(name).is_sorted() && times(name)[3] > 0, "{after}");
    }
    let table = latlab(&words);
    let table = table.stdout.lines().collect::<Vec<_>>();
    assert!(table[0].starts_with("loop ") && table[1].starts_with("control "), "{table:?}");
    assert_eq!(table.len(), 2);
}

/// Watches a loop of so many cycles until it ends, and returns the output of watching and of the loop.
/// None where it has ended before it was found.
fn watched_to_its_end(program: &Path, cycles: u64, record: &Path) -> Option<(Output, Output)> {
    let mut running = Running::start(Command::new(program).arg(cycles.to_string()));
    let mut watch = command(&format!("watch {} --json -o {}", running.pid(), record.display()));
    let mut output = None;
    wait_until("the loop is found or has ended", || {
        output = Some(run(&mut watch)).filter(|output| output.code() == Some(0));
        output.is_some() || running.has_ended()
    });
    let ended = running.finish();
    output.map(|output| (output, ended))
}

#[test]
fn watching_ends_with_the_program_and_keeps_its_last_values() {
    if !root() {
        return;
    }
    let folder = folder();
    let program = library().compile("control", folder.path());
    let record = folder.path().join("loop.json");
    // A busy machine may find it only after its end: then one that runs for longer follows.
    let watched = |cycles| watched_to_its_end(&program, cycles, &record);
    let found = [1_000, 10_000, 100_000, 1_000_000].into_iter().find_map(watched);
    let (output, ended) = found.expect("the loop is found");
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let last = first(output.stdout.lines().last().expect("a line was printed"));
    let counted: u64 =
        ended.stdout.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    assert_eq!(last["cycles"], counted, "{last}");
    let record = fs::read_to_string(record).expect("the record was written");
    let record = latlab_core::record::Record::from_json(&record).expect("the record is valid");
    assert_eq!(record.series.len(), 2);
    assert_eq!(record.series[0].counts.recorded, counted);
}

#[test]
fn watching_stops_after_its_time_and_on_interrupt() {
    if !root() {
        return;
    }
    let folder = folder();
    let running = start(&library().compile("callback", folder.path()));
    let pid = running.pid();
    let timed = latlab(&format!("watch {pid} --for 10ms"));
    assert_eq!(timed.code(), Some(0), "{timed:?}");
    assert!(timed.stdout.contains("callback"), "{timed:?}");
    let record = folder.path().join("loop.json");
    let watch = Running::start(&mut command(&format!("watch {pid} -o {}", record.display())));
    // A signal before it is blocked would kill.
    wait_until("it blocks SIGINT", || {
        let mask = field(watch.pid(), "SigBlk").unwrap_or_default();
        u64::from_str_radix(&mask, 16).is_ok_and(|mask| mask & 2 != 0)
    });
    watch.signal("INT");
    assert_eq!(watch.finish().code(), Some(0));
    assert!(record.is_file());
}

#[test]
fn watching_ends_when_nobody_reads_it() {
    if !root() {
        return;
    }
    let folder = folder();
    let running = start(&library().compile("callback", folder.path()));
    let script =
        r#"{ timeout 600 "$0" watch "$1" --json; echo "exit $?" >&2; kill -0 "$1"; } | head -n 1"#;
    let mut watch = Command::new("sh");
    let output = run(watch.args(["-c", script, LATLAB, &running.pid().to_string()]));
    assert_eq!(output.stdout.lines().count(), 1, "{output:?}");
    assert_eq!(output.stderr, "exit 0\n", "{output:?}");
}

#[test]
fn record_of_a_loop_survives_what_goes_wrong_meanwhile() {
    if !root() {
        return;
    }
    let folder = folder();
    let running = start(&library().compile("control", folder.path()));
    let pid = running.pid();
    let nowhere = latlab(&format!("watch {pid} -o {}/no/loop.json", folder.path().display()));
    nowhere.assert_refused(2, &["no/loop.json"]);
    assert_eq!(nowhere.stdout, "", "it is refused before it watches");
    let record = folder.path().join("loop.json");
    let mut full = Command::new("sh");
    full.args(["-c", "exec \"$0\" watch \"$1\" -o \"$2\" >/dev/full", LATLAB, &pid.to_string()]);
    run(full.arg(&record)).assert_refused(2, &["stdout"]);
    let record = fs::read_to_string(record).expect("the record was written");
    latlab_core::record::Record::from_json(&record).expect("the record is valid");
}

#[test]
fn process_that_cannot_be_watched_is_refused_in_one_sentence() {
    latlab("watch 999999999").assert_refused(2, &["there is no process 999999999"]);
    let sleep = Running::start(Command::new("sleep").arg("600"));
    let pid = sleep.pid();
    let none = latlab(&format!("watch {pid}"));
    none.assert_refused(
        2,
        &["no loop of the library latlab-period", &format!("check --pid {pid}")],
    );
    let zero = latlab("watch 0");
    assert_eq!(zero.code(), Some(2), "{zero:?}");
    if !root() {
        return;
    }
    let mut watch = Command::new("setpriv");
    watch.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
    watch.args(["--bounding-set=-all", LATLAB, "watch", &pid.to_string()]);
    run(&mut watch).assert_refused(3, &["belongs to another user", "as root"]);
}

/// A program whose memory only has the name.
const FOREIGN: &str = r#"
import fcntl, os, sys, time
fd = os.memfd_create("latlab-period", os.MFD_ALLOW_SEALING)
os.write(fd, bytes.fromhex(sys.argv[1]).ljust(int(sys.argv[2]), b"\xff"))
if sys.argv[3] == "seal":
    fcntl.fcntl(fd, 1033, 2)  # F_ADD_SEALS, F_SEAL_SHRINK
print("ready", file=sys.stderr, flush=True)
time.sleep(600)
"#;

#[test]
fn foreign_memory_is_refused_and_nothing_panics() {
    let magic = "6c61746c61627064";
    let version = format!("{magic}0100000000000000");
    // The size of the statistics, 535056, in them and of them.
    let (whole, size) = (format!("{version}102a080000000000"), "535056");
    let cases = [
        ("6c61", "4096", "seal", "does not begin as"),
        (magic, "4096", "open", "F_SEAL_SHRINK"),
        (magic, "4097", "seal", "its size"),
        (magic, "4096", "seal", "layout has version"),
        (&version, "4096", "seal", "damaged: its size"),
        (&whole, size, "seal", "damaged: its period"),
        ("", "1", "seal", "its size"),
    ];
    for (head, size, seal, words) in cases {
        let mut python = Command::new("python3");
        let running = Running::start(python.args(["-c", FOREIGN, head, size, seal]));
        wait_until("the memory is there", || running.stderr().contains("ready"));
        let output = latlab(&format!("watch {} --once", running.pid()));
        let start = format!("process {} is named latlab-period", running.pid());
        output.assert_refused(2, &[&start, words]);
    }
}
