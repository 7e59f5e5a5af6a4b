//! Rhealstone, signals and mutexes: exact in the laboratory, complete everywhere, without remains.

use crate::measuring::wait_until_sampled;
use crate::program::{
    LATLAB, Missing, Running, command, latlab, lock_machine, not_run, root, run, wait_until,
};
use latlab_core::machine::TimeDomain;
use latlab_core::record::{Record, Series};
use latlab_core::time::Nanos;
use std::fs;
use std::path::Path;
use std::process::Command;

const COMPONENTS: [&str; 6] = [
    "rhealstone.switch",
    "rhealstone.preemption",
    "rhealstone.interrupt",
    "rhealstone.semaphore",
    "rhealstone.deadlock",
    "rhealstone.message",
];

/// Returns the series of a probe on its first CPU, in their order.
fn series_of<'a>(record: &'a Record, probe: &str) -> Vec<&'a Series> {
    let cpu = record.plan.cpus.iter().next().or(record.series.first().map(|series| series.cpu));
    let is_wanted = |series: &&Series| series.probe == probe && Some(series.cpu) == cpu;
    record.series.iter().filter(is_wanted).collect()
}

/// Returns the mean of the first series of a probe.
fn mean(record: &Record, probe: &str) -> Nanos {
    series_of(record, probe).first().unwrap_or_else(|| panic!("no {probe}")).mean
}

/// Asserts that all components were measured, in their order, and that no series is empty.
fn assert_complete(record: &Record) {
    let mut names: Vec<&str> = record.series.iter().map(|series| series.probe.as_str()).collect();
    names.retain(|name| COMPONENTS.contains(name));
    names.dedup();
    assert_eq!(names, COMPONENTS);
    for series in &record.series {
        assert!(series.counts.recorded > 0 && series.min > Nanos(0), "{series:?}");
    }
}

/// Parses the records of several targets.
fn records(text: &str) -> Vec<Record> {
    let mut texts: Vec<String> = text.split("\n}\n").map(|text| format!("{text}\n}}\n")).collect();
    texts.pop();
    texts.iter().map(|text| Record::from_json(text).expect("the output is a record")).collect()
}

#[test]
fn rhealstone_in_laboratory_is_plausible() {
    let targets = "--on lab:rt --on lab:low-latency --on lab:preemptible";
    let words = format!(
        "run rhealstone:figure=mean signal:tasks=3 mutex {targets} --count 20 --warm-up 5ms \
         --json"
    );
    let output = latlab(&words);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let records = records(&output.stdout);
    assert_eq!(records.len(), 3);
    for record in &records {
        assert_eq!(record.machine.time_domain, TimeDomain::Instructions);
        assert!(record.warnings.is_empty(), "{:?}", record.warnings);
        assert_complete(record);
        assert_plausible(record);
    }
}

/// Asserts relations that follow from the steps of the components.
fn assert_plausible(record: &Record) {
    let switch = mean(record, "rhealstone.switch");
    for probe in COMPONENTS {
        assert!(mean(record, probe) < Nanos(20_000), "{probe}: {:?}", series_of(record, probe));
    }
    // The semaphore has more than two switches, the deadlock a third task.
    let (semaphore, deadlock) =
        (mean(record, "rhealstone.semaphore"), mean(record, "rhealstone.deadlock"));
    assert!(Nanos(2 * switch.0) < semaphore && semaphore < deadlock, "{record:?}");
    // Without priority inheritance, the owner waits for half a millisecond of the third task.
    let plain = series_of(record, "rhealstone.deadlock")[1];
    assert!(plain.min > Nanos(400_000) && plain.max < Nanos(600_000), "{plain:?}");
    let interrupt = series_of(record, "rhealstone.interrupt");
    assert_eq!(interrupt.len(), 2, "the time of the handler is measured: {interrupt:?}");
    // The maximum may have come during another interrupt.
    assert!(interrupt[0].mean < Nanos(1_000), "{interrupt:?}");
    let signal = series_of(record, "signal");
    assert!(signal[0].mean + Nanos(2 * switch.0) < signal[1].mean, "{signal:?}");
    assert!(mean(record, "mutex") < deadlock);
    let sum: u64 = COMPONENTS.iter().map(|probe| mean(record, probe).0).sum();
    let figure = record.figures.iter().find(|figure| figure.name == "Rhealstone figure");
    let expected = 6e9 / f64::from(u32::try_from(sum).expect("the sum fits into 32 bits"));
    let ratio = figure.expect("the figure was requested").value / expected;
    assert!((0.999..1.001).contains(&ratio), "{figure:?} {expected}");
}

#[test]
fn rhealstone_on_this_machine_is_complete_but_for_the_driver() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let output = latlab("run rhealstone signal mutex --count 200 --warm-up 10ms --json");
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    assert_complete(&record);
    let is_warned = record.warnings.iter().any(|warning| warning.code == "no-test-driver");
    assert_eq!(is_warned, !Path::new("/dev/latlab").exists());
    assert!(!record.figures.iter().any(|figure| figure.name == "Rhealstone figure"));
    for series in &record.series {
        let enough = if series.span.0.contains("plain mutex req") { 5 } else { 200 };
        assert!(series.counts.recorded >= enough, "{series:?}");
    }
}

