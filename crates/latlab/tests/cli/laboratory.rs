//! Guests: reproducible records, programs copied into them, and guests that fail.

use super::program::{LATLAB, command, entries, folder, latlab, run, two_cpus, wait_until};
use latlab_core::machine::TimeDomain;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a static C program into `folder`.
fn compiled(folder: &Path, name: &str, text: &str) -> PathBuf {
    let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
    fs::write(&source, text).expect("the folder can be written");
    let compiler = Command::new("cc").args(["-static", "-o"]).args([&program, &source]).status();
    assert!(compiler.expect("cc starts").success());
    program
}

/// Keeps a CPU of the host busy until it is dropped.
pub(super) struct Busy(std::process::Child);

impl Busy {
    pub(super) fn start() -> Busy {
        Busy(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh starts"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Three kernels under three loads give the same bytes, whatever else the host does.
#[test]
fn record_is_the_same_on_idle_and_busy_host() {
    let targets = "--on lab:standard --on lab:preemptible-hr --on lab:rt";
    let words = |load: &str| {
        format!("run cyclic --load {load} --count 100 --warm-up 20ms --json --fresh {targets}")
    };
    for load in ["procfs", "fork", "disk:size=1MiB"] {
        let idle = latlab(&words(load));
        assert_eq!(idle.code(), Some(0), "{idle:?}");
        let busy = {
            let _both = [Busy::start(), Busy::start()];
            latlab(&words(load))
        };
        assert_eq!(idle.stdout.matches("\"schema\"").count(), 3, "{idle:?}");
        assert_eq!(idle.stdout, busy.stdout);
    }
}

/// The main loop of QEMU advances the time of an idle guest. Here it is always busy, with requests
/// over a monitor that this test adds.
#[test]
fn record_is_the_same_with_busy_main_loop_of_qemu() {
    let folder = folder();
    let script = "#!/bin/bash\nPATH=${PATH#*:}\n\
        [ \"$1\" = --version ] && exec qemu-system-x86_64 \"$1\"\n\
        exec qemu-system-x86_64 \"$@\" -chardev stdio,id=m,signal=off -mon m \
        < <(yes 'info name') > /dev/null\n";
    let wrapper = folder.path().join("qemu-system-x86_64");
    fs::write(&wrapper, script).expect("the folder can be written");
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))
        .expect("the permissions can be set");
    let path = std::env::var("PATH").expect("PATH is set");
    let path = format!("{}:{path}", folder.path().display());
    let words =
        "run cyclic --load disk:size=1MiB --count 20 --warm-up 0 --json --fresh --on lab:rt";
    let idle = latlab(words);
    assert_eq!(idle.code(), Some(0), "{idle:?}");
    assert_eq!(run(command(words).env("PATH", &path)).stdout, idle.stdout);
}

#[test]
fn results_of_several_targets_have_headings_and_record_can_be_printed() {
    let two = latlab("run cyclic --count 20 --on lab:rt --on lab:utime");
    assert_eq!(two.code(), Some(0), "{two:?}");
    let headings: Vec<&str> = two.stdout.lines().filter(|line| line.contains("(Linux ")).collect();
    assert_eq!(headings.len(), 2, "{two:?}");
    assert!(
        headings[0].starts_with("lab:rt (Linux ") && headings[1].starts_with("lab:utime (Linux ")
    );
    let one = latlab("run cyclic --count 20 --on lab:rt");
    assert!(!one.stdout.contains("(Linux "), "{one:?}");
    let printed = latlab("run cyclic --count 20 --on lab:rt --out -");
    assert_eq!(printed.stdout, latlab("run cyclic --count 20 --on lab:rt --json").stdout);
    assert_eq!(printed.record().plan.target, "lab:rt");
}

#[test]
fn record_of_laboratory_is_in_instruction_time_and_cached() {
    let output = latlab("run cyclic --on lab:rt --count 200 --json");
    let record = output.record();
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert_eq!(record.machine.time_domain, TimeDomain::Instructions);
    assert_eq!(record.machine.preempt.as_deref(), Some("rt"));
    assert_eq!(record.plan.target, "lab:rt");
    let series = &record.series[0];
    assert_eq!(series.profile.as_deref(), Some("rt"));
    assert_eq!(series.counts.recorded + series.counts.missed, 200);
    assert!(series.max.0 < 50_000, "an idle PREEMPT_RT kernel takes microseconds: {series:?}");
    assert!(record.warnings.is_empty(), "{:?}", record.warnings);
    // A cached result needs no guest: this QEMU only prints its version.
    let folder = folder();
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && PATH=${PATH#*:} exec qemu-system-x86_64 \"$1\"\nexit 9\n";
    let fake = folder.path().join("qemu-system-x86_64");
    fs::write(&fake, script).expect("the folder can be written");
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755))
        .expect("the permissions can be set");
    let path = std::env::var("PATH").expect("PATH is set");
    let path = format!("{}:{path}", folder.path().display());
    let again = run(command("run cyclic --on lab:rt --count 200 --json").env("PATH", &path));
    assert_eq!(again.stdout, output.stdout);
    let fresh = "run cyclic --on lab:rt --count 200 --json --fresh";
    assert_eq!(run(command(fresh).env("PATH", &path)).code(), Some(2));
}

