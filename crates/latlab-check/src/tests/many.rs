//! Tests of many threads and breaches, of which only some are kept.

use super::*;

#[test]
fn threads_beyond_the_most_are_counted_and_their_breach_decides_the_verdict() {
    let mut script = Script::new(None);
    for thread in 0..1010 {
        for cycle in thread * 10..thread * 10 + 3 {
            script.wait(cycle);
            if thread >= 1005 {
                script.call("mmap", [0; 6], Nanos(0));
                script.add(1, LEAVE);
            }
        }
        script.add(1, EventKind::Exit { last: true });
    }
    let report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
    assert_eq!((report.threads.len(), report.verdict(&[])), (1001, Verdict::NotRealTime));
    assert_eq!(report.notes, ["9 threads that ended are left out: more than 1000"]);
}

#[test]
fn breaches_beyond_the_most_are_counted_and_none_of_their_rules_is_forgotten() {
    let mut script = Script::new(None);
    for cycle in 0..10 {
        script.wait(cycle);
        if cycle == 5 {
            (0..4200).for_each(|_| script.add(0, EventKind::Migrate));
            script.call("mmap", [0; 6], Nanos(0));
            script.add(1, LEAVE);
        }
    }
    script.add(1, EventKind::Exit { last: true });
    let report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
    let rules: Vec<Rule> = report.threads[0].breaches.iter().map(|breach| breach.rule).collect();
    assert_eq!(rules, [Rule::Allocation, Rule::Migration]);
    let note = "104 breaches are not counted: more than 4096 in a cycle, or more different ones of \
                a thread";
    assert_eq!(report.notes, [note]);
}
