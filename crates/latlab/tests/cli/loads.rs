//! Loads: their work, their CPUs, and their end.

use crate::measuring::{measuring_threads, switches, wait_until_done};
use crate::program::{
    LATLAB, Missing, Running, command, entries, field, folder, in_mount_namespace, latlab,
    lock_machine, not_run, root, run, running, send, wait_until, workers,
};

use latlab_core::cpulist::CpuList;
use latlab_core::record::Record;
use latlab_core::time::Nanos;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::Command;

/// Returns the record of a run with these options, which ends when each worker of its loads has done
/// some work.
fn record_of_work(words: &str) -> Record {
    let words = format!("run --policy other --for 10min --json {words}");
    let mut run = Running::start(&mut command(&words));
    run.wait_until_measuring();
    wait_until_done(&run, 1);
    run.signal("INT");
    let output = run.finish();
    assert_eq!(output.code(), Some(4), "{output:?}");
    output.record()
}

#[test]
fn loads_report_their_work() {
    let _lock = lock_machine();
    let folder = folder();
    let names = ["cpu", "memory", "fork", "procfs", "hackbench", "netbench", "disk"];
    let words = names.map(|name| format!("--load {name}")).join(" ");
    let dir = folder.path().display();
    let record = record_of_work(&format!("{words}:dir={dir}"));
    let worked: Vec<&str> = record.work.iter().map(|work| work.load.as_str()).collect();
    assert_eq!(worked, names);
    assert_all_worked(&record);
    assert!(record.series.iter().all(|series| series.load == names));
    assert!(entries(folder.path()).is_empty());
}

/// Asserts that all loads worked and none ended early.
fn assert_all_worked(record: &Record) {
    for work in &record.work {
        // A worker may wait for a busy disk after it was killed: its CPU time is then not counted, as
        // the record says.
        let stuck = format!("a worker of the load {} had not ended", work.load);
        let mut warnings = record.warnings.iter();
        let is_timed = work.cpu_ns > Nanos(0) || warnings.any(|one| one.text.starts_with(&stuck));
        assert!(work.done > 0 && is_timed, "{work:?}");
    }
    assert!(!record.warnings.iter().any(|warning| warning.code == "load-ended"), "{record:?}");
}

/// Asserts that all loads worked, each in its unit, and none ended early.
fn assert_worked(record: &Record, units: &[(&str, &str)]) {
    let found = record.work.iter().map(|work| (work.load.as_str(), work.unit.as_str()));
    assert_eq!(found.collect::<Vec<_>>(), units);
    assert_all_worked(record);
}

/// Returns the arguments `--load NAME` for each load.
fn loads(names: &[&str]) -> String {
    names.iter().map(|name| format!(" --load {name}")).collect()
}

#[test]
fn loads_of_files_and_processes_report_their_work() {
    let _lock = lock_machine();
    let folder = folder();
    let dir = folder.path().display();
    let disk = ["io", "wilshire-disk", "page-cache"].map(|name| format!("{name}:dir={dir}"));
    let words = loads(&disk.each_ref().map(String::as_str));
    let others = loads(&["exec", "exit:size=1MiB", "interrupts:source=timer"]);
    let record = record_of_work(&format!("{words}{others}"));
    let units = [
        ("io", "bytes"),
        ("wilshire-disk", "bytes"),
        ("page-cache", "pages"),
        ("exec", "programs"),
        ("exit", "processes"),
        ("interrupts", "timer expiries"),
    ];
    assert_worked(&record, &units);
    assert!(entries(folder.path()).is_empty());
}

#[test]
fn network_loads_run_in_namespaces_of_their_own() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let words = format!("run --policy other --for 10min --json{}", loads(&["ping", "download"]));
    let mut run = Running::start(&mut command(&words));
    run.wait_until_measuring();
    let network =
        |pid: u32| fs::read_link(format!("/proc/{pid}/ns/net")).expect("the process exists");
    let networks: BTreeSet<_> = workers(run.pid()).into_iter().map(network).collect();
    assert_eq!(networks.len(), 2 * online().len());
    assert!(!networks.contains(&network(std::process::id())));
    wait_until_done(&run, 1);
    run.signal("INT");
    let output = run.finish();
    assert_worked(&output.record(), &[("ping", "echoes"), ("download", "bytes")]);
}

