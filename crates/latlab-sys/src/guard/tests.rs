//! Tests of the guard on a machine made of files.

mod fair_server;
mod journals;
mod replaced;
mod threads;

use super::*;
use crate::testing::not_run;
use crate::{claim, knob};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use tempfile::TempDir;

const STAT: &str = "proc/sys/vm/stat_interval";
const SWAP: &str = "proc/sys/vm/swappiness";

/// A machine with these files.
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

fn value(root: &Root, path: &str) -> String {
    root.text(path).unwrap_or_else(|| "nothing".to_owned())
}

/// Leaves what a killed run of another process would have left: the journal of `guard`, unlocked.
fn killed(root: &Root, guard: Guard) {
    let own = guard.journal.as_ref().expect("it has set something").path();
    fs::copy(own, root.path("run/latlab/1.journal")).unwrap();
    fs::remove_file(own).unwrap();
    std::mem::forget(guard);
}

fn change(knob: &str, was: &str, set: &str, restored: bool) -> Change {
    let reason = "for a test".to_owned();
    let [knob, old, new] = [knob, was, set].map(str::to_owned);
    let unrestored = None;
    Change { knob, old, new, reason, restored, unrestored }
}

#[test]
fn guard_restores_what_it_set_and_returns_the_changes() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.set("stat_interval", "10", "for a test").unwrap();
    guard.set("swappiness", "5", "for a test").unwrap();
    assert_eq!((value(&root, STAT).as_str(), value(&root, SWAP).as_str()), ("10", "5"));
    let changes = guard.restore();
    let expected =
        [change("stat_interval", "1", "10", true), change("swappiness", "60", "5", true)];
    assert_eq!(changes, expected);
    assert_eq!((value(&root, STAT).as_str(), value(&root, SWAP).as_str()), ("1", "60"));
    assert!(journals(&root).unwrap().is_empty());
    assert!(guard.restore().is_empty(), "it was restored already");
}

#[test]
fn guard_restores_when_it_is_dropped() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.set("swappiness", "5", "for a test").unwrap();
    drop(guard);
    assert_eq!(value(&root, SWAP), "60");
}

#[test]
fn guard_restores_on_a_panic() {
    let (_folder, root) = small();
    let panicked = std::panic::catch_unwind(|| {
        let mut guard = Guard::new(root.clone());
        guard.set("stat_interval", "10", "for a test").unwrap();
        panic!("for a test");
    });
    assert!(panicked.is_err());
    assert_eq!(value(&root, STAT), "1");
}

#[test]
fn guard_restores_the_first_value_of_a_knob_set_several_times() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    for value in ["5", "6", "7"] {
        guard.set("swappiness", value, "for a test").unwrap();
    }
    let changes = guard.restore();
    assert_eq!(value(&root, SWAP), "60", "the newest change is restored first");
    assert!(changes.iter().all(|change| change.restored), "{changes:?}");
}

#[test]
fn guard_names_what_it_has_put_back_at_the_end() {
    let (_folder, root) = small();
    let restored = |guard: &Guard| {
        let all = guard.restored().iter();
        all.map(|one| format!("{} {}", one.knob, one.value)).collect::<Vec<_>>()
    };
    let mut guard = Guard::new(root.clone());
    guard.set("swappiness", "5", "for a test").unwrap();
    guard.set("swappiness", "6", "for a test").unwrap();
    guard.restore_knob("swappiness").unwrap();
    guard.set("stat_interval", "10", "for a test").unwrap();
    knob::put("swappiness", &root.path(SWAP), "33").unwrap();
    guard.restore();
    assert_eq!(restored(&guard), ["stat_interval 1"], "it was restored before, and changed");
    guard.set("swappiness", "5", "for a test").unwrap();
    guard.set("swappiness", "6", "for a test").unwrap();
    guard.set("stat_interval", "10", "for a test").unwrap();
    knob::put("stat_interval", &root.path(STAT), "99").unwrap();
    guard.restore();
    assert_eq!(restored(&guard), ["swappiness 33"]);
}

