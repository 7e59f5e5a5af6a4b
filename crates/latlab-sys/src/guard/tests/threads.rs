//! The guard and threads of a test's own.

use super::super::*;
use super::{killed, small};

impl Guard {
    fn set_thread(
        &mut self,
        thread: i32,
        name: &str,
        policy: &str,
        because: &str,
    ) -> Result<(), GuardError> {
        let because = because.to_owned();
        let all = self.set_threads(&[Wanted { thread, name, policy, because }])?;
        all.into_iter().collect()
    }
}

/// A thread of this test's own, which ends with what is returned.
fn thread(name: &str) -> (i32, std::sync::mpsc::Sender<()>, std::thread::JoinHandle<()>) {
    let (told, id) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel();
    let body = move || {
        told.send(crate::sched::thread_id()).unwrap();
        let _ = ended.recv();
    };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body).unwrap();
    (id.recv().unwrap(), end, thread)
}

/// Whether this test may give real-time policies.
fn may() -> bool {
    let may = || crate::sched::set_policy(crate::sched::Policy::Fifo(1)).is_ok();
    std::thread::spawn(may).join().unwrap()
}

fn policy(id: i32) -> String {
    crate::sched::policy_of(id).map_or_else(|| "nothing".to_owned(), |policy| policy.to_string())
}

#[test]
fn a_thread_has_its_policy_back_and_the_journal_stays_short() {
    let (_folder, root) = small();
    let (id, end, thread) = thread("raised");
    let mut guard = Guard::new(root.clone());
    if may() {
        for priority in 1..=9 {
            guard.set_thread(id, "raised", &format!("fifo {priority}"), "for a test").unwrap();
            assert_eq!(policy(id), format!("fifo {priority}"));
        }
        let written = read(&journals(&root)[0]).unwrap().entries;
        assert_eq!((written.len(), written[0].was.as_str()), (2, "other"));
        assert!(guard.release_thread(id, "raised"));
        assert_eq!(policy(id), "other");
        guard.set_thread(id, "raised", "rr 7", "for a test").unwrap();
        let told = guard.restore();
        assert_eq!(policy(id), "other");
        assert!(told.iter().all(|change| change.restored), "{told:?}");
        assert_eq!((told.len(), told[0].knob.as_str()), (10, "raised"));
    }
    let error = guard.set_thread(id, "lowered", "other", "for a test").unwrap_err();
    assert_eq!(error.to_string(), "lowered has ended", "another has its number");
    drop(end);
    thread.join().unwrap();
}

#[test]
fn a_thread_that_has_ended_is_no_harm() {
    let (_folder, root) = small();
    let (id, end, thread) = thread("raised");
    let mut guard = Guard::new(root.clone());
    let turned = guard.set_thread(id, "raised", "fifo 5", "for a test").is_ok();
    assert_eq!(turned, may());
    drop(end);
    thread.join().unwrap();
    // It may be on its way out still.
    while Path::new(&format!("/proc/self/task/{id}")).exists() {
        std::thread::yield_now();
    }
    assert!(guard.release_thread(id, "raised"));
    let error = guard.set_thread(id, "raised", "fifo 5", "for a test").unwrap_err();
    assert!(matches!(error, GuardError::Ended(_)), "{error}");
    assert!(guard.restore().iter().all(|change| change.restored));
}

#[test]
fn the_policy_that_somebody_else_gave_stays() {
    let (_folder, root) = small();
    let (id, end, thread) = thread("raised");
    if may() {
        let mut guard = Guard::new(root.clone());
        guard.set_thread(id, "raised", "fifo 5", "for a test").unwrap();
        crate::sched::set_policy_of(id, crate::sched::Policy::Fifo(6)).unwrap();
        assert!(!guard.release_thread(id, "raised"));
        assert!(guard.restore().iter().all(|change| !change.restored));
        assert_eq!(policy(id), "fifo 6");
    }
    drop(end);
    thread.join().unwrap();
}

/// However many there are: the first write has them all, and then each is turned.
#[test]
fn threads_are_journalled_together_and_turned_one_by_one() {
    let (_folder, root) = small();
    let threads: Vec<_> = ["first", "second", "third"].map(|name| (name, thread(name))).into();
    let mut guard = Guard::new(root.clone());
    let wanted = |name, id| {
        let because = "for a test".to_owned();
        Wanted { thread: id, name, policy: "fifo 5", because }
    };
    // The second is none of that name.
    let names = ["first", "none", "third"];
    let all: Vec<_> =
        names.iter().zip(&threads).map(|(name, (_, one))| wanted(*name, one.0)).collect();
    if may() {
        let done = guard.set_threads(&all).unwrap();
        let done: Vec<Option<String>> =
            done.into_iter().map(|one| one.err().map(|error| error.to_string())).collect();
        assert_eq!(done, [None, Some("none has ended".to_owned()), None]);
        let policies: Vec<String> = threads.iter().map(|(_, one)| policy(one.0)).collect();
        assert_eq!(policies, ["fifo 5", "other", "fifo 5"]);
        // Both stand there although nothing can be written any more.
        let journal = journals(&root).remove(0);
        let written = read(&journal).unwrap().entries;
        assert_eq!(written.iter().map(|one| &*one.knob).collect::<Vec<_>>(), ["first", "third"]);
        let next = journal.with_extension("journal.new");
        fs::create_dir(&next).unwrap();
        assert!(guard.release_thread(threads[0].1.0, "first"));
        assert!(guard.release_thread(threads[2].1.0, "third"));
        let why = guard.settle().unwrap_err().to_string();
        assert!(why.contains("and still has first, third as turned, which does no harm"), "{why}");
        let error = guard.set_threads(&all).unwrap_err();
        assert!(matches!(error, GuardError::Journal(..)), "{error}");
        assert_eq!(policy(threads[0].1.0), "other", "what is not written down is not turned");
        fs::remove_dir(&next).unwrap();
        assert!(guard.set_threads(&[]).unwrap().is_empty());
    }
    drop(guard);
    for (_, (_, end, thread)) in threads {
        drop(end);
        thread.join().unwrap();
    }
}

/// Killed between the journal and the deed, or after it: the policy it was found with comes back.
#[test]
fn a_thread_is_mended_wherever_a_run_was_killed() {
    for done in [false, true] {
        let (_folder, root) = small();
        let (id, end, thread) = thread("raised");
        if may() {
            let mut guard = Guard::new(root.clone());
            guard.set_thread(id, "raised", "fifo 5", "for a test").unwrap();
            guard.set_thread(id, "raised", "fifo 8", "for a test").unwrap();
            if !done {
                crate::sched::set_policy_of(id, crate::sched::Policy::Fifo(5)).unwrap();
            }
            killed(&root, guard);
            let said = Guard::mend(&root);
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].contains(&format!("raised (/proc/{id}) is other again")), "{said:?}");
            assert_eq!(policy(id), "other");
        }
        drop(end);
        thread.join().unwrap();
    }
}

#[test]
fn two_runs_do_not_turn_one_thread() {
    let (_folder, root) = small();
    let (id, end, thread) = thread("raised");
    if may() {
        let (mut one, mut other) = (Guard::new(root.clone()), Guard::new(root.clone()));
        one.set_thread(id, "raised", "fifo 5", "for a test").unwrap();
        let error = other.set_thread(id, "raised", "fifo 6", "for a test").unwrap_err();
        assert!(matches!(error, GuardError::Taken { .. }), "{error}");
    }
    drop(end);
    thread.join().unwrap();
}
