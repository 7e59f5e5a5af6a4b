//! Tests of journals whose owner is killed while it writes them.

use super::super::journal::TakeOver;
use super::super::*;
use super::{SWAP, killed, small, value};
use crate::lock;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// The environment variable with the folder in which a copy of this program writes journals.
const FOLDER_OF_COPY: &str = "LATLAB_TEST_JOURNALS";

/// Enough entries to fill several pages.
fn hundred(set: &str) -> Content {
    let entry = |index| Entry {
        knob: "governor".to_owned(),
        path: PathBuf::from(format!("/sys/devices/system/cpu/cpu{index}/cpufreq/scaling_governor")),
        was: "schedutil".to_owned(),
        set: Some(set.to_owned()),
        thread: None,
    };
    Content { pid: std::process::id(), entries: (0..100).map(entry).collect() }
}

/// A process that is killed when the test ends, in whatever way.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The journal of a process that has ended.
fn abandoned(path: &Path) -> Option<Journal> {
    match Journal::take_over(path).unwrap() {
        TakeOver::Done(journal) => Some(journal),
        TakeOver::InUse | TakeOver::Gone => None,
    }
}

fn assert_complete(path: &Path) {
    let found = read(&Root::default(), path).expect("it is complete");
    let set = found.entries[0].set.as_deref().unwrap();
    assert_eq!(found.entries, hundred(set).entries);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test kills the program")]
fn journal_of_a_hundred_entries_is_complete_whenever_its_owner_is_killed() {
    if let Some(folder) = std::env::var_os(FOLDER_OF_COPY) {
        let mut journal = Journal::begin(Path::new(&folder)).unwrap();
        loop {
            // Of different lengths, so that a mixture of both can be told.
            journal.write(&hundred("performance")).unwrap();
            journal.write(&hundred("powersave")).unwrap();
        }
    }
    // A tmpfs, as /run is one: a write to it may end after any page.
    let memory = Path::new("/dev/shm");
    let place = if memory.exists() { memory.to_owned() } else { std::env::temp_dir() };
    let folder = tempfile::tempdir_in(place).unwrap();
    let root = Root::new(folder.path());
    let journals_folder = lock::folder(&root).unwrap();
    for round in 0..40 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["journal_of_a_hundred_entries", "--nocapture"]).stdout(Stdio::null());
        let mut copy = Killed(command.env(FOLDER_OF_COPY, &journals_folder).spawn().unwrap());
        let path = journals_folder.join(format!("{}.journal", copy.0.id()));
        while fs::metadata(&path).map_or(0, |there| there.len()) == 0 {
            assert_eq!(copy.0.try_wait().unwrap(), None, "it writes until it is killed");
            std::thread::yield_now();
        }
        // A reader finds it complete while its owner lives, too.
        for _ in 0..round {
            assert_complete(&path);
        }
        drop(copy);
        assert_complete(&path);
        journal::sweep(&root);
        abandoned(&path).expect("its owner has ended").remove().unwrap();
        assert_eq!(fs::read_dir(&journals_folder).unwrap().count(), 0, "all files are removed");
    }
}

#[test]
fn journal_stays_locked_when_it_is_rewritten() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    for value in ["5", "6", "7"] {
        guard.set("swappiness", value, "for a test").unwrap();
        assert!(abandoned(&journals(&root).unwrap()[0]).is_none());
    }
    assert_eq!(fs::read_dir(root.path(FOLDER)).unwrap().count(), 1, "there is no other file");
    drop(guard);
    assert_eq!(fs::read_dir(root.path(FOLDER)).unwrap().count(), 0);
}

/// A folder in its place stands for a file system that does not let it be removed.
#[test]
fn journal_that_can_not_be_removed_is_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = Journal::begin(folder.path()).unwrap();
    journal.write(&hundred("performance")).unwrap();
    let (path, other) = (journal.path().to_owned(), folder.path().join("same file"));
    fs::hard_link(&path, &other).unwrap();
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    journal.remove().unwrap();
    assert_eq!(fs::metadata(&other).unwrap().len(), 0);
}

/// A process may get the id of a killed one whose journal was not recovered yet.
#[test]
fn journal_of_a_killed_process_of_the_same_number_is_not_overwritten() {
    let (_folder, root) = small();
    let folder = lock::folder(&root).unwrap();
    let own = folder.join(format!("{}.journal", std::process::id()));
    Journal::begin(&folder).unwrap().write(&hundred("performance")).unwrap();
    let mut guard = Guard::new(root.clone());
    guard.set("swappiness", "5", "for a test").unwrap();
    assert_eq!(read(&Root::default(), &own).unwrap().entries.len(), 100);
    assert_eq!(journals(&root).unwrap().len(), 2);
}

