//! Start of the program by the tests, and access to its output.

use latlab_core::record::Record;
use latlab_testing::wait_at_most;
pub(crate) use latlab_testing::{
    MachineLock, Missing, lock_machine, lock_machine_for_a_moment, not_run, root,
};
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Path of the program that the tests start.
pub(crate) const LATLAB: &str = env!("CARGO_BIN_EXE_latlab");

/// Exit status and output of a program.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    pub(crate) fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// Parses standard output as a record.
    pub(crate) fn record(&self) -> Record {
        Record::from_json(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Parses standard output as two records.
    pub(crate) fn two_records(&self) -> [Record; 2] {
        let (first, second) = self.stdout.split_once("\n}\n{").expect("two records");
        [format!("{first}\n}}"), format!("{{{second}")]
            .map(|text| Record::from_json(&text).unwrap_or_else(|e| panic!("{e}: {text}")))
    }

    /// Asserts that the program ended with `code`, printed nothing to standard output, and one
    /// sentence that contains all of `words` to standard error. Returns the sentence.
    pub(crate) fn assert_refused(&self, code: i32, words: &[&str]) -> &str {
        assert_eq!(self.code(), Some(code), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        let sentence = self.stderr.strip_suffix('\n').expect("the sentence ends with a newline");
        assert!(sentence.starts_with("latlab: ") && !sentence.contains('\n'), "{self:?}");
        assert!(!sentence.contains("panicked"), "{self:?}");
        for word in words {
            assert!(sentence.contains(word), "no '{word}' in: {sentence}");
        }
        sentence
    }
}

/// Returns the value of the first figure of this name.
pub(crate) fn figure(record: &Record, name: &str) -> Option<f64> {
    figures(record, name).next()
}

/// Returns the value of the n-th figure of this name, which is a count.
pub(crate) fn count(record: &Record, name: &str, nth: usize) -> u64 {
    let value = figures(record, name).nth(nth);
    value.expect("there is such a figure").to_string().parse().expect("a count is an integer")
}

fn figures(record: &Record, name: &str) -> impl Iterator<Item = f64> {
    record.figures.iter().filter(move |figure| figure.name == name).map(|figure| figure.value)
}

/// A running program. It is killed when the test ends.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    stdout: File,
    stderr: File,
}

/// Longest time that a test waits for something, on an idle machine.
const PATIENCE: Duration = Duration::from_mins(5);
/// Longest time until a program ends: latlab itself ends a guest that hangs after some ten minutes, and
/// says more about it.
const LONGEST: Duration = Duration::from_mins(12);

impl Running {
    /// Starts `command`. Its output goes to files, so that it never blocks on a full pipe.
    pub(crate) fn start(command: &mut Command) -> Running {
        let file = || tempfile::tempfile().expect("a temporary file can be created");
        let duplicate =
            |file: &File| Stdio::from(file.try_clone().expect("a file descriptor is free"));
        let (stdout, stderr) = (file(), file());
        command.stdin(Stdio::null()).stdout(duplicate(&stdout)).stderr(duplicate(&stderr));
        let child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        Running { child, stdout, stderr }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, by its name without SIG. This also works while the process is a zombie.
    pub(crate) fn signal(&self, name: &str) {
        send(name, self.pid());
    }

    /// Waits until the threads of the probe exist.
    pub(crate) fn wait_until_measuring(&mut self) {
        let threads = format!("/proc/{}/task", self.pid());
        let named = |path: PathBuf| fs::read_to_string(path.join("comm")).unwrap_or_default();
        let what = format!("{self:?} measures");
        wait_until(&what, || {
            let ended = self.child.try_wait().expect("it is a child process");
            assert!(ended.is_none(), "it ended before it measured: {:?}", self.output(ended));
            let threads = fs::read_dir(&threads).into_iter().flatten().flatten();
            threads.map(|thread| named(thread.path())).any(|name| name.contains('/'))
        });
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("it is a child process").is_some()
    }

    /// Waits for the end of the program.
    pub(crate) fn finish(mut self) -> Output {
        let mut status = None;
        wait_at_most(LONGEST, &format!("{self:?} ends"), || {
            status = self.child.try_wait().expect("it is a child process");
            status.is_some()
        });
        self.output(status)
    }

    /// Returns the standard error so far. The file offset of the program is unchanged.
    pub(crate) fn stderr(&self) -> String {
        so_far(&self.stderr)
    }

    /// Returns the standard output so far, in the same way.
    pub(crate) fn stdout(&self) -> String {
        so_far(&self.stdout)
    }

    fn output(&mut self, status: Option<ExitStatus>) -> Output {
        let read = |file: &mut File| {
            let mut text = String::new();
            file.rewind()
                .and_then(|()| file.read_to_string(&mut text))
                .expect("the output is UTF-8");
            text
        };
        Output {
            status: status.unwrap_or_default(),
            stdout: read(&mut self.stdout),
            stderr: read(&mut self.stderr),
        }
    }
}

fn so_far(file: &File) -> String {
    let mut bytes = vec![0; 1 << 16];
    let read = file.read_at(&mut bytes, 0).expect("the file can be read");
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already if the test passed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command and waits for its end.
pub(crate) fn run(command: &mut Command) -> Output {
    Running::start(command).finish()
}

/// Returns the command `latlab` with these arguments, separated by blanks.
pub(crate) fn command(words: &str) -> Command {
    let mut command = Command::new(LATLAB);
    command.args(words.split_whitespace());
    command
}

/// Runs `latlab` with these arguments, separated by blanks, and waits for its end.
pub(crate) fn latlab(words: &str) -> Output {
    run(&mut command(words))
}

/// Returns the command `latlab` with these arguments in a mount namespace of its own. `script` is
/// run there before, with `folder` as its first parameter.
pub(crate) fn in_mount_namespace(script: &str, folder: &Path, words: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c"]);
    command.arg(format!("set -e; {script}; shift; exec \"$@\""));
    command.arg("sh").arg(folder).arg(LATLAB).args(words.split_whitespace());
    command
}

/// Returns the command `latlab` with these arguments and a journal of its own in `folder`, so that
/// no other latlab on this machine restores what the test left changed.
pub(crate) fn with_own_journal(folder: &Path, words: &str) -> Command {
    let script = "mkdir -p /run/latlab \"$1/journals\"; mount --bind \"$1/journals\" /run/latlab";
    in_mount_namespace(script, folder, words)
}

/// Sends a signal, by its name without SIG.
pub(crate) fn send(signal: &str, pid: u32) {
    let sent = Command::new("sh").arg("-c").arg(format!("kill -s {signal} {pid}")).status();
    assert!(sent.expect("sh starts").success(), "SIG{signal} to {pid}");
}

/// Waits until `condition` is true. `what` describes it in the error message.
pub(crate) fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    wait_at_most(PATIENCE, what, condition);
}

pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Repeats a measurement of this machine until it is right, three times at most: guests of other tests
/// and the host may disturb one.
pub(crate) fn assert_once_in_three(mut measure: impl FnMut() -> Result<(), String>) {
    let wrong: Vec<String> = (0..3).map_while(|_| measure().err()).collect();
    assert!(wrong.len() < 3, "{wrong:#?}");
}

/// Returns a seed that was never used before, so that the laboratory has no cached result. The environment
/// variable `LATLAB_SEED` replaces it, to repeat a test that failed.
pub(crate) fn new_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is set");
    let new = || now.as_secs() * 1_000_000 + u64::from(now.subsec_micros());
    let asked = std::env::var("LATLAB_SEED").ok();
    let seed = asked.map_or_else(new, |text| text.parse().expect("LATLAB_SEED is a number"));
    writeln!(std::io::stderr(), "LATLAB_SEED={seed}").expect("standard error is open");
    seed
}

/// Writes a profile with PREEMPT_RT and two CPUs to the folder, and returns its path.
pub(crate) fn two_cpus(folder: &Path) -> String {
    let profile = folder.join("two.toml");
    let text =
        "summary = 'two CPUs'\nkernel = { package = 'linux-image-6.12-rt-amd64' }\ncpus = 2\n";
    fs::write(&profile, text).expect("the folder can be written");
    profile.display().to_string()
}

/// Compiles a program into the folder.
pub(crate) fn compile(source: &Path, folder: &Path, options: &[&str]) -> PathBuf {
    let program = folder.join(source.file_stem().expect("it is a file"));
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-Wall", "-Wextra", "-Werror"]).args(options).arg("-o").arg(&program);
    let output = compile.arg(source).arg("-pthread").output().expect("cc starts");
    assert!(output.status.success(), "{output:?}");
    program
}

/// Creates a temporary folder that every user may read.
pub(crate) fn folder() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let open = fs::Permissions::from_mode(0o755);
    let folder = tempfile::Builder::new().permissions(open).tempdir();
    folder.expect("a temporary folder can be created")
}

