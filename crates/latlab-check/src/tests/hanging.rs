//! Tests of threads that wait when watching ends.

use super::*;

/// The value of a futex: of a contended mutex, and of a condition variable.
const MUTEX: u64 = 2;
const CONDITION: u64 = 6;

/// A thread that begins to wait for a futex in its last cycle, and is watched for that long.
fn hanging(futex: u64, deadline: Option<Nanos>, watched: u64, is_realtime: bool) -> ThreadReport {
    let mut script = Script::new(deadline);
    for cycle in 1..=50 {
        script.wait(cycle);
        script.now += 100;
    }
    script.call("futex", [0x1000, 128, futex, 0, 0, 0], Nanos(0));
    let (comm, reason) = (Comm::from("other"), OutReason::Sleeps);
    script.add(1, EventKind::Out { reason, next: 9, prio: 120, comm, kernel: false });
    script.judge.stop(Nanos((script.now + watched) * US), &|_| is_realtime);
    script.add(watched + 1, EventKind::Exit { last: true });
    let mut report = script.judge.report(&mut |_, stack| frames(stack), &|_| false);
    report.threads.pop().expect("it has a cycle")
}

#[test]
fn cycle_that_hangs_when_watching_ends_overran() {
    for (deadline, level) in [(None, Level::Warning), (Some(Nanos(500 * US)), Level::Error)] {
        let thread = hanging(MUTEX, deadline, 8_000_000, true);
        let found = thread.breaches.iter().map(|one| (one.rule, one.level, one.count));
        assert_eq!(found.collect::<Vec<_>>(), [(Rule::Overrun, level, 1)]);
        assert_eq!((thread.cycle.count, thread.cycle.overruns), (50, 1));
        let reason = &thread.cycle.reasons[0];
        assert_eq!(reason.cause, "blocked");
        assert!(reason.culprit.contains("a mutex"), "{reason:?}");
    }
}

#[test]
fn cycle_in_progress_is_not_judged_within_its_limit_or_of_an_ordinary_thread() {
    for (watched, is_realtime) in [(500, true), (8_000_000, false)] {
        let thread = hanging(MUTEX, None, watched, is_realtime);
        assert_eq!((thread.cycle.count, thread.breaches), (49, vec![]));
    }
}

#[test]
fn thread_that_waits_after_its_loop_does_not_hang() {
    let thread = hanging(CONDITION, Some(Nanos(500 * US)), 8_000_000, true);
    assert_eq!((thread.cycle.count, thread.breaches), (49, vec![]));
}
