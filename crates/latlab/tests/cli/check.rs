//! `latlab check`: faults of real-time programs are found with function and line, correct programs
//! are not accused, and what can't be checked is refused.

mod left;
mod memory;
mod named;
mod ordinary;
mod places;
mod verdicts;

use crate::program::{
    LATLAB, Missing, Output, Running, compile, entries, field, in_mount_namespace, latlab,
    lock_machine, not_run, pause, run, wait_until,
};
use latlab_check::{BreachReport, Level, Report, Rule};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const SOURCE: &str = include_str!("check/faults.c");

/// A fault of `faults.c`: its name, the rule that it breaches, and the function that does.
type Fault = (&'static str, Rule, Option<&'static str>);

/// Each program with one fault. Errors come first; the rules from `Overrun` on are warnings.
const FAULTS: [Fault; 16] = [
    ("fault", Rule::Fault, Some("touch_page")),
    ("copy", Rule::Fault, Some("write_private_page")),
    ("stack", Rule::Fault, Some("grow_stack")),
    ("allocation", Rule::Allocation, Some("allocate")),
    ("file-io", Rule::FileIo, Some("log_state")),
    ("sleep", Rule::Sleep, Some("rest")),
    ("pause", Rule::Sleep, Some("wait_for_time")),
    ("inversion", Rule::Inversion, Some("update")),
    ("waker", Rule::Waker, Some("wait_for_time")),
    ("wall-clock", Rule::WallClock, Some("wait_for_time")),
    ("drift", Rule::Drift, Some("wait_for_time")),
    ("not-locked", Rule::NotLocked, None),
    ("catch-up", Rule::CatchUp, None),
    ("lock-future", Rule::LockFuture, None),
    ("syscall", Rule::Syscall, Some("pin")),
    ("shared-cpu", Rule::SharedCpu, None),
];

/// The causes of overruns of `overruns.c`: the argument, the cause that the report has to name, and
/// what it has to say about it.
const CAUSES: [(&str, &str, &str); 9] = [
    ("fault", "fault", "page fault in touch_pages (overruns.c:"),
    ("mutex", "blocked", "without priority inheritance held by overruns ["),
    ("kernel-mutex", "kernel-lock", "asleep on mutex latlab_mutex [latlab] held by overruns (pid "),
    ("preemption-off", "non-preemptible", "in latlab_preemption_off [latlab]"),
    ("program", "program", "the program itself"),
    ("throttled", "throttled", "SCHED_OTHER] ran"),
    ("higher-priority", "preempted", "preempted by overruns ["),
    ("interrupt", "interrupt", "(latlab)"),
    ("interrupts-off", "interrupts-off", "in latlab_interrupts_off [latlab]"),
];

/// The arguments with which setpriv(1) makes a program one of another user, without rights.
const SETPRIV: [&str; 5] =
    ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"];

/// A real-time kernel with the test driver.
const DRIVER: &str = "summary = 'with the test driver'\nmodules = ['latlab']\n\
                      kernel = { package = 'linux-image-6.12-rt-amd64' }\n";

/// Compiles `faults.c` into the folder.
pub(crate) fn compiled(folder: &Path, options: &[&str]) -> PathBuf {
    let source = folder.join("faults.c");
    std::fs::write(&source, SOURCE).expect("the folder can be written");
    compile(&source, folder, options)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder can be created")
}

fn check(options: &[&str], program: &Path, fault: &str) -> Output {
    start(options, program, fault).finish()
}

/// Starts a check.
fn start(options: &[&str], program: &Path, fault: &str) -> Running {
    let mut command = Command::new(LATLAB);
    Running::start(command.arg("check").args(options).arg("--").arg(program).arg(fault))
}

/// The first program that the main thread of a process has started, if it runs.
fn child(parent: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    children.ok()?.split(' ').next()?.parse().ok()
}

