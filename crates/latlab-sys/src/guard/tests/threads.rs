//! Tests of the guard with threads of the tests.

use super::super::*;
use super::{killed, small};
use crate::testing::may_set_realtime;
use std::fs;

impl Guard {
    fn set_thread(
        &mut self,
        thread: i32,
        name: &str,
        policy: &str,
        because: &str,
    ) -> Result<(), GuardError> {
        let because = because.to_owned();
        let all = self.set_threads(&[ThreadPolicy { thread, name, policy, because }])?;
        all.into_iter().collect()
    }
}

/// Starts a thread of this name. It ends when the sender is dropped.
fn thread(name: &str) -> (i32, std::sync::mpsc::Sender<()>, std::thread::JoinHandle<()>) {
    let (sender, id) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel();
    let body = move || {
        sender.send(crate::sched::thread_id()).unwrap();
        let _ = ended.recv();
    };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body).unwrap();
    (id.recv().unwrap(), end, thread)
}

fn policy(id: i32) -> String {
    let policy = crate::sched::policy_of(id).unwrap();
    policy.map_or_else(|| "nothing".to_owned(), |policy| policy.to_string())
}

#[test]
fn guard_restores_the_policy_of_a_thread_and_its_journal_stays_short() {
    let (_folder, root) = small();
    let (id, end, thread) = thread("raised");
    let mut guard = Guard::new(root.clone());
    if may_set_realtime("guard_restores_the_policy_of_a_thread_and_its_journal_stays_short") {
        for priority in 1..=9 {
            guard.set_thread(id, "raised", &format!("fifo {priority}"), "for a test").unwrap();
            assert_eq!(policy(id), format!("fifo {priority}"));
        }
        let written = read(&root, &journals(&root).unwrap()[0]).unwrap().entries;
        assert_eq!((written.len(), written[0].was.as_str()), (2, "other"));
        guard.restore_thread(id, "raised").unwrap();
        assert_eq!(policy(id), "other");
        guard.set_thread(id, "raised", "rr 7", "for a test").unwrap();
        let changes = guard.restore();
        assert_eq!(policy(id), "other");
        assert!(changes.iter().all(|change| change.restored), "{changes:?}");
        assert_eq!((changes.len(), changes[0].knob.as_str()), (10, "raised"));
    }
    let error = guard.set_thread(id, "lowered", "other", "for a test").unwrap_err();
    assert_eq!(error.to_string(), "thread lowered has ended", "the id belongs to another");
    drop(end);
    thread.join().unwrap();
}

#[test]
fn guard_ignores_a_thread_that_has_ended() {
    let test = "guard_ignores_a_thread_that_has_ended (its first half)";
    for restores_early in [false, true] {
        let (_folder, root) = small();
        let (id, end, thread) = thread("raised");
        let mut guard = Guard::new(root.clone());
        let set = guard.set_thread(id, "raised", "fifo 5", "for a test").is_ok();
        assert_eq!(set, may_set_realtime(test));
        drop(end);
        thread.join().unwrap();
        // It may still be ending.
        while Path::new(&format!("/proc/self/task/{id}")).exists() {
            std::thread::yield_now();
        }
        if restores_early {
            guard.restore_thread(id, "raised").unwrap();
        }
        let error = guard.set_thread(id, "raised", "fifo 5", "for a test").unwrap_err();
        assert!(matches!(error, GuardError::Ended(_)), "{error}");
        assert!(guard.restore().iter().all(|change| change.restored));
        assert!(guard.restored().is_empty(), "nothing was put back");
    }
}

#[test]
fn guard_leaves_the_policy_that_another_program_set() {
    let (_folder, root) = small();
    let (id, end, thread) = thread("raised");
    if may_set_realtime("guard_leaves_the_policy_that_another_program_set") {
        let mut guard = Guard::new(root.clone());
        guard.set_thread(id, "raised", "fifo 5", "for a test").unwrap();
        crate::sched::set_policy_of(id, crate::sched::Policy::Fifo(6)).unwrap();
        let error = guard.restore_thread(id, "raised").unwrap_err();
        assert!(matches!(error, GuardError::Changed(_)), "{error}");
        assert!(guard.restore().iter().all(|change| !change.restored));
        assert_eq!(policy(id), "fifo 6");
    }
    drop(end);
    thread.join().unwrap();
}

/// One write lists all threads, and then each is set.
#[test]
fn guard_journals_threads_together_and_sets_them_one_by_one() {
    let (_folder, root) = small();
    let threads: Vec<_> = ["first", "second", "third"].map(|name| (name, thread(name))).into();
    let mut guard = Guard::new(root.clone());
    let wanted = |name, id| {
        let because = "for a test".to_owned();
        ThreadPolicy { thread: id, name, policy: "fifo 5", because }
    };
    // The second thread has another name.
    let names = ["first", "none", "third"];
    let all: Vec<_> =
        names.iter().zip(&threads).map(|(name, (_, one))| wanted(*name, one.0)).collect();
    if may_set_realtime("guard_journals_threads_together_and_sets_them_one_by_one") {
        let done = guard.set_threads(&all).unwrap();
        let done: Vec<Option<String>> =
            done.into_iter().map(|one| one.err().map(|error| error.to_string())).collect();
        assert_eq!(done, [None, Some("thread none has ended".to_owned()), None]);
        let policies: Vec<String> = threads.iter().map(|(_, one)| policy(one.0)).collect();
        assert_eq!(policies, ["fifo 5", "other", "fifo 5"]);
        // Both are still listed where the journal can't be written any more.
        let journal = journals(&root).unwrap().remove(0);
        let written = read(&root, &journal).unwrap().entries;
        assert_eq!(written.iter().map(|one| &*one.knob).collect::<Vec<_>>(), ["first", "third"]);
        let next = journal.with_extension("journal.new");
        fs::create_dir(&next).unwrap();
        guard.restore_thread(threads[0].1.0, "first").unwrap();
        guard.restore_thread(threads[2].1.0, "third").unwrap();
        let why = guard.update_journal().unwrap_err().to_string();
        assert!(why.contains("it still lists first, third as set, which does no harm"), "{why}");
        let error = guard.set_threads(&all).unwrap_err();
        assert!(matches!(error, GuardError::Journal(..)), "{error}");
        assert_eq!(policy(threads[0].1.0), "other", "what is not journalled is not set");
        fs::remove_dir(&next).unwrap();
        assert!(guard.set_threads(&[]).unwrap().is_empty());
    }
    drop(guard);
    for (_, (_, end, thread)) in threads {
        drop(end);
        thread.join().unwrap();
    }
}

