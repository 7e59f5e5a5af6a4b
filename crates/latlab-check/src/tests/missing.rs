//! Tests of cycles of which the kernel did not report all events.

use super::*;

/// The thread's cycle after periods of which each is a wait and 100 us of work. In that of number 50,
/// `skip` takes the place of the wait and what follows.
fn with_missing(skip: impl Fn(&mut Script)) -> ThreadReport {
    let mut script = Script::new(None);
    for cycle in 1..=100 {
        if cycle == 50 {
            skip(&mut script);
        } else {
            script.wait(cycle);
        }
        script.now += 100;
    }
    script.wait(101);
    let mut report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
    report.threads.pop().expect("it has a cycle")
}

/// Asserts that the cycles around the missing events are left out, and nothing is said against them.
fn assert_left_out(thread: &ThreadReport, count: u64) {
    let cycle = &thread.cycle;
    assert_eq!((cycle.count, cycle.left_out, cycle.overruns), (count, 1, 0), "{thread:?}");
    assert_eq!(thread.breaches, []);
    assert_eq!(cycle.response.max, Nanos(104 * US));
}

const TIMER: (i16, WakeContext) = (120, WakeContext::Interrupt);

#[test]
fn sleep_outside_of_calls_is_a_wait_of_which_neither_start_nor_end_was_reported() {
    let thread = with_missing(|script| script.sleep(50 * PERIOD, TIMER));
    assert_left_out(&thread, 98);
}

#[test]
fn sleep_after_the_time_that_it_waits_for_is_that_of_the_next_wait() {
    let thread = with_missing(|script| {
        script.call("clock_nanosleep", [1, 1, 0, 0, 0, 0], Nanos(50 * PERIOD * US));
        script.sleep(50 * PERIOD, TIMER);
        script.now += 100;
        script.sleep(51 * PERIOD, TIMER);
        script.add(1, LEAVE);
    });
    assert_eq!((thread.cycle.left_out, thread.cycle.overruns), (1, 0), "{thread:?}");
}

#[test]
fn end_of_another_call_is_that_of_a_wait_whose_start_was_not_reported() {
    let thread = with_missing(|script| {
        script.call("gettid", [0; 6], Nanos(0));
        script.sleep(50 * PERIOD, TIMER);
        script.add(1, EventKind::Leave { result: 0, call: Some("clock_nanosleep") });
    });
    assert_left_out(&thread, 98);
}

#[test]
fn cycle_that_is_stopped_or_that_waits_for_a_page_is_not_left_out() {
    let thread = with_missing(|script| {
        script.wait(50);
        let (comm, reason) = (Comm::from("other"), OutReason::SleepsInKernel);
        script.add(1, EventKind::Out { reason, next: 9, prio: 120, comm, kernel: false });
        script.add(2000, EventKind::In);
    });
    assert_eq!((thread.cycle.left_out, thread.cycle.overruns > 0), (0, true), "{thread:?}");
}

#[test]
fn wait_that_is_woken_too_early_is_not_left_out() {
    let thread = with_missing(|script| {
        script.call("clock_nanosleep", [1, 1, 0, 0, 0, 0], Nanos(50 * PERIOD * US));
        script.sleep(50 * PERIOD - 100, TIMER);
        script.sleep(50 * PERIOD, TIMER);
        script.add(1, LEAVE);
    });
    let cycle = &thread.cycle;
    assert_eq!((cycle.count, cycle.left_out, cycle.overruns), (100, 0, 0), "{thread:?}");
}

#[test]
fn breaches_of_a_cycle_that_is_left_out_do_not_count() {
    let thread = with_missing(|script| {
        script.wait(50);
        script.call("mmap", [0; 6], Nanos(0));
        script.add(1, LEAVE);
        script.sleep(51 * PERIOD - 200, TIMER);
    });
    assert_eq!((thread.cycle.left_out, thread.breaches), (1, vec![]));
}