/// Whether a thread has the policy SCHED_FIFO: field 41 of `/proc/PID/stat` (`proc_pid_stat(5)`).
fn is_fifo(thread: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{thread}/stat")).unwrap_or_default();
    // The name in parentheses, the second field, may contain blanks.
    let fields = stat.rsplit_once(") ").map(|(_, after)| after);
    fields.and_then(|fields| fields.split(' ').nth(41 - 3)) == Some("1")
}

/// The function of the kernel in which a thread sleeps.
fn place_of_wait(thread: u32) -> String {
    std::fs::read_to_string(format!("/proc/{thread}/wchan")).unwrap_or_default()
}

fn report(output: &Output) -> Report {
    serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

fn breaches(report: &Report) -> Vec<&BreachReport> {
    report.threads.iter().flat_map(|thread| &thread.breaches).collect()
}

/// The number of the line of `faults.c` with this mark.
fn line(mark: &str) -> u32 {
    line_of(SOURCE, mark)
}

/// The number of the line with this mark.
fn line_of(source: &str, mark: &str) -> u32 {
    let mark = format!("/* mark: {mark} */");
    let at = source.lines().position(|line| line.contains(&mark)).expect("there is such a mark");
    u32::try_from(at).expect("it is a short file") + 1
}

#[test]
fn fault_is_found_with_function_and_line() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = compiled(folder.path(), &["-g"]);
    for (fault, rule, function) in FAULTS {
        let output = check(&["--json"], &program, fault);
        let report = report(&output);
        let all = breaches(&report);
        let found = all.iter().find(|breach| breach.rule == rule);
        let found = found.unwrap_or_else(|| panic!("{fault}: {rule} is not found: {output:?}"));
        if let Some(function) = function {
            let expected = format!("{function} (faults.c:{})", line(fault));
            assert_eq!(found.place.as_deref(), Some(&*expected), "{found:?}");
        }
        let failed = output.code() == Some(1);
        assert_eq!(failed, all.iter().any(|breach| breach.level == Level::Error), "{output:?}");
        // A mutex that is released at once is a wait without a lower-priority owner.
        let own = |one: Rule| one == rule || (rule, one) == (Rule::Inversion, Rule::NonPi);
        let others = all.iter().filter(|breach| breach.level == Level::Error);
        let other: Vec<_> = others.filter(|breach| !own(breach.rule)).collect();
        assert!(other.is_empty(), "{fault}: other errors: {other:?}");
    }
}

#[test]
fn overruns_are_explained_by_their_planted_cause() {
    assert_overruns_explained(&CAUSES[..2]);
}

#[test]
fn overruns_of_other_causes_are_explained_by_them() {
    assert_overruns_explained(&CAUSES[2..]);
}

/// Asserts that overruns of `overruns.c` with these causes are explained by them, and that a page says so.
fn assert_overruns_explained(causes: &[(&str, &str, &str)]) {
    let folder = folder();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/check/overruns.c");
    let program = compile(Path::new(source), folder.path(), &["-g", "-Wl,-z,now"]);
    let profile = folder.path().join("driver.toml");
    std::fs::write(&profile, DRIVER).expect("the folder can be written");
    let on = format!("--on=lab:{}", profile.display());
    for (planted, cause, words) in causes {
        let output = check(&["--deadline=2ms", "--json", &on], &program, planted);
        let report = report(&output);
        assert_eq!(output.code(), Some(1), "{planted}: {output:?}");
        let thread = report.threads.iter().find(|thread| thread.policy == "SCHED_FIFO 40");
        let cycle = &thread.expect("the loop is real-time").cycle;
        assert!(cycle.overruns > 0, "{planted}: {cycle:?}");
        assert_eq!(cycle.reasons[0].cause, *cause, "{planted}: {:?}", cycle.reasons);
        let faults = breaches(&report).iter().filter(|breach| breach.rule == Rule::Fault).count();
        assert_eq!(faults, usize::from(*planted == "fault"), "{planted}: {:?}", breaches(&report));
        let json = folder.path().join("check.json");
        std::fs::write(&json, &output.stdout).expect("the folder can be written");
        let page = folder.path().join("check.html");
        let words_of = format!("report {} -o {}", json.display(), page.display());
        assert_eq!(latlab(&words_of).code(), Some(0), "{planted}");
        let page = std::fs::read_to_string(page).expect("the page was written");
        assert!(page.contains(words), "{planted}: the page does not say {words}");
    }
}