#[test]
fn timer_resolution_is_that_of_the_profile() {
    let output =
        latlab("run cyclic:interval=10ms --on lab:standard --on lab:utime --count 50 --json");
    let [tick, fine] = output.two_records();
    assert_eq!(tick.machine.timer_resolution_ns, Some(4_000_000));
    assert!(tick.series[0].max.0 > 1_000_000, "{:?}", tick.series[0]);
    assert_eq!(fine.machine.timer_resolution_ns, Some(1));
    assert!(fine.series[0].max.0 < 50_000, "{:?}", fine.series[0]);
}

/// A sleep of one tick ends at the next tick but one, a few hundred nanoseconds before or after the
/// end of the next period.
#[test]
fn sleep_as_long_as_a_tick_misses_no_period() {
    let output = latlab("run nanosleep:interval=4ms --on lab:standard --count 200 --json");
    assert_eq!(output.code(), Some(0), "{output:?}");
    let series = &output.record().series[0];
    assert_eq!((series.counts.recorded, series.counts.missed), (200, 0));
    assert!(series.max.0 > 4_000_000, "{}", series.max);
    assert_eq!(series.corrected, series.quantiles);
}

#[test]
fn virtual_machine_in_wall_clock_time_is_recorded_as_virtualized() {
    let output = latlab("run cyclic --on vm:rt --count 50 --json --accel tcg");
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert_eq!(output.record().machine.time_domain, TimeDomain::Virtualized);
}

/// The kernel replaces an instruction whenever it begins or stops to count the run time of BPF programs.
/// While QEMU translated both CPUs at the same time, this guest's kernel panicked, on an idle
/// host after 10 to 14 s. A guest on a busy host goes on until it has made enough changes.
#[test]
fn kernel_of_guest_with_two_cpus_changes_its_code_while_it_runs() {
    let folder = folder();
    let profile = two_cpus(folder.path());
    let script = "/latlab explain cyclic:interval=10ms,priority=80 --load hackbench --cpus 0 \
                      --for 30s --above 1s >/dev/null & explain=$!
        count=/proc/sys/kernel/bpf_stats_enabled changes=0
        while [ -e /proc/$explain/exe ] || [ $changes -le 20 ]; do
            echo 1 >$count; echo 0 >$count; changes=$((changes + 2))
        done
        wait $explain && echo changed";
    let words = "exec --accel tcg --with /bin/sh --on";
    let mut exec = command(&format!("{words} vm:{profile}"));
    let output = run(exec.args(["--", "sh", "-c", script]));
    assert_eq!((output.code(), output.stdout.as_str()), (Some(0), "changed\n"), "{output:?}");
}

/// `yes` runs until nobody reads what it writes, as it would here.
#[test]
fn guest_ends_when_nobody_reads_its_output() {
    let script = "\"$0\" exec --on lab:rt -- yes | head -n 1; echo ${PIPESTATUS[0]}";
    let mut shell = Command::new("bash");
    let output = run(shell.args(["-c", script, LATLAB]));
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("y\n141\n", ""), "{output:?}");
}