#[test]
fn rhealstone_without_priorities_is_refused() {
    for probe in ["rhealstone", "rhealstone.switch", "signal", "mutex"] {
        let words = format!("run {probe}:policy=other --for 100ms");
        latlab(&words).assert_refused(2, &["policy=other", "no priorities", "policy=fifo"]);
    }
    let words = "run rhealstone.deadlock:priority=2 --for 100ms";
    latlab(words).assert_refused(2, &["priority=2", "priority=3 or more"]);
    let words = "run rhealstone:figure=1/2/3 --for 100ms";
    latlab(words).assert_refused(2, &["figure", "'1/2/3' is neither mean nor six weights"]);
    let words = "run rhealstone.message:kind=pipes --for 100ms";
    latlab(words).assert_refused(2, &["kind can't be 'pipes'", "pipe"]);
    if Path::new("/dev/latlab").exists() {
        not_run(Missing::Optional, "a part of it: this machine has /dev/latlab");
    } else {
        let words = "run rhealstone:source=driver --for 100ms";
        let ways_out = ["rhealstone.interrupt", "insmod", "lab:PROFILE", "source=timer"];
        latlab(words).assert_refused(3, &ways_out);
    }
}

#[test]
fn rhealstone_without_cap_sys_nice_suggests_no_other_policy() {
    if !root() {
        return;
    }
    for probe in ["rhealstone", "signal", "mutex"] {
        let mut command = Command::new("prlimit");
        command.args(["--rtprio=0", "setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]);
        command.args([LATLAB, "run", probe, "--for", "100ms"]);
        let output = run(&mut command);
        let sentence = output.assert_refused(3, &["fifo", "CAP_SYS_NICE"]);
        assert!(!sentence.contains("--policy other"), "{sentence}");
    }
}

#[test]
fn rhealstone_without_ipc_namespace_suggests_alternatives() {
    if !root() {
        return;
    }
    for (probe, instead) in
        [("rhealstone.semaphore", "kind=posix"), ("rhealstone.message", "kind=pipe")]
    {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]);
        command.args([LATLAB, "run", probe, "--for", "100ms"]);
        run(&mut command).assert_refused(3, &[probe, "CAP_SYS_ADMIN", instead]);
    }
}

/// Returns the System V IPC objects.
fn objects() -> [String; 2] {
    ["/proc/sysvipc/sem", "/proc/sysvipc/msg"]
        .map(|list| fs::read_to_string(list).expect("this kernel has System V IPC"))
}

#[test]
fn ipc_objects_are_gone_after_sigkill() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let before = objects();
    for probe in ["rhealstone.semaphore", "rhealstone.message"] {
        let words = format!("run {probe} --for 10min --warm-up 0");
        let mut run = Running::start(&mut command(&words));
        run.wait_until_measuring();
        wait_until_sampled(run.pid());
        assert_eq!(objects(), before, "objects are in a namespace of their own");
        run.signal("KILL");
        assert_eq!(run.finish().signal(), Some(9));
        assert_eq!(objects(), before);
    }
}

#[test]
fn sigint_ends_probes_whatever_they_wait_for() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    for probe in COMPONENTS.into_iter().chain(["rhealstone", "signal:tasks=5", "mutex"]) {
        let words = format!("run {probe} --for 10min --warm-up 0 --json");
        let mut run = Running::start(&mut command(&words));
        run.wait_until_measuring();
        wait_until_sampled(run.pid());
        run.signal("INT");
        let output = run.finish();
        assert_eq!(output.code(), Some(4), "{probe}: {output:?}");
        let record = output.record();
        assert!(record.warnings.iter().any(|warning| warning.code == "interrupted"), "{probe}");
    }
}

/// A task of the probe never runs because another task of its priority has the CPU.
#[test]
fn probe_waiting_for_a_task_that_never_runs_fails() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    // A limit, in case the test does not end it: in CPU time, of which it takes all while latlab, on a
    // busy machine, gets little.
    let spin = "ulimit -t 300; while :; do :; done";
    let mut hog = command("exec --fifo 89 --cpus 0 -- sh -c");
    let hog = Running::start(hog.arg(spin));
    let stat = format!("/proc/{}/stat", hog.pid());
    let spins = || fs::read_to_string(&stat).is_ok_and(|stat| stat.contains("(sh) R"));
    wait_until("the other task spins", spins);
    for probe in ["rhealstone.semaphore", "mutex"] {
        let output = latlab(&format!("run {probe} --cpus 0 --for 30s"));
        output.assert_refused(2, &[probe, "CPU 0", "no sample for 5 s"]);
    }
    assert!(spins(), "the other task must still run");
    drop(hog);
}
