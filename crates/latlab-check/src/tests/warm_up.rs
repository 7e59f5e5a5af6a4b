//! Tests of cycles that are not judged as they are the first, and of threads without cycles.

use super::*;

/// Cycles of which the first map memory; the second of them takes long.
fn with_start(warm_up: &str, cycles: u64) -> Report {
    let mut script = Script::new(None);
    script.judge = Judge::new(None).with_warm_up(warm_up.parse().expect("it is a warm-up"));
    for cycle in 1..=cycles {
        script.wait(cycle);
        if cycle <= 3 {
            script.call("mmap", [0; 6], Nanos(0));
            script.add(if cycle == 2 { 300 } else { 1 }, LEAVE);
        }
        script.now += 50;
    }
    script.wait(cycles + 1);
    script.judge.report(&mut |_, _| Vec::new(), &|_| false)
}

#[test]
fn cycles_of_the_warm_up_are_counted_and_not_judged() {
    let all = with_start("0cycles", 20);
    let cycle = &all.threads[0].cycle;
    assert_eq!((cycle.count, cycle.warm_up, all.threads[0].breaches.len()), (20, 0, 1));
    assert!(cycle.response.max > Nanos(300 * US));
    for warm_up in ["3cycles", "2500us"] {
        let report = with_start(warm_up, 20);
        let thread = &report.threads[0];
        assert_eq!((thread.cycle.count, thread.cycle.warm_up), (17, 3), "{warm_up}");
        assert_eq!(thread.breaches, []);
        assert_eq!(thread.cycle.response.max, Nanos(54 * US));
        assert_eq!(thread.cycle.period, Some(Nanos(PERIOD * US)));
    }
    let most = &with_start("2cycles", 20).threads[0];
    assert_eq!((most.breaches[0].rule, most.breaches[0].count), (Rule::Allocation, 1));
}

#[test]
fn thread_with_a_warm_up_only_is_not_judged() {
    let report = with_start("1s", 20);
    assert_eq!(report.in_warm_up, ["loop [7]"]);
    assert_eq!((report.threads.len(), report.without_cycle.len()), (0, 0));
}

#[test]
fn thread_that_executes_another_program_is_named_once() {
    let mut script = Script::new(None);
    let mmap = |script: &mut Script| {
        script.call("mmap", [0; 6], Nanos(0));
        script.add(1, LEAVE);
    };
    mmap(&mut script);
    script.add(1, EventKind::Exec);
    mmap(&mut script);
    let report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
    assert_eq!(report.without_cycle, ["loop [7]"]);
    // A thread with a cycle is judged, whatever it did before.
    let mut script = Script::new(None);
    mmap(&mut script);
    script.add(1, EventKind::Exec);
    (1..5).for_each(|cycle| script.wait(cycle));
    let report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
    assert_eq!((report.threads.len(), report.without_cycle.len()), (1, 0));
}