/// A kernel whose preemption count and CPU times have another layout than those before, and which may
/// not report all events: one that comes while its CPU records another one of the same kind is lost.
#[test]
fn verdicts_hold_on_linux_7_3() {
    let folder = folder();
    let program = compiled(folder.path(), &["-g", "-Wl,-z,now"]);
    let check = |fault| check(&["--on=lab:v7.3-rt", "--json"], &program, fault);
    // The thread of `calls` preempts system calls all the time, so up to three in ten of its cycles may lack a
    // report.
    for (kind, count, left_out) in [("none", 180, 10), ("busy", 180, 10), ("calls", 600, 300)] {
        let correct = check(kind);
        // With so many cycles left out, there may be no verdict.
        let is_right = match correct.code() {
            Some(5) => kind == "calls",
            code => code == Some(0),
        };
        assert!(is_right, "{correct:?}");
        let correct = report(&correct);
        assert!(breaches(&correct).is_empty(), "{correct:?}");
        // In these guests the order of events depends on the build. A task that is preempted while it records
        // an event of a wake-up can keep its CPU from recording any number of them.
        let are_wake_ups = |note: &str| {
            let (what, _) =
                note.split_once(" events were lost: their CPU was recording another one")?;
            let (_, lost) = what.split_once("not explained in some cases: ")?;
            lost.parse::<u64>().ok()
        };
        let is_unexpected =
            |note: &&String| !note.contains("cycles are left out") && are_wake_ups(note).is_none();
        assert_eq!(correct.notes.iter().find(is_unexpected), None);
        let cycle = &correct.threads[0].cycle;
        assert!(cycle.count >= count && cycle.left_out < left_out, "{cycle:?}");
    }
    let woken = report(&check("waker"));
    let waker = breaches(&woken).into_iter().find(|breach| breach.rule == Rule::Waker);
    let place = waker.and_then(|waker| waker.place.as_deref());
    assert!(place.is_some_and(|place| place.starts_with("wait_for_time ")), "{woken:?}");
}

/// The oldest kernel, whose verifier knows least of a program.
#[test]
fn fault_is_found_on_linux_6_1() {
    let folder = folder();
    let program = compiled(folder.path(), &["-g"]);
    let report = report(&check(&["--on=lab:v6.1", "--json"], &program, "pause"));
    let sleep = breaches(&report).into_iter().find(|breach| breach.rule == Rule::Sleep);
    let place = sleep.and_then(|sleep| sleep.place.clone());
    assert_eq!(place, Some(format!("wait_for_time (faults.c:{})", line("pause"))), "{report:?}");
}

#[test]
fn check_and_record_are_not_shown_on_one_page() {
    let folder = folder();
    let json = folder.path().join("check.json");
    let empty = serde_json::to_string(&Report::default()).expect("a report is plain data");
    std::fs::write(&json, empty).expect("the folder can be written");
    let of = |rest: &str| latlab(&format!("report {} {rest}", json.display()));
    of("/nonexistent").assert_refused(2, &["/nonexistent", "no report of latlab check"]);
    of("--svg charts").assert_refused(2, &["page only"]);
}

