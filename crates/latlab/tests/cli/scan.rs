//! Scans: non-preemptible sections of calls, and calls that hang.

use super::program::{
    LATLAB, Running, command, folder, latlab, lock_machine, root, run, running, wait_until,
};
use latlab_core::record::Record;
use latlab_core::scan::{Interrupt, Scan, Section};
use latlab_core::time::Nanos;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Parses records that were printed one after another.
fn records(text: &str) -> Vec<Record> {
    let texts = text.split_inclusive("\n}\n");
    texts.map(|text| Record::from_json(text).unwrap_or_else(|e| panic!("{e}: {text}"))).collect()
}

/// Returns the length of the longest section.
fn longest(scan: &Scan) -> Nanos {
    scan.longest().map(Section::length).unwrap_or_default()
}

/// Asserts that the figures of a scan are consistent.
fn assert_consistent(scan: &Scan) {
    let Scan { duration, points, sections, .. } = scan;
    assert!(duration.min <= duration.median && duration.median <= duration.max, "{scan:?}");
    // Where a busy machine delays each call, some points are never measured.
    assert!(points.len() >= 5 && scan.baseline > Nanos(0), "{scan:?}");
    for point in points {
        let pdlt = point.pdlt;
        assert!(pdlt.min <= pdlt.median && pdlt.median <= pdlt.max, "{point:?}");
        assert!(point.repeats > 0 && pdlt.min > Nanos(0), "{point:?}");
        assert_eq!(point.irt.is_some(), scan.interrupt != Interrupt::Timer, "{point:?}");
    }
    for section in sections {
        assert!(section.start <= section.end && section.peak > scan.baseline, "{section:?}");
    }
    assert!(sections.windows(2).all(|pair| pair[0].end <= pair[1].start), "{sections:?}");
}

/// A kernel without preemption shows one long section in a call, and a kernel that is preemptible
/// almost everywhere shows none.
#[test]
fn sections_without_preemption_are_gone_on_preemptible_kernel() {
    let words = "scan munmap:4MiB populate:4MiB --points 20 --resolution 2us --json \
                 --on lab:utime --on lab:preemptible-hr";
    let output = latlab(words);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let records = records(&output.stdout);
    let [none, full] = records.as_slice() else { panic!("{output:?}") };
    for record in [none, full] {
        assert_eq!(record.scans.len(), 2);
        record.scans.iter().for_each(assert_consistent);
        assert!(record.scans.iter().all(|scan| scan.interrupt == Interrupt::Timer));
        assert!(record.warnings.is_empty(), "{:?}", record.warnings);
    }
    let (munmap, populate) = (longest(&none.scans[0]), longest(&none.scans[1]));
    assert!((50_000..100_000).contains(&munmap.0), "a section per huge page: {munmap}");
    assert!((2_000_000..2_300_000).contains(&populate.0), "one huge page: {populate}");
    for scan in &full.scans {
        assert!(longest(scan) < Nanos::from_micros(15), "{}: {:?}", scan.call.name, scan.sections);
    }
}

/// Returns all calls but the user's program and those in `but`.
fn calls(but: &[&str]) -> Vec<String> {
    let list = latlab("list calls").stdout;
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "program" && !but.contains(name)).map(str::to_owned).collect()
}

/// Options of a scan whose edges are not refined. It ends after its measurements, which take a busy
/// machine long, and not after a time.
const COARSE: &str = "--points 10 --repeat 3 --resolution 100us --json";

#[test]
fn calls_can_all_be_scanned_on_this_machine() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let calls = calls(&["driver"]);
    assert!(calls.len() >= 16, "{calls:?}");
    // How long a disk takes depends on what other tests write to it.
    let in_memory =
        |name: &String| if name == "sync" { "sync:dir=/dev/shm" } else { name }.to_owned();
    let words = calls.iter().map(in_memory).collect::<Vec<_>>().join(" ");
    let output = latlab(&format!("scan {words} {COARSE}"));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    assert_eq!(record.scans.len(), calls.len());
    for (scan, name) in record.scans.iter().zip(&calls) {
        assert_eq!(&scan.call.name, name);
        assert_consistent(scan);
        let series = record.series.iter().find(|series| series.probe == format!("scan.{name}"));
        let series = series.expect("there is a series of the scan");
        let repeats: u64 = scan.points.iter().map(|point| u64::from(point.repeats)).sum();
        assert!(series.counts.recorded >= repeats && series.schedule.policy == "fifo");
    }
}

#[test]
fn calls_can_all_be_scanned_in_a_guest() {
    let calls = calls(&[]);
    let words = calls.join(" ");
    let output = latlab(&format!("scan {words} {COARSE} --on lab:rt"));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    assert_eq!(record.scans.len(), calls.len());
    record.scans.iter().for_each(assert_consistent);
}

#[test]
fn call_that_hangs_is_ended_and_leaves_nothing() {
    if !root() {
        return;
    }
    let folder = folder();
    let program = folder.path().join("latlab");
    fs::copy(LATLAB, &program).expect("the program can be copied");
    // Reading /proc/kmsg returns the messages so far, and then blocks.
    let scan = "scan procfs:/proc/kmsg,size=1GiB --for 5s";
    let output = run(Command::new(&program).args(scan.split(' ')));
    output.assert_refused(2, &["scan.procfs", "did not end within", "was killed"]);
    wait_until("no process of the scan is left", || running(&program).is_empty());
}

