//! Options for accepting a machine: limits, presets, metrics, and the place of latlab itself.

use crate::program::{
    Missing, Running, command, field, folder, latlab, lock_machine, not_run, root, wait_until,
};
use latlab_core::time::Nanos;
use std::fs;
use std::path::Path;

#[test]
fn run_with_a_sample_above_the_limit_measures_to_the_end_and_fails() {
    let _lock = lock_machine();
    let run = "run --policy other --cpus 0 --count 200 --warm-up 0 --json --fail-above";
    let output = latlab(&format!("{run} 1ns"));
    assert_eq!(output.code(), Some(1), "{output:?}");
    assert!(output.stderr.contains(" samples were above 1 ns; the worst: "), "{output:?}");
    let record = output.record();
    let counts = record.series[0].counts;
    assert!(counts.recorded + counts.missed >= 200, "{counts:?}");
    assert_eq!(record.plan.fail_above, Some(Nanos(1)));
    assert_eq!(latlab(&format!("{run} 1h")).code(), Some(0));
}

#[test]
fn preset_is_replaced_by_options() {
    let _lock = lock_machine();
    let output = latlab(
        "run --preset acceptance --policy other --cpus 0 --count 100 --load cpu --fail-above 1h --json",
    );
    assert_eq!(output.code(), Some(0), "{output:?}");
    let plan = output.record().plan;
    assert_eq!((plan.loads.len(), plan.loads[0].name.as_str()), (1, "cpu"));
    let listed = latlab("list acceptance").stdout;
    assert!(listed.contains("--for 24h --fail-above 100us"), "{listed}");
}

#[test]
fn metrics_have_all_samples_at_the_end() {
    let _lock = lock_machine();
    let folder = folder();
    let path = folder.path().join("latlab.prom");
    let run =
        format!("run --policy other --cpus 0 --for 500ms --json --metrics {}", path.display());
    let output = latlab(&run);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let page = fs::read_to_string(&path).expect("the file was written");
    let recorded = output.record().series[0].counts.recorded;
    let count =
        format!("latlab_run_latency_seconds_count{{probe=\"cyclic\",cpu=\"0\"}} {recorded}\n");
    assert!(page.contains(&count) && page.contains("latlab_run_measuring 0\n"), "{page}");
    let nowhere = "run --for 1s --metrics /nonexistent/latlab.prom";
    latlab(nowhere).assert_refused(2, &["/nonexistent/latlab.prom"]);
}

#[test]
fn housekeeping_moves_the_main_thread_only() {
    let _lock = lock_machine();
    latlab("run --for 1s --housekeeping 8191").assert_refused(2, &["8191", "not online"]);
    let online = fs::read_to_string("/sys/devices/system/cpu/online").expect("sysfs is mounted");
    if online.trim() == "0" {
        not_run(Missing::Optional, "it needs two CPUs");
        return;
    }
    let words = "run --policy other --cpus 0 --for 10min --load cpu --housekeeping 1 --json";
    let mut run = Running::start(&mut command(words));
    run.wait_until_measuring();
    assert_eq!(field(run.pid(), "Cpus_allowed_list").as_deref(), Some("1"));
    wait_until("a thread is on the measured CPU", || {
        let tasks = fs::read_dir(format!("/proc/{}/task", run.pid())).expect("it runs").flatten();
        let mut tasks = tasks.filter_map(|task| task.file_name().to_str()?.parse::<u32>().ok());
        tasks.any(|task| field(task, "Cpus_allowed_list").as_deref() == Some("0"))
    });
    run.signal("INT");
    let plan = run.finish().record().plan;
    assert_eq!(plan.housekeeping.to_string(), "1");
}

/// A control group that is removed when this is dropped.
struct Group(String);

impl Group {
    /// A new group in the first hierarchy in which one can be made.
    fn new() -> Option<Group> {
        let name = format!("latlab-test-{}", std::process::id());
        let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids"];
        let mut groups = roots.iter().map(|root| format!("{root}/{name}"));
        groups
            .find(|group| {
                fs::create_dir(group).is_ok() && Path::new(group).join("cgroup.procs").exists()
            })
            .map(Group)
    }

    fn processes(&self) -> String {
        fs::read_to_string(format!("{}/cgroup.procs", self.0)).expect("the group exists")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn cgroup_has_latlab_without_its_loads_while_it_measures() {
    let _lock = lock_machine();
    let refused = latlab("run --for 1s --policy other --cgroup /nonexistent");
    refused.assert_refused(3, &["--cgroup /nonexistent", "no control group"]);
    if !root() {
        return;
    }
    let Some(group) = Group::new() else {
        not_run(Missing::Optional, "no control group can be made here");
        return;
    };
    let words = format!("run --policy other --for 10min --load cpu --json --cgroup {}", group.0);
    let mut run = Running::start(&mut command(&words));
    run.wait_until_measuring();
    assert_eq!(group.processes().trim(), run.pid().to_string());
    run.signal("INT");
    let plan = run.finish().record().plan;
    assert_eq!(plan.cgroup.as_deref(), Some(group.0.as_str()));
    assert_eq!(group.processes(), "");
}

#[test]
fn cyclic_measures_on_each_clock() {
    let _lock = lock_machine();
    for clock in ["monotonic", "realtime", "tai"] {
        let words = format!("run cyclic:clock={clock},policy=other --cpus 0 --count 100 --json");
        let record = latlab(&words).record();
        let counts = record.series[0].counts;
        assert!(counts.recorded + counts.missed >= 100, "{clock}: {counts:?}");
        let asked = record.plan.probes[0].params.get("clock").and_then(|clock| clock.as_str());
        // A record without the key has the default.
        assert_eq!(asked.unwrap_or("monotonic"), clock);
    }
    latlab("run cyclic:clock=tia").assert_refused(2, &["clock", "tia", "tai"]);
}