/// Nothing of a check that takes hours is lost for a wrong path, and no CI system reads the test
/// cases of an earlier one.
#[test]
fn junit_file_is_begun_before_the_program() {
    let folder = folder();
    let place = |name: &str| folder.path().join(name);
    let check = |file: &Path, program: &str| {
        latlab(&format!("check --junit {} -- {program}", file.display()))
    };
    let started = place("started");
    let touch = format!("touch {}", started.display());
    check(&place("missing/check.xml"), &touch).assert_refused(2, &["missing/check.xml"]);
    std::fs::write(place("record.json"), "{}").expect("the folder can be written");
    check(&place("record.json"), &touch).assert_refused(2, &["record.json", "no XML"]);
    assert!(!started.exists() && place("record.json").exists());
    std::fs::write(place("check.xml"), "<?xml version=\"1.0\"?>")
        .expect("the folder can be written");
    let failed = check(&place("check.xml"), "no-such-program");
    assert_ne!(failed.code(), Some(0), "{failed:?}");
    assert!(!place("check.xml").exists());
}

#[test]
fn correct_program_is_not_accused() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = compiled(folder.path(), &["-g", "-Wl,-z,now"]);
    for kind in ["none", "timer", "busy"] {
        let output = check(&["--json"], &program, kind);
        assert_eq!(output.code(), Some(0), "{output:?}");
        // The machine may be too slow for a cycle, and may run other real-time programs.
        let machine = [Rule::Overrun, Rule::CatchUp, Rule::SharedCpu];
        let report = report(&output);
        let accused = breaches(&report).into_iter().find(|breach| !machine.contains(&breach.rule));
        assert_eq!(accused, None, "{kind}");
        let cycle = &report.threads[0].cycle;
        assert!(cycle.count >= 190, "{cycle:?}");
        let period = cycle.period.expect("there were several cycles").0;
        assert!((1_900_000..2_100_000).contains(&period), "{cycle:?}");
    }
}

#[test]
fn deadline_and_rules_decide_the_exit_code() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = compiled(folder.path(), &["-g"]);
    let xml = folder.path().join("check.xml");
    let junit = format!("--junit={}", xml.display());
    // Each cycle computes for a millisecond.
    let late = check(&["--deadline=500us", &junit], &program, "overrun");
    assert_eq!(late.code(), Some(1), "{late:?}");
    assert!(late.stdout.starts_with("NOT real-time: ") && late.stdout.contains("error overrun"));
    let xml = std::fs::read_to_string(xml).expect("the file was written");
    assert!(xml.contains("name=\"overrun\"") && xml.contains("<failure"), "{xml}");
    // It waits for a mutex in one of its cycles until it is not watched any more.
    let mut hung = start(&["--deadline=500ms"], &program, "hangs");
    wait_until("the program waits for the mutex", || {
        assert!(!hung.has_ended(), "{hung:?}");
        child(hung.pid()).is_some_and(|pid| place_of_wait(pid).contains("futex"))
    });
    // Its deadline passes by the clock, however busy the machine is.
    pause(Duration::from_secs(1));
    hung.signal("INT");
    let hung = hung.finish();
    assert_eq!(hung.code(), Some(1), "{hung:?}");
    assert!(hung.stdout.starts_with("NOT real-time: 1 overrun in act (faults.c:"), "{hung:?}");
    let other = check(&["--fail-on=fault,non-pi"], &program, "file-io");
    assert_eq!(other.code(), Some(0), "{other:?}");
    assert!(other.stdout.starts_with("real-time: no breach of the given rules"), "{other:?}");
    let own = check(&["--fail-on=file-io"], &program, "file-io");
    assert_eq!(own.code(), Some(1), "{own:?}");
}

#[test]
fn stripped_program_is_checked_and_its_lack_stated() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = compiled(folder.path(), &["-s"]);
    let output = check(&[], &program, "fault");
    assert_eq!(output.code(), Some(1), "{output:?}");
    assert!(output.stdout.contains("page faults in faults+0x"), "{output:?}");
    assert!(output.stdout.contains("faults is stripped"), "{output:?}");
}