/// Waits until the scan has measured some points. Its Producer sleeps once for each.
fn wait_until_scanning(scan: &Running) {
    const SLEEPS: u64 = 100;
    let threads = format!("/proc/{}/task", scan.pid());
    let sleeps = |thread: PathBuf| {
        let status = fs::read_to_string(thread.join("status")).ok()?;
        let is_producer = status.starts_with("Name:\tproducer\n");
        let (_, count) = status.split_once("\nvoluntary_ctxt_switches:\t")?;
        is_producer.then(|| count.split('\n').next()?.parse::<u64>().ok()).flatten()
    };
    wait_until("points are measured", || {
        let threads = fs::read_dir(&threads).into_iter().flatten().flatten();
        threads.filter_map(|thread| sleeps(thread.path())).any(|count| count >= SLEEPS)
    });
}

#[test]
fn scan_keeps_points_after_sigint_and_leaves_nothing_after_sigkill() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = folder.path().join("latlab");
    fs::copy(LATLAB, &program).expect("the program can be copied");
    let start = || {
        let words = "scan fork --for 10min --repeat 10000 --json";
        let scan = Running::start(Command::new(&program).args(words.split(' ')));
        wait_until_scanning(&scan);
        scan
    };
    let scan = start();
    scan.signal("INT");
    let output = scan.finish();
    assert_eq!(output.code(), Some(4), "{output:?}");
    let record = output.record();
    assert!(record.warnings.iter().any(|warning| warning.code == "interrupted"), "{output:?}");
    assert!(!record.scans[0].points.is_empty());
    let scan = start();
    scan.signal("KILL");
    assert_eq!(scan.finish().signal(), Some(9));
    wait_until("no process of the scan is left", || running(&program).is_empty());
}

/// Compiles an example into `folder`.
fn example(compiler: &str, source: &str, options: &[&str], folder: &Path) -> PathBuf {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let program = folder.join(format!("window-{compiler}"));
    let mut command = Command::new(compiler);
    command.args(options).arg("-o").arg(&program).arg(examples.join(source));
    assert!(command.status().expect("the compiler starts").success(), "{source}");
    program
}

fn example_in_c(folder: &Path) -> PathBuf {
    example("cc", "window.c", &["-O2", "-Wall", "-Werror"], folder)
}

#[test]
fn program_with_marks_is_scanned() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let in_rust = example("rustc", "window.rs", &["-O"], folder.path());
    for program in [example_in_c(folder.path()), in_rust] {
        let output = run(command(&format!("scan {COARSE} --")).arg(&program));
        assert_eq!(output.code(), Some(0), "{output:?}");
        let record = output.record();
        let [scan] = record.scans.as_slice() else { panic!("{output:?}") };
        assert_eq!(scan.call.name, "program");
        assert_eq!(scan.call.params["command"][0], program.display().to_string());
        assert_consistent(scan);
        wait_until("the program has ended", || running(&program).is_empty());
    }
}

#[test]
fn program_in_guest_is_scanned_by_copied_latlab() {
    let folder = folder();
    let program = example_in_c(folder.path());
    latlab("scan --on lab:utime -- true").assert_refused(3, &["latlab exec", "--with"]);
    let program = program.display();
    let words = format!(
        "exec --on lab:utime --with {program} -- {LATLAB} scan --points 10 --resolution 10us \
         --repeat 3 --json -- {program}"
    );
    let output = latlab(&words);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    assert_consistent(&record.scans[0]);
    assert_eq!(record.machine.time_domain.word(), "instructions");
}

#[test]
fn program_without_marks_is_scanned_as_a_whole() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let output = run(command(&format!("scan {COARSE} --whole --")).arg("true"));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let [scan] = record.scans.as_slice() else { panic!("{output:?}") };
    assert_eq!(
        (&scan.call.params["command"][0], &scan.call.params["window"]),
        (&"true".into(), &"run".into())
    );
    assert_consistent(scan);
    let whole = |words: &[&str]| run(command("scan --for 5s --whole --").args(words));
    whole(&["false"]).assert_refused(2, &["false failed"]);
    whole(&["/nonexistent/program"]).assert_refused(2, &["/nonexistent/program", "not found"]);
    run(&mut command("scan --whole fork")).assert_refused(2, &["COMMAND"]);
}

#[test]
fn program_without_marks_is_refused_with_instructions() {
    if !root() {
        return;
    }
    let script = |text: &str| run(command("scan --for 5s -- sh -c").arg(text));
    let how = ["LATLAB_SCAN", "write(fd, \"b\", 1)"];
    script("exit 0").assert_refused(2, &[how[0], how[1], "--whole"]);
    script("sleep 100").assert_refused(2, &["no mark within", how[0], how[1]]);
    script("printf b >&$LATLAB_SCAN; exit 7").assert_refused(2, &["within its window", "7"]);
    script("exit 7").assert_refused(2, &["sh failed", "7"]);
    script("printf x >&$LATLAB_SCAN").assert_refused(2, &["'x'", "'b'"]);
    latlab("scan --for 5s -- ./nothing").assert_refused(2, &["./nothing can't be started"]);
}
