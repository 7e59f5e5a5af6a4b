//! The guard on a machine made of files.

mod journals;
mod threads;

use super::*;
use crate::knob;
use std::os::unix::fs::PermissionsExt as _;
use tempfile::TempDir;

const STAT: &str = "proc/sys/vm/stat_interval";
const SWAP: &str = "proc/sys/vm/swappiness";

/// A machine that has these files.
fn machine(files: &[(&str, &str)]) -> (TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new(folder.path());
    for (path, text) in files {
        let path = root.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
    }
    (folder, root)
}

fn small() -> (TempDir, Root) {
    machine(&[(STAT, "1\n"), (SWAP, "60\n")])
}

fn says(root: &Root, path: &str) -> String {
    root.text(path).unwrap_or_else(|| "nothing".to_owned())
}

/// Leaves what a run with another process number would have left when it was killed: the journal
/// of `guard`, which nobody locks.
fn killed(root: &Root, guard: Guard) {
    let own = guard.journal.as_ref().expect("it has turned something").path();
    fs::copy(own, root.path("run/latlab/1.journal")).unwrap();
    fs::remove_file(own).unwrap();
    std::mem::forget(guard);
}

fn change(knob: &str, was: &str, set: &str, restored: bool) -> Change {
    let reason = "for a test".to_owned();
    Change { knob: knob.to_owned(), old: was.to_owned(), new: set.to_owned(), reason, restored }
}

#[test]
fn what_was_turned_is_turned_back_and_told() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.set("stat_interval", "10", "for a test").unwrap();
    guard.set("swappiness", "5", "for a test").unwrap();
    assert_eq!((says(&root, STAT).as_str(), says(&root, SWAP).as_str()), ("10", "5"));
    let told = guard.restore();
    let expected =
        [change("stat_interval", "1", "10", true), change("swappiness", "60", "5", true)];
    assert_eq!(told, expected);
    assert_eq!((says(&root, STAT).as_str(), says(&root, SWAP).as_str()), ("1", "60"));
    assert!(journals(&root).is_empty());
    assert!(guard.restore().is_empty(), "once is enough");
}

#[test]
fn who_forgets_to_restore_is_helped_by_drop() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.set("swappiness", "5", "for a test").unwrap();
    drop(guard);
    assert_eq!(says(&root, SWAP), "60");
}

#[test]
fn a_panic_gives_the_machine_back() {
    let (_folder, root) = small();
    let panicked = std::panic::catch_unwind(|| {
        let mut guard = Guard::new(root.clone());
        guard.set("stat_interval", "10", "for a test").unwrap();
        panic!("for a test");
    });
    assert!(panicked.is_err());
    assert_eq!(says(&root, STAT), "1");
}

#[test]
fn the_first_value_comes_back_however_often_a_knob_was_turned() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    for value in ["5", "6", "7"] {
        guard.set("swappiness", value, "for a test").unwrap();
    }
    let told = guard.restore();
    assert_eq!(says(&root, SWAP), "60", "the newest change is undone first");
    assert!(told.iter().all(|change| change.restored), "{told:?}");
}

#[test]
fn nothing_is_changed_that_was_not_written_down() {
    let (_folder, root) = small();
    // A file where the folder of journals should be.
    File::create(root.path("run")).unwrap();
    let mut guard = Guard::new(root.clone());
    let error = guard.set("swappiness", "5", "for a test").unwrap_err();
    assert!(matches!(error, GuardError::Journal(..)), "{error}");
    assert_eq!(says(&root, SWAP), "60");
}

#[test]
fn the_journal_is_there_before_the_change_is_tried() {
    let (_folder, root) = machine(&[("proc/sys/vm/other", "")]);
    // The kernel's own name, which can be read but not changed.
    std::os::unix::fs::symlink("/proc/sys/kernel/ostype", root.path(SWAP)).unwrap();
    let mut guard = Guard::new(root.clone());
    let error = guard.set("swappiness", "5", "for a test").unwrap_err();
    assert!(matches!(error, GuardError::Refused(..) | GuardError::NotAllowed(_)), "{error}");
    let written = read(&journals(&root)[0]).unwrap();
    assert_eq!((written.pid, written.entries.len()), (std::process::id(), 1));
    assert_eq!(written.entries[0].was, "Linux");
    assert_eq!(written.entries[0].set.as_deref(), Some("5"));
}

