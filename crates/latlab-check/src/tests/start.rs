//! Tests of threads that wait while their program starts, before their loop.

use super::*;

/// The stack of the waits of a loop.
const LOOP: StackId = 50;

/// A futex wait that comes from this place, and a page fault after it where there is one.
fn wait(script: &mut Script, from: StackId, faults: bool) {
    let (call, arguments, time) = ("futex", [0x1000, 128, 0, 0, 0, 0], Nanos(0));
    let (file, locks, stack) = (None, Locks { future: true, any: true }, Some(from));
    script.add(
        1,
        EventKind::Enter { call, arguments, time, file, lock: Lock::default(), locks, stack },
    );
    script.sleep(script.now + PERIOD, (120, WakeContext::Interrupt));
    script.add(1, LEAVE);
    if faults {
        let (address, stack_pointer, protection, in_kernel) = (64, 8, false, false);
        let stack = Some(2);
        script.add(1, EventKind::Fault { address, stack_pointer, protection, in_kernel, stack });
        script.add(20, EventKind::Faulted { major: false });
    }
}

/// The cycles of a thread that waits from these places and faults after each, and then has a loop.
fn started(places: &[StackId]) -> ThreadReport {
    let mut script = Script::new(None);
    for place in places {
        wait(&mut script, *place, true);
    }
    for _ in 0..100 {
        wait(&mut script, LOOP, false);
    }
    let report = script.judge.report(&mut |_, stack| frames(stack), &|_| false);
    report.threads.into_iter().next().expect("it has a cycle")
}

#[test]
fn waits_of_the_start_are_no_cycles_of_the_loop() {
    for places in [&[10][..], &[10, 11, 12], &[10, 10, 10, 11], &[LOOP, 11, 11, LOOP, 12]] {
        let thread = started(places);
        assert_eq!((thread.cycle.count, thread.breaches), (99, vec![]), "{places:?}");
    }
}

#[test]
fn fault_in_the_first_cycle_of_a_loop_is_found() {
    let thread = started(&[LOOP]);
    assert_eq!(thread.breaches[0].rule, Rule::Fault);
    assert_eq!((thread.breaches[0].first, thread.cycle.count), (0, 100));
}

#[test]
fn loop_that_waits_in_two_places_keeps_all_of_its_cycles() {
    let mut script = Script::new(None);
    for _ in 0..100 {
        wait(&mut script, LOOP, true);
        wait(&mut script, LOOP + 1, false);
    }
    let report = script.judge.report(&mut |_, stack| frames(stack), &|_| false);
    let thread = &report.threads[0];
    assert_eq!((thread.cycle.count, thread.breaches[0].count), (199, 100));
}

#[test]
fn few_waits_for_a_futex_make_no_cycle() {
    let of = |count| {
        let mut script = Script::new(None);
        (0..count).for_each(|_| wait(&mut script, LOOP, true));
        script.judge.report(&mut |_, stack| frames(stack), &|_| false).threads.len()
    };
    assert_eq!((of(9), of(10)), (0, 1));
}

/// A relative sleep does not tell when the next cycle is due.
#[test]
fn cycle_with_a_relative_sleep_overruns_after_a_period() {
    let mut script = Script::new(None);
    for cycle in 1..=100 {
        script.call("clock_nanosleep", [1, 0, 0, 0, 0, 0], Nanos(800 * US));
        script.sleep(script.now + 800, (120, WakeContext::Interrupt));
        script.add(1, LEAVE);
        script.now += if cycle == 50 { 1500 } else { 200 };
    }
    script.call("clock_nanosleep", [1, 0, 0, 0, 0, 0], Nanos(800 * US));
    let report = script.judge.report(&mut |_, stack| frames(stack), &|_| false);
    let cycle = &report.threads[0].cycle;
    assert_eq!((cycle.count, cycle.overruns), (100, 1));
}

/// The kernel does not say when a fault ends, which is part of the running time.
#[test]
fn time_of_a_fault_without_its_end_is_not_that_of_the_program() {
    let of = |ends: bool| {
        let thread = Script::new(None).cycles(|script, cycle| {
            if cycle != 50 {
                return;
            }
            let (address, stack_pointer, protection, in_kernel) = (64, 8, false, false);
            let stack = Some(2);
            let fault = EventKind::Fault { address, stack_pointer, protection, in_kernel, stack };
            script.add(1, fault);
            script.now += 1500;
            if ends {
                script.add(0, EventKind::Faulted { major: false });
            }
        });
        thread.cycle.reasons[0].cause.clone()
    };
    assert_eq!((of(true).as_str(), of(false).as_str()), ("fault", "program-or-fault"));
}