#[test]
fn guard_changes_nothing_without_a_journal() {
    let (_folder, root) = small();
    // A file where the folder of journals should be.
    File::create(root.path("run")).unwrap();
    let mut guard = Guard::new(root.clone());
    let error = guard.set("swappiness", "5", "for a test").unwrap_err();
    assert!(matches!(error, GuardError::Journal(..)), "{error}");
    assert_eq!(value(&root, SWAP), "60");
}

#[test]
fn guard_writes_the_journal_before_the_change() {
    let (_folder, root) = machine(&[("proc/sys/vm/other", "")]);
    // A file of the kernel that can be read but not written.
    std::os::unix::fs::symlink("/proc/sys/kernel/ostype", root.path(SWAP)).unwrap();
    let mut guard = Guard::new(root.clone());
    let error = guard.set("swappiness", "5", "for a test").unwrap_err();
    assert!(matches!(error, GuardError::Refused(..) | GuardError::NotAllowed(_)), "{error}");
    let written = read(&root, &journals(&root).unwrap()[0]).unwrap();
    assert_eq!((written.pid, written.entries.len()), (std::process::id(), 1));
    assert_eq!(written.entries[0].was, "Linux");
    assert_eq!(written.entries[0].set.as_deref(), Some("5"));
}

#[test]
fn guard_refuses_a_value_that_is_read_back_differently() {
    let (_folder, root) = machine(&[("proc/sys/vm/other", "")]);
    // The name of this thread, of which the kernel keeps 15 bytes.
    let name = Path::new("/proc/thread-self/comm").canonicalize().unwrap();
    std::os::unix::fs::symlink(&name, root.path(SWAP)).unwrap();
    let before = value(&root, SWAP);
    let mut guard = Guard::new(root.clone());
    let error = guard.set("swappiness", "more-than-fits-in-there", "for a test").unwrap_err();
    assert!(error.to_string().contains("says more-than-fits- after it was written"), "{error}");
    assert_eq!(value(&root, SWAP), before);
    assert!(guard.restore().is_empty(), "a refused value is no change");
}

#[test]
fn guard_does_not_believe_that_a_value_is_restored_until_it_has_read_it() {
    let (_folder, root) = machine(&[(SWAP, "more-than-fits-in-there\n")]);
    let mut guard = Guard::new(root.clone());
    guard.set("swappiness", "5", "for a test").unwrap();
    // The name of this thread, of which the kernel keeps 15 bytes.
    let name = Path::new("/proc/thread-self/comm").canonicalize().unwrap();
    let before = fs::read_to_string(&name).unwrap();
    knob::put("swappiness", &name, "5").unwrap();
    fs::remove_file(root.path(SWAP)).unwrap();
    std::os::unix::fs::symlink(&name, root.path(SWAP)).unwrap();
    let refused = guard.restore_knob("swappiness").unwrap_err().to_string();
    assert!(refused.contains("says more-than-fits- after"), "{refused}");
    // What the kernel has kept is not another program's change.
    let changes = guard.restore();
    let why = changes[0].unrestored.as_deref().unwrap_or_default();
    assert!(!changes[0].restored && why.contains("says more-than-fits- after"), "{changes:?}");
    knob::put("swappiness", &name, before.trim()).unwrap();
}

#[test]
fn guard_names_a_knob_that_is_missing_or_no_file() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    let error = guard.set("numa_balancing", "0", "for a test").unwrap_err();
    assert!(error.to_string().contains("/proc/sys/kernel/numa_balancing is missing"), "{error}");
    fs::create_dir_all(root.path("proc/sys/kernel/timer_migration")).unwrap();
    assert!(guard.set("timer_migration", "0", "for a test").is_err());
    let error = guard.set("cpu_dma_latency", "0", "for a test").unwrap_err();
    assert!(error.to_string().contains("/dev/cpu_dma_latency is missing"), "{error}");
    fs::create_dir_all(root.path("dev/cpu_dma_latency")).unwrap();
    let error = guard.set("cpu_dma_latency", "0", "for a test").unwrap_err();
    assert!(error.to_string().contains("Is a directory"), "{error}");
    let error = guard.set("swapiness", "0", "for a test").unwrap_err();
    assert!(error.to_string().contains("did you mean swappiness?"), "{error}");
    assert!(journals(&root).unwrap().is_empty(), "nothing was changed");
}

