//! Namespaces that only the commands of one test are in: whatever is left there is theirs.

use crate::program::{entries, folder, pause, root, run, wait_until};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Kinds of namespaces, as `unshare` and `/proc/PID/ns` name them. Not that of processes: in another
/// one there are no IRQ threads.
const KINDS: [(&str, &str); 3] = [("--mount", "mnt"), ("--ipc", "ipc"), ("--net", "net")];

/// Where latlab keeps journals and makes objects and scratch files.
const PLACES: &str = "mount --bind \"$1/journals\" /run/latlab
    mkdir -p \"$1/tmp\" \"$1/var-tmp\"
    mount --bind \"$1/var-tmp\" /var/tmp
    mount -t tmpfs none /dev/shm
    test ! -d /dev/mqueue || mount -t mqueue none /dev/mqueue";

/// All that a command could leave in its namespaces, a line each.
const REMAINS: &str = "for kind in msg sem shm; do sed \"s/^/$kind /\" /proc/sysvipc/$kind; done
    sed 's/^/mount /' /proc/self/mounts
    sed -n 's/:.*//p' /proc/self/net/dev
    for folder in /dev/mqueue /dev/shm /run/latlab /var/tmp \"$1/tmp\"; do
        ls -A \"$folder\" | sed \"s|^|$folder/|\"
    done";

/// The namespaces, and the process that keeps them.
pub(super) struct Surroundings {
    keeper: Child,
    folder: PathBuf,
}

impl Surroundings {
    /// Makes them, with the folder `journals` of this folder where latlab keeps its journals.
    pub(super) fn new(folder: &Path) -> Surroundings {
        let script = format!("set -e\n{PLACES}\nexec sleep infinity");
        let mut command = Command::new("unshare");
        command.args(KINDS.map(|(option, _)| option)).args(["sh", "-c", &script, "sh"]).arg(folder);
        let keeper = command.stdin(Stdio::null()).spawn().expect("make test installs unshare");
        let name = PathBuf::from(format!("/proc/{}/comm", keeper.id()));
        wait_until("the namespaces are ready", || {
            fs::read_to_string(&name).expect("it runs until it is killed") == "sleep\n"
        });
        Surroundings { keeper, folder: folder.to_owned() }
    }

    /// The command that runs other words there, in the working directory `at`.
    pub(super) fn command(&self, at: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--target={}", self.keeper.id()));
        command.args(KINDS.map(|(option, _)| option));
        command.args(["sh", "-c", "cd \"$1\" && shift && exec \"$@\"", "sh"]).arg(at);
        command.env("TMPDIR", self.folder.join("tmp"));
        command
    }

    /// What is there.
    pub(super) fn remains(&self) -> BTreeSet<String> {
        let mut command = self.command(Path::new("/"));
        let listed = run(command.args(["sh", "-c", REMAINS, "sh"]).arg(&self.folder));
        listed.stdout.lines().map(str::to_owned).collect()
    }

    /// Waits until there is no process but that which keeps the namespaces. Returns those that are
    /// left after a minute.
    pub(super) fn processes_left(&self) -> Vec<String> {
        const STEPS: u32 = 6000;
        for _ in 0..STEPS {
            if self.processes().is_empty() {
                return Vec::new();
            }
            pause(Duration::from_millis(10));
        }
        self.processes()
    }

    /// The processes in at least one of the namespaces, with their command lines.
    fn processes(&self) -> Vec<String> {
        let own = Path::new("/proc").join(self.keeper.id().to_string());
        let namespaces = |process: &Path| {
            KINDS.map(|(_, kind)| fs::read_link(process.join("ns").join(kind)).ok())
        };
        let of_keeper = namespaces(&own);
        let is_inside = |process: &PathBuf| {
            let both = namespaces(process).into_iter().zip(&of_keeper);
            *process != own && both.into_iter().any(|(its, ours)| its.is_some() && its == *ours)
        };
        let is_process = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().parse::<u32>().is_ok())
        };
        let all = entries(Path::new("/proc")).into_iter().filter(is_process).filter(is_inside);
        let described = |process: PathBuf| {
            let line = fs::read(process.join("cmdline")).unwrap_or_default();
            format!("{}: {}", process.display(), String::from_utf8_lossy(&line).replace('\0', " "))
        };
        all.map(described).collect()
    }
}

impl Drop for Surroundings {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

#[test]
fn whatever_is_left_in_the_namespaces_is_seen() {
    if !root() {
        return;
    }
    fs::create_dir_all("/run/latlab").expect("root may create it");
    let folder = folder();
    fs::create_dir(folder.path().join("journals")).expect("the folder is the test's own");
    let surroundings = Surroundings::new(folder.path());
    let before = surroundings.remains();
    let script = "touch /dev/shm/left /run/latlab/left \"$TMPDIR/left\"; ipcmk --queue >/dev/null
        mount -t tmpfs left /mnt; sleep infinity & echo $!";
    let made = run(surroundings.command(folder.path()).args(["sh", "-c", script]));
    // A process that is just executing a program has an empty command line.
    let is_sleep = |line: &String| line.contains(": sleep infinity");
    wait_until(
        "one process is left, and sleeps",
        || matches!(&surroundings.processes()[..], [line] if is_sleep(line)),
    );
    crate::program::send("KILL", made.stdout.trim().parse().expect("the shell printed a number"));
    assert_eq!(surroundings.processes_left(), Vec::<String>::new());
    let left: Vec<String> = surroundings.remains().difference(&before).cloned().collect();
    for kind in ["msg ", "mount left /mnt", "/dev/shm/left", "/run/latlab/left", "/tmp/left"] {
        assert!(left.iter().any(|line| line.contains(kind)), "no {kind}: {left:?}");
    }
    assert_eq!(left.len(), 5, "{left:?}");
}
