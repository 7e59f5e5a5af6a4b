//! Tests of the tasks that are named for a wait: who held a lock, and who wrote late.

use super::*;

const MUTEX: [u64; 6] = [0x1000, 128, 2, 0, 0, 0];
const INHERITS: [u64; 6] = [0x1000, 128 | 6, 0, 0, 0, 0];
/// A wait for a read-write lock.
const READS: [u64; 6] = [0x1000, 9 | 128 | 256, 3, 0, 0, 0xffff_ffff];

fn task(name: &str, tid: u32, prio: i16) -> Held {
    Held { comm: Comm::from(name), tid, prio }
}

fn lock(read_write: Option<ReadWrite>, holder: Option<Held>) -> Lock {
    Lock { read_write, owner: holder.map(|holder| holder.tid), holder }
}

/// Cycles in each of which the thread waits for a lock: it runs for 200 us, and sleeps if a task `wakes` it.
fn waits(arguments: [u64; 6], lock: Lock, wakes: Option<(i16, WakeContext)>) -> ThreadReport {
    Script::new(None).cycles(|script, _| {
        let (time, locks, stack) = (Nanos(0), Locks { future: true, any: true }, Some(1));
        let call = "futex";
        script.add(1, EventKind::Enter { call, arguments, time, file: None, lock, locks, stack });
        script.now += 200;
        if let Some(waker) = wakes {
            script.sleep(script.now + 100, waker);
        }
        script.add(1, LEAVE);
    })
}

/// The longest time of one cause in a cycle, and its culprit.
fn blocked(thread: &ThreadReport) -> Vec<(Nanos, &str)> {
    let parts = &thread.cycle.worst.as_ref().expect("there are cycles").parts;
    let parts = parts.iter().filter(|part| part.cause == "blocked");
    parts.map(|part| (part.own, part.culprit.as_str())).collect()
}

fn only(thread: &ThreadReport) -> (Rule, &str, Option<&str>) {
    let [breach] = thread.breaches.as_slice() else { panic!("{thread:?}") };
    (breach.rule, &breach.subject, breach.by.as_deref())
}

#[test]
fn read_write_lock_that_a_lower_priority_task_holds_is_an_inversion() {
    let (lower, higher) = (task("low", 9, 120), task("high", 8, 20));
    let writer = |holder| lock(Some(ReadWrite::Writer), Some(holder));
    let wait = "wait for a read-write lock";
    let by_lower = waits(READS, writer(lower), Some((120, WakeContext::Task)));
    assert_eq!(only(&by_lower), (Rule::Inversion, wait, Some("low [9, SCHED_OTHER]")));
    let by_higher = waits(READS, writer(higher), Some((20, WakeContext::Task)));
    assert_eq!(by_higher.breaches[0].rule, Rule::NonPi);
    // Free again before the thread slept.
    assert_eq!(waits(READS, writer(lower), None).breaches, []);
    assert!(by_higher.breaches[0].meaning().contains("read-write lock"));
    // The lock only counts readers; the one that ended the wait was the last.
    let read = waits(READS, lock(Some(ReadWrite::Readers), None), Some((120, WakeContext::Task)));
    assert_eq!(only(&read), (Rule::Inversion, wait, Some("other [9, SCHED_OTHER]")));
    let held =
        "a read-write lock held by readers, which it only counts, ended by other [9, SCHED_OTHER]";
    assert!(blocked(&read).iter().all(|(_, culprit)| *culprit == held), "{:?}", blocked(&read));
}

#[test]
fn wait_for_a_lock_is_one_whether_the_thread_runs_or_sleeps_in_it() {
    let holder = task("other", 9, 120);
    let kinds = [
        (INHERITS, "a mutex with priority inheritance"),
        (MUTEX, "a mutex without priority inheritance"),
    ];
    for (arguments, kind) in kinds {
        let thread = waits(arguments, lock(None, Some(holder)), Some((120, WakeContext::Task)));
        let reasons = blocked(&thread);
        let held = format!("{kind} held by other [9, SCHED_OTHER]");
        assert!(reasons.iter().all(|(_, culprit)| *culprit == held), "{reasons:?}");
        let all: u64 = reasons.iter().map(|(own, _)| own.0).sum();
        assert!(all >= 300 * US, "{reasons:?}");
        assert!(
            thread
                .cycle
                .worst
                .iter()
                .all(|worst| { worst.parts.iter().all(|part| part.cause != "system-call") })
        );
    }
    // Another task may have got the lock meanwhile.
    let handed =
        waits(MUTEX, lock(None, Some(task("first", 8, 20))), Some((120, WakeContext::Task)));
    let held = "a mutex without priority inheritance held by first [8, priority 79], ended by other [9, \
                SCHED_OTHER]";
    assert!(blocked(&handed).iter().all(|(_, culprit)| *culprit == held), "{:?}", blocked(&handed));
    assert_eq!(only(&handed).0, Rule::Inversion);
}

#[test]
fn process_at_the_other_end_ends_a_wait_for_its_data() {
    let motor = Some(task("motor", 12, 120));
    let kworker = (120, WakeContext::Task);
    for (call, kind, waker, peer, expected) in [
        ("read", FileKind::Terminal, kworker, motor, Some("motor [12, SCHED_OTHER]")),
        ("read", FileKind::Terminal, kworker, None, Some("other [9, SCHED_OTHER]")),
        (
            "recvfrom",
            FileKind::Socket,
            (120, WakeContext::Interrupt),
            motor,
            Some("motor [12, SCHED_OTHER]"),
        ),
        ("recvfrom", FileKind::Socket, (120, WakeContext::Interrupt), None, None),
        ("write", FileKind::Terminal, kworker, motor, Some("other [9, SCHED_OTHER]")),
    ] {
        let thread = Script::new(None).cycles(|script, _| {
            let (arguments, time, lock) = ([3, 0, 0, 0, 0, 0], Nanos(0), Lock::default());
            let file = Some(File { kind, name: "0".to_owned(), peer });
            let (locks, stack) = (Locks { future: true, any: true }, Some(1));
            script.add(1, EventKind::Enter { call, arguments, time, file, lock, locks, stack });
            script.sleep(script.now + 100, waker);
            script.add(1, LEAVE);
        });
        let ended = blocked(&thread);
        let by = ended.first().and_then(|(_, culprit)| culprit.split_once(", ended by "));
        assert_eq!(by.map(|(_, by)| by), expected, "{call} {kind:?} {ended:?}");
    }
}
