//! Tests of threads that something from outside stops.

use super::*;

/// What stops the thread for 5.5 ms.
fn stop(script: &mut Script, by: Stopper) {
    let comm = Comm::from("other");
    let reason = OutReason::Stopped(by);
    script.add(1, EventKind::Out { reason, next: 9, prio: 120, comm, kernel: false });
    script.add(5500, EventKind::In);
}

fn kill() -> Stopper {
    Stopper::Signal(77, Comm::from("kill"))
}

/// A loop that is stopped around its 50th cycle.
fn stopped(at: impl Fn(&mut Script)) -> ThreadReport {
    let mut script = Script::new(None);
    for cycle in 1..=100 {
        if cycle == 50 {
            at(&mut script);
        }
        script.wait(cycle);
        script.now += 100;
    }
    script.wait(101);
    let mut report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
    report.threads.pop().expect("it has a cycle")
}

/// The signal interrupts the wait for a cycle, which is made again.
fn in_wait(script: &mut Script, by: Stopper) {
    script.call("clock_nanosleep", [1, 1, 0, 0, 0, 0], Nanos(50 * PERIOD * US));
    script.sleep(50 * PERIOD - 500, (120, WakeContext::Task));
    script.add(1, EventKind::Leave { result: -514, call: Some("clock_nanosleep") });
    stop(script, by);
}

fn assert_stopped(thread: &ThreadReport, by: &str) {
    let cycle = &thread.cycle;
    let stops = cycle.stops.as_ref().expect("it was stopped");
    assert_eq!((stops.count, stops.longest, stops.by.as_str()), (1, Nanos(5500 * US), by));
    assert_eq!(cycle.count + stops.cycles, 100, "{thread:?}");
    assert!((5..10).contains(&stops.cycles), "{stops:?}");
    assert_eq!((cycle.overruns, cycle.left_out), (0, 0), "{thread:?}");
    assert_eq!(cycle.response.max, Nanos(104 * US));
    let found: Vec<(Rule, u64)> = thread.breaches.iter().map(|one| (one.rule, one.count)).collect();
    assert_eq!(found, [(Rule::Stopped, 1)]);
}

#[test]
fn stop_during_the_wait_is_no_overrun_of_the_cycles_that_it_delays() {
    assert_stopped(&stopped(|script| in_wait(script, kill())), "kill [77]");
    assert_stopped(&stopped(|script| in_wait(script, Stopper::Freezer)), "the freezer");
}

#[test]
fn stop_in_a_cycle_is_no_overrun() {
    let thread = stopped(|script| stop(script, kill()));
    assert_stopped(&thread, "kill [77]");
    let tracer = Stopper::Tracer(8, Comm::from("gdb"));
    assert_stopped(&stopped(|script| stop(script, tracer)), "gdb [8], which traces it");
}

#[test]
fn thread_that_is_stopped_when_watching_ends_does_not_hang() {
    let mut script = Script::new(None);
    for cycle in 1..=50 {
        script.wait(cycle);
        script.now += 100;
    }
    let (comm, reason) = (Comm::from("other"), OutReason::Stopped(kill()));
    script.add(1, EventKind::Out { reason, next: 9, prio: 120, comm, kernel: false });
    script.judge.stop(Nanos((script.now + 1_000_000) * US), &|_| true);
    let report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
    let cycle = &report.threads[0].cycle;
    assert_eq!((cycle.overruns, cycle.stops.as_ref().map(|stops| stops.cycles)), (0, Some(1)));
}

#[test]
fn overrun_after_a_stop_has_its_own_cause() {
    let mut script = Script::new(None);
    for cycle in 1..=100 {
        script.wait(cycle);
        script.now += if cycle == 80 { 1500 } else { 100 };
        if cycle == 20 {
            stop(&mut script, kill());
        }
    }
    script.wait(101);
    let report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
    assert_eq!(report.threads[0].cycle.overruns, 1);
}
