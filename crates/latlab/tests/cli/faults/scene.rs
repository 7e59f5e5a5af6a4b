//! A machine whose state is compared with what latlab says of it.

use super::{program, tampering};
use crate::knob;
use crate::program::{Output, Running, entries, folder, run};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The value of the knob, and the policy and priority of each IRQ thread: what latlab changes here.
pub(super) type State = (String, BTreeMap<String, (String, String)>);

pub(super) fn state() -> State {
    let thread = |path: PathBuf| {
        let (name, [_, priority, policy]) = task(&path)?;
        let pid = path.file_name()?.to_str()?.to_owned();
        name.starts_with("irq/").then_some((pid, (priority, policy)))
    };
    (knob::read(), entries(Path::new("/proc")).into_iter().filter_map(thread).collect())
}

/// The name of a task, its flags, its real-time priority and its policy.
fn task(path: &Path) -> Option<(String, [String; 3])> {
    let stat = fs::read_to_string(path.join("stat")).ok()?;
    // The name in parentheses may contain anything.
    let (name, fields) = stat.split_once('(')?.1.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    Some((name.to_owned(), [6, 37, 38].map(|field: usize| fields[field].to_owned())))
}

/// The name of a program's real-time task, if there is one.
pub(super) fn real_time_task() -> Option<String> {
    /// The flag of a kernel thread, `PF_KTHREAD`.
    const KERNEL: u64 = 0x0020_0000;
    /// `SCHED_FIFO`, `SCHED_RR` and `SCHED_DEADLINE`.
    const REAL_TIME: [&str; 3] = ["1", "2", "6"];
    // A process may end meanwhile.
    let tasks =
        |process: PathBuf| fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    let tasks = entries(Path::new("/proc")).into_iter().flat_map(tasks);
    tasks.filter_map(|entry| task(&entry.path())).find_map(|(name, [flags, _, policy])| {
        let of_program = flags.parse::<u64>().ok()? & KERNEL == 0;
        (of_program && REAL_TIME.contains(&policy.as_str())).then_some(name)
    })
}

/// A folder with journals of its own, and the value that a run sets.
pub(super) struct Scene {
    folder: tempfile::TempDir,
    pub(super) before: State,
    pub(super) new: &'static str,
    /// Restored even if the test panics.
    _restored: Restored,
}

/// Restores the state when it is dropped.
struct Restored(State);

impl Drop for Restored {
    fn drop(&mut self) {
        set(&self.0);
    }
}

/// Sets the knob and the IRQ threads, as an administrator would.
fn set((value, threads): &State) {
    knob::write(value);
    for (pid, (priority, policy)) in threads {
        let policy = if policy == "1" { "--fifo" } else { "--other" };
        let _ = Command::new("chrt").args([policy, "--pid", priority, pid]).output();
    }
}

/// Binds the journals in `$1` to where latlab keeps them, and runs the other parameters.
pub(super) const OWN_JOURNALS: &str =
    "mount --bind \"$1/journals\" /run/latlab || exit; shift; exec \"$@\"";

/// Whether latlab says that something is not as it was, or that it does not begin to restore: without
/// root's rights, or where it can't drop capabilities.
pub(super) fn is_said(output: &Output) -> bool {
    let says = |words| [&output.stdout, &output.stderr].iter().any(|text| text.contains(words));
    let all = ["not restored", "can't be restored", "only root can restore", "can't be dropped"];
    all.map(says).contains(&true)
}

impl Scene {
    pub(super) fn new() -> Scene {
        let before = state();
        let new = if before.0 == "11" { "12" } else { "11" };
        let scene = Scene { folder: folder(), _restored: Restored(before.clone()), before, new };
        fs::create_dir_all("/run/latlab").expect("root may create it");
        fs::create_dir(scene.journals()).expect("the folder is the test's own");
        scene
    }

    /// Whether it has an IRQ thread whose policy latlab can change.
    pub(super) fn has_threads(&self) -> bool {
        self.before.1.values().any(|(_, policy)| policy == "1")
    }

    /// The folder, in which `journals` is.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn journals(&self) -> PathBuf {
        self.folder.path().join("journals")
    }

    /// The command that runs other words with the journals of this scene.
    pub(super) fn command(&self, script: &str) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh"]).arg(self.folder.path());
        command
    }

    /// Runs `latlab` with these arguments, in which the nth call is tampered with.
    pub(super) fn tampered(&self, words: &str, fault: (&str, &str), nth: usize) -> Option<Output> {
        self.tampered_beside("", words, fault, nth)
    }

    /// The same, beside a script that runs `latlab` as `$latlab`.
    pub(super) fn tampered_beside(
        &self,
        script: &str,
        words: &str,
        fault: (&str, &str),
        nth: usize,
    ) -> Option<Output> {
        let mut command = self.command(&format!("{script}\n{OWN_JOURNALS}"));
        command.env("latlab", program());
        tampering(command.arg("strace"), self.folder.path(), words, fault, nth)
    }

    /// `latlab` with these words.
    pub(super) fn latlab(&self, words: &str) -> Command {
        let mut command = self.command(OWN_JOURNALS);
        command.arg(program()).args(words.split_whitespace());
        command
    }

    /// Restores what was left, without a fault.
    pub(super) fn restore(&self) -> Output {
        run(&mut self.latlab("adapt --restore"))
    }

    /// Asserts that nothing is changed, or that the output says so and nothing is lost.
    pub(super) fn check(&self, output: &Output) -> Result<(), String> {
        let silent = state() != self.before && (output.code() == Some(0) || !is_said(output));
        let restored = self.check_restored(output);
        if silent {
            return Err(format!("something is changed, and nothing was said: {output:?}"));
        }
        restored
    }

    /// Asserts that nothing is changed after the next start, and that the output is no crash.
    pub(super) fn check_restored(&self, output: &Output) -> Result<(), String> {
        let restored = self.restore();
        let now = state();
        set(&self.before);
        for left in entries(&self.journals()) {
            let _ = fs::remove_file(left);
        }
        if now != self.before {
            return Err(format!("{now:?} can't be restored: {output:?}, then {restored:?}"));
        }
        if output.stderr.contains("panicked")
            || matches!(output.signal(), Some(signal) if signal != 9)
        {
            return Err(format!("{output:?}"));
        }
        Ok(())
    }

    /// Starts `latlab` and kills it when it has changed something.
    pub(super) fn kill(&self, words: &str) {
        let run = Running::start(&mut self.latlab(words));
        crate::program::wait_until("it has changed something", || state() != self.before);
        run.signal("KILL");
        run.finish();
    }

    /// The journals, and the state, of a command that was killed.
    pub(super) fn killed(&self, words: &str) -> Killed<'_> {
        self.kill(words);
        let journals = entries(&self.journals()).into_iter();
        let read = |path: PathBuf| fs::read(&path).ok().map(|bytes| (path, bytes));
        Killed { scene: self, journals: journals.filter_map(read).collect(), state: state() }
    }
}

/// What a killed command left.
pub(super) struct Killed<'a> {
    scene: &'a Scene,
    journals: Vec<(PathBuf, Vec<u8>)>,
    state: State,
}

impl Killed<'_> {
    /// Leaves the machine as the killed command did.
    pub(super) fn put_back(&self) {
        for left in entries(&self.scene.journals()) {
            let _ = fs::remove_file(left);
        }
        for (path, bytes) in &self.journals {
            fs::write(path, bytes).expect("the folder is the test's own");
        }
        set(&self.state);
    }
}