#[test]
fn a_value_that_is_kept_as_another_is_refused_and_undone() {
    let (_folder, root) = machine(&[("proc/sys/vm/other", "")]);
    // The name of this thread, of which the kernel keeps 15 bytes.
    let name = Path::new("/proc/thread-self/comm").canonicalize().unwrap();
    std::os::unix::fs::symlink(&name, root.path(SWAP)).unwrap();
    let before = says(&root, SWAP);
    let mut guard = Guard::new(root.clone());
    let error = guard.set("swappiness", "more-than-fits-in-there", "for a test").unwrap_err();
    assert!(error.to_string().contains("says more-than-fits- after it was written"), "{error}");
    assert_eq!(says(&root, SWAP), before);
    assert!(guard.restore().is_empty(), "what was refused is no change");
}

#[test]
fn a_knob_that_is_not_there_or_not_a_file_is_named() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    let error = guard.set("numa_balancing", "0", "for a test").unwrap_err();
    assert!(error.to_string().contains("/proc/sys/kernel/numa_balancing is missing"), "{error}");
    fs::create_dir_all(root.path("proc/sys/kernel/timer_migration")).unwrap();
    assert!(guard.set("timer_migration", "0", "for a test").is_err());
    let error = guard.set("swapiness", "0", "for a test").unwrap_err();
    assert!(error.to_string().contains("did you mean swappiness?"), "{error}");
    assert!(journals(&root).is_empty(), "nothing was tried");
}

#[test]
fn the_value_of_somebody_else_stays() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.set("stat_interval", "10", "for a test").unwrap();
    guard.set("swappiness", "5", "for a test").unwrap();
    knob::put("swappiness", &root.path(SWAP), "33").unwrap();
    let told = guard.restore();
    assert_eq!((says(&root, STAT).as_str(), says(&root, SWAP).as_str()), ("1", "33"));
    assert_eq!(told.iter().map(|change| change.restored).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn a_choice_out_of_several_is_read_and_put_back() {
    let path = "sys/kernel/mm/transparent_hugepage/enabled";
    let (_folder, root) = machine(&[(path, "always [madvise] never\n")]);
    let mut guard = Guard::new(root.clone());
    guard.set("transparent_hugepage", "never", "for a test").unwrap();
    assert_eq!(guard.restore(), [change("transparent_hugepage", "madvise", "never", true)]);
    assert_eq!(says(&root, path), "madvise");
}

/// Three idle states on each of two CPUs; the deepest is disabled on the second already.
fn idle() -> (TempDir, Root) {
    let state = |cpu: u32, nth: u32, file: &str| {
        format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{nth}/{file}")
    };
    let mut files = Vec::new();
    for (cpu, nth) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)] {
        let latency = ["0\n", "10\n", "200\n"][nth as usize];
        let disabled = if (cpu, nth) == (1, 2) { "1\n" } else { "0\n" };
        files.push((state(cpu, nth, "latency"), latency));
        files.push((state(cpu, nth, "disable"), disabled));
    }
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    machine(&files)
}

fn disabled(root: &Root) -> String {
    let state = |cpu, nth| format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{nth}/disable");
    [0, 1].map(|cpu| [0, 1, 2].map(|nth| says(root, &state(cpu, nth))).concat()).join(" ")
}

#[test]
fn only_slower_idle_states_are_disabled_and_only_ours_are_enabled_again() {
    let (_folder, root) = idle();
    let mut guard = Guard::new(root.clone());
    guard.set("idle_latency", "10", "for a test").unwrap();
    assert_eq!(disabled(&root), "001 001");
    assert_eq!(guard.restore(), [change("idle_latency", "0 1", "10", true)]);
    assert_eq!(disabled(&root), "000 001");
    guard.set("idle_latency", "0", "for a test").unwrap();
    assert_eq!(disabled(&root), "011 011");
    guard.restore();
    assert_eq!(disabled(&root), "000 001");
    assert!(matches!(guard.set("idle_latency", "200", ""), Err(GuardError::Missing(..))));
    assert!(matches!(guard.set("idle_latency", "low", ""), Err(GuardError::NotANumber(..))));
    assert_eq!(disabled(&root), "000 001");
}

