//! Faults: each system call of a command that changes the machine, or restores it, fails once. The
//! machine is then as before, or latlab says that it is not, and the next one restores it.

use crate::program::{
    LATLAB, Output, Running, entries, folder, lock_machine, root, run, with_own_journal,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// System calls, and the error with which each fails.
const FAULTS: &[(&str, &str)] = &[
    ("openat", "EMFILE"),
    ("openat", "EACCES"),
    ("read", "EIO"),
    ("read", "ENOMEM"),
    ("write", "ENOSPC"),
    ("write", "EINTR"),
    ("rename", "EIO"),
    ("fdatasync", "EIO"),
    ("flock", "ENOLCK"),
    ("unlink", "EACCES"),
    ("ftruncate", "EIO"),
    ("statx", "ENOMEM"),
    ("getdents64", "EIO"),
    ("mkdir", "ENOSPC"),
    ("clone3", "EAGAIN"),
];

/// Of calls that are made more often than this, only every `STRIDE`th fails; `make torture` sets
/// `LATLAB_FAULTS=all`, and then each does.
const FEW: usize = 12;
const STRIDE: usize = 97;

const KNOB: &str = "/proc/sys/vm/swappiness";

fn value() -> String {
    fs::read_to_string(KNOB).expect("every kernel has swappiness").trim().to_owned()
}

/// The value of the knob, and the priority and policy of each IRQ thread: what latlab changes here.
fn state() -> (String, BTreeMap<String, (String, String)>) {
    let thread = |path: PathBuf| {
        let name = fs::read_to_string(path.join("comm")).ok()?;
        let stat = fs::read_to_string(path.join("stat")).ok()?;
        // The name in parentheses may contain anything.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(37);
        let scheduled = (fields.next()?.to_owned(), fields.next()?.to_owned());
        name.starts_with("irq/").then_some((name, scheduled))
    };
    (value(), entries(Path::new("/proc")).into_iter().filter_map(thread).collect())
}

fn set(value: &str) {
    fs::write(KNOB, value).expect("root may set it");
}

/// A folder with journals of its own, and the value that a run sets.
struct Scene {
    folder: tempfile::TempDir,
    before: (String, BTreeMap<String, (String, String)>),
    new: &'static str,
}

impl Scene {
    fn new() -> Scene {
        let before = state();
        let new = if before.0 == "11" { "12" } else { "11" };
        let scene = Scene { folder: folder(), before, new };
        fs::create_dir_all("/run/latlab").expect("root may create it");
        fs::create_dir(scene.path("journals")).expect("the folder is the test's own");
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `latlab` with these arguments. Its `nth` call fails. None if it makes fewer.
    fn failing(&self, words: &str, (call, error): (&str, &str), nth: usize) -> Option<Output> {
        let trace = self.path("trace");
        let script = "set -e; mount --bind \"$1/journals\" /run/latlab; shift; exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh"]).arg(self.folder.path());
        command.args(["strace", "-f", "-qq", "-e"]).arg(format!("trace={call}"));
        command.arg("-e").arg(format!("inject={call}:error={error}:when={nth}"));
        command.arg("-o").arg(&trace).arg(LATLAB).args(words.split_whitespace());
        let output = run(&mut command);
        let traced = fs::read_to_string(&trace).expect("strace has written it");
        traced.contains("(INJECTED)").then_some(output)
    }

    /// Restores what was left, without a fault.
    fn restore(&self) -> Output {
        run(&mut with_own_journal(self.folder.path(), "adapt --restore"))
    }

    /// Asserts that nothing is changed, or that the output says so and nothing is lost.
    fn check(&self, output: &Output) -> Result<(), String> {
        let silent = state() != self.before && output.code() == Some(0);
        let restored = self.restore();
        let now = state();
        set(&self.before.0);
        if silent {
            return Err(format!("something is changed, and nothing was said: {output:?}"));
        }
        if now != self.before {
            return Err(format!("{now:?} can't be restored: {output:?}, then {restored:?}"));
        }
        if output.signal().is_some() || output.stderr.contains("panicked") {
            return Err(format!("{output:?}"));
        }
        Ok(())
    }
}

/// Makes each call fail once, as `attempt` does with a fault and a number.
fn each(attempt: impl Fn((&str, &str), usize) -> Option<Result<(), String>>) {
    let all = std::env::var_os("LATLAB_FAULTS").is_some_and(|which| which == "all");
    let (mut tried, mut wrong) = (0, Vec::new());
    for fault in FAULTS {
        let mut nth = 1;
        while let Some(result) = attempt(*fault, nth) {
            tried += 1;
            wrong.extend(result.err().map(|why| format!("{fault:?}, call {nth}: {why}")));
            nth += if all || nth < FEW { 1 } else { STRIDE };
        }
    }
    assert!(wrong.is_empty(), "{} of {tried}: {wrong:#?}", wrong.len());
    assert!(tried > 40, "only {tried} calls were made to fail");
}

#[test]
fn run_restores_knob_or_reports_it_whichever_call_fails() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let scene = Scene::new();
    let words = format!("run --set swappiness={} --for 20ms --cpus 0 --policy other", scene.new);
    each(|fault, nth| Some(scene.check(&scene.failing(&words, fault, nth)?)));
}

#[test]
fn restore_restores_knob_or_reports_it_whichever_call_fails() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let scene = Scene::new();
    let (name, journal) = journal_of_killed_run(&scene);
    each(|fault, nth| {
        fs::write(&name, &journal).expect("the folder is the test's own");
        set(scene.new);
        Some(scene.check(&scene.failing("adapt --restore", fault, nth)?))
    });
    set(&scene.before.0);
}

#[test]
fn adapt_restores_threads_or_reports_it_whichever_call_fails() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let scene = Scene::new();
    each(|fault, nth| Some(scene.check(&scene.failing("adapt --for 50ms", fault, nth)?)));
}

/// The path and the content of the journal of a run that was killed.
fn journal_of_killed_run(scene: &Scene) -> (PathBuf, Vec<u8>) {
    let words = format!("run --set swappiness={} --for 60s --cpus 0 --policy other", scene.new);
    let mut run = Running::start(&mut with_own_journal(scene.folder.path(), &words));
    run.wait_until_measuring();
    run.signal("KILL");
    run.finish();
    let is_journal = |path: &PathBuf| path.extension().is_some_and(|end| end == "journal");
    let journal = entries(&scene.path("journals")).into_iter().find(is_journal);
    let journal = journal.expect("the run was killed");
    let content = fs::read(&journal).expect("root may read it");
    (journal, content)
}