#[test]
fn guard_leaves_the_value_of_another_program() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.set("stat_interval", "10", "for a test").unwrap();
    guard.set("swappiness", "5", "for a test").unwrap();
    knob::put("swappiness", &root.path(SWAP), "33").unwrap();
    let changes = guard.restore();
    assert_eq!((value(&root, STAT).as_str(), value(&root, SWAP).as_str()), ("1", "33"));
    assert_eq!(changes.iter().map(|change| change.restored).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn guard_restores_a_choice_of_several() {
    let path = "sys/kernel/mm/transparent_hugepage/enabled";
    let (_folder, root) = machine(&[(path, "always [madvise] never\n")]);
    let mut guard = Guard::new(root.clone());
    guard.set("transparent_hugepage", "never", "for a test").unwrap();
    assert_eq!(guard.restore(), [change("transparent_hugepage", "madvise", "never", true)]);
    assert_eq!(value(&root, path), "madvise");
}

#[test]
fn guard_does_not_change_a_governor_that_could_not_be_restored_wholly() {
    let path = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    let (_folder, root) = machine(&[(path, "userspace\n")]);
    let error = Guard::new(root.clone()).set("governor", "performance", "").unwrap_err();
    assert!(matches!(error, GuardError::Userspace(..)), "{error}");
    assert_eq!(value(&root, path), "userspace");
}

/// Three idle states on each of two CPUs; the deepest is disabled on the second already.
fn idle() -> (TempDir, Root) {
    let state = |cpu: u32, index: u32, file: &str| {
        format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{index}/{file}")
    };
    let mut files = Vec::new();
    for (cpu, index) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)] {
        let latency = ["0\n", "10\n", "200\n"][index as usize];
        let disabled = if (cpu, index) == (1, 2) { "1\n" } else { "0\n" };
        files.push((state(cpu, index, "latency"), latency));
        files.push((state(cpu, index, "disable"), disabled));
    }
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    machine(&files)
}

fn disabled(root: &Root) -> String {
    let state =
        |cpu, index| format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{index}/disable");
    [0, 1].map(|cpu| [0, 1, 2].map(|index| value(root, &state(cpu, index))).concat()).join(" ")
}

#[test]
fn guard_disables_slower_idle_states_and_restores_only_those() {
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

/// A file in the place of a folder, and a folder in that of a file, stand for a failed read.
#[test]
fn guard_sets_no_knob_on_some_cpus_only() {
    let (_folder, root) = idle();
    let cpu = root.path("sys/devices/system/cpu/cpu1/cpuidle");
    let latency = cpu.join("state1/latency");
    fs::remove_file(&latency).unwrap();
    fs::create_dir(&latency).unwrap();
    let mut guard = Guard::new(root.clone());
    let error = guard.set("idle_latency", "0", "for a test").unwrap_err();
    assert!(matches!(error, GuardError::KnobUnreadable(..)), "{error}");
    fs::remove_dir_all(&cpu).unwrap();
    File::create(&cpu).unwrap();
    let error = guard.set("idle_latency", "0", "for a test").unwrap_err();
    assert!(matches!(error, GuardError::KnobUnreadable(..)), "{error}");
    fs::remove_file(&cpu).unwrap();
    guard.set("idle_latency", "0", "for a test").expect("a CPU may have no idle states");
}

#[test]
fn guard_recovers_a_killed_run_once() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.set("stat_interval", "10", "for a test").unwrap();
    guard.set("swappiness", "5", "for a test").unwrap();
    guard.set("swappiness", "6", "for a test").unwrap();
    killed(&root, guard);
    knob::put("stat_interval", &root.path(STAT), "99").unwrap();
    let changes = Guard::recover(&root);
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert!(changes[0].contains("stat_interval") && changes[0].contains("it stays"), "{changes:?}");
    assert!(changes[0].contains("somebody has changed it to 99 since"), "{changes:?}");
    assert!(changes[0].ends_with("so it stays; it was 1"), "{changes:?}");
    assert!(changes[1].contains("did not restore swappiness"), "{changes:?}");
    assert!(changes[1].ends_with("is 60 again, no longer 6"), "{changes:?}");
    assert_eq!((value(&root, STAT).as_str(), value(&root, SWAP).as_str()), ("99", "60"));
    assert!(journals(&root).unwrap().is_empty());
    assert!(Guard::recover(&root).is_empty());
}

