//! Journals of runs that are killed while they write them.

use super::super::journal::Entries;
use super::super::*;
use super::small;
use std::process::{Command, Stdio};

/// Names the folder in which a copy of this program is to write journals.
const FOLDER_OF_COPY: &str = "LATLAB_TEST_JOURNALS";

/// So many entries that they fill several pages.
fn hundred(set: &str) -> Entries {
    let entry = |nth| Entry {
        knob: "governor".to_owned(),
        path: PathBuf::from(format!("/sys/devices/system/cpu/cpu{nth}/cpufreq/scaling_governor")),
        was: "schedutil".to_owned(),
        set: Some(set.to_owned()),
        thread: None,
    };
    Entries { pid: std::process::id(), entries: (0..100).map(entry).collect() }
}

/// Killed when the test ends, however it does.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn assert_whole(path: &Path) {
    let found = read(path).expect("it is whole");
    let set = found.entries[0].set.as_deref().unwrap();
    assert_eq!(found.entries, hundred(set).entries);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test kills its program")]
fn a_journal_of_a_hundred_entries_is_whole_whenever_its_owner_is_killed() {
    if let Some(folder) = std::env::var_os(FOLDER_OF_COPY) {
        let mut journal = Journal::begin(Path::new(&folder)).unwrap();
        loop {
            // Of different lengths, so that neither could be mistaken for the other.
            journal.write(&hundred("performance")).unwrap();
            journal.write(&hundred("powersave")).unwrap();
        }
    }
    // Where /run lies, too, a write may end after any page.
    let memory = Path::new("/dev/shm");
    let place = if memory.exists() { memory.to_owned() } else { std::env::temp_dir() };
    let folder = tempfile::tempdir_in(place).unwrap();
    let root = Root::new(folder.path());
    let journals_folder = lock::folder(&root).unwrap();
    for nth in 0..40 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["a_journal_of_a_hundred_entries", "--nocapture"]).stdout(Stdio::null());
        let mut copy = Killed(command.env(FOLDER_OF_COPY, &journals_folder).spawn().unwrap());
        let path = journals_folder.join(format!("{}.journal", copy.0.id()));
        while fs::metadata(&path).map_or(0, |there| there.len()) == 0 {
            assert_eq!(copy.0.try_wait().unwrap(), None, "it writes until it is killed");
            std::thread::yield_now();
        }
        // Whoever looks while it lives finds it whole, too.
        for _ in 0..nth {
            assert_whole(&path);
        }
        drop(copy);
        assert_whole(&path);
        journal::sweep(&root);
        Journal::left(&path).expect("its owner is dead").end();
        assert_eq!(fs::read_dir(&journals_folder).unwrap().count(), 0, "nothing is left");
    }
}

#[test]
fn a_journal_that_is_written_anew_stays_its_owner_s() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    for value in ["5", "6", "7"] {
        guard.set("swappiness", value, "for a test").unwrap();
        assert!(Journal::left(&journals(&root)[0]).is_none());
    }
    assert_eq!(fs::read_dir(root.path(FOLDER)).unwrap().count(), 1, "nothing lies beside it");
    drop(guard);
    assert_eq!(fs::read_dir(root.path(FOLDER)).unwrap().count(), 0);
}

/// A process may get the number of one that was killed before anybody has mended that.
#[test]
fn what_another_of_the_same_number_has_left_is_not_overwritten() {
    let (_folder, root) = small();
    let folder = lock::folder(&root).unwrap();
    let own = folder.join(format!("{}.journal", std::process::id()));
    Journal::begin(&folder).unwrap().write(&hundred("performance")).unwrap();
    let mut guard = Guard::new(root.clone());
    guard.set("swappiness", "5", "for a test").unwrap();
    assert_eq!(read(&own).unwrap().entries.len(), 100);
    assert_eq!(journals(&root).len(), 2);
}
