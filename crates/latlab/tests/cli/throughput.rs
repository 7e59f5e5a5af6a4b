//! Throughput probes with many processes: their figures, their costs, and the end of all processes.

use crate::measuring::{measuring_threads, switches};
use crate::program::{
    LATLAB, Output, Running, command, field, figure, folder, latlab, lock_machine, run, running,
    send, wait_until,
};
use latlab_core::record::Record;
use latlab_core::time::Nanos;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

/// Asserts that an event that not every CPU counts has either a figure above 0 or a warning.
fn assert_counted_or_warned(record: &Record, name: &str) {
    let is_warning = |text: &str| text.contains(name) && text.contains("not available here");
    let warned = record.warnings.iter().any(|warning| is_warning(&warning.text));
    match figure(record, name) {
        Some(count) => assert!(count > 0.0 && !warned, "{name}: {count}"),
        None => assert!(warned, "{name}: {:?}", record.warnings),
    }
}

#[test]
fn hackbench_measures_repetitions_of_processes_and_threads() {
    let _lock = lock_machine();
    for keys in ["tasks=processes", "tasks=threads,over=pipes"] {
        let words = format!("hackbench:groups=2,fan=4,loops=50,{keys}");
        let output = latlab(&format!("run {words} --warm-up 0 --count 3 --json"));
        assert_eq!(output.code(), Some(0), "{output:?}");
        let record = output.record();
        assert_eq!(record.series.len(), 1);
        let series = &record.series[0];
        assert_eq!((series.counts.recorded, series.counts.missed), (3, 0));
        assert_eq!(series.schedule.policy, "other");
        let rate = figure(&record, "messages").unwrap();
        let messages = 2.0 * 4.0 * 4.0 * 50.0;
        let took: Nanos = format!("{}ns", messages * 1e9 / rate).parse().unwrap();
        assert!((series.min..=series.max + Nanos(1)).contains(&took), "{took} in {series:?}");
        // Each task waits at least once, at the start barrier.
        assert!(figure(&record, "voluntary context switches").unwrap() >= 16.0);
        assert_counted_or_warned(&record, "data TLB misses");
        assert_counted_or_warned(&record, "last-level cache misses");
    }
}

/// Returns the figures that models of caches and TLBs have counted.
fn modelled(record: &Record) -> Vec<(&str, f64)> {
    let figures = record.figures.iter().map(|figure| (figure.name.as_str(), figure.value));
    figures.filter(|(name, _)| name.contains("of a modelled")).collect()
}

#[test]
fn misses_of_models_repeat_and_change_nothing_else() {
    let words = "run hackbench:groups=1,fan=4,loops=20,misses=modelled --on lab:utime --count 2 \
                 --warm-up 0 --json";
    let measured = latlab(&format!("{words} --fresh"));
    assert_eq!(measured.code(), Some(0), "{measured:?}");
    let mut record = measured.record();
    let figures = modelled(&record);
    assert_eq!(figures.len(), 7, "{figures:?}");
    assert!(figures.iter().all(|(_, value)| *value > 0.0), "{figures:?}");
    let value = |name: &str| figures.iter().find(|(known, _)| *known == name).unwrap().1;
    let smaller = value("TLB misses of a modelled Pentium 4");
    assert!(value("TLB misses of a modelled Skylake") < smaller);
    // The answer that was kept, and another guest.
    assert_eq!(latlab(words).stdout, measured.stdout);
    assert_eq!(latlab(&format!("{words} --fresh")).stdout, measured.stdout);
    record.figures.retain(|figure| !figure.name.contains("of a modelled"));
    let folder = qemu_without_plugin();
    let path = std::env::var("PATH").expect("PATH is set");
    let mut without = command(&format!("{words} --fresh"));
    without.env("PATH", format!("{}:{path}", folder.path().display()));
    assert_eq!(run(&mut without).stdout, record.to_json());
    // The next run finds the misses again.
    assert_eq!(latlab(&format!("{words} --fresh")).stdout, measured.stdout);
}

