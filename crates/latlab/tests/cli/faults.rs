//! Faults: each system call of a command fails once. The machine is then as before, or latlab says
//! that it is not, and the next one restores it; a file that it writes is whole or absent.

use crate::kernel::kernel;
use crate::knob;
use crate::program::{
    LATLAB, Output, Running, command, entries, folder, lock_machine, root, run, with_own_journal,
};
use latlab_core::record::Record;
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

/// The value of the knob, and the priority and policy of each IRQ thread: what latlab changes here.
type State = (String, BTreeMap<String, (String, String)>);

fn state() -> State {
    let thread = |path: PathBuf| {
        let name = fs::read_to_string(path.join("comm")).ok()?;
        let stat = fs::read_to_string(path.join("stat")).ok()?;
        // The name in parentheses may contain anything.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(37);
        let scheduled = (fields.next()?.to_owned(), fields.next()?.to_owned());
        name.starts_with("irq/").then_some((name, scheduled))
    };
    (knob::read(), entries(Path::new("/proc")).into_iter().filter_map(thread).collect())
}

/// A folder with journals of its own, and the value that a run sets.
struct Scene {
    folder: tempfile::TempDir,
    before: State,
    new: &'static str,
    /// Restored even if the test panics.
    _knob: knob::RestoreOnDrop,
}

impl Scene {
    fn new() -> Scene {
        let (before, knob) = (state(), knob::restore_on_drop());
        let new = if before.0 == "11" { "12" } else { "11" };
        let scene = Scene { folder: folder(), before, new, _knob: knob };
        fs::create_dir_all("/run/latlab").expect("root may create it");
        fs::create_dir(scene.path("journals")).expect("the folder is the test's own");
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `latlab` with these arguments. Its `nth` call fails. None if it makes fewer.
    fn failing(&self, words: &str, (call, error): (&str, &str), nth: usize) -> Option<Output> {
        let script = "set -e; mount --bind \"$1/journals\" /run/latlab; shift; exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh"]).arg(self.folder.path()).arg("strace");
        failing(&mut command, self.folder.path(), words, (call, error), nth)
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
        knob::write(&self.before.0);
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

/// Runs `latlab` by this command, which starts strace, as [`Scene::failing`] does.
fn failing(
    strace: &mut Command,
    folder: &Path,
    words: &str,
    (call, error): (&str, &str),
    nth: usize,
) -> Option<Output> {
    let trace = folder.join("trace");
    strace.args(["-f", "-qq", "-e"]).arg(format!("trace={call}"));
    strace.arg("-e").arg(format!("inject={call}:error={error}:when={nth}"));
    strace.arg("-o").arg(&trace).arg(LATLAB).args(words.split_whitespace());
    let output = run(strace);
    let traced = fs::read_to_string(&trace).expect("strace has written it");
    traced.contains("(INJECTED)").then_some(output)
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
    let words = format!("run --set stat_interval={} --for 20ms --cpus 0 --policy other", scene.new);
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
        knob::write(scene.new);
        Some(scene.check(&scene.failing("adapt --restore", fault, nth)?))
    });
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

#[test]
fn record_is_whole_or_absent_whichever_call_fails() {
    let folder = folder();
    let path = folder.path().join("record.json");
    let words = "run --for 20ms --cpus 0 --policy other --out record.json";
    each(|fault, nth| {
        let mut strace = Command::new("strace");
        strace.current_dir(&folder);
        let output = failing(&mut strace, folder.path(), words, fault, nth)?;
        let record = fs::read_to_string(&path).ok().map(|text| Record::from_json(&text));
        let _ = fs::remove_file(&path);
        Some(match record {
            Some(Ok(_)) => Ok(()),
            None if output.code() != Some(0) => Ok(()),
            record => Err(format!("{record:?}: {output:?}")),
        })
    });
}

#[test]
fn kernel_is_whole_or_absent_whichever_call_fails() {
    let folder = folder();
    fs::write(folder.path().join("vmlinux"), kernel("6.1.9"))
        .expect("the folder is the test's own");
    let in_cache = |command: &mut Command| {
        command.current_dir(&folder).env("XDG_CACHE_HOME", folder.path());
    };
    let added = || {
        let mut command = command("kernel add vmlinux");
        in_cache(&mut command);
        run(&mut command)
    };
    each(|fault, nth| {
        let mut strace = Command::new("strace");
        in_cache(&mut strace);
        let output = failing(&mut strace, folder.path(), "kernel add vmlinux", fault, nth)?;
        let image = fs::read(folder.path().join("latlab/kernels/6.1.9/image"));
        let is_whole = image.as_ref().is_ok_and(|image| *image == kernel("6.1.9"));
        let is_right = is_whole || image.is_err() && output.code() != Some(0);
        let again = added();
        let _ = fs::remove_dir_all(folder.path().join("latlab"));
        let is_repeatable = again.code() == Some(0) && again.stdout == "6.1.9\n";
        let is_right = is_right && is_repeatable && !output.stderr.contains("panicked");
        Some(if is_right { Ok(()) } else { Err(format!("{output:?}, then {again:?}")) })
    });
}

/// The path and the content of the journal of a run that was killed.
fn journal_of_killed_run(scene: &Scene) -> (PathBuf, Vec<u8>) {
    let words = format!("run --set stat_interval={} --for 60s --cpus 0 --policy other", scene.new);
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
