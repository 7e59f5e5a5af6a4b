//! Studies on a cluster: a real Slurm with one node, which ends with its test.

use crate::program::{
    Output, Running, command, entries, folder, latlab, new_seed, pause, root, run, wait_until,
};
use crate::ssh::free_port;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The daemons of a cluster, in a PID namespace that ends with the thread that started it.
struct Cluster {
    daemons: Child,
    folder: tempfile::TempDir,
}

/// Script of the first process of the namespace; its parameter is the folder.
const DAEMONS: &str = "cd \"$1\"; \
    munged --foreground --force --key-file=\"$1/munge/key\" --socket=\"$1/munge/socket\" \
      --pid-file=\"$1/munge/pid\" --log-file=\"$1/munge/log\" --seed-file=\"$1/munge/seed\" & \
    until test -S \"$1/munge/socket\"; do sleep 0.1; done; \
    slurmctld -D -c -f \"$1/slurm.conf\" & slurmd -D -f \"$1/slurm.conf\" & wait";

/// The times within which Slurm expects answers are several times as long as usual, as a busy machine
/// takes longer than usual to give them.
const CONFIGURATION: &str = "\
    ClusterName=latlab\nSlurmUser=root\nSlurmctldHost=HOST(127.0.0.1)\nSlurmctldPort=PORT1\n\
    SlurmdPort=PORT2\nAuthType=auth/munge\nAuthInfo=socket=FOLDER/munge/socket\n\
    CredType=cred/munge\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
    SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nMpiDefault=none\n\
    SwitchType=switch/none\nSlurmdParameters=config_overrides\nReturnToService=2\nKillWait=2\n\
    SlurmdTimeout=300\nMessageTimeout=60\nTCPTimeout=20\nBatchStartTimeout=300\n\
    UnkillableStepTimeout=300\nStateSaveLocation=FOLDER/state\nSlurmdSpoolDir=FOLDER/spool\n\
    SlurmctldPidFile=FOLDER/slurmctld.pid\nSlurmdPidFile=FOLDER/slurmd.pid\n\
    SlurmctldLogFile=FOLDER/slurmctld.log\nSlurmdLogFile=FOLDER/slurmd.log\n\
    NodeName=HOST NodeAddr=127.0.0.1 CPUs=2 RealMemory=2000\n\
    PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n";

impl Cluster {
    fn start() -> Cluster {
        let folder = folder();
        let inside = |name: &str| folder.path().join(name);
        for name in ["munge", "state", "spool"] {
            fs::create_dir(inside(name)).expect("the folder can be written");
        }
        fs::write(inside("munge/key"), [7; 128]).expect("the folder can be written");
        let private = fs::Permissions::from_mode(0o400);
        fs::set_permissions(inside("munge/key"), private).expect("the permissions can be set");
        let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("/proc is mounted");
        let host = host.trim().split('.').next().unwrap_or_default();
        let [first, second] = [free_port(), free_port()];
        let text = CONFIGURATION
            .replace("FOLDER", &folder.path().display().to_string())
            .replace("HOST", host)
            .replace("PORT1", &first.to_string())
            .replace("PORT2", &second.to_string());
        fs::write(inside("slurm.conf"), text).expect("the folder can be written");
        let log = File::create(inside("log")).expect("the folder can be written");
        let mut daemons = Command::new("setpriv");
        daemons.args(["--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child"]);
        daemons.args(["--mount-proc", "sh", "-c", DAEMONS, "sh"]).arg(folder.path());
        daemons.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").stdin(Stdio::null());
        daemons.stdout(log.try_clone().expect("a file descriptor is free")).stderr(log);
        let daemons = daemons.spawn().expect("util-linux is installed");
        let cluster = Cluster { daemons, folder };
        wait_until("the node is idle", || {
            cluster.stdout_of("sinfo --noheader --format=%T").contains("idle")
        });
        cluster
    }

    /// Configures `command` to use this cluster.
    fn configured(&self, mut command: Command) -> Command {
        command.env("SLURM_CONF", self.folder.path().join("slurm.conf"));
        command
    }