#[test]
fn what_a_killed_run_has_changed_is_mended_once() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.set("stat_interval", "10", "for a test").unwrap();
    guard.set("swappiness", "5", "for a test").unwrap();
    guard.set("swappiness", "6", "for a test").unwrap();
    killed(&root, guard);
    knob::put("stat_interval", &root.path(STAT), "99").unwrap();
    let told = Guard::mend(&root);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("stat_interval") && told[0].contains("it stays"), "{told:?}");
    assert!(told[1].contains("swappiness") && told[1].contains("was killed"), "{told:?}");
    assert_eq!((says(&root, STAT).as_str(), says(&root, SWAP).as_str()), ("99", "60"));
    assert!(journals(&root).is_empty());
    assert!(Guard::mend(&root).is_empty());
}

#[test]
fn a_run_that_lives_is_not_mended() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.set("swappiness", "5", "for a test").unwrap();
    assert!(Guard::mend(&root).is_empty());
    assert_eq!(says(&root, SWAP), "5");
    drop(guard);
    assert_eq!(says(&root, SWAP), "60");
}

#[test]
fn a_knob_that_another_run_holds_is_left_to_it() {
    let (_folder, root) = small();
    let mut first = Guard::new(root.clone());
    first.set("swappiness", "5", "for a test").unwrap();
    killed(&root, first);
    let mut second = Guard::new(root.clone());
    let error = second.set("swappiness", "9", "for a test").unwrap_err();
    let pid = std::process::id();
    assert!(matches!(error, GuardError::Taken { pid: theirs, .. } if theirs == pid), "{error}");
    assert_eq!(says(&root, SWAP), "5");
    second.set("stat_interval", "9", "for a test").unwrap();
}

#[test]
fn a_journal_that_is_damaged_does_no_harm() {
    let whole = r#"{"pid":1,"entries":[{"knob":"swappiness","path":"/nowhere/at/all","was":"1","set":"2"}]}"#;
    for text in ["", "{", "[]", "\0\0\0", &whole[..40], r#"{"pid":-1,"entries":[]}"#, whole] {
        let (_folder, root) = machine(&[(SWAP, "60\n"), ("run/latlab/7.journal", text)]);
        let mended = Guard::mend_all(&root);
        assert!(mended.said.len() <= 1, "{text}");
        assert_eq!(mended.complete, text.is_empty(), "{text}");
        assert_eq!(says(&root, SWAP), "60", "{text}");
        if text == whole {
            // It is still to be given back: who turns it would give back another's value.
            assert_eq!(journals(&root).len(), 1);
            continue;
        }
        assert!(journals(&root).is_empty(), "{text}");
        Guard::new(root.clone()).set("swappiness", "5", "for a test").unwrap();
        assert_eq!(says(&root, SWAP), "60", "{text}");
    }
}

#[test]
fn what_is_kept_comes_back_whatever_it_was_turned_to() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.keep("swappiness", "for a test").unwrap();
    for value in ["5", "6"] {
        knob::put("swappiness", &root.path(SWAP), value).unwrap();
    }
    assert_eq!(guard.restore(), [change("swappiness", "60", "various", true)]);
    assert_eq!(says(&root, SWAP), "60");
    guard.keep("swappiness", "for a test").unwrap();
    killed(&root, guard);
    knob::put("swappiness", &root.path(SWAP), "7").unwrap();
    let told = Guard::mend(&root);
    assert!(told.len() == 1 && told[0].ends_with("is 60 again"), "{told:?}");
    assert_eq!(says(&root, SWAP), "60");
}

#[test]
fn a_console_that_is_missing_or_none_is_named() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    let error = guard.keep("console_leds", "for a test").unwrap_err();
    assert!(error.to_string().contains("/dev/tty0 is missing"), "{error}");
    fs::create_dir_all(root.path("dev")).unwrap();
    File::create(root.path("dev/tty0")).unwrap();
    assert!(guard.keep("active_console", "for a test").is_err());
    assert!(guard.set("active_console", "2", "for a test").is_err(), "it is not for users");
    assert!(journals(&root).is_empty());
}

#[test]
fn one_knob_is_given_back_before_the_end_and_turned_again() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.set("stat_interval", "10", "for a test").unwrap();
    for _ in 0..1000 {
        guard.set("swappiness", "5", "for a test").unwrap();
        assert!(guard.release("swappiness").unwrap());
        assert_eq!((says(&root, STAT).as_str(), says(&root, SWAP).as_str()), ("10", "60"));
    }
    assert_eq!(guard.written.entries.len(), 1, "the journal does not grow");
    let told = guard.restore();
    let expected =
        [change("stat_interval", "1", "10", true), change("swappiness", "60", "5", true)];
    assert_eq!(told, expected, "what was done again and again is told once");
}