#[test]
fn program_copied_to_guest_runs_with_its_libraries_and_returns_its_exit_code() {
    let output = latlab("exec --on lab:rt --fifo 7 -- sh -c \"exit\"");
    assert_eq!(output.code(), Some(0), "{output:?}");
    let mut script = command("exec --on lab:rt --fifo 7 --with /bin/cat -- sh -c");
    script.arg("/bin/cat /proc/self/stat; echo said >&2; exit 5");
    let output = run(&mut script);
    assert_eq!((output.code(), output.stderr.as_str()), (Some(5), "said\n"), "{output:?}");
    // The real-time priority is the 40th field (proc_pid_stat(5)).
    assert_eq!(output.stdout.split(' ').nth(39), Some("7"), "{output:?}");
}

#[test]
fn program_in_guest_is_found_as_on_host_and_children_are_not_waited_for() {
    let folder = folder();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).expect("the folder can be written");
    std::os::unix::fs::symlink("/bin/echo", folder.path().join("link"))
        .expect("the folder can be written");
    let output = run(command("exec --on lab:rt -- ../link beside").current_dir(&inner));
    assert_eq!((output.code(), output.stdout.as_str()), (Some(0), "beside\n"), "{output:?}");
    let script = "while :; do :; done & exit 3";
    let output = run(command("exec --on lab:rt -- sh -c").arg(script));
    assert_eq!(output.code(), Some(3), "{output:?}");
    latlab("exec --limit 1s -- true").assert_refused(2, &["--limit", "--on"]);
    for (words, option) in [
        ("exec --on lab:rt --accel tcg -- true", "--accel"),
        ("run cyclic --on lab:rt --accel tcg", "--accel"),
        ("bound --on lab:rt --accel tcg", "--accel"),
        ("run cyclic --on vm:rt --cold", "--cold"),
        ("run cyclic --on ssh:board --jobs 1", "--jobs"),
        ("ab -- run cyclic --on vm:rt --fresh -- run cyclic", "--fresh"),
    ] {
        latlab(words).assert_refused(2, &[option, "no effect"]);
    }
}

#[test]
fn program_in_guest_has_the_same_environment_wherever_latlab_is_started() {
    let folder = folder();
    let shown = |options: &str| {
        let mut exec = command(&format!("exec --on lab:rt {options} -- sh -c"));
        exec.arg("pwd; echo $PATH $HOME $MINE $YOURS");
        exec.env("MINE", "1").env("YOURS", "2");
        exec
    };
    let plain = run(&mut shown(""));
    let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    assert_eq!(plain.stdout, format!("/\n{path} /\n"), "{plain:?}");
    let elsewhere = run(shown("").current_dir(folder.path()).env("PATH", "/usr/bin:/bin"));
    assert_eq!(elsewhere.stdout, plain.stdout);
    let asked = run(shown("--chdir . --env MINE --env YOURS=3").current_dir(folder.path()));
    let real = folder.path().canonicalize().expect("it is there");
    assert_eq!(asked.stdout, format!("{}\n{path} / 1 3\n", real.display()), "{asked:?}");
    latlab("exec --env NOT_SET_ANYWHERE --on lab:rt -- true").assert_refused(2, &["--env"]);
}