    fn latlab(&self, words: &str) -> Output {
        run(&mut self.configured(command(words)))
    }

    /// Lets the tasks of jobs begin (`UP`), or keeps them waiting (`DOWN`).
    fn set_partition(&self, state: &str) {
        self.stdout_of(&format!("scontrol update PartitionName=all State={state}"));
    }

    /// Returns the standard output of a Slurm command.
    fn stdout_of(&self, words: &str) -> String {
        let mut words = words.split(' ');
        let command = Command::new(words.next().expect("a command has a name"));
        let output = self.configured(command).args(words).output().expect("Slurm is installed");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The kernel ends all other processes of the namespace with its first.
        let _ = self.daemons.kill();
        let _ = self.daemons.wait();
    }
}

/// Writes a study of 20 short cells with four seeds, so that most cells are cached. With `broken`,
/// it has another cell that cannot be measured.
fn study_of_20_cells(folder: &Path, first_seed: u64, broken: bool) -> String {
    let cells =
        (1..=20).map(|nth| format!("{{ label = 's{nth}', seed = {} }}", first_seed + nth % 4));
    let broken = broken.then(|| "{ label = 'none', on = 'lab:/nowhere/vmlinuz' }".to_owned());
    let cells: Vec<String> = cells.chain(broken).collect();
    let text = format!(
        "title = 'Twenty seeds'\npaper = 'Nobody 2026'\nredoes = 'nothing'\n\
         plan = {{ on = 'lab:standard', probes = ['cyclic'], count = 5, warm_up = '1ms' }}\n\
         [[axis]]\nname = 'seed'\neach = [{}]\n[[figure]]\nname = 'worst'\nprobe = 'cyclic'\n",
        cells.join(", ")
    );
    let path = folder.join(format!("study{first_seed}.toml"));
    fs::write(&path, text).expect("the folder can be written");
    path.display().to_string()
}

/// Returns the ID of the submitted array job.
fn job(stderr: &str) -> Option<&str> {
    stderr.split("array job ").nth(1)?.split_once(" has ").map(|(job, _)| job)
}

#[test]
fn array_job_gives_the_same_bytes_and_resumes_after_a_cancelled_task() {
    if !root() {
        return;
    }
    let (cluster, folder) = (Cluster::start(), folder());
    let study = study_of_20_cells(folder.path(), 1_000, true);
    let out = |name: &str| folder.path().join(name);
    let words = format!("study {study} --engine slurm --out {}", out("slurm").display());
    // No task begins before one is cancelled.
    cluster.set_partition("DOWN");
    let running = Running::start(&mut cluster.configured(command(&words)));
    wait_until("the array job is submitted", || job(&running.stderr()).is_some());
    let stderr = running.stderr();
    let job = job(&stderr).expect("the job ID was printed");
    cluster.stdout_of(&format!("scancel {job}_20"));
    cluster.set_partition("UP");
    let output = running.finish();
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("has 21 of 21 cells"), "{output:?}");
    let cancelled = format!("cell 20, s20: its job {job}_20: ");
    let line =
        output.stderr.lines().find(|line| line.contains(&cancelled)).expect("the cell is named");
    assert!(line.to_lowercase().contains("cancelled"), "{line}");
    let failed = format!("cell 21, none: its job {job}_21: FAILED (NonZeroExitCode) on ");
    assert!(output.stderr.contains(&failed), "{output:?}");
    assert!(output.stderr.contains("last line: ") && output.stderr.contains("/nowhere/vmlinuz"));
    assert!(output.stderr.contains("2 of 21 cells could not be measured"), "{output:?}");
    assert_eq!(entries(&out("slurm").join("records")).len(), 19);

    let again = cluster.latlab(&words);
    assert!(again.stderr.contains("has 2 of 21 cells"), "only what is missing: {again:?}");
    let here = latlab(&format!("study {study} --jobs 2 --fresh --out {}", out("here").display()));
    assert_eq!((again.code(), here.code()), (Some(2), Some(2)), "{again:?} {here:?}");
    assert_eq!(again.stdout, here.stdout);
    for name in ["table.md", "table.csv", "report.html"] {
        let bytes = |folder: &str| fs::read(out(folder).join(name)).expect("the file exists");
        assert_eq!(bytes("slurm"), bytes("here"), "{name}");
    }

    // SIGINT cancels the tasks that have not ended.
    let study = study_of_20_cells(folder.path(), 2_000, false);
    let words = format!("study {study} --engine slurm --fresh --out {}", out("ended").display());
    let running = Running::start(&mut cluster.configured(command(&words)));
    wait_until("a task runs", || {
        cluster.stdout_of("squeue --noheader --states=R --format=%K").len() > 1
    });
    running.signal("INT");
    let output = running.finish();
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("is cancelled"), "{output:?}");
    assert_eq!(cluster.stdout_of("squeue --noheader"), "", "no task is left");
}