#[test]
fn ipi_load_needs_two_cpus() {
    let _lock = lock_machine();
    let alone = latlab("run --policy other --cpus 0 --for 100ms --load ipi:on=probe");
    alone.assert_refused(3, &["ipi: it needs 2 CPUs", "CPU 0", "on=", "cpus = 2"]);
    if online().len() > 1 {
        assert_worked(&record_of_work("--load ipi"), &[("ipi", "broadcasts")]);
    } else {
        not_run(Missing::Optional, "a part of it needs two CPUs");
    }
}

fn has_driver() -> bool {
    Path::new("/dev/latlab").exists()
}

#[test]
fn load_without_its_needs_is_refused_before_anything_starts() {
    let _lock = lock_machine();
    if has_driver() {
        not_run(Missing::Optional, "a part of it: this machine has /dev/latlab");
    } else {
        let output = latlab("run --for 60s --load interrupts:device");
        output.assert_refused(3, &["interrupts: ", "/dev/latlab", "lab:", "source=timer"]);
    }
    latlab("run --for 60s --load interrupts:every=100us,busy=51us")
        .assert_refused(2, &["busy=51 us of each 100 us", "half of every="]);
    if root() {
        let folder = folder();
        let program = folder.path().join("latlab");
        fs::copy(LATLAB, &program).expect("the program can be copied");
        for (load, what) in [
            ("ping", "its network namespace"),
            ("download", "its network namespace"),
            ("caps-lock", "/dev/tty0"),
            ("console-switch", "/dev/tty0"),
        ] {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
            command.args(["--inh-caps=-all", "--bounding-set=-all"]).arg(&program);
            command.args(["run", "--policy", "other", "--for", "60s", "--load", load]);
            let output = run(command.current_dir("/"));
            output.assert_refused(3, &[&format!("{load}: "), what]);
        }
    }
    if !has_driver() {
        let words = loads(&["interrupts:device", "fork"]);
        let record = record_of_work(&format!("--skip-missing{words}"));
        assert_worked(&record, &[("fork", "processes")]);
        let skipped = record.warnings.iter().find(|warning| warning.code == "skipped");
        assert!(skipped.expect("there is a warning").text.contains("interrupts was left out"));
    }
}

#[test]
fn load_with_killed_process_is_reported_as_ended() {
    let _lock = lock_machine();
    for load in ["hackbench", "netbench"] {
        let words = format!("run --policy other --for 10min --json --load {load}");
        let mut run = Running::start(&mut command(&words));
        run.wait_until_measuring();
        let worker = workers(run.pid())[0];
        let children = format!("/proc/{worker}/task/{worker}/children");
        let children = fs::read_to_string(children).expect("the process exists");
        let child = children.split_whitespace().last().expect("the worker has children");
        send("KILL", child.parse().expect("it is a PID"));
        wait_until("the load has ended", || {
            field(worker, "State").is_none_or(|state| state.starts_with('Z'))
        });
        run.signal("INT");
        let record = run.finish().record();
        let ended = record.warnings.iter().find(|warning| warning.code == "load-ended");
        assert!(
            ended.expect("there is a warning").text.contains("a child process has ended"),
            "{record:?}"
        );
    }
}

#[test]
fn load_of_size_0_is_refused() {
    for load in ["disk", "wilshire-disk", "download"] {
        let output = latlab(&format!("run --for 1s --load {load}:size=0B"));
        output.assert_refused(2, &[load, "0B"]);
    }
}

