//! Tests of waits that return at once, and of time-outs of sockets.

use super::*;

const REALTIME: [u64; 6] = [0, 1, 0, 0, 0, 0];
const MONOTONIC: [u64; 6] = [1, 1, 0, 0, 0, 0];
/// A wait until a time, with the private flag: on `CLOCK_MONOTONIC`, and on `CLOCK_REALTIME`.
const CONDITION: [u64; 6] = [0x1000, 128 | 9, 6, 1, 0, 0];
const WALL_CONDITION: [u64; 6] = [0x1000, 128 | 256 | 9, 6, 1, 0, 0];

/// The findings about a loop that makes a call so many times, which returns at once with that result. `time`
/// gives it the time to wait for.
fn spinning(
    (call, arguments, result): (&'static str, [u64; 6], i64),
    count: u64,
    time: impl Fn(&Script) -> Nanos,
) -> Vec<Finding> {
    let mut script = Script::new(None);
    script.now = 5_000_000;
    for _ in 0..count {
        let time = time(&script);
        script.call(call, arguments, time);
        script.add(1, EventKind::Leave { result, call: None });
    }
    script.judge.stop(Nanos(script.now * US), &|_| true);
    script.judge.report(&mut |_, stack| frames(stack), &|_| false).findings
}

fn reason(found: &[Finding]) -> &str {
    assert_eq!((found.len(), found[0].rule), (1, Rule::Spin), "{found:?}");
    &found[0].details[0]
}

/// A millisecond from now on `CLOCK_MONOTONIC`.
fn next(script: &Script) -> Nanos {
    Nanos((script.now + 1000) * US)
}

#[test]
fn time_of_another_clock_is_named() {
    let found = spinning(("clock_nanosleep", REALTIME, 0), 20_000, next);
    let subject = "spins: clock_nanosleep returned at once 20000 times without a sleep between";
    assert_eq!(found[0].subject, subject);
    let reason = reason(&found);
    assert!(reason.contains("is one of CLOCK_MONOTONIC"), "{reason}");
    assert!(reason.contains("the wait is on CLOCK_REALTIME"), "{reason}");
    let found = spinning(("futex", WALL_CONDITION, -110), 2000, next);
    assert!(self::reason(&found).contains("the wait is on CLOCK_REALTIME"), "{found:?}");
}

#[test]
fn time_that_is_over_is_named() {
    let over = |_: &Script| Nanos(1_000_000 * US);
    let found = spinning(("clock_nanosleep", MONOTONIC, 0), 2000, over);
    assert!(
        reason(&found).contains("the time given, 1 s on CLOCK_MONOTONIC, was over"),
        "{found:?}"
    );
    let found = spinning(("futex", CONDITION, -110), 2000, over);
    assert!(reason(&found).contains("CLOCK_MONOTONIC, was over for 4.0"), "{found:?}");
    let found = spinning(("nanosleep", [0; 6], 0), 2000, |_| Nanos(0));
    assert_eq!(reason(&found), "the time to sleep for is 0");
}

#[test]
fn poll_of_what_nobody_reads_is_named() {
    let forever = [0x1000, 1, u64::MAX, 0, 0, 0];
    let found = spinning(("poll", forever, 1), 2000, |_| Nanos(0));
    assert!(reason(&found).contains("nothing was read"), "{found:?}");
    assert_eq!(found[0].rule, Rule::Spin);
    // Looking without waiting is meant to return at once.
    assert_eq!(spinning(("poll", [0x1000, 1, 0, 0, 0, 0], 1), 2000, |_| Nanos(0)), []);
    assert_eq!(spinning(("poll", forever, 1), 100, |_| Nanos(0)), []);
}

#[test]
fn loop_that_reads_what_is_there_or_makes_up_for_its_periods_does_not_spin() {
    let mut script = Script::new(None);
    for _ in 0..5000 {
        script.call("poll", [0x1000, 1, u64::MAX, 0, 0, 0], Nanos(0));
        script.add(1, EventKind::Leave { result: 1, call: None });
        script.call("read", [5, 0, 0, 0, 0, 0], Nanos(0));
        script.add(1, LEAVE);
    }
    let findings = script.judge.report(&mut |_, _| Vec::new(), &|_| false).findings;
    assert_eq!(findings, []);
    let mut script = Script::new(None);
    script.now = 1500 * PERIOD;
    for cycle in 1..=1600 {
        script.wait(cycle);
    }
    let findings = script.judge.report(&mut |_, _| Vec::new(), &|_| false).findings;
    assert_eq!(findings, []);
}

/// The breaches of a loop that receives from a socket with a time-out of so many ticks, of which one is 4 ms.
fn timeouts(ticks: u64, result: i64) -> Vec<(String, u64)> {
    let mut script = Script::new(None);
    script.judge = Judge::new(None).with_tick(Some(Nanos::from_millis(4)));
    for cycle in (10..=1000).step_by(10) {
        script.wait(cycle);
        let (call, arguments, time) = ("recvfrom", [5, 0, 0, 0, 0, 0], Nanos(ticks));
        let file = Some(File { kind: FileKind::Socket, name: String::new(), peer: None });
        let (locks, stack) = (Locks { future: true, any: true }, Some(1));
        script.add(
            1,
            EventKind::Enter { call, arguments, time, file, lock: Lock::default(), locks, stack },
        );
        script.sleep(script.now + 4100, (120, WakeContext::Interrupt));
        script.add(1, EventKind::Leave { result, call: None });
    }
    script.wait(1010);
    let report = script.judge.report(&mut |_, stack| frames(stack), &|_| false);
    let all = report.threads[0].breaches.iter().filter(|one| one.rule == Rule::Timeout);
    all.map(|one| (one.subject.clone(), one.count)).collect()
}

#[test]
fn time_out_of_a_socket_is_stated_in_ticks() {
    let of = |what: &str| vec![(format!("time-out of recvfrom on a socket of {what}"), 100)];
    assert_eq!(timeouts(1, -11), of("a tick of 4 ms"));
    assert_eq!(timeouts(3, -11), of("3 ticks of 4 ms"));
    assert_eq!(timeouts(250, -11), vec![]);
    assert_eq!((timeouts(1, 64), timeouts(0, -11)), (vec![], vec![]));
}