#[test]
fn what_was_given_back_or_forgotten_is_not_in_the_journal_of_a_killed_run() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.set("stat_interval", "10", "for a test").unwrap();
    guard.set("swappiness", "5", "for a test").unwrap();
    guard.forget("stat_interval").unwrap();
    killed(&root, guard);
    let said = Guard::mend(&root);
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!((says(&root, STAT).as_str(), says(&root, SWAP).as_str()), ("10", "60"));
}

#[test]
fn a_knob_that_is_forgotten_is_told_as_not_restored() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.set("swappiness", "5", "for a test").unwrap();
    File::create(root.path(SWAP)).unwrap().write_all(b"7").unwrap();
    guard.forget("swappiness").unwrap();
    assert_eq!(guard.restore(), [change("swappiness", "60", "5", false)]);
    assert_eq!(says(&root, SWAP), "7");
}

#[test]
fn two_guards_of_one_process_have_a_journal_each() {
    let (_folder, root) = small();
    let (mut one, mut other) = (Guard::new(root.clone()), Guard::new(root.clone()));
    one.set("swappiness", "5", "for a test").unwrap();
    other.set("stat_interval", "10", "for a test").unwrap();
    assert!(matches!(other.set("swappiness", "6", "no"), Err(GuardError::Taken { .. })));
    assert_eq!(journals(&root).len(), 2);
    drop(one);
    assert_eq!((says(&root, STAT).as_str(), says(&root, SWAP).as_str()), ("10", "60"));
    drop(other);
    assert!(journals(&root).is_empty());
}

/// flock(2) asks for no more than that a file can be opened.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test waits for its program")]
fn another_user_can_lock_no_file_of_a_guard() {
    let (folder, root) = small();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let mut guard = Guard::new(root.clone());
    guard.set("swappiness", "5", "for a test").unwrap();
    let _turn = guard.take_turn("swappiness").unwrap();
    let _claim = claim::Claim::take(&root, "adapt").unwrap();
    let mut files: Vec<_> = fs::read_dir(root.path(FOLDER)).unwrap().flatten().collect();
    files.sort_by_key(fs::DirEntry::path);
    assert_eq!(files.len(), 3, "{files:?}");
    for file in &files {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
        if crate::process::is_root() {
            let mut command = std::process::Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "flock", "-n"]);
            let said = command.arg(file.path()).arg("true").output().unwrap();
            let why = String::from_utf8_lossy(&said.stderr);
            assert!(why.contains("Permission denied"), "{file:?}: {said:?}");
        }
    }
}

/// As where debugfs is not mounted, or a right is lacking: a folder is in the place of the file.
#[test]
fn what_can_not_be_put_back_is_kept_for_the_next() {
    for dies in [false, true] {
        let (_folder, root) = small();
        let mut guard = Guard::new(root.clone());
        guard.set("stat_interval", "10", "for a test").unwrap();
        guard.set("swappiness", "5", "for a test").unwrap();
        guard.set("swappiness", "6", "for a test").unwrap();
        fs::remove_file(root.path(SWAP)).unwrap();
        fs::create_dir(root.path(SWAP)).unwrap();
        if dies {
            killed(&root, guard);
        } else {
            assert!(!guard.release("swappiness").unwrap());
            let told = guard.restore();
            assert_eq!(told.iter().filter(|change| change.restored).count(), 1, "{told:?}");
        }
        let mended = Guard::mend_all(&root);
        assert!(!mended.complete, "{mended:?}");
        let last = mended.said.last().unwrap();
        assert!(last.contains("swappiness") && last.contains("directory"), "{mended:?}");
        assert!(!last.contains("somebody"), "{mended:?}");
        assert_eq!(says(&root, STAT), "1");
        fs::remove_dir(root.path(SWAP)).unwrap();
        File::create(root.path(SWAP)).unwrap().write_all(b"6").unwrap();
        let mended = Guard::mend_all(&root);
        assert!(mended.complete && mended.said.len() == 1, "{mended:?}");
        assert_eq!(says(&root, SWAP), "60");
        assert!(journals(&root).is_empty());
    }
}
