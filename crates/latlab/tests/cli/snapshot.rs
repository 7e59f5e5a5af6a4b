//! Snapshots: what a guest measures does not depend on them, and damaged ones are made anew.

use super::program::{
    Missing, Running, command, entries, folder, latlab, not_run, root, run, wait_until,
};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A cache without snapshots and answers, with the kernels of the user's cache.
struct Cache(tempfile::TempDir);

impl Cache {
    fn new() -> Cache {
        // The first boot of a kernel calibrates it, and fetches it where the cache does not have it.
        assert_eq!(latlab("exec --on lab:rt -- true").code(), Some(0));
        let cache = Cache(folder());
        fs::create_dir(cache.path("")).expect("the folder can be written");
        let home = std::env::var("HOME").expect("HOME is set");
        let user = std::env::var("XDG_CACHE_HOME").unwrap_or(format!("{home}/.cache"));
        let kernels = Path::new(&user).join("latlab/kernels");
        std::os::unix::fs::symlink(kernels, cache.path("kernels")).expect("it can be linked");
        cache
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join("latlab").join(name)
    }

    fn command(&self, options: &str) -> Command {
        let words = "run cyclic --on lab:rt --load fork --count 50 --warm-up 20ms --json --fresh";
        let mut command = command(&format!("{words}{options}"));
        command.env("XDG_CACHE_HOME", self.0.path());
        command
    }

    /// Asserts that a run has this result, and returns what it says.
    fn says(&self, expected: &str) -> String {
        let output = run(&mut self.command(""));
        assert_eq!(output.stdout, expected, "{}", output.stderr);
        output.stderr
    }

    /// The only snapshot; drafts and locks are hidden.
    fn snapshot(&self) -> PathBuf {
        let mut all = entries(&self.path("snapshots"));
        all.retain(|path| path.file_name().is_some_and(|name| !name.as_bytes().starts_with(b".")));
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }
}

/// Two processes at once make one snapshot. A damaged one is replaced, with one sentence.
#[test]
fn record_is_the_same_booted_restored_and_after_damage() {
    let cache = Cache::new();
    let cold = run(&mut cache.command(" --cold"));
    assert_eq!((cold.code(), cold.stderr.as_str()), (Some(0), ""), "{cold:?}");
    assert!(!cache.path("snapshots").exists());
    let cold = cold.stdout;
    std::thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| cache.says(&cold)));
        for said in both.map(|one| one.join().expect("it has the same result")) {
            assert_eq!(said, "");
        }
    });
    let truncate = |path: &Path| {
        let file = fs::File::options().write(true).open(path);
        file.and_then(|file| file.set_len(100)).expect("the snapshot can be written");
    };
    // With it, the record would have a warning about the guest's kernel.
    let complain = |path: &Path| {
        let facts = fs::read_to_string(path).expect("the snapshot can be read");
        let changed = facts.replace("\"console\": \"", "\"console\": \"BUG: soft lockup\\n");
        assert_ne!(changed, facts);
        fs::write(path, changed).expect("the snapshot can be written");
    };
    for (name, is_cut) in
        [("memory", true), ("devices", true), ("snapshot.json", true), ("snapshot.json", false)]
    {
        assert_eq!(cache.says(&cold), "", "a guest is restored in silence");
        let path = cache.snapshot().join(name);
        if is_cut {
            truncate(&path);
        } else {
            complain(&path);
        }
        let said = cache.says(&cold);
        let expected = format!(
            "lab:rt: its snapshot can't be used (its file {name} is not as it was written): \
             the guest boots, and makes a new one\n"
        );
        assert_eq!(said, format!("latlab: {expected}"));
    }
    assert_eq!(cache.says(&cold), "");
}