/// The test driver has one interrupt, which `schedule` does not use.
#[test]
fn driver_interrupt_used_by_probe_is_refused_to_load() {
    let words = "--load interrupts --count 20 --on lab:rt --fresh --json";
    // First, so that the driver is built.
    let output = latlab(&format!("run schedule:0/10 {words}"));
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert_worked(&output.record(), &[("interrupts", "device interrupts")]);
    latlab(&format!("run rhealstone.interrupt {words}"))
        .assert_refused(2, &["interrupts: ", "source=timer"]);
}

/// The latency grows by the work of an interrupt: a handler of 10 µs (3 µs of the worst case of an
/// idle machine have other causes), one of 100 µs, and up to 64 timers of a quarter of a
/// microsecond each.
#[test]
fn interrupts_load_delays_tasks() {
    let worst = |load: &str| {
        let output =
            latlab(&format!("run cyclic --on lab:rapid-reaction --count 500 --json {load}"));
        assert_eq!(output.code(), Some(0), "{output:?}");
        output.record().series[0].max
    };
    let without = worst("");
    for (load, least) in [
        ("interrupts:source=device", 6_000),
        ("interrupts:source=device,busy=100us", 95_000),
        ("interrupts:source=timer", 5_000),
    ] {
        let with = worst(&format!("--load {load}"));
        assert!(with.0 > without.0 + least, "{load}: {with} and {without} without");
    }
}

/// Its IRQ thread has FIFO 50, so that a task of priority 90 is not kept waiting by it. The load runs a
/// little longer than the probe.
#[test]
fn periodic_interrupts_come_on_time_and_are_handled_by_a_thread() {
    let load = "interrupts:source=device,every=1ms,busy=100us";
    let output =
        latlab(&format!("run cyclic --on lab:rt --for 200ms --warm-up 0s --json --load {load}"));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    assert_worked(&record, &[("interrupts", "device interrupts")]);
    assert!((200..=300).contains(&record.work[0].done), "{:?}", record.work);
    assert!(record.series[0].max < Nanos(50_000), "{:?}", record.series[0]);
}

/// A guest has a keyboard, a display, a disk and a device with an interrupt.
#[test]
fn loads_that_need_devices_work_in_a_guest() {
    let words = loads(&[
        "caps-lock",
        "console-switch",
        "interrupts",
        "ping",
        "download",
        "io:size=1MiB",
        "wilshire-disk:size=1MiB",
        "page-cache:size=1MiB",
    ]);
    let words = format!("run cyclic --on lab:standard --for 200ms --json{words}");
    let output = latlab(&words);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let units = [
        ("caps-lock", "switches"),
        ("console-switch", "switches"),
        ("interrupts", "device interrupts"),
        ("ping", "echoes"),
        ("download", "bytes"),
        ("io", "bytes"),
        ("wilshire-disk", "bytes"),
        ("page-cache", "pages"),
    ];
    let record = output.record();
    assert_worked(&record, &units);
    let changes: Vec<&str> = record.changes.iter().map(|change| change.knob.as_str()).collect();
    assert_eq!(changes, ["console_leds", "active_console"]);
    assert!(record.changes.iter().all(|change| change.restored), "{:?}", record.changes);
}

/// Returns the online CPUs of this machine.
fn online() -> CpuList {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").expect("sysfs is mounted");
    text.trim().parse().expect("the kernel writes lists of CPUs")
}

/// Returns the CPU list of each worker of a load.
fn worker_cpus(on: &str) -> Vec<String> {
    let words = format!("run --policy other --cpus 0 --for 10min --load cpu:on={on}");
    let mut run = Running::start(&mut command(&words));
    run.wait_until_measuring();
    let cpus = |pid: &u32| field(*pid, "Cpus_allowed_list").expect("the process exists");
    let mut cpus: Vec<String> = workers(run.pid()).iter().map(cpus).collect();
    cpus.sort();
    run.signal("INT");
    assert_eq!(run.finish().code(), Some(4));
    cpus
}

