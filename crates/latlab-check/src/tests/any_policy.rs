//! Tests of threads without a real-time policy.

use super::*;

/// Priority and policy of a `SCHED_OTHER` thread.
const OTHER: (i16, u8) = (120, 0);
/// `FUTEX_WAIT` on the word of a contended mutex.
const MUTEX: [u64; 6] = [0x1000, 128, 2, 0, 0, 0];

/// A `SCHED_OTHER` thread that is out of its CPU in each cycle, as `out` says, for 300 us.
fn report(any: bool, call: &'static str, arguments: [u64; 6], out: &EventKind) -> Report {
    let mut script = Script::new(None);
    script.judge = Judge::new(None).with_any_policy(any);
    let comm = Comm::from("other");
    let sleeps =
        EventKind::Out { reason: OutReason::Sleeps, next: 0, prio: 120, comm, kernel: true };
    for cycle in 1..=11 {
        let due = Nanos(cycle * PERIOD * US);
        script.add_of(1, enter("clock_nanosleep", [1, 1, 0, 0, 0, 0], due), OTHER);
        script.add_of(1, sleeps.clone(), OTHER);
        script.now = cycle * PERIOD;
        script.add_of(1, EventKind::In, OTHER);
        script.add_of(1, LEAVE, OTHER);
        script.add_of(100, enter(call, arguments, Nanos(0)), OTHER);
        script.add_of(1, out.clone(), OTHER);
        // A task of less weight wakes it.
        let woken = EventKind::Waking { waker: 9, prio: 139, comm, context: WakeContext::Task };
        script.add_of(300, woken, OTHER);
        script.add_of(1, EventKind::In, OTHER);
        script.add_of(1, LEAVE, OTHER);
    }
    script.judge.report(&mut |_, _| Vec::new(), &|_| false)
}

fn out(reason: OutReason, next: u32, prio: i16) -> EventKind {
    EventKind::Out { reason, next, prio, comm: Comm::from("other"), kernel: false }
}

fn rules(thread: &ThreadReport) -> Vec<Rule> {
    thread.breaches.iter().map(|breach| breach.rule).collect()
}

fn causes(thread: &ThreadReport) -> Vec<&str> {
    let parts = &thread.cycle.worst.as_ref().expect("there are cycles").parts;
    let parts = parts.iter().map(|part| part.cause.as_str());
    parts.filter(|cause| !["unexplained", "program", "system-call"].contains(cause)).collect()
}

#[test]
fn thread_without_a_real_time_policy_is_judged_only_if_any_is() {
    let out = out(OutReason::Sleeps, 9, 120);
    let ordinary = report(false, "read", [3, 0, 0, 0, 0, 0], &out);
    assert!(ordinary.threads.is_empty() && ordinary.without_cycle.is_empty(), "{ordinary:?}");
    let any = report(true, "read", [3, 0, 0, 0, 0, 0], &out);
    let thread = &any.threads[0];
    assert_eq!((thread.policy.as_str(), thread.is_realtime()), ("SCHED_OTHER", false));
    assert_eq!((thread.cycle.count, thread.cycle.period), (10, Some(Nanos(PERIOD * US))));
    assert_eq!(rules(thread), [Rule::Sleep]);
}

#[test]
fn task_that_gets_its_share_does_not_throttle_a_thread() {
    let of = |next, prio| report(true, "getpid", [0; 6], &out(OutReason::Preempted, next, prio));
    let shared = of(9, 120);
    assert_eq!(
        (rules(&shared.threads[0]), causes(&shared.threads[0])),
        (vec![], vec!["preempted"])
    );
    let idle = of(0, 120);
    assert_eq!((rules(&idle.threads[0]), causes(&idle.threads[0])), (vec![], vec!["throttled"]));
    let realtime = of(9, 49);
    assert_eq!(rules(&realtime.threads[0]), [Rule::SharedCpu]);
    assert_eq!(causes(&realtime.threads[0]), ["preempted"]);
}

#[test]
fn holder_of_less_weight_is_no_inversion() {
    let report = report(true, "futex", MUTEX, &out(OutReason::Sleeps, 9, 139));
    let breach = &report.threads[0].breaches[0];
    assert_eq!((breach.rule, breach.by.is_some()), (Rule::Sleep, true));
}