/// This QEMU boots guests, and fails to restore them.
#[test]
fn guest_that_cannot_be_restored_boots() {
    let cache = Cache::new();
    let first = run(&mut cache.command(""));
    assert_eq!((first.code(), first.stderr.as_str()), (Some(0), ""), "{first:?}");
    let before = fs::metadata(cache.snapshot()).unwrap();
    let script = "#!/bin/bash\nPATH=${PATH#*:}\n\
        [[ \"$*\" = *-option-rom* ]] && { echo out of order >&2; exit 9; }\n\
        exec qemu-system-x86_64 \"$@\"\n";
    let wrapper = cache.0.path().join("qemu-system-x86_64");
    fs::write(&wrapper, script).expect("the folder can be written");
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).expect("it is a file");
    let path = std::env::var("PATH").expect("PATH is set");
    let path = format!("{}:{path}", cache.0.path().display());
    let output = run(cache.command("").env("PATH", path));
    assert_eq!(output.stdout, first.stdout, "{output:?}");
    assert_eq!(
        output.stderr,
        "latlab: lab:rt: its snapshot can't be used (QEMU ended with exit status: 9: out of \
         order): the guest boots, and makes a new one\n"
    );
    let after = fs::metadata(cache.snapshot()).unwrap();
    assert!(after.created().unwrap() > before.created().unwrap());
}

#[test]
fn snapshot_is_left_out_on_a_full_disk() {
    if !root() {
        not_run(Missing::Required, "it needs root, to mount a small file system");
        return;
    }
    let cache = Cache::new();
    let cold = run(&mut cache.command(" --cold")).stdout;
    let disk = cache.path("snapshots");
    let script = "mount -t tmpfs -o size=8m none \"$0\" && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(&disk);
    let measuring = cache.command("");
    command.arg(measuring.get_program()).args(measuring.get_args());
    command.env("XDG_CACHE_HOME", cache.0.path());
    fs::create_dir(&disk).expect("the folder can be written");
    let output = run(&mut command);
    assert_eq!(output.stdout, cold, "{output:?}");
    let said = "its snapshot was not kept (No space left on device (os error 28))";
    assert_eq!(output.stderr, format!("latlab: lab:rt: {said}\n"));
}

/// Where a file system needs room even to read what was never written, as tmpfs does.
#[test]
fn restored_guest_on_a_full_disk_is_said_to_be_out_of_room() {
    if !root() {
        not_run(Missing::Required, "it needs root, to mount a small file system");
        return;
    }
    let cache = Cache::new();
    let disk = cache.path("snapshots");
    fs::create_dir(&disk).expect("the folder can be written");
    let script = "mount -t tmpfs -o size=300m none \"$0\" && \"$@\" >/dev/null || exit 1\n\
                  dd if=/dev/zero of=\"$0/full\" bs=64k 2>/dev/null; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(&disk);
    let measuring = cache.command("");
    command.arg(measuring.get_program()).args(measuring.get_args());
    let output = run(command.env("XDG_CACHE_HOME", cache.0.path()));
    assert!(output.stderr.contains("the file system of the cache is full"), "{output:?}");
    assert!(!output.stderr.contains("signal"), "{output:?}");
}

fn drafts(cache: &Cache) -> Vec<PathBuf> {
    let all = fs::read_dir(cache.path("snapshots")).into_iter().flatten().flatten();
    let draft = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(".draft");
    all.filter(draft).map(|entry| entry.path()).collect()
}

/// Kills a latlab that writes a snapshot. Returns whether it had not finished it.
fn is_killed_while_writing(cache: &Cache) -> bool {
    let mut killed = Running::start(&mut cache.command(""));
    wait_until("a snapshot is being written", || {
        let is_writing = drafts(cache).iter().any(|draft| draft.join("memory").exists());
        is_writing || killed.has_ended()
    });
    if killed.has_ended() {
        return false;
    }
    killed.signal("KILL");
    killed.finish();
    drafts(cache).len() == 1
}

#[test]
fn snapshot_half_written_by_a_killed_latlab_is_made_anew() {
    // The kill may come too late on a busy machine.
    let mut killed = None;
    wait_until("a kill comes in time", || {
        killed = Some(Cache::new()).filter(is_killed_while_writing);
        killed.is_some()
    });
    let cache = killed.expect("it came in time");
    let cold = run(&mut cache.command(" --cold")).stdout;
    assert_eq!(cache.says(&cold), "");
    assert_eq!(drafts(&cache), Vec::<PathBuf>::new());
    assert_eq!(cache.says(&cold), "");
    let listed = run(command("kernel list").env("XDG_CACHE_HOME", cache.0.path())).stdout;
    assert!(listed.contains("\nSnapshots of booted guests: 1, "), "{listed}");
}