/// An administrator has changed the governor of one CPU meanwhile.
#[test]
fn guard_reports_a_knob_of_several_files_file_by_file() {
    let governor = |cpu| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    let files = [0, 1, 2].map(governor);
    let machine = || machine(&files.each_ref().map(|path| (path.as_str(), "ondemand\n")));
    let change = |root: &Root| {
        let mut guard = Guard::new(root.clone());
        guard.set("governor", "performance", "for a test").unwrap();
        knob::put("governor", &root.path(&files[1]), "powersave").unwrap();
        guard
    };
    let (_folder, root) = machine();
    killed(&root, change(&root));
    let said = Guard::recover(&root);
    let outcomes = ["is ondemand again", "changed it to powersave", "is ondemand again"];
    assert!(said.iter().zip(outcomes).all(|(one, end)| one.contains(end)), "{said:?}");
    assert_eq!(
        files.each_ref().map(|path| value(&root, path)),
        ["ondemand", "powersave", "ondemand"]
    );
    let (_folder, root) = machine();
    let why = change(&root).restore().remove(0).unrestored;
    let path = root.path(&files[1]).display().to_string();
    assert_eq!(why, Some(format!("another program has changed {path}")));
}

#[test]
fn guard_does_not_recover_a_run_that_lives() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.set("swappiness", "5", "for a test").unwrap();
    assert!(Guard::recover(&root).is_empty());
    assert_eq!(value(&root, SWAP), "5");
    drop(guard);
    assert_eq!(value(&root, SWAP), "60");
}

#[test]
fn guard_refuses_a_knob_that_another_run_has_set() {
    let (_folder, root) = small();
    let mut first = Guard::new(root.clone());
    first.set("swappiness", "5", "for a test").unwrap();
    killed(&root, first);
    let mut second = Guard::new(root.clone());
    let error = second.set("swappiness", "9", "for a test").unwrap_err();
    let pid = std::process::id();
    assert!(matches!(error, GuardError::Taken { pid: theirs, .. } if theirs == pid), "{error}");
    assert_eq!(value(&root, SWAP), "5");
    second.set("stat_interval", "9", "for a test").unwrap();
}

#[test]
fn guard_sets_a_damaged_journal_aside() {
    let foreign = r#"{"pid":1,"entries":[{"knob":"swappiness","path":"/nowhere/at/all","was":"1","set":"2"}]}"#;
    for text in ["", "{", "[]", "\0\0\0", &foreign[..40], r#"{"pid":-1,"entries":[]}"#, foreign] {
        let (_folder, root) = machine(&[(SWAP, "60\n"), ("run/latlab/7.journal", text)]);
        let mended = Guard::recover_all(&root);
        assert!(mended.said.len() <= 1, "{text}");
        assert_eq!(mended.complete, text.is_empty(), "{text}");
        assert_eq!(value(&root, SWAP), "60", "{text}");
        assert!(journals(&root).unwrap().is_empty(), "{text}");
        Guard::new(root.clone()).set("swappiness", "5", "for a test").unwrap();
        assert_eq!(value(&root, SWAP), "60", "{text}");
        // Somebody has to look at it.
        assert_eq!(Guard::recover_all(&root).complete, text.is_empty(), "{text}");
        let _ = fs::remove_file(root.path("run/latlab/7.damaged"));
        assert!(Guard::recover_all(&root).complete, "{text}");
    }
}