/// A folder with a QEMU that leaves out the option `-plugin`.
fn qemu_without_plugin() -> tempfile::TempDir {
    let folder = folder();
    let script = "#!/bin/bash\nwords=()\nwhile [ $# -gt 0 ]; do\n  if [ \"$1\" = -plugin ]; then \
                  shift 2; else words+=(\"$1\"); shift; fi\ndone\n\
                  exec /usr/bin/qemu-system-x86_64 \"${words[@]}\"\n";
    let qemu = folder.path().join("qemu-system-x86_64");
    fs::write(&qemu, script).expect("the folder can be written");
    fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).expect("it is ours");
    folder
}

#[test]
fn models_are_in_the_laboratory_only() {
    let _lock = lock_machine();
    let words = "run hackbench:groups=1,fan=2,loops=5,misses=modelled --warm-up 0 --count 1 --json";
    let record = latlab(words).record();
    assert!(modelled(&record).is_empty());
    let warned = record.warnings.iter().any(|warning| warning.text.contains("modelled"));
    assert!(warned, "{:?}", record.warnings);
}

#[test]
fn netbench_measures_requests_and_throughput() {
    let _lock = lock_machine();
    let output = latlab("run netbench:clients=3 --count 500 --json");
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    assert_eq!(record.series[0].counts.recorded, 500);
    assert!(figure(&record, "throughput").unwrap() > 0.0);
    assert!(figure(&record, "voluntary context switches").unwrap() > 0.0);
    assert_counted_or_warned(&record, "data TLB misses");
    assert_counted_or_warned(&record, "last-level cache misses");
}

#[test]
fn context_has_a_figure_for_each_count_and_size() {
    let _lock = lock_machine();
    // A number of samples, as a busy machine has none for some of the rings in a short time.
    let output = latlab("run context:processes=2/5,size=0/8KiB --count 400 --json");
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let lost = |what: &str| {
        let mut warnings = record.warnings.iter();
        warnings.any(|one| one.code == "below-overhead" && one.text.contains(what))
    };
    for size in ["0B", "8KiB"] {
        assert!(figure(&record, &format!("pipe and {size} alone")).is_some_and(|ns| ns > 0.0));
        for processes in [2, 5] {
            let what = format!("{processes} processes, {size}");
            // With other work, a switch can be too short to be told from the pipe overhead; a
            // warning says so.
            match figure(&record, &what) {
                Some(ns) => assert!(ns > 0.0 && !lost(&what), "{what}: {ns}"),
                None => assert!(lost(&what), "{what}: {:?}", record.warnings),
            }
        }
    }
    assert_eq!(record.series.len(), 1);
    let output = latlab("run context:processes=2/3/4,size=0 --warm-up 0 --count 2 --json");
    let record = output.record();
    assert_eq!(record.series[0].counts.recorded, 2);
    assert_eq!(figure(&record, "4 processes, 0B"), None);
    let warned = record.warnings.iter().find(|warning| warning.code == "not-measured");
    assert!(warned.is_some_and(|warning| warning.text.contains("2 of 3")), "{record:?}");
}

/// The process that takes the samples runs on the CPU of the ring. It once delayed a round by 0.8 ms
/// each 20 ms. The laboratory counts instructions, so that the limit holds on any machine.
#[test]
fn context_is_not_delayed_by_latlab() {
    let output = latlab("run context:processes=2,size=0 --for 200ms --on lab:standard --json");
    let series = &output.record().series[0];
    assert!(series.counts.recorded > 10_000 && series.max.0 < 100_000, "{series:?}");
}

#[test]
fn throughput_probe_with_invalid_value_is_refused() {
    for (words, why) in [
        ("context:processes=1", "2 to 256"),
        ("context:size=7B", "multiple of 8B"),
        ("hackbench:size=0B", "1B to 64KiB"),
        ("hackbench:tasks=fibres", "threads"),
        ("netbench:clients=0", "clients"),
    ] {
        latlab(&format!("run {words} --for 1s")).assert_refused(2, &[why]);
    }
}

/// A running probe, in a copy of the program that no other test runs.
struct ProbeRun {
    program: PathBuf,
    run: Running,
    _folder: tempfile::TempDir,
}

impl ProbeRun {
    /// Starts a probe, and waits until its worker has forked.
    fn start(probe: &str) -> ProbeRun {
        let folder = folder();
        let program = folder.path().join("latlab");
        fs::copy(LATLAB, &program).expect("the folder can be written");
        let words = format!("run {probe} --for 10min --warm-up 0 --json");
        let mut run = Running::start(Command::new(&program).args(words.split_whitespace()));
        run.wait_until_measuring();
        let probe = ProbeRun { program, run, _folder: folder };
        wait_until("the worker has forked", || !probe.forked().is_empty());
        probe
    }

