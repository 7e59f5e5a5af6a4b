//! The probes `schedule`, `migrate` and `noise`: in the laboratory and on this machine.

use super::program::{
    LATLAB, Missing, command, folder, latlab, lock_machine, not_run, root, run, two_cpus,
};
use latlab_core::plan::{Length, Plan};
use latlab_core::record::{Figure, Record};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

fn figure<'a>(record: &'a Record, name: &str) -> &'a Figure {
    let found = record.figures.iter().find(|figure| figure.name.starts_with(name));
    found.unwrap_or_else(|| panic!("no {name}: {:?}", record.figures))
}

fn value(record: &Record, name: &str) -> f64 {
    figure(record, name).value
}

/// Table 3 of Heursch et al. 2001 has 260 ns for each runnable task. Current schedulers keep tasks
/// in a tree.
#[test]
fn schedule_does_not_grow_linearly() {
    let words = "run schedule:0/10/40/160 --count 120 --json --on lab:preemptible";
    let output = latlab(words);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    assert!(record.warnings.is_empty(), "{:?}", record.warnings);
    assert_eq!(record.series.len(), 4);
    for (series, tasks) in record.series.iter().zip([0, 10, 40, 160]) {
        let end = format!("task switched to, {tasks} runnable");
        assert_eq!(series.span, ("__schedule entered".to_owned(), end));
        assert_eq!((series.counts.recorded, series.counts.missed), (30, 0));
        assert!((300..20_000).contains(&series.min.0), "{series:?}");
        let mean = value(&record, &format!("mean at {tasks} tasks"));
        assert!((series.mean.as_secs_f64() * 1e9 - mean).abs() < 1.0, "{mean}");
    }
    let growth = figure(&record, "growth from 10 tasks on: ");
    assert!(!growth.name.ends_with("linear") && growth.value.abs() < 26.0, "{growth:?}");
    assert!(value(&record, "ratio at 160 tasks") < 3.0, "{:?}", record.figures);
}

#[test]
fn schedule_without_driver_measures_dispatch_latency() {
    if Path::new("/dev/latlab").exists() {
        not_run(Missing::Optional, "this machine has /dev/latlab");
        return;
    }
    let _lock = lock_machine();
    let output = latlab("run schedule:0/3,policy=other --count 20 --cpus 0 --json");
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let spans: Vec<&str> = record.series.iter().map(|series| series.span.1.as_str()).collect();
    assert_eq!(spans, ["thread running, 0 runnable", "thread running, 3 runnable"]);
    let warned = record.warnings.iter().find(|warning| warning.code == "dispatch-latency");
    assert!(warned.expect("there is a warning").text.contains("/dev/latlab"));
    let ways_out = ["schedule", "insmod", "--on lab:", "by=dispatch"];
    latlab("run schedule:by=driver --count 1").assert_refused(3, &ways_out);
    latlab("run schedule:0/many --count 1").assert_refused(2, &["'many'", "0/50/200"]);
}

#[test]
fn noise_of_quiet_kernel_is_its_ticks() {
    let words = "run noise:period=100ms,busy=80ms --for 300ms --json --fresh --on lab:rt";
    let output = latlab(words);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let series = &record.series[0];
    // 250 ticks a second while the loop runs.
    assert!((40..120).contains(&series.counts.recorded), "{series:?}");
    let lost = value(&record, "share lost on CPU 0") / 100.0 * value(&record, "time watched");
    let sum = series.mean.as_secs_f64() * f64::from(u32::try_from(series.counts.recorded).unwrap());
    assert!((lost - sum).abs() < 1e-6, "{lost}: {series:?}");
    let largest = value(&record, "largest gap on CPU 0");
    assert!((largest - series.max.as_secs_f64() * 1e9).abs() < 0.5, "{largest}");
    assert_eq!(latlab(words).stdout, output.stdout);
    // A run without gaps above the threshold is a result.
    let quiet = latlab(&words.replace("noise:", "noise:threshold=50ms,"));
    assert_eq!(quiet.code(), Some(0), "{quiet:?}");
    let quiet = quiet.record();
    assert!(quiet.warnings.is_empty(), "{:?}", quiet.warnings);
    assert_eq!((quiet.series[0].counts.recorded, value(&quiet, "share lost")), (0, 0.0));
    assert!(quiet.figures.iter().all(|figure| !figure.name.starts_with("largest gap")));
}