/// The number of a process may be used again.
#[test]
fn guard_keeps_all_damaged_journals_of_one_number() {
    let (_folder, root) = machine(&[(SWAP, "60\n")]);
    fs::create_dir_all(root.path(FOLDER)).unwrap();
    for text in ["{", "[", "("] {
        let journal = root.path("run/latlab/7.journal");
        File::create(journal).unwrap().write_all(text.as_bytes()).unwrap();
        Guard::recover(&root);
    }
    let texts: Vec<String> = journal::damaged(&root)
        .unwrap()
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    assert_eq!(texts.len(), 3, "{texts:?}");
    for text in ["{", "[", "("] {
        assert!(texts.iter().any(|one| one == text), "{texts:?}");
    }
}

/// A run that set it now would restore a wrong value.
#[test]
fn guard_keeps_the_journal_of_a_file_that_is_gone() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.set("swappiness", "5", "for a test").unwrap();
    killed(&root, guard);
    fs::remove_file(root.path(SWAP)).unwrap();
    assert!(!Guard::recover_all(&root).complete);
    assert_eq!(journals(&root).unwrap().len(), 1);
}

/// A journal that somebody has put there, or edited, must not make latlab write any file.
#[test]
fn guard_writes_no_file_that_is_no_knob() {
    let (_folder, root) = machine(&[(SWAP, "60\n"), ("etc/passwd", "2")]);
    let path = root.path("etc/passwd");
    let path = path.display();
    let text = format!(
        r#"{{"pid":1,"entries":[{{"knob":"swappiness","path":"{path}","was":"1","set":"2"}}]}}"#
    );
    fs::create_dir_all(root.path(FOLDER)).unwrap();
    File::create(root.path("run/latlab/7.journal")).unwrap().write_all(text.as_bytes()).unwrap();
    assert!(!Guard::recover_all(&root).complete);
    assert_eq!(value(&root, "etc/passwd"), "2");
}

#[test]
fn guard_restores_a_kept_knob_from_any_value() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.save("swappiness", "for a test").unwrap();
    for value in ["5", "6"] {
        knob::put("swappiness", &root.path(SWAP), value).unwrap();
    }
    assert_eq!(guard.restore(), [change("swappiness", "60", "various", true)]);
    assert_eq!(value(&root, SWAP), "60");
    guard.save("swappiness", "for a test").unwrap();
    killed(&root, guard);
    knob::put("swappiness", &root.path(SWAP), "7").unwrap();
    let changes = Guard::recover(&root);
    assert!(changes.len() == 1 && changes[0].ends_with("is 60 again"), "{changes:?}");
    assert_eq!(value(&root, SWAP), "60");
}

#[test]
fn guard_names_a_console_that_is_missing_or_no_console() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    let error = guard.save("console_leds", "for a test").unwrap_err();
    assert!(error.to_string().contains("/dev/tty0 is missing"), "{error}");
    fs::create_dir_all(root.path("dev")).unwrap();
    File::create(root.path("dev/tty0")).unwrap();
    assert!(guard.save("active_console", "for a test").is_err());
    assert!(guard.set("active_console", "2", "for a test").is_err(), "users may not set it");
    assert!(journals(&root).unwrap().is_empty());
}

#[test]
fn guard_restores_one_knob_early_and_sets_it_again() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.set("stat_interval", "10", "for a test").unwrap();
    for _ in 0..1000 {
        guard.set("swappiness", "5", "for a test").unwrap();
        guard.restore_knob("swappiness").unwrap();
        assert_eq!((value(&root, STAT).as_str(), value(&root, SWAP).as_str()), ("10", "60"));
    }
    assert_eq!(guard.content.entries.len(), 1, "the journal does not grow");
    let changes = guard.restore();
    let expected =
        [change("stat_interval", "1", "10", true), change("swappiness", "60", "5", true)];
    assert_eq!(changes, expected, "a repeated change is returned once");
}

#[test]
fn guard_recovery_leaves_out_what_was_forgotten() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.set("stat_interval", "10", "for a test").unwrap();
    guard.set("swappiness", "5", "for a test").unwrap();
    guard.leave_alone("stat_interval").unwrap();
    killed(&root, guard);
    let said = Guard::recover(&root);
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!((value(&root, STAT).as_str(), value(&root, SWAP).as_str()), ("10", "60"));
}