/// The first boot of a kernel measures its calibration. This QEMU never ends.
#[test]
fn limit_holds_for_the_first_boot_of_a_kernel() {
    assert_eq!(latlab("kernel fetch linux-image-6.12-rt-amd64").code(), Some(0));
    let home = std::env::var("HOME").expect("HOME is set");
    let user = std::env::var("XDG_CACHE_HOME").unwrap_or(format!("{home}/.cache"));
    let cache = folder();
    for kernel in entries(&Path::new(&user).join("latlab/kernels")) {
        let name = kernel.file_name().expect("it has a name");
        let copy = cache.path().join("latlab/kernels").join(name);
        fs::create_dir_all(&copy).expect("the folder can be written");
        for file in entries(&kernel).iter().filter(|file| !file.ends_with("calibration.json")) {
            let name = file.file_name().expect("it has a name");
            std::os::unix::fs::symlink(file, copy.join(name)).expect("it can be linked");
        }
    }
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && PATH=${PATH#*:} exec qemu-system-x86_64 \"$1\"\nexec sleep 600\n";
    let fake = cache.path().join("qemu-system-x86_64");
    fs::write(&fake, script).expect("the folder can be written");
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).expect("it is a file");
    let path = std::env::var("PATH").expect("PATH is set");
    let path = format!("{}:{path}", cache.path().display());
    let mut exec = command("exec --on lab:rt --limit 2s -- true");
    let output = run(exec.env("PATH", path).env("XDG_CACHE_HOME", cache.path()));
    let way_out = "raise the limit with --limit";
    output.assert_refused(2, &["lab:rt: the guest did not finish within 2 s", way_out]);
}

#[test]
fn guest_that_panics_is_reported() {
    let folder = folder();
    let text = "#include <fcntl.h>\n#include <unistd.h>\n\
                int main() { int f = open(\"/proc/sysrq-trigger\", O_WRONLY); write(f, \"c\", 1); pause(); }";
    let program = compiled(folder.path(), "crash", text);
    let output = run(command("exec --on lab:rt --").arg(program));
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("lab:rt: the guest's kernel panicked (sysrq"), "{output:?}");
    // Where it happened: the report's callers, not only the registers at its end.
    assert!(output.stderr.contains("sysrq_handle_crash"), "{output:?}");
}

#[test]
fn guest_that_hangs_is_ended_at_its_limit() {
    let folder = folder();
    let program = compiled(folder.path(), "hog", "int main() { for (;;); }");
    // The environment variable tells this QEMU from those of other tests.
    let mark = format!("LATLAB_TEST={}\0", std::process::id());
    // The limit, 20 s before, is waited for in full.
    let words = "exec --on lab:rt --fifo 99 --limit 8s --";
    let mut exec = command(words);
    let output = run(exec.arg(program).env("LATLAB_TEST", std::process::id().to_string()));
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("lab:rt: the guest did not finish within 8 s"), "{output:?}");
    let is_left = |entry: fs::DirEntry| {
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        let environment = || fs::read_to_string(entry.path().join("environ")).unwrap_or_default();
        name.starts_with("qemu") && environment().contains(&mark)
    };
    let processes = || fs::read_dir("/proc").expect("/proc is mounted").flatten();
    // On a busy machine, it may take a killed QEMU seconds to end.
    wait_until("QEMU is gone", || !processes().any(is_left));
}

/// Returns the children of a process.
pub(super) fn children(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let children = fs::read_to_string(path).unwrap_or_default();
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Whether the process is QEMU with a guest, not one that prints its version.
pub(super) fn is_guest(pid: u32) -> bool {
    let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words.starts_with("qemu") && words.contains("-machine")
}

/// Returns the user time of a process in hundredths of a second: the 14th field of its `stat`
/// (`proc_pid_stat(5)`), the 12th after the name.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map(|(_, fields)| fields);
    fields.and_then(|fields| fields.split(' ').nth(11)?.parse().ok()).unwrap_or(0)
}

fn with_a_guest() -> (super::program::Running, u32) {
    let running =
        super::program::Running::start(&mut command("run --on lab:rt --for 300s --fresh"));
    let qemu = || children(running.pid()).into_iter().find(|pid| is_guest(*pid));
    wait_until("a guest runs", || qemu().is_some());
    let qemu = qemu().expect("the guest runs");
    (running, qemu)
}

#[test]
fn qemu_that_is_killed_is_reported() {
    let (running, qemu) = with_a_guest();
    super::program::send("KILL", qemu);
    let output = running.finish();
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("lab:rt: QEMU was killed by signal 9 after"), "{output:?}");
}

#[test]
fn guest_ends_with_the_latlab_that_started_it() {
    for (signal, code) in [("INT", Some(4)), ("KILL", None)] {
        let (running, qemu) = with_a_guest();
        wait_until("the guest is on its way", || cpu_ticks(qemu) >= 30);
        running.signal(signal);
        assert_eq!(running.finish().code(), code);
        wait_until("QEMU is gone", || !is_guest(qemu));
    }
}