#[test]
fn slurm_missing_is_refused_before_anything_starts() {
    let folder = folder();
    let study = study_of_20_cells(folder.path(), 1_000, false);
    let out = folder.path().join("out").display().to_string();
    let words = format!("study {study} --engine slurm --out {out}");
    let output = run(command(&words).env("PATH", "/nowhere"));
    output.assert_refused(3, &["squeue is missing", "slurm-client"]);
    latlab(&format!("study {study} --engine slurm")).assert_refused(2, &["--out DIR", "share"]);
    if root() {
        let output = run(command(&words).env("SLURM_CONF", "/nowhere"));
        output.assert_refused(3, &["no cluster answers", "SLURM_CONF"]);
    }
}

#[test]
fn long_cell_resumes_after_a_kill_and_gives_the_same_bytes() {
    let folder = folder();
    let study = folder.path().join("long.toml");
    let text = format!(
        "title = 'Long'\npaper = 'Nobody 2026'\nredoes = 'nothing'\n\
         plan = {{ on = 'lab:standard', probes = ['cyclic:interval=5s'], for = '10s', seed = {} }}\n\
         [[axis]]\nname = 'one'\neach = [{{ label = 'one' }}]\n\
         [[figure]]\nname = 'samples'\nprobe = 'cyclic'\ntake = 'recorded'\n",
        new_seed()
    );
    fs::write(&study, text).expect("the folder can be written");
    let out = |name: &str| folder.path().join(name);
    let words = |name: &str, more: &str| {
        let (study, out) = (study.display(), out(name));
        format!("study {study} --for 12min --jobs 1 --out {} {more}", out.display())
    };
    let killed = Running::start(&mut command(&words("killed", "")));
    let piece = |nth: usize| out("killed").join(format!("pieces/one.{nth}.json"));
    let first = piece(1);
    wait_until("the first piece is stored", || first.is_file());
    killed.signal("KILL");
    assert_eq!(killed.finish().signal(), Some(9));
    // On a busy machine the second piece may be stored before the kill.
    let left = (1..=3).filter(|nth| !piece(*nth).is_file()).count();
    let written =
        || fs::metadata(&first).and_then(|file| file.modified()).expect("the file exists");
    let before = written();
    pause(Duration::from_millis(20));
    let resumed = latlab(&words("killed", ""));
    assert_eq!(resumed.code(), Some(0), "{resumed:?}");
    assert_eq!(written(), before, "the first piece is not measured again");
    assert!(resumed.stderr.contains(&format!("{left} of {left} done")), "{resumed:?}");
    assert!(resumed.stdout.contains("measured for 12 min, in 3 pieces."), "{resumed:?}");
    let whole = latlab(&words("whole", "--fresh"));
    assert_eq!(whole.stdout, resumed.stdout);
    for name in ["table.md", "table.csv", "report.html", "records/one.json"] {
        let bytes = |folder: &str| fs::read(out(folder).join(name)).expect("the file exists");
        assert_eq!(bytes("whole"), bytes("killed"), "{name}");
    }
    let csv = fs::read_to_string(out("whole").join("table.csv")).expect("the file exists");
    let samples: u64 = csv
        .lines()
        .nth(1)
        .and_then(|line| line.split(',').nth(2)?.parse().ok())
        .expect("the count is a number");
    assert!((140..=144).contains(&samples), "12 min of 5 s each: {csv}");
    let output = latlab(&format!("study {} --for 12min", study.display()));
    output.assert_refused(2, &["pieces", "--out DIR"]);
    latlab("study heursch-pdlt --for 1h --check").assert_refused(2, &["--for", "scans"]);
}

