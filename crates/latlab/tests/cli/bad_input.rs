//! Bad input: one sentence with what was wrong and the nearest valid names, and exit code 2.

use crate::program::{
    LATLAB, entries, folder, in_mount_namespace, latlab, lock_machine, root, run,
};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// Arguments, and words that the sentence must contain.
const TYPED: &[(&str, &[&str])] = &[
    ("comprae", &["comprae", "compare"]),
    ("run cylic", &["there is no probe 'cylic'", "cyclic"]),
    ("run --load hackbensh", &["there is no load 'hackbensh'", "hackbench"]),
    ("run --on natve", &["there is no target 'natve'", "native"]),
    ("run --on ssh", &["--on ssh", "no host"]),
    ("run --on ssh:root@", &["--on ssh:root@", "no host"]),
    ("run --on ssh:-oProxyCommand=true", &["--on ssh:-o", "'-'"]),
    ("run --on ssh:board:0", &["--on ssh:board:0", "port"]),
    ("run --on ssh:::1", &["--on ssh:::1", "brackets"]),
    ("run --cpu 0", &["'--cpu'", "--cpus"]),
    ("run cyclic:intervall=1ms", &["there is no key 'intervall'", "interval"]),
    ("run cyclic:interval=1ms,interval=2ms", &["interval is given twice"]),
    ("run cyclic:1ms,interval=2ms", &["interval is given twice"]),
    ("run cyclic:1ms,shifted,other,50,1us,1us,tai,7", &["'7' is one value too many"]),
    ("run cyclic:interval=1", &["'1' has no unit", "1us"]),
    ("run cyclic:interval=0", &["interval"]),
    ("run cyclic:interval=1parsec", &["1parsec", "ms"]),
    ("run cyclic:interval=1h --for 100ms", &["interval of 1 h", "a longer --for"]),
    ("run cyclic:phase=algined", &["phase", "aligned"]),
    ("run cyclic:policy=fio", &["policy", "fifo"]),
    ("run cyclic:priority=100", &["priority", "100"]),
    ("run --policy fio", &["policy", "fifo"]),
    ("run --load disk:size=16", &["disk: size", "16"]),
    ("run --load cpu:on=probes", &["on can't be 'probes'", "probe"]),
    ("run --load cpu:busy=400ms", &["cpu: busy=", "without every=", "busy=400ms,every=1s"]),
    ("run --load cpu:every=1s", &["cpu: every=", "without busy=", "busy=400ms,every=1s"]),
    ("run --load cpu:busy=1s,every=1s", &["cpu: ", "busy=1 s", "every=1 s", "shorter"]),
    ("run --load cpu:busy=0s,every=1s", &["cpu: busy=0s", "too short"]),
    ("run --load cpu:busy=400,every=1s", &["cpu: busy", "'400' has no unit"]),
    ("run --load cpu:policy=fifo", &["cpu: ", "policy=fifo", "never sleep", "busy="]),
    ("run --load cpu:policy=fio", &["cpu: policy can't be 'fio'", "fifo"]),
    ("run --load procfs:path=/proc/nothing", &["procfs: /proc/nothing", "path="]),
    ("run --load procfs:path=/dev/tty", &["procfs: /dev/tty", "not a file"]),
    ("run timer:itimer,interval=1500ns --cpus 0", &["whole microseconds"]),
    ("run --load memory:size=900GiB", &["memory", "smaller size"]),
    ("run --load exit:size=900GiB", &["exit", "smaller size"]),
    ("run --load io:dir=/nowhere", &["io: /nowhere", "dir="]),
    ("run --load io:size=5B", &["io: size", "multiple of 4KiB"]),
    ("run --load wilshire-disk:size=900TiB", &["wilshire-disk: size", "GiB"]),
    ("run --load wilshire-disk:size=900000GiB", &["wilshire-disk: /var/tmp has", "smaller size"]),
    ("run --load page-cache:dir=/proc", &["page-cache: /proc", "dir="]),
    ("run --load ping:size=64KiB", &["ping: size", "65507B"]),
    ("run --load download:size=0B", &["download: size", "0B"]),
    ("run --load interrupts:source=disk", &["source can't be 'disk'", "device", "timer"]),
    ("run --load interrupts:timer,interval=1ns", &["interrupts: interval", "1us"]),
    ("run --load interrupts:timer,timers=0", &["interrupts: timers", "1..=512"]),
    ("run --load interrupts:busy=2ms", &["interrupts: busy", "1 ms at most"]),
    ("run --load interrupts:every=10us", &["interrupts: every", "every 20us to 1s"]),
    ("run --load interrupts:timer,every=1ms", &["every is for the device", "source=device"]),
    ("run --for 10", &["--for", "10s"]),
    ("run --for 0s", &["--for", "longer than 0"]),
    (
        "run cyclic noise --count 5 --on ssh:nowhere.invalid",
        &["noise: it may never reach a number of samples", "--for"],
    ),
    ("run --for 1s --count 5", &["--for", "--count"]),
    ("run --count 0", &["--count", "0"]),
    ("run --cpus 0-", &["--cpus", "0-"]),
    ("run --cpus 8000 --for 1s", &["CPU 8000 is not online"]),
    ("run --set swappines=1 --for 1s", &["there is no knob 'swappines'", "swappiness"]),
    ("run --set swappiness --for 1s", &["--set", "KNOB=VALUE"]),
    ("run timer:source=itimer --cpus 0,8000", &["CPU 8000 is not online"]),
    ("scan forc", &["there is no call 'forc'", "fork"]),
    ("scan munmap:0B", &["munmap: size", "4KiB"]),
    ("scan munmap:999GiB", &["munmap: size", "64GiB"]),
    ("scan populate:64GiB", &["populate: 64GiB", "available", "smaller size"]),
    ("scan populate:huge=sometimes", &["huge can't be 'sometimes'", "always"]),
    ("scan read:memory", &["place can't be 'memory'", "tmpfs", "disk"]),
    ("scan read:disk,dir=/nowhere", &["read: /nowhere", "dir="]),
    ("scan sync:dir=/proc", &["sync: /proc", "dir="]),
    ("scan pipe:65KiB", &["pipe: size", "64KiB"]),
    ("scan socket:tpc", &["kind can't be 'tpc'", "tcp"]),
    ("scan futex:1001", &["futex: waiters", "1001"]),
    ("scan stat:/nowhere", &["stat: /nowhere", "No such file", "path="]),
    ("scan open-close:/dev/tty", &["open-close: /dev/tty", "not a file"]),
    ("scan procfs:/proc/nothing", &["procfs: /proc/nothing", "path="]),
    ("scan fork --cpu 8000", &["CPU 8000 is not online"]),
    ("scan fork --points 0", &["--points", "0"]),
    ("scan fork --interrupt timr", &["--interrupt", "timer"]),
    ("scan fork --for 0s", &["--for", "longer than 0"]),
    ("list loaads", &["loaads", "loads"]),
    ("generate basch", &["basch"]),
    ("compare one", &["<B>"]),
    ("compare /nowhere/a /nowhere/b", &["/nowhere/a", "No such file"]),
    ("compare a b --fail-if p99", &["--fail-if 'p99', column 4", "expected a comparison"]),
    ("compare a b --fail-if x.p99>5parsecs", &["column 7", "5parsecs"]),
    ("compare a b --fail-if baseline>5us", &["column 1", "write it in full"]),
    ("compare a b --json --ktap", &["--json", "--ktap"]),
    ("compare /nowhere/*.json b", &["/nowhere/*.json", "no record"]),
    ("exec", &["<COMMAND>"]),
    ("exec --fifo 100 -- true", &["--fifo", "100"]),
    ("exec --fifo 5 --rr 5 -- true", &["--fifo", "--rr"]),
    ("exec --deadline 2ms -- true", &["RUNTIME/PERIOD"]),
    ("exec --deadline 20ms/10ms -- true", &["runtime", "at most the period"]),
    ("exec --cpus 0,8000 -- true", &["CPU 8000 is not online"]),
];