#[test]
fn unusual_programs_are_checked() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    for (options, argument) in [("-g", "forks"), ("-g", "executes"), ("-static", "fault")] {
        let program = compiled(folder.path(), &["-g", options]);
        let output = check(&["--json"], &program, argument);
        assert_eq!(output.code(), Some(1), "{argument}: {output:?}");
        let report = report(&output);
        let fault = breaches(&report).into_iter().find(|breach| breach.rule == Rule::Fault);
        let place = fault.and_then(|fault| fault.place.clone()).unwrap_or_default();
        assert!(place.starts_with("touch_page (faults.c:"), "{options} {argument}: {output:?}");
    }
    let program = compiled(folder.path(), &["-g"]);
    let died = check(&[], &program, "dies");
    assert_eq!(died.code(), Some(1), "{died:?}");
    assert!(died.stdout.contains("log_state (faults.c:"), "{died:?}");
    assert!(died.stdout.contains("the program ended after") && died.stdout.contains("by signal 6"));
    let outlived = check(&["--json"], &program, "outlived");
    assert_eq!(outlived.code(), Some(1), "{outlived:?}");
    assert!(outlived.stdout.contains("log_state (faults.c:"), "{outlived:?}");
    let Report { threads, without_cycle, .. } = report(&outlived);
    assert_eq!((threads.len(), without_cycle.len()), (1, 1), "{outlived:?}");
}

/// Its stack lies where that of a thread lay which has ended.
#[test]
fn sleep_of_a_later_thread_has_its_place() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = compiled(folder.path(), &["-g"]);
    let report = report(&check(&["--json"], &program, "successor"));
    let drifts = breaches(&report).into_iter().filter(|breach| breach.rule == Rule::Drift);
    let places: Vec<_> = drifts.map(|breach| breach.place.clone().unwrap_or_default()).collect();
    let place = format!("wait_for_time (faults.c:{})", line("drift"));
    assert_eq!(places, [place.clone(), place], "{report:?}");
}

#[test]
fn code_that_a_program_loads_while_it_runs_is_named() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/check/plugin.c");
    let plugin = folder.path().join("plugin.so");
    let options = ["-g", "-shared", "-fPIC", "-DPLUGIN"];
    std::fs::rename(compile(&source, folder.path(), &options), &plugin).expect("it is ours");
    let program = compile(&source, folder.path(), &["-g"]);
    let output = check(&["--json"], &program, &plugin.display().to_string());
    let report = report(&output);
    let file_io = breaches(&report).into_iter().find(|breach| breach.rule == Rule::FileIo);
    let place = file_io.and_then(|breach| breach.place.clone()).unwrap_or_default();
    assert!(place.starts_with("log_cycle (plugin.c:"), "{output:?}");
}

#[test]
fn process_in_a_container_is_checked_from_outside() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    compiled(folder.path(), &["-g"]);
    // In its file system, the path of the program is another.
    let script = "mkdir $1/inside && mount --bind $1 $1/inside && exec $1/inside/faults endless";
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child",
        "sh",
        "-c",
        script,
    ]);
    let container = Running::start(command.arg("sh").arg(folder.path()));
    let program = || child(container.pid());
    let is_at_work = |pid| is_fifo(pid) && field(pid, "Name").as_deref() == Some("faults");
    wait_until("the program has a real-time policy", || program().is_some_and(is_at_work));
    let pid = program().expect("it runs");
    // For longer than latlab waits for a CPU of a busy machine before it watches.
    let output = latlab(&format!("check --pid {pid} --for 2s"));
    assert_eq!(output.code(), Some(1), "{output:?}");
    assert!(output.stdout.contains("log_state (faults.c:"), "{output:?}");
}

