//! Users without rights: messages name the missing right, and measuring without it is possible.

use crate::program::{self, LATLAB, Missing, folder, lock_machine, not_run, root, run};
use latlab_core::time::Nanos;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies the program to `folder`, so that every user may run it.
fn copy(folder: &Path) -> PathBuf {
    let path = folder.join("latlab");
    fs::copy(LATLAB, &path).expect("the program can be copied");
    path
}

/// Runs the program as the user nobody, without capabilities and with an `RLIMIT_RTPRIO` of 0.
fn as_nobody(program: &Path, words: &str) -> program::Output {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.args(["--inh-caps=-all", "--bounding-set=-all", "prlimit", "--rtprio=0"]);
    // An inherited nice value is no reason to refuse.
    command.args(["nice", "-n", "1"]);
    command.current_dir("/").arg(program).args(words.split_whitespace());
    run(&mut command)
}

#[test]
fn user_without_real_time_rights_is_told_how_to_get_them() {
    if !root() {
        return;
    }
    let folder = folder();
    let program = copy(folder.path());
    let remedies: &[&str] = &["CAP_SYS_NICE", "RLIMIT_RTPRIO", "--policy other"];
    as_nobody(&program, "run cyclic").assert_refused(3, remedies);
    let whole: &[&str] = &["setcap cap_sys_nice,cap_ipc_lock,cap_bpf,cap_perfmon+ep "];
    as_nobody(&program, "run cyclic").assert_refused(3, whole);
    as_nobody(&program, "explain cyclic --policy other").assert_refused(3, whole);
    as_nobody(&program, "run timer --policy rr").assert_refused(3, remedies);
    as_nobody(&program, "exec --fifo 5 -- true").assert_refused(3, &remedies[..2]);
    let scan = as_nobody(&program, "scan fork");
    assert!(
        !scan.assert_refused(3, &remedies[..2]).contains("--policy"),
        "a scan has no --policy: {scan:?}"
    );
    as_nobody(&program, "exec --cpu-dma-latency 0 -- true").assert_refused(3, &["root"]);
    as_nobody(&program, "run --policy other --set swappiness=1")
        .assert_refused(3, &["swappiness", "root"]);
    as_nobody(&program, "adapt").assert_refused(3, &["run latlab as root to adapt"]);
}

#[test]
fn user_without_rights_measures_as_ordinary_task() {
    if !root() {
        return;
    }
    let folder = folder();
    let program = copy(folder.path());
    let _lock = lock_machine();
    let words = "run cyclic --policy other --count 100 --cpus 0 --warm-up 0 --json";
    let output = as_nobody(&program, words);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let [series] = record.series.as_slice() else { panic!("{record:?}") };
    let schedule = &series.schedule;
    assert_eq!((schedule.policy.as_str(), schedule.priority), ("other", 0));
    assert_eq!(schedule.slack, Nanos::from_micros(50));
    assert!(series.counts.recorded + series.counts.missed >= 100);
}

#[test]
fn user_with_cap_sys_nice_scans() {
    if !root() {
        return;
    }
    let folder = folder();
    let program = copy(folder.path());
    let capabilities = ["cap_sys_nice,cap_ipc_lock+ep"];
    let status = Command::new("setcap").args(capabilities).arg(&program).status();
    assert!(status.expect("make test installs setcap").success());
    let _lock = lock_machine();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
    command.current_dir("/").arg(&program).args("scan fork read exit --points 10".split(' '));
    // Edges are not refined, so that the scan ends after its measurements.
    let output = run(command.args("--repeat 3 --resolution 100us --json".split(' ')));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    assert_eq!(record.scans.len(), 3);
    // Where a busy machine delays each call, some points are never measured.
    assert!(record.scans.iter().all(|scan| scan.points.len() >= 5), "{output:?}");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
    command.current_dir("/").arg(&program).args(["scan", "procfs:/proc/kmsg"]);
    run(&mut command).assert_refused(2, &["procfs: /proc/kmsg", "path="]);
}

/// A cgroup that is removed with the test.
struct Cgroup(PathBuf);

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn cgroup_without_real_time_budget_is_named_to_root() {
    let hierarchy = Path::new("/sys/fs/cgroup/cpu");
    if !root() {
        return;
    }
    if !hierarchy.join("cpu.rt_runtime_us").exists() {
        not_run(Missing::Optional, "no cgroup (version 1) here limits real-time tasks");
        return;
    }
    let group = Cgroup(hierarchy.join(format!("latlab-test-{}", std::process::id())));
    fs::create_dir(&group.0).expect("root may make a cgroup");
    let mut command = Command::new("sh");
    command.args(["-c", "echo $$ > \"$1/cgroup.procs\"; exec \"$2\" run cyclic", "sh"]);
    command.arg(&group.0).arg(LATLAB);
    run(&mut command).assert_refused(3, &["fifo", "latlab-test-", "cpu.rt_runtime_us"]);
}