/// Asserts that a load has one worker on each of these CPUs. Without any, it must be refused.
fn assert_placed(on: &str, cpus: &CpuList) {
    if cpus.is_empty() {
        let words = format!("run --cpus 0 --for 100ms --load cpu:on={on}");
        latlab(&words).assert_refused(3, &["cpu: ", "there is no ", "--cpus", "on="]);
        return;
    }
    let mut expected: Vec<String> = cpus.iter().map(|cpu| cpu.to_string()).collect();
    expected.sort();
    assert_eq!(worker_cpus(on), expected, "{on}");
}

#[test]
fn loads_run_on_the_cpus_they_were_given() {
    let _lock = lock_machine();
    let measured = CpuList::from_iter([0]);
    assert_placed("probe", &measured);
    assert_placed("others", &online().minus(&measured));
    assert_placed("all", &online());
    let siblings = "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list";
    let core: CpuList = fs::read_to_string(siblings).unwrap().trim().parse().unwrap();
    assert_placed("sibling", &core.minus(&measured));
    let everywhere = format!("run --cpus {} --for 100ms --load cpu:on=others", online());
    latlab(&everywhere)
        .assert_refused(3, &["cpu: ", "there is no CPU that is not measured", "--cpus"]);
}

#[test]
fn worker_that_dies_is_reported_and_run_continues() {
    const MORE: u64 = 1_000;
    let _lock = lock_machine();
    let words = "run --policy other --cpus 0 --for 10min --warm-up 0 --load fork:on=probe --json";
    let mut run = Running::start(&mut command(words));
    run.wait_until_measuring();
    let [worker] = workers(run.pid())[..] else { panic!("one worker: {run:?}") };
    send("KILL", worker);
    let has_ended = || field(worker, "State").is_none_or(|state| state.starts_with('Z'));
    wait_until("the worker has ended", has_ended);
    let thread = measuring_threads(run.pid())[0];
    let before = switches(thread);
    wait_until("the run continues", || switches(thread) >= before + MORE);
    run.signal("INT");
    let output = run.finish();
    assert_eq!(output.code(), Some(4), "{output:?}");
    let record = output.record();
    // Each sample is one switch, or two where the machine takes the CPU from the thread meanwhile.
    assert!(record.series[0].counts.recorded >= MORE / 4, "{:?}", record.series[0].counts);
    let ended = record.warnings.iter().find(|warning| warning.code == "load-ended");
    let sentence = &ended.expect("there is a warning").text;
    assert!(sentence.contains("fork") && sentence.contains("SIGKILL"), "{sentence}");
}

/// The beginning of a shell script that is a load: it goes on while the run measures, so that the load
/// does not end at once. The worker is the parent of the shell, and the run that of the worker.
const WHILE_MEASURING: &str = "read -r pid name state run rest </proc/$PPID/stat; \
    until grep -qs / /proc/$run/task/*/comm; do sleep 0.01; done; ";

/// The option with a load that fails while the run measures, and says `gone`.
fn load_that_fails() -> [String; 2] {
    let load = format!("exec:sh -c '{WHILE_MEASURING} echo gone >&2; exit 1'");
    ["--load".to_owned(), load]
}

#[test]
fn run_that_lost_a_load_certifies_no_limit() {
    let _lock = lock_machine();
    let run = |limit: &str| {
        let words = format!("run --policy other --cpus 0 --for 3s --json --fail-above {limit}");
        run(command(&words).args(load_that_fails()))
    };
    let output = run("1h");
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("was not measured to the end: the load exec"), "{output:?}");
    assert_eq!(output.record().warnings.iter().filter(|one| one.code == "load-ended").count(), 1);
    assert_eq!(run("1ns").code(), Some(1), "an exceeded limit is certain");
}

#[test]
fn ab_refuses_a_run_that_lost_a_load() {
    let _lock = lock_machine();
    let side = ["--", "run", "--policy", "other", "--cpus", "0", "--for", "3s"];
    let mut ab = command("ab -n 6");
    ab.args(side).args(load_that_fails()).args(side);
    let output = run(&mut ab);
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("latlab: the load exec ended"), "{output:?}");
    assert_eq!(output.stdout, "", "nothing is compared");
}