/// A process forked by another thread has every file open, and so locked, until it starts its
/// program.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test starts programs")]
fn journal_is_unlocked_when_it_is_closed_while_other_threads_start_programs() {
    let folder = tempfile::tempdir().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                Command::new("/bin/true").status().unwrap();
            }
        });
        let closed = (0..300).all(|_| {
            let journal = Journal::begin(folder.path()).unwrap();
            let path = journal.path().to_owned();
            journal.close(&hundred("performance")).unwrap();
            abandoned(&path).map(Journal::remove).is_some()
        });
        done.store(true, Ordering::Relaxed);
        assert!(closed);
    });
}

/// A copy of this program that holds a journal open and locked, as a killed one does until it has
/// ended. It ends when its standard input does.
#[expect(clippy::disallowed_methods, reason = "the test stops and ends the program")]
fn holding(journal: &Path) -> Killed {
    let mut command = Command::new("flock");
    command.arg("--no-fork").arg(journal).args(["sh", "-c", "echo locked; exec cat"]);
    let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut locked = [0; 7];
    io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut locked).unwrap();
    Killed(holder)
}

/// What a killed run left, of a process that can't be seen. Returns its journal.
fn left_by_an_unknown_process(root: &Root) -> PathBuf {
    let mut guard = Guard::new(root.clone());
    guard.set("swappiness", "5", "for a test").unwrap();
    killed(root, guard);
    let path = root.path("run/latlab/1.journal");
    let text = fs::read_to_string(&path).unwrap();
    let own = format!("\"pid\":{}", std::process::id());
    File::create(&path)
        .unwrap()
        .write_all(text.replace(&own, "\"pid\":4194305").as_bytes())
        .unwrap();
    path
}

/// In vain only once.
#[test]
fn journal_of_a_run_that_has_not_ended_wholly_is_waited_for() {
    let (_folder, root) = small();
    let mut holder = holding(&left_by_an_unknown_process(&root));
    let waiter = crate::sched::thread_id();
    let ended = std::thread::spawn(move || {
        latlab_testing::wait_until_asleep(waiter);
        drop(holder.0.stdin.take());
        holder.0.wait().unwrap()
    });
    let recovery = Guard::recover_all(&root);
    assert!(recovery.complete && recovery.said[0].contains("is 60 again"), "{recovery:?}");
    assert_eq!(value(&root, SWAP), "60");
    ended.join().unwrap();
    let _holder = holding(&left_by_an_unknown_process(&root));
    for _ in 0..2 {
        let recovery = Guard::recover_all(&root);
        assert!(!recovery.complete && recovery.held.is_empty(), "{recovery:?}");
        assert!(recovery.said[0].contains("swappiness can't be restored yet"), "{recovery:?}");
        assert_eq!(value(&root, SWAP), "5");
    }
}

/// One that runs restores its knobs itself; one that is stopped does not.
#[test]
fn journal_of_a_run_that_goes_on_or_is_stopped_is_reported() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.set("swappiness", "5", "for a test").unwrap();
    let recovery = Guard::recover_all(&root);
    assert!(recovery.complete && recovery.said.is_empty(), "{recovery:?}");
    let sentence = format!("latlab {} still holds swappiness: it runs", std::process::id());
    assert!(recovery.held[0].starts_with(&sentence), "{recovery:?}");
    killed(&root, guard);
    let path = root.path("run/latlab/1.journal");
    let holder = holding(&path);
    let process = holder.0.id();
    let text = fs::read_to_string(&path).unwrap();
    let own = format!("\"pid\":{}", std::process::id());
    let file = OpenOptions::new().write(true).truncate(true).open(&path);
    file.unwrap().write_all(text.replace(&own, &format!("\"pid\":{process}")).as_bytes()).unwrap();
    let stopped = rustix::process::Pid::from_child(&holder.0);
    rustix::process::kill_process(stopped, rustix::process::Signal::STOP).unwrap();
    while crate::procfs::Life::of(stopped.as_raw_nonzero().get()).unwrap()
        != crate::procfs::Life::Stopped
    {
        std::thread::yield_now();
    }
    let recovery = Guard::recover_all(&root);
    assert!(!recovery.complete && recovery.held.is_empty(), "{recovery:?}");
    assert!(recovery.said[0].contains("it is stopped"), "{recovery:?}");
    assert_eq!(value(&root, SWAP), "5");
}