#[test]
fn guard_returns_a_forgotten_knob_as_not_restored() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.set("swappiness", "5", "for a test").unwrap();
    File::create(root.path(SWAP)).unwrap().write_all(b"7").unwrap();
    guard.leave_alone("swappiness").unwrap();
    let path = root.path(SWAP).display().to_string();
    let unrestored = Some(format!("another program has changed {path}"));
    let expected = Change { unrestored, ..change("swappiness", "60", "5", false) };
    assert_eq!(guard.restore(), [expected]);
    assert_eq!(value(&root, SWAP), "7");
}

#[test]
fn guard_has_a_journal_of_its_own_in_one_process() {
    let (_folder, root) = small();
    let (mut one, mut other) = (Guard::new(root.clone()), Guard::new(root.clone()));
    one.set("swappiness", "5", "for a test").unwrap();
    other.set("stat_interval", "10", "for a test").unwrap();
    assert!(matches!(other.set("swappiness", "6", "no"), Err(GuardError::Taken { .. })));
    assert_eq!(journals(&root).unwrap().len(), 2);
    drop(one);
    assert_eq!((value(&root, STAT).as_str(), value(&root, SWAP).as_str()), ("10", "60"));
    drop(other);
    assert!(journals(&root).unwrap().is_empty());
}

/// flock(2) needs no more than an open file.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test waits for the program")]
fn guard_files_can_not_be_locked_by_another_user() {
    let (folder, root) = small();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let mut guard = Guard::new(root.clone());
    guard.set("swappiness", "5", "for a test").unwrap();
    let _lock = guard.lock_journals("swappiness").unwrap();
    let _claim = claim::Claim::take(&root, "adapt").unwrap();
    let mut files: Vec<_> = fs::read_dir(root.path(FOLDER)).unwrap().flatten().collect();
    files.sort_by_key(fs::DirEntry::path);
    assert_eq!(files.len(), 3, "{files:?}");
    for file in &files {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
    if !crate::process::is_root() {
        let test = "guard_files_can_not_be_locked_by_another_user (its second half)";
        return not_run(test, "only root can become another user");
    }
    for file in &files {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "flock", "-n"]);
        let output = command.arg(file.path()).arg("true").output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("Permission denied"), "{file:?}: {output:?}");
    }
}

/// A folder in the place of the file stands for an unmounted debugfs or a missing right.
#[test]
fn guard_keeps_what_it_can_not_restore_for_the_next_run() {
    for killed_early in [false, true] {
        let (_folder, root) = small();
        let mut guard = Guard::new(root.clone());
        guard.set("stat_interval", "10", "for a test").unwrap();
        guard.set("swappiness", "5", "for a test").unwrap();
        guard.set("swappiness", "6", "for a test").unwrap();
        fs::remove_file(root.path(SWAP)).unwrap();
        fs::create_dir(root.path(SWAP)).unwrap();
        if killed_early {
            killed(&root, guard);
        } else {
            let error = guard.restore_knob("swappiness").unwrap_err();
            assert!(matches!(error, GuardError::Unrestored(..)), "{error}");
            let changes = guard.restore();
            assert_eq!(changes.iter().filter(|change| change.restored).count(), 1, "{changes:?}");
        }
        let mended = Guard::recover_all(&root);
        assert!(!mended.complete, "{mended:?}");
        let last = mended.said.last().unwrap();
        assert!(last.contains("swappiness") && last.contains("directory"), "{mended:?}");
        assert!(!last.contains("somebody"), "{mended:?}");
        assert_eq!(value(&root, STAT), "1");
        fs::remove_dir(root.path(SWAP)).unwrap();
        File::create(root.path(SWAP)).unwrap().write_all(b"6").unwrap();
        let mended = Guard::recover_all(&root);
        assert!(mended.complete && mended.said.len() == 1, "{mended:?}");
        assert_eq!(value(&root, SWAP), "60");
        assert!(journals(&root).unwrap().is_empty());
    }
}