/// Writes a profile with this kernel command line, and a study of some cells on it.
fn on_a_profile(folder: &Path, cmdline: &str, cells: u64, seed: u64, plan: &str) {
    let profile = format!(
        "summary = 'x'\nkernel = {{ package = 'linux-image-6.12-amd64' }}\ncmdline = '{cmdline}'\n"
    );
    fs::write(folder.join("mine.toml"), profile).expect("the folder can be written");
    let cell = |nth| format!("{{ label = 'c{nth}', seed = {} }}", seed + 10 * nth);
    let cells: Vec<String> = (0..cells).map(cell).collect();
    let text = format!(
        "title = 'Mine'\npaper = 'Nobody 2026'\nredoes = 'nothing'\n\
         plan = {{ on = 'lab:./mine.toml', warm_up = '1ms', {plan} }}\n\
         [[axis]]\nname = 'cell'\neach = [{}]\n\
         [[figure]]\nname = 'worst'\nprobe = 'cyclic'\n",
        cells.join(", ")
    );
    fs::write(folder.join("study.toml"), text).expect("the folder can be written");
}

const PREEMPT_FULL: &str = "preempt=full";
const PREEMPT_NONE: &str = "preempt=none";

#[test]
fn array_job_of_killed_start_is_awaited_and_records_of_another_kernel_are_discarded() {
    if !root() {
        return;
    }
    let (cluster, folder) = (Cluster::start(), folder());
    let set = |cmdline| {
        on_a_profile(folder.path(), cmdline, 4, 77_000, "probes = ['cyclic'], count = 5");
    };
    // Profile paths are relative to the folder in which the study was started, not to that of the
    // tasks.
    let start = || {
        let mut command = command("study study.toml --engine slurm --out out");
        command.current_dir(folder.path());
        cluster.configured(command)
    };
    set(PREEMPT_FULL);
    // No task ends before its array job was found.
    cluster.set_partition("DOWN");
    let killed = Running::start(&mut start());
    wait_until("the array job is submitted", || job(&killed.stderr()).is_some());
    let stderr = killed.stderr();
    let first = job(&stderr).expect("the job ID was printed");
    killed.signal("KILL");
    assert_eq!(killed.finish().signal(), Some(9));
    let waits = format!("array job {first} of an earlier start is still running");
    let wait = || {
        let waiting = Running::start(&mut start());
        wait_until("the array job is found", || waiting.stderr().contains(&waits));
        waiting
    };
    // SIGINT ends the wait, not the array job.
    let waiting = wait();
    waiting.signal("INT");
    let output = waiting.finish();
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(
        output.stderr.contains("no longer waited for: the same command waits for it again"),
        "{output:?}"
    );
    assert!(!output.stderr.contains("cancelled"), "{output:?}");
    let waiting = wait();
    cluster.set_partition("UP");
    let output = waiting.finish();
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert!(
        output.stderr.contains("all cells have been measured before"),
        "no second array job: {output:?}"
    );

    // Other jobs of the user in that folder are not awaited.
    let submit = format!("sbatch --hold --chdir={}/out/slurm --wrap=true", folder.path().display());
    cluster.stdout_of(&submit);
    cluster.stdout_of(&format!("{submit} --array=1-2 --job-name=latency"));
    assert_eq!(
        cluster.stdout_of("squeue --noheader --array").lines().count(),
        3,
        "the jobs are held"
    );
    set(PREEMPT_NONE);
    // Discarded records stay until others replace them.
    let output = run(start().env("SBATCH_PARTITION", "nowhere"));
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(
        output.stderr.contains("invalid partition") || output.stderr.contains("Invalid partition")
    );
    assert_eq!(entries(&folder.path().join("out/records")).len(), 4);
    let output = run(&mut start());
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert!(output.stderr.contains("4 of the records were measured with another"), "{output:?}");
    assert!(output.stderr.contains("has 4 of 4 cells"), "{output:?}");
    let output = run(&mut start());
    assert!(output.stderr.contains("all cells have been measured before"), "{output:?}");
}