#[test]
fn load_that_cannot_start_ends_the_run() {
    let _lock = lock_machine();
    let folder = folder();
    let program = folder.path().join("latlab");
    fs::copy(LATLAB, &program).unwrap();
    // The check passes, but the first read in the worker fails.
    let words = "run --for 60s --policy other --load cpu --load procfs:path=/proc/self/mem";
    let mut command = Command::new(&program);
    run(command.args(words.split_whitespace())).assert_refused(2, &["procfs"]);
    wait_until("no worker is left", || running(&program).is_empty());
}

#[test]
fn disk_that_fills_up_does_not_lose_the_record() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    // Only the run sees this file system, so that the shell prints the record. The run is stopped while
    // the disk is filled, which may take a busy machine longer than the run.
    let script = "mount -t tmpfs -o size=4m none \"$1/disk\"; disk=$1/disk; shift; \
                  \"$@\" --out \"$disk/record\" >/dev/null & run=$!; \
                  until test \"$(df --output=used \"$disk\" | tail -n 1)\" -ge 1024; do sleep 0.02; done; \
                  kill -s STOP $run; head -c 8m /dev/zero >\"$disk/rest\" 2>/dev/null || :; \
                  kill -s CONT $run; wait $run; \
                  test \"$(stat -c %s \"$disk/rest\")\" -lt 3200000; cat \"$disk/record\"; exit";
    let output =
        run(&mut in_mount_namespace(script, folder.path(), "run --policy other --cpus 0 --for 3s"));
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert!(output.record().series[0].counts.recorded > 0);
}

/// A frozen file system, which is thawed when this is dropped. The folder keeps it mounted.
struct Frozen(File);

impl Frozen {
    fn freeze(folder: &str) -> Frozen {
        let frozen = Frozen(File::open(folder).expect("it is mounted"));
        assert!(frozen.change("--freeze"), "root may freeze it");
        frozen
    }

    fn change(&self, how: &str) -> bool {
        let path = format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd());
        let status = Command::new("fsfreeze").arg(how).arg(path).status();
        status.expect("util-linux is installed").success()
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.change("--unfreeze");
    }
}

/// A frozen file system stands for a disk that does not answer: writers sleep in the kernel, and
/// SIGKILL does not end them.
#[test]
fn worker_that_waits_for_a_disk_does_not_keep_a_run_from_ending() {
    if !root() {
        return;
    }
    if !Path::new("/dev/loop-control").exists() {
        return not_run(Missing::Optional, "there are no loop devices");
    }
    let _lock = lock_machine();
    let folder = folder();
    let script = "mkdir \"$1/disk\"; truncate -s 64M \"$1/image\"; \
                  mke2fs -q -t ext4 \"$1/image\"; mount -o loop \"$1/image\" \"$1/disk\"";
    let disk = folder.path().join("disk").display().to_string();
    let words = format!("run --policy other --for 10min --json --load disk:dir={disk},size=1MiB");
    let mut run = Running::start(&mut in_mount_namespace(script, folder.path(), &words));
    run.wait_until_measuring();
    wait_until_done(&run, 1);
    let frozen = Frozen::freeze(&format!("/proc/{}/root{disk}", run.pid()));
    let waits = |worker| field(worker, "State").is_some_and(|state| state.starts_with('D'));
    wait_until("a worker waits for the disk", || workers(run.pid()).into_iter().any(waits));
    run.signal("INT");
    let output = run.finish();
    drop(frozen);
    assert_eq!(output.code(), Some(4), "it ends before the disk answers: {output:?}");
    let record = output.record();
    assert!(record.work[0].done > 0, "it wrote before: {record:?}");
    assert!(record.warnings.iter().any(|warning| warning.code == "load-stuck"), "{record:?}");
}