#[test]
fn machine_that_cannot_check_is_named() {
    if !latlab_testing::bpf() {
        return;
    }
    let folder = folder();
    let without_btf = "mount -t tmpfs none /sys/kernel/btf";
    let output = run(&mut in_mount_namespace(without_btf, folder.path(), "check -- true"));
    output.assert_refused(3, &["no /sys/kernel/btf/vmlinux"]);
    let start = |program: &str, words: &[&str]| {
        run(Command::new(program).args(words).arg(LATLAB).args(["check", "--", "true"]))
    };
    let container = ["--mount", "--pid", "--fork", "--mount-proc"];
    start("unshare", &container).assert_refused(3, &["in a container", "--pid=host"]);
    let capabilities = ["--bounding-set=-all", "--inh-caps=-all"];
    start("setpriv", &capabilities).assert_refused(3, &["CAP_BPF", "run as root"]);
}

#[test]
fn running_process_is_checked() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    if Command::new("cyclictest").arg("--help").output().is_err() {
        not_run(Missing::Required, "it needs cyclictest");
        return;
    }
    let mut command = Command::new("cyclictest");
    command.args(["-q", "-m", "-p", "50", "-t", "1", "-a", "0", "-i", "2000", "-D", "1000"]);
    let mut cyclic = Running::start(&mut command);
    let threads = PathBuf::from(format!("/proc/{}/task", cyclic.pid()));
    wait_until("its thread has a real-time policy", || {
        assert!(!cyclic.has_ended(), "{cyclic:?}");
        let threads = entries(&threads).into_iter();
        threads.filter_map(|path| path.file_name()?.to_str()?.parse().ok()).any(is_fifo)
    });
    let output = latlab(&format!("check --pid {} --for 2s --json", cyclic.pid()));
    drop(cyclic);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let report = report(&output);
    assert_eq!(report.threads.len(), 1, "{report:?}");
    assert!(report.threads[0].cycle.count > 100, "{report:?}");
}

#[test]
fn program_that_cannot_be_checked_is_refused() {
    if !latlab_testing::bpf() {
        return;
    }
    let folder = folder();
    let program = compiled(folder.path(), &["-g"]);
    let refused = |program: &Path, argument: &str, code, words: &[&str]| {
        check(&[], program, argument).assert_refused(code, words);
    };
    refused(&program, "ordinary", 2, &["no thread was real-time", "--fifo 80"]);
    refused(Path::new("/nonexistent"), "", 2, &["/nonexistent", "program not found"]);
    refused(Path::new("false"), "", 2, &["no thread was real-time", "with exit code 1"]);
    let thirty_two = folder.path().join("thirty-two");
    std::fs::write(&thirty_two, b"\x7fELF\x01\x01\x01").expect("the folder can be written");
    let mut rights = std::fs::metadata(&thirty_two).expect("it is there").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut rights, 0o755);
    std::fs::set_permissions(&thirty_two, rights).expect("it is ours");
    refused(&thirty_two, "", 3, &["32-bit program"]);
    latlab("check --pid 2").assert_refused(2, &["kernel thread"]);
    latlab("check --pid 4194304").assert_refused(2, &["4194304", "no such task"]);
    let of_thread = std::thread::spawn(|| {
        let own = std::fs::read_link("/proc/thread-self").expect("it is there");
        let tid = own.file_name().expect("it is that of a thread").to_string_lossy();
        latlab(&format!("check --pid {tid}"))
    });
    let of_thread = of_thread.join().expect("it ends");
    let process = format!("give --pid {}", std::process::id());
    of_thread.assert_refused(2, &["it is a thread of process", &process]);
    let sleeper = Running::start(Command::new("sleep").arg("1000"));
    let words = format!("check --pid {} --for 100ms", sleeper.pid());
    latlab(&words).assert_refused(2, &["no thread was real-time"]);
}

#[test]
fn wrong_options_are_refused() {
    latlab("check").assert_refused(2, &["COMMAND"]);
    latlab("check --fail-on faults -- true").assert_refused(2, &["there is no rule 'faults'"]);
    latlab("check --pid 1 -- true").assert_refused(2, &["--pid"]);
    latlab("check --pid 1 --on lab:rt").assert_refused(2, &["--pid", "with --on"]);
    latlab("check --fresh -- true").assert_refused(2, &["--fresh"]);
}