#[test]
fn words_not_understood_are_refused_in_one_sentence() {
    for (words, expected) in TYPED {
        println!("latlab {words}");
        latlab(words).assert_refused(2, expected);
    }
}

#[test]
fn knob_value_out_of_range_is_refused_and_knob_unchanged() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let before = fs::read_to_string("/proc/sys/vm/swappiness").unwrap();
    for value in ["plenty", "1000", "0x11", ""] {
        let words = format!("run --set swappiness={value} --for 100ms");
        latlab(&words).assert_refused(2, &["swappiness"]);
        assert_eq!(fs::read_to_string("/proc/sys/vm/swappiness").unwrap(), before, "{value}");
    }
    latlab("run --set idle_latency=short --for 100ms")
        .assert_refused(2, &["idle_latency", "number"]);
    latlab("run --set cpu_dma_latency=low --for 100ms")
        .assert_refused(2, &["cpu_dma_latency", "number"]);
}

#[test]
fn folder_not_writable_is_refused_before_anything_starts() {
    if !root() {
        return;
    }
    let folder = folder();
    let words = format!("run --for 100ms --load disk:dir={}", folder.path().display());
    let refused = |script: &str, expected: &[&str]| {
        run(&mut in_mount_namespace(script, folder.path(), &words)).assert_refused(2, expected);
    };
    refused("mount -t tmpfs -o ro none \"$1\"", &["disk: ", "Read-only", "dir="]);
    refused("mount -t tmpfs -o size=1m none \"$1\"", &["disk: ", "free", "needs 32MiB"]);
    let fill = "mount -t tmpfs -o size=1m none \"$1\"; head -c 2m /dev/zero >\"$1/full\" 2>&1 || :";
    refused(fill, &["disk: ", "No space left", "dir="]);
    latlab("run --for 100ms --load disk:dir=/proc").assert_refused(2, &["disk: /proc", "dir="]);
    latlab("run --for 100ms --load disk:dir=/nowhere")
        .assert_refused(2, &["disk: /nowhere", "dir="]);
    assert!(entries(folder.path()).is_empty());
}