#[test]
fn pieces_of_another_kernel_are_measured_again() {
    let folder = folder();
    let plan = "probes = ['cyclic:interval=5s'], for = '6min'";
    let start = |cmdline| {
        on_a_profile(folder.path(), cmdline, 1, 3, plan);
        let output = run(command("study study.toml --out out").current_dir(folder.path()));
        assert_eq!(output.code(), Some(0), "{output:?}");
        let record = fs::read_to_string(folder.path().join("out/records/c0.json"));
        assert!(record.expect("the file exists").contains(cmdline), "{output:?}");
        output
    };
    start(PREEMPT_FULL);
    let output = start(PREEMPT_NONE);
    assert!(output.stderr.contains("2 of the records were measured with another"), "{output:?}");
    let output = start(PREEMPT_NONE);
    assert!(!output.stderr.contains("done"), "nothing is measured: {output:?}");

    // SIGINT while a kernel is fetched, which is needed to judge the records: nothing is measured.
    let fetched = folder.path().join("fetched");
    let path = programs(folder.path(), &[("apt-get", "echo x >> fetched; exec sleep 600")]);
    let mut command = command("study study.toml --out out");
    command.env("PATH", path).env("XDG_CACHE_HOME", folder.path().join("empty"));
    let judging = Running::start(command.current_dir(folder.path()));
    // The shell creates the file before it writes to it.
    wait_until("a kernel is fetched", || fs::metadata(&fetched).is_ok_and(|file| file.len() > 0));
    judging.signal("INT");
    let output = judging.finish();
    assert_eq!(output.code(), Some(4), "{output:?}");
    assert!(output.stderr.contains("ended on request"), "{output:?}");
    assert!(!output.stderr.contains("could not be measured"), "{output:?}");
    assert_eq!(
        fs::read_to_string(fetched).expect("the file exists"),
        "x\n",
        "the kernel is fetched once"
    );
}

/// Returns a PATH on which these shell scripts come first. Their working directory is the folder.
fn programs(folder: &Path, programs: &[(&str, &str)]) -> String {
    let bin = folder.join("bin");
    fs::create_dir(&bin).expect("the folder can be written");
    for (name, does) in programs {
        let path = bin.join(name);
        let text = format!("#!/bin/sh\ncd '{}'\n{does}\n", folder.display());
        fs::write(&path, text).expect("the folder can be written");
        let runs = fs::Permissions::from_mode(0o700);
        fs::set_permissions(&path, runs).expect("the permissions can be set");
    }
    format!("{}:/usr/bin:/bin", bin.display())
}

#[test]
fn array_job_that_slurm_no_longer_knows_is_not_awaited_forever() {
    let folder = folder();
    let squeue = "case \"$*\" in *--me*) echo \"7|RUNNING|1|latlab-|$PWD/out/slurm\" ;; \
                  *) echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1 ;; esac";
    let path = programs(folder.path(), &[("squeue", squeue)]);
    let mut command = command("study quick --engine slurm --out out");
    let output = run(command.env("PATH", path).current_dir(folder.path()));
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("array job 7: Slurm lists it as running and"), "{output:?}");
    assert!(output.stderr.contains("scancel 7"), "{output:?}");
}

#[test]
fn built_in_study_is_not_confused_with_a_file_by_tasks() {
    let folder = folder();
    let inside = |name: &str| folder.path().join(name);
    fs::write(inside("quick"), "no study").expect("the folder can be written");
    let slurm = [("squeue", "exit 0"), ("sbatch", "cat > script; exit 1")];
    let path = programs(folder.path(), &slurm);
    let mut command = command("study quick --engine slurm --out out");
    let output = run(command.env("PATH", path).current_dir(folder.path()));
    assert_eq!(output.code(), Some(2), "{output:?}");
    let script = fs::read_to_string(inside("script")).expect("sbatch was given a script");
    assert!(script.contains(" 'study' 'quick' '--out' "), "{script}");
}