/// Creates a folder for `XDG_CACHE_HOME` with the kernels of the user's own cache.
pub(crate) fn cache_with_kernels() -> tempfile::TempDir {
    let home = || Path::new(&std::env::var("HOME").expect("HOME is set")).join(".cache");
    let real = std::env::var("XDG_CACHE_HOME").map_or_else(|_| home(), PathBuf::from);
    let folder = folder();
    let cache = folder.path().join("latlab");
    fs::create_dir(&cache).expect("the folder can be written");
    std::os::unix::fs::symlink(real.join("latlab/kernels"), cache.join("kernels"))
        .expect("the folder can be written");
    folder
}

/// Creates a folder `bin` in `folder` with a shell script as the program `name`. Returns a search path
/// that begins with it.
pub(crate) fn path_with_script(folder: &Path, name: &str, body: &str) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let bin = folder.join("bin");
    fs::create_dir(&bin).expect("the folder can be written");
    fs::write(bin.join(name), format!("#!/bin/sh\n{body}\n")).expect("the folder can be written");
    fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755))
        .expect("the folder can be written");
    format!("{}:{}", bin.display(), std::env::var("PATH").expect("PATH is set"))
}

/// Returns the entries of a folder.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder exists");
    entries.map(|entry| entry.expect("the folder can be read").path()).collect()
}

/// Returns the processes that run the program at `path`.
pub(crate) fn running(path: &Path) -> Vec<u32> {
    processes().filter(|pid| executable(*pid).as_deref() == Some(path)).collect()
}

/// Returns the load workers of a run.
pub(crate) fn workers(parent: u32) -> Vec<u32> {
    let is_worker = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1) == Some(b"load-worker")
    };
    let is_child = |pid: &u32| field(*pid, "PPid").is_some_and(|pid| pid == parent.to_string());
    // The arguments are last: reading those of a process waits for its memory map, which a task that hardly
    // runs may hold for minutes.
    processes().filter(is_child).filter(is_worker).collect()
}

/// Returns a field of `/proc/PID/status`.
pub(crate) fn field(pid: u32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"))?;
    Some(value.to_owned())
}

/// Returns the names of the capabilities that a process can use.
pub(crate) fn capabilities(pid: u32) -> Vec<String> {
    let mask = field(pid, "CapPrm").expect("the process runs");
    let decoded = Command::new("capsh").arg(format!("--decode={mask}")).output();
    let decoded = String::from_utf8(decoded.expect("make test installs capsh").stdout);
    let decoded = decoded.expect("names are ASCII");
    let names = decoded.trim().split_once('=').expect("the mask comes first").1;
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn executable(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}