#[test]
fn record_path_not_writable_is_refused_before_anything_starts() {
    latlab("run --for 1h --out /nowhere/r.json")
        .assert_refused(2, &["/nowhere/r.json", "No such file"]);
    latlab("run --for 1h --out /tmp").assert_refused(2, &["/tmp", "directory"]);
    latlab("run --for 1h --out /proc/r.json").assert_refused(2, &["/proc/r.json"]);
}

/// Returns a record of this machine as JSON, to be damaged.
fn record() -> Value {
    let _lock = lock_machine();
    let output = latlab("run --policy other --for 50ms --warm-up 0 --json");
    serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

#[test]
fn damaged_record_is_refused_with_its_defect() {
    let (folder, record) = (folder(), record());
    let path = folder.path().join("damaged.json");
    let refused = |text: &str, expected: &[&str]| {
        fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        let mut words = vec![path];
        words.extend(expected);
        latlab(&format!("compare {path} {path}")).assert_refused(2, &words);
    };
    let complete = serde_json::to_string_pretty(&record).unwrap();
    for share in 1..40 {
        let mut end = complete.len() * share / 40;
        while !complete.is_char_boundary(end) {
            end -= 1;
        }
        refused(&complete[..end], &["cut short at line"]);
    }
    refused("", &["not a latlab record"]);
    refused("{}", &["not a latlab record", "no schema"]);
    refused("<html></html>", &["not a latlab record"]);
    refused("[1, 2, 3]", &["not a latlab record"]);
    refused(r#"{"schema": 2}"#, &["not a latlab record", "missing field"]);
    let damaged = |change: fn(&mut Value)| {
        let mut record = record.clone();
        change(&mut record);
        record.to_string()
    };
    refused(&damaged(|r| r["schema"] = json!(3)), &["schema 3", "newer latlab"]);
    refused(&damaged(|r| r["series"][0]["hdr"] = json!("HISTFAAAAA==")), &["damaged", "series 0"]);
    refused(&damaged(|r| r["series"][0]["hdr"] = json!("%%%")), &["damaged", "series 0", "cyclic"]);
    let one_more = damaged(|r| {
        let recorded = &mut r["series"][0]["counts"]["recorded"];
        *recorded = json!(recorded.as_u64().expect("it is a number") + 1);
    });
    refused(&one_more, &["damaged", "samples"]);
    refused(&damaged(|r| r["series"][0]["max"] = json!(0)), &["damaged", "minimum"]);
    refused(&damaged(|r| r["series"][0]["max"] = json!(-5)), &["not a latlab record", "-5"]);
}

#[test]
fn file_without_an_end_is_refused_as_record() {
    latlab("report /dev/zero").assert_refused(2, &["/dev/zero", "it is longer than"]);
}

/// A terminal would obey it.
#[test]
fn escape_sequence_in_a_record_is_not_printed() {
    let (folder, mut record) = (folder(), record());
    let (path, other) = (folder.path().join("record.json"), folder.path().join("other.json"));
    fs::write(&other, record.to_string()).unwrap();
    record["machine"]["kernel"] = json!("\u{1b}]0;owned\u{7}");
    fs::write(&path, record.to_string()).unwrap();
    let output = latlab(&format!("compare {} {}", path.display(), other.display()));
    assert!(output.stdout.contains("owned"), "{output:?}");
    let text = output.stdout + &output.stderr;
    assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
}

#[test]
fn stack_too_small_is_refused() {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -s 64; exec \"$0\" list probes", LATLAB]);
    run(&mut command).assert_refused(2, &["stack", "ulimit -s"]);
}

#[test]
fn doctor_that_can_read_nothing_does_not_find_the_machine_healthy() {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 3; exec \"$0\" doctor", LATLAB]);
    let output = run(&mut command);
    assert_eq!((output.code(), output.stdout.as_str()), (Some(2), ""), "{output:?}");
    assert!(output.stderr.contains("can't be examined"), "{output:?}");
}

#[test]
fn limit_on_the_size_of_files_is_refused_before_anything_starts() {
    let folder = folder();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 1; exec \"$0\" run --count 5 --out record.json", LATLAB]);
    run(command.current_dir(folder.path())).assert_refused(2, &["record.json", "File too large"]);
    assert_eq!(entries(folder.path()).len(), 0);
}

#[test]
fn binary_file_is_refused_as_record() {
    let folder = folder();
    let path = folder.path().join("picture.png");
    fs::write(&path, b"\x89PNG\r\n\x1a\n\xff\xfe\x00\x01").unwrap();
    let path = path.to_str().unwrap();
    latlab(&format!("compare {path} {path}")).assert_refused(2, &[path]);
}