#[test]
fn noise_leaves_a_housekeeping_cpu_and_needs_a_duration() {
    let _lock = lock_machine();
    let output = latlab("run noise:policy=other --for 200ms --json");
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let online = record.machine.cpus.len();
    let left_out = record.warnings.iter().any(|warning| warning.code == "housekeeping");
    assert_eq!((record.series.len(), left_out), ((online - 1).max(1), online > 1), "{record:?}");
    assert!(record.figures.iter().any(|figure| figure.name.starts_with("loops on CPU")));
    latlab("run noise:policy=other --count 5").assert_refused(2, &["noise", "--for"]);
    latlab("run noise:busy=1s --for 1s").assert_refused(2, &["busy=1 s", "give less"]);
    let plan = Plan { length: Length::Count(5), ..record.plan };
    let folder = folder();
    let line = json!({ "plan": plan }).to_string() + "\n";
    fs::write(folder.path().join("plan"), line).expect("the folder can be written");
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" agent \"$1\" < \"$1/plan\"", LATLAB]).arg(folder.path());
    let output = run(&mut shell);
    assert!(output.stdout.contains("give a time with --for"), "{output:?}");
}

#[test]
fn deadline_policy_is_refused_to_probes_bound_to_a_cpu() {
    let mut probes = vec!["schedule", "noise"];
    if available_parallelism().is_ok_and(|cpus| cpus.get() > 1) {
        probes.push("migrate");
    } else {
        not_run(Missing::Optional, "a part of it needs two CPUs");
    }
    for probe in probes {
        let words = format!("run {probe}:policy=deadline --for 100ms");
        latlab(&words).assert_refused(2, &[probe, "deadline", "pinned to one CPU", "policy=fifo"]);
    }
}

#[test]
fn probes_without_cap_sys_nice_are_skipped_before_anything_starts() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let probes = ["schedule", "noise", "player", "context:policy=fifo", "hackbench:policy=rr"];
    let mut command = Command::new("prlimit");
    command.args(["--rtprio=0", "setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]);
    command.args([LATLAB, "run"]).args(probes).arg("cyclic:policy=other");
    let output = run(command.args(["--skip-missing", "--for", "50ms", "--json"]));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let skipped = record.warnings.iter().filter(|warning| warning.code == "skipped");
    let skipped: Vec<&str> = skipped.map(|warning| warning.text.as_str()).collect();
    assert_eq!(skipped.len(), probes.len(), "{skipped:?}");
    assert!(skipped.iter().all(|text| text.contains("CAP_SYS_NICE")), "{skipped:?}");
}

#[test]
fn migrate_moves_and_wakes_task_on_another_cpu() {
    let folder = folder();
    let profile = two_cpus(folder.path());
    for (by, end) in [("affinity", "running on the other CPU"), ("wakeup", "running")] {
        let mut words = command(&format!("run migrate:by={by} --count 40 --json --on"));
        let output = run(words.arg(format!("lab:{profile}")));
        assert_eq!(output.code(), Some(0), "{output:?}");
        let series = &output.record().series[0];
        assert_eq!((series.span.1.as_str(), series.counts.recorded), (end, 40));
        assert!(series.min.0 > 100, "{series:?}");
        assert_eq!(series.cpus().to_string(), "0-1");
    }
    latlab("run migrate --cpus 0 --count 1").assert_refused(3, &["CPU 0 is one", "cpus = 2"]);
}
