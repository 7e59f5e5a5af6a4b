//! Tests of threads that run without sleeping.

use super::*;

/// Milliseconds in the microseconds of a script.
const MS: u64 = 1000;
/// A thread of `SCHED_DEADLINE`.
const DEADLINE: (i16, u8) = (-1, 6);

/// The kernel runs another task for 50 ms, as this one has had its share of the second.
fn throttle(script: &mut Script, of: (i16, u8)) {
    let (comm, reason) = (Comm::from("other"), OutReason::Preempted);
    script.add_of(950 * MS, EventKind::Out { reason, next: 9, prio: 120, comm, kernel: false }, of);
    script.add_of(50 * MS, EventKind::In, of);
}

fn report(mut script: Script) -> Report {
    script.judge.stop(Nanos(script.now * US), &|_| true);
    script.judge.report(&mut |_, _| Vec::new(), &|_| false)
}

/// The subjects of the findings.
fn found(script: Script) -> Vec<String> {
    let findings = report(script).findings.into_iter();
    findings.map(|one| format!("{} {} {}", one.rule, one.policy, one.subject)).collect()
}

#[test]
fn thread_that_never_sleeps_is_found_with_its_throttling() {
    for (of, policy) in [((49, 1), "SCHED_FIFO 50"), ((0, 2), "SCHED_RR 99")] {
        let mut script = Script::new(None);
        script.add_of(1, LEAVE, of);
        (0..3).for_each(|_| throttle(&mut script, of));
        let throttled =
            "throttled in 3 intervals, the longest 50 ms long, while other [9, SCHED_OTHER] ran";
        let subject =
            format!("busy {policy} never slept in 3 s, of which it ran 2.85 s; {throttled}");
        assert_eq!(found(script), [subject]);
    }
}

#[test]
fn thread_that_keeps_its_cpu_without_any_event_is_found_by_its_cpu_time() {
    let of = |ran| {
        let mut judge = Judge::new(None);
        let comm = Comm::from("poll");
        let thread = Thread { tid: 7, pid: 6, prio: 49, policy: 1, comm };
        judge.add_silent(thread, (Nanos(0), Nanos::from_secs(5)), ran);
        let report = judge.report(&mut |_, _| Vec::new(), &|_| false);
        (
            report.findings.into_iter().map(|one| one.subject).collect::<Vec<_>>(),
            report.without_cycle,
        )
    };
    let (found, without_cycle) = of(Nanos::from_secs(5));
    assert_eq!(found, ["never slept in 5 s, of which it ran 5 s; never throttled"]);
    assert_eq!(without_cycle, Vec::<String>::new());
    // Another task had its CPU nearly all the time.
    assert_eq!(of(Nanos::from_millis(1)), (vec![], vec!["poll [7]".to_owned()]));
}

#[test]
fn loop_that_stops_sleeping_is_found() {
    let mut script = Script::new(None);
    (1..=50).for_each(|cycle| script.wait(cycle));
    script.now += 2000 * MS;
    let found = found(script);
    assert!(found[0].contains("did not sleep for 2 s"), "{found:?}");
    assert_eq!(found.len(), 1);
}

#[test]
fn thread_that_sleeps_or_only_computes_before_its_loop_is_not_found() {
    let mut script = Script::new(None);
    script.add(1, LEAVE);
    let start = 3000;
    script.now += start * MS;
    (start + 1..start + 50).for_each(|cycle| script.wait(cycle));
    assert_eq!(found(script), Vec::<String>::new());
    // Its time on the CPU is over in each period, in which it never sleeps.
    let mut script = Script::new(None);
    for _ in 0..500 {
        let (call, arguments, time) = ("sched_yield", [0; 6], Nanos(0));
        let (file, locks, stack) = (None, Locks { future: true, any: true }, None);
        let kind =
            EventKind::Enter { call, arguments, time, file, lock: Lock::default(), locks, stack };
        script.add_of(5 * MS, kind, DEADLINE);
        let (comm, reason) = (Comm::from("other"), OutReason::Preempted);
        let out = EventKind::Out { reason, next: 9, prio: 120, comm, kernel: false };
        script.add_of(1, out, DEADLINE);
        script.add_of(5 * MS, EventKind::In, DEADLINE);
        script.add_of(1, LEAVE, DEADLINE);
    }
    assert_eq!(found(script), Vec::<String>::new());
}