    fn children(&self, of: u32) -> Vec<u32> {
        let parent = |pid: &u32| field(*pid, "PPid") == Some(of.to_string());
        running(&self.program).into_iter().filter(parent).collect()
    }

    fn forked(&self) -> Vec<u32> {
        let workers = self.children(self.run.pid());
        workers.into_iter().flat_map(|worker| self.children(worker)).collect()
    }

    /// Waits until there are samples. The measuring thread sleeps before each; with netbench it looks for
    /// those of the clients, which sleep before each.
    fn wait_until_sampled(&self, probe: &str) {
        const SLEEPS: u64 = 20;
        if probe.starts_with("netbench") {
            let is_answered = |task| switches(task) >= SLEEPS;
            wait_until("requests are answered", || self.forked().into_iter().any(is_answered));
        }
        let thread = measuring_threads(self.run.pid())[0];
        let before = switches(thread);
        wait_until("samples are taken", || switches(thread) >= before + SLEEPS);
    }

    fn finish(self) -> Output {
        let output = self.run.finish();
        wait_until("no process is left", || running(&self.program).is_empty());
        output
    }
}

/// Probes that run longer than any test.
const LONG: [&str; 3] =
    ["hackbench:groups=2,fan=4,loops=1000000", "netbench:clients=2", "context:processes=8,size=0"];

#[test]
fn process_that_dies_ends_the_probe_and_all_its_processes() {
    let _lock = lock_machine();
    for probe in LONG {
        let probe = ProbeRun::start(probe);
        let forked = probe.forked();
        send("KILL", forked[forked.len() - 1]);
        let output = probe.finish();
        assert_eq!(output.code(), Some(2), "{output:?}");
        let messages = output.stderr.lines().filter(|line| line.contains("has ended"));
        assert_eq!(messages.count(), 1, "{output:?}");
        assert!(!output.stderr.contains("panicked"), "{output:?}");
    }
}

#[test]
fn worker_that_dies_ends_the_probe() {
    let _lock = lock_machine();
    for probe in LONG {
        let probe = ProbeRun::start(probe);
        send("KILL", probe.children(probe.run.pid())[0]);
        let output = probe.finish();
        assert_eq!(output.code(), Some(2), "{output:?}");
        assert!(output.stderr.contains("the worker process of the probe has ended"), "{output:?}");
    }
}

#[test]
fn run_that_is_killed_leaves_no_process() {
    let _lock = lock_machine();
    for probe in LONG {
        let probe = ProbeRun::start(probe);
        probe.run.signal("KILL");
        assert_eq!(probe.finish().signal(), Some(9));
    }
}

#[test]
fn sigint_keeps_what_was_measured() {
    let _lock = lock_machine();
    for probe in ["hackbench:groups=1,fan=2,loops=10", "netbench:clients=2", "context:size=0"] {
        let started = ProbeRun::start(probe);
        started.wait_until_sampled(probe);
        started.run.signal("INT");
        let output = started.finish();
        assert_eq!(output.code(), Some(4), "{output:?}");
        let record = output.record();
        assert!(record.series[0].counts.recorded > 0, "{record:?}");
        assert!(!record.figures.is_empty());
        assert!(record.warnings.iter().any(|warning| warning.code == "interrupted"));
    }
}

/// In instruction time, hundreds of switches and thousands of requests repeat exactly.
#[test]
fn throughput_probes_repeat_exactly_in_laboratory() {
    for (probe, count) in [
        ("hackbench:groups=1,fan=5,loops=20", 2),
        ("netbench:clients=2", 300),
        ("context:processes=2/8,size=0/16KiB", 200),
    ] {
        let words = format!("run {probe} --on lab:rt --count {count} --json --fresh");
        let once = latlab(&words);
        assert_eq!(once.code(), Some(0), "{once:?}");
        assert_eq!(once.record().series[0].counts.recorded, count);
        assert_eq!(once.stdout, latlab(&words).stdout, "{probe}");
    }
}