#[test]
fn profile_name_unknown_is_refused_with_nearest() {
    latlab("run --on lab:rt-lasy").assert_refused(2, &["rt-lasy", "rt-lazy"]);
    latlab("run --on lab").assert_refused(2, &["lab:NAME"]);
    latlab("run --on lab:rt --on native").assert_refused(2, &["two kinds"]);
    latlab("run --on lab:./no-such-kernel").assert_refused(2, &["no-such-kernel"]);
    latlab("exec --on native -- true").assert_refused(3, &["lab:"]);
}

#[test]
fn missing_qemu_is_refused_with_its_package() {
    assert_eq!(latlab("kernel fetch linux-image-6.12-rt-amd64").code(), Some(0));
    let output = run(Command::new(LATLAB)
        .args(["run", "--on", "lab:rt", "--count", "10", "--fresh"])
        .env("PATH", "/nowhere"));
    output.assert_refused(3, &["qemu-system-x86_64", "apt-get install qemu-system-x86"]);
}

/// The emulation of cmpxchg16b in QEMU differs from real CPUs, which matters with several CPUs.
#[test]
fn guests_with_several_cpus_lack_cmpxchg16b() {
    let folder = folder();
    let has_it = |cpus: u32| {
        let profile = folder.path().join(format!("{cpus}.toml"));
        let kernel = "kernel = { package = 'linux-image-6.12-amd64' }";
        let text = format!("summary = 'some CPUs'\n{kernel}\ncpus = {cpus}\n");
        fs::write(&profile, text).expect("the folder can be written");
        let asked = format!("exec --on lab:{} -- grep -qw cx16 /proc/cpuinfo", profile.display());
        latlab(&asked).code()
    };
    assert_eq!((has_it(1), has_it(2)), (Some(0), Some(1)));
}

/// The file is one of this machine, at its path here; the guest has twice the usual memory.
#[test]
fn command_is_a_load_in_a_guest_that_has_its_program_and_files() {
    let folder = folder();
    let file = folder.path().join("text");
    fs::write(&file, "seen").expect("the folder can be written");
    let load = format!("exec:grep seen {}", file.display());
    let words = "run cyclic --on lab:rt,memory=2GiB --count 50 --json --load";
    let with = |more: &[&str]| run(command(words).arg(&load).args(more));
    let output = with(&["--with", &file.display().to_string()]);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    assert!(record.work[0].done > 0, "{record:?}");
    assert_eq!((record.plan.target.as_str(), record.plan.with.len()), ("lab:rt,memory=2GiB", 1));
    let without = with(&[]);
    assert!(without.stderr.contains("failed"), "grep has no file to read: {without:?}");
    let refused = |words: &str| latlab(&format!("run --with /etc/hostname {words}"));
    refused("--load exec:true").assert_refused(2, &["--with has no effect", "native"]);
    refused("--on lab:rt --load cpu").assert_refused(2, &["--with has no effect", "exec:"]);
}

/// The profile `standard` has no high-resolution timers; this machine's findings are others.
#[test]
fn doctor_examines_a_guest() {
    let output = latlab("doctor --on lab:standard --json");
    assert_eq!(output.code(), Some(1), "{output:?}");
    let found: serde_json::Value = serde_json::from_str(&output.stdout).expect("it is JSON");
    let codes: Vec<_> =
        found["findings"].as_array().into_iter().flatten().map(|one| &one["code"]).collect();
    for code in ["coarse-timers", "no-preempt-rt", "preemption-model"] {
        assert!(codes.iter().any(|found| *found == code), "{code}: {codes:?}");
    }
    let text = latlab("doctor --on lab:rt");
    assert!(text.stdout.starts_with("Linux 6.12"), "{text:?}");
    assert!(!text.stdout.contains("no-preempt-rt"), "{text:?}");
    latlab("doctor --on native --cold").assert_refused(2, &["--cold"]);
    latlab("doctor --on lab:none").assert_refused(2, &["there is no profile 'none'"]);
}
