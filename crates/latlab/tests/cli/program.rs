//! How the tests start the program, wait for it, and hear what it said.

use latlab_core::record::Record;
pub(crate) use latlab_testing::{Missing, not_run, root};
use std::fs::{self, File};
use std::io::{Read as _, Seek as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The program under test.
pub(crate) const LATLAB: &str = env!("CARGO_BIN_EXE_latlab");

/// How a program ended and what it said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    pub(crate) fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// What it printed, as a record that is whole.
    pub(crate) fn record(&self) -> Record {
        Record::from_json(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// What it printed, as two records that are whole.
    pub(crate) fn two_records(&self) -> [Record; 2] {
        let (first, second) = self.stdout.split_once("\n}\n{").expect("two records");
        [format!("{first}\n}}"), format!("{{{second}")]
            .map(|text| Record::from_json(&text).unwrap_or_else(|e| panic!("{e}: {text}")))
    }

    /// Asserts that it ended with `code`, one sentence that contains all of `words`, and no
    /// result. The sentence.
    pub(crate) fn refused(&self, code: i32, words: &[&str]) -> &str {
        assert_eq!(self.code(), Some(code), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        let sentence = self.stderr.strip_suffix('\n').expect("a sentence ends its line");
        assert!(sentence.starts_with("latlab: ") && !sentence.contains('\n'), "{self:?}");
        assert!(!sentence.contains("panicked"), "{self:?}");
        for word in words {
            assert!(sentence.contains(word), "no '{word}' in: {sentence}");
        }
        sentence
    }
}

/// The value of the first figure of this name.
pub(crate) fn figure(record: &Record, name: &str) -> Option<f64> {
    figures(record, name).next()
}

/// The value of the n-th figure of this name, which is a count.
pub(crate) fn count(record: &Record, name: &str, nth: usize) -> u64 {
    let value = figures(record, name).nth(nth);
    value.expect("it is measured").to_string().parse().expect("it is whole")
}

fn figures(record: &Record, name: &str) -> impl Iterator<Item = f64> {
    record.figures.iter().filter(move |figure| figure.name == name).map(|figure| figure.value)
}

/// A program at work. It is killed with the test that started it.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    stdout: File,
    stderr: File,
}

/// No command of these tests takes longer, however busy the machine is.
const PATIENCE: Duration = Duration::from_mins(5);
const STEP: Duration = Duration::from_millis(5);

impl Running {
    /// Starts `command`; what it says goes to files, so that it never waits for a reader.
    pub(crate) fn start(command: &mut Command) -> Running {
        let file = || tempfile::tempfile().expect("there is room for temporary files");
        let twin = |file: &File| Stdio::from(file.try_clone().expect("a descriptor is free"));
        let (stdout, stderr) = (file(), file());
        command.stdin(Stdio::null()).stdout(twin(&stdout)).stderr(twin(&stderr));
        let child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        Running { child, stdout, stderr }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, by its name without SIG. A process that has ended, and was not waited
    /// for, takes it too.
    pub(crate) fn signal(&self, name: &str) {
        send(name, self.pid());
    }

    /// Waits until its probe's threads are there.
    pub(crate) fn measuring(&mut self) {
        let threads = format!("/proc/{}/task", self.pid());
        let named = |path: PathBuf| fs::read_to_string(path.join("comm")).unwrap_or_default();
        let what = format!("{self:?} measures");
        until(&what, || {
            let ended = self.child.try_wait().expect("it is our child");
            assert!(ended.is_none(), "it ended before it measured: {:?}", self.said(ended));
            let threads = fs::read_dir(&threads).into_iter().flatten().flatten();
            threads.map(|thread| named(thread.path())).any(|name| name.contains('/'))
        });
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Said {
        let mut status = None;
        until(&format!("{self:?} ends"), || {
            status = self.child.try_wait().expect("it is our child");
            status.is_some()
        });
        self.said(status)
    }

    /// What it has said so far of how it goes. Where it writes on stays where it is.
    pub(crate) fn stderr(&self) -> String {
        let mut bytes = vec![0; 1 << 16];
        let read = self.stderr.read_at(&mut bytes, 0).expect("it is a file");
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }

    fn said(&mut self, status: Option<ExitStatus>) -> Said {
        let read = |file: &mut File| {
            let mut text = String::new();
            file.rewind().and_then(|()| file.read_to_string(&mut text)).expect("it is text");
            text
        };
        Said {
            status: status.unwrap_or_default(),
            stdout: read(&mut self.stdout),
            stderr: read(&mut self.stderr),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Gone already where the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Said {
    Running::start(command).finish()
}

/// `latlab` with these words, separated by blanks.
pub(crate) fn command(words: &str) -> Command {
    let mut command = Command::new(LATLAB);
    command.args(words.split_whitespace());
    command
}

/// Runs `latlab` with these words, separated by blanks, to its end.
pub(crate) fn latlab(words: &str) -> Said {
    run(&mut command(words))
}

/// `latlab` with these words in a mount namespace of its own, in which `script` was run before,
/// with `folder` as its first parameter.
pub(crate) fn behind(script: &str, folder: &Path, words: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c"]);
    command.arg(format!("set -e; {script}; shift; exec \"$@\""));
    command.arg("sh").arg(folder).arg(LATLAB).args(words.split_whitespace());
    command
}

/// `latlab` with these words and a journal of its own in `folder`, so that no other latlab on
/// this machine mends what a test has broken.
pub(crate) fn sandboxed(folder: &Path, words: &str) -> Command {
    let own = "mkdir -p /run/latlab \"$1/journals\"; mount --bind \"$1/journals\" /run/latlab";
    behind(own, folder, words)
}

/// Sends a signal, by its name without SIG.
pub(crate) fn send(signal: &str, pid: u32) {
    let sent = Command::new("sh").arg("-c").arg(format!("kill -s {signal} {pid}")).status();
    assert!(sent.expect("there is a shell").success(), "SIG{signal} to {pid}");
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        pause(STEP);
    }
}

pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// The right to measure, and to change the machine: one test at a time.
pub(crate) fn machine() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    // Another test's failure is not this one's.
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A seed that no run before has had, so that the laboratory knows nothing of it.
pub(crate) fn new_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    now.as_secs() * 1_000_000 + u64::from(now.subsec_micros())
}

/// A fresh folder that every user may read.
pub(crate) fn folder() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let open = fs::Permissions::from_mode(0o755);
    let folder = tempfile::Builder::new().permissions(open).tempdir();
    folder.expect("there is room for temporary files")
}

/// What is in a folder.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    entries.map(|entry| entry.expect("it can be listed").path()).collect()
}

/// The processes that run the program at `path`.
pub(crate) fn running(path: &Path) -> Vec<u32> {
    processes().filter(|pid| executable(*pid).as_deref() == Some(path)).collect()
}

/// The workers of a run's loads.
pub(crate) fn workers(parent: u32) -> Vec<u32> {
    let is_worker = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1) == Some(b"load-worker")
    };
    let its_own = |pid: &u32| field(*pid, "PPid").is_some_and(|pid| pid == parent.to_string());
    processes().filter(is_worker).filter(its_own).collect()
}

/// A line of a process's status.
pub(crate) fn field(pid: u32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"))?;
    Some(value.to_owned())
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn executable(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}