#[test]
fn command_runs_again_and_counts_its_ends() {
    let _lock = lock_machine();
    let mut command = command("run --policy other --cpus 0 --for 10min --json --load");
    let mut run = Running::start(command.arg("exec:sh -c 'exit 0' a,b=c:d"));
    run.wait_until_measuring();
    wait_until_done(&run, 2);
    run.signal("INT");
    let output = run.finish();
    assert_eq!(output.code(), Some(4), "{output:?}");
    let record = output.record();
    assert_worked(&record, &[("exec", "programs")]);
    assert!(record.work[0].done > 1, "{record:?}");
    assert_eq!(record.plan.loads[0].params["command"], "sh -c 'exit 0' a,b=c:d");
}

#[test]
fn command_that_fails_at_once_or_does_not_exist_ends_the_run() {
    let _lock = lock_machine();
    let load = |load: &str| run(command("run --policy other --for 60s --load").arg(load));
    load("exec:nosuch-program 1")
        .assert_refused(3, &["exec", "no program 'nosuch-program'", "PATH"]);
    load("exec:sh -c 'oops").assert_refused(2, &["exec", "quotation mark"]);
    let mut guest = command("run --on lab:standard --load");
    run(guest.arg("exec:nosuch-program")).assert_refused(2, &["nosuch-program", "not found"]);
    // On a busy machine it may fail later than in the first 200 ms: the run then ends with 0.
    let mut failed = None;
    wait_until("the command fails at once", || {
        let mut command = command("run --policy other --for 50ms --load");
        let output = run(command.arg("exec:sh -c 'echo too bad >&2; exit 7'"));
        failed = Some(output).filter(|output| output.code() != Some(0));
        failed.is_some()
    });
    failed.expect("it failed").assert_refused(2, &["exec", "7", "too bad"]);
}

#[test]
fn command_that_fails_later_is_reported_and_run_continues() {
    let _lock = lock_machine();
    let mut command = command("run --policy other --cpus 0 --for 3s --json");
    let output = run(command.args(load_that_fails()));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let ended = record.warnings.iter().find(|warning| warning.code == "load-ended");
    assert!(ended.is_some_and(|warning| warning.text.contains("gone")), "{record:?}");
}

#[test]
fn orphans_of_a_command_are_reaped_while_it_runs() {
    let _lock = lock_machine();
    // It fails as soon as none of its orphans is a zombie.
    let script = format!(
        "{WHILE_MEASURING} for n in 1 2 3 4 5; do (true &); done; sleep 0.1
        while ps -o stat= --ppid $PPID | grep -q Z; do sleep 0.1; done; exit 7"
    );
    let mut command = command("run --policy other --cpus 0 --for 10min --load");
    let mut run = Running::start(command.arg(format!("exec:sh -c '{script}'")));
    run.wait_until_measuring();
    wait_until("the command fails", || workers(run.pid()).is_empty());
    run.signal("INT");
    let output = run.finish();
    assert!(output.stderr.contains("exit status: 7"), "{output:?}");
}

/// Starts a run whose load has a descendant in a session of its own, and returns that one's program.
fn run_with_descendant(folder: &Path) -> (Running, std::path::PathBuf) {
    let sleeper = folder.join("sleeper");
    fs::copy("/bin/sleep", &sleeper).expect("the program can be copied");
    // For longer than a test waits for its end.
    let load = format!("exec:sh -c 'setsid {} 100000 & wait'", sleeper.display());
    let mut command = command("run --policy other --cpus 0 --for 10min --json --load");
    let mut run = Running::start(command.arg(load));
    run.wait_until_measuring();
    wait_until("the descendant runs", || !running(&sleeper).is_empty());
    (run, sleeper)
}

#[test]
fn command_ends_with_all_its_descendants() {
    let _lock = lock_machine();
    for signal in ["INT", "KILL"] {
        let folder = folder();
        let (run, sleeper) = run_with_descendant(folder.path());
        run.signal(signal);
        run.finish();
        wait_until("no descendant is left", || running(&sleeper).is_empty());
    }
}