/// Killed between the write of the journal and the change, or after the change.
#[test]
fn guard_recovers_the_policy_of_a_thread_wherever_a_run_was_killed() {
    for applied in [false, true] {
        let (_folder, root) = small();
        let (id, end, thread) = thread("raised");
        if may_set_realtime("guard_recovers_the_policy_of_a_thread_wherever_a_run_was_killed") {
            let mut guard = Guard::new(root.clone());
            guard.set_thread(id, "raised", "fifo 5", "for a test").unwrap();
            guard.set_thread(id, "raised", "fifo 8", "for a test").unwrap();
            if !applied {
                crate::sched::set_policy_of(id, crate::sched::Policy::Fifo(5)).unwrap();
            }
            killed(&root, guard);
            let said = Guard::recover(&root);
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(
                said[0].contains(&format!("raised (/proc/{id}); it is other again")),
                "{said:?}"
            );
            assert_eq!(policy(id), "other");
        }
        drop(end);
        thread.join().unwrap();
    }
}

#[test]
fn guard_refuses_a_thread_that_another_run_has_set() {
    let (_folder, root) = small();
    let (id, end, thread) = thread("raised");
    if may_set_realtime("guard_refuses_a_thread_that_another_run_has_set") {
        let (mut one, mut other) = (Guard::new(root.clone()), Guard::new(root.clone()));
        one.set_thread(id, "raised", "fifo 5", "for a test").unwrap();
        let error = other.set_thread(id, "raised", "fifo 6", "for a test").unwrap_err();
        assert!(matches!(error, GuardError::Taken { .. }), "{error}");
    }
    drop(end);
    thread.join().unwrap();
}

/// A thread of another PID namespace can't be told from one that has ended.
#[test]
fn guard_keeps_the_journal_of_a_thread_of_another_namespace() {
    let (_folder, root) = small();
    let (id, end, thread) = thread("raised");
    if may_set_realtime("guard_keeps_the_journal_of_a_thread_of_another_namespace") {
        let mut guard = Guard::new(root.clone());
        guard.set_thread(id, "raised", "fifo 5", "for a test").unwrap();
        killed(&root, guard);
        let journal = root.path("run/latlab/1.journal");
        let own = fs::read_to_string(&journal).unwrap();
        let write =
            |text: &str| File::create(&journal).unwrap().write_all(text.as_bytes()).unwrap();
        write(&own.replace("\"namespace\":", "\"namespace\":1"));
        let recovery = Guard::recover_all(&root);
        assert!(!recovery.complete && policy(id) == "fifo 5", "{recovery:?}");
        assert!(recovery.said[0].contains("another PID namespace"), "{recovery:?}");
        if own.contains("\"time_namespace\":") {
            write(&own.replace("\"time_namespace\":", "\"time_namespace\":1"));
            let recovery = Guard::recover_all(&root);
            assert!(!recovery.complete && policy(id) == "fifo 5", "{recovery:?}");
            assert!(recovery.said[0].contains("another time namespace"), "{recovery:?}");
        }
        write(&own);
        assert!(Guard::recover_all(&root).complete);
        assert_eq!(policy(id), "other");
    }
    drop(end);
    thread.join().unwrap();
}

/// An entry of a thread that had this id before.
fn earlier(id: i32, name: &str) -> Entry {
    let entry = Entry::of_thread(id, name, "fifo 5".to_owned()).unwrap();
    let mut journalled = serde_json::to_value(entry).unwrap();
    journalled["thread"]["started"] = serde_json::json!(1);
    serde_json::from_value(journalled).unwrap()
}

#[test]
fn guard_gives_no_policy_to_another_thread_of_the_same_id() {
    let (id, end, thread) = thread("raised");
    let entry = earlier(id, "raised");
    if may_set_realtime("guard_gives_no_policy_to_another_thread_of_the_same_id") {
        let error = entry.apply("fifo 5").unwrap_err();
        assert!(matches!(error, GuardError::Ended(_)), "nothing was set: {error}");
        assert_eq!(policy(id), "other");
        crate::sched::set_policy_of(id, crate::sched::Policy::Fifo(5)).unwrap();
        let outcome = entry::restore(&[entry]);
        assert!(outcome.failed.is_empty(), "{outcome:?}");
        assert_eq!(policy(id), "fifo 5");
    }
    drop(end);
    thread.join().unwrap();
}
