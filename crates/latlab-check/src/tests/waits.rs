//! Tests of what is special to a kind of wait.

use super::*;

/// A thread that waits by this call, is woken once in each period, and runs for 100 us.
fn waits_by(call: &'static str, arguments: [u64; 6], result: i64) -> Report {
    let mut script = Script::new(None);
    for cycle in 1..=10 {
        script.call(call, arguments, Nanos(0));
        script.sleep(cycle * PERIOD, (120, WakeContext::Interrupt));
        script.add(1, EventKind::Leave { result, call: None });
        script.now += 100;
    }
    script.call(call, arguments, Nanos(0));
    script.judge.report(&mut |_, _| Vec::new(), &|_| false)
}

#[test]
fn wait_of_a_condition_for_a_time_on_the_wall_clock_is_a_breach() {
    /// `FUTEX_WAIT_BITSET` with `FUTEX_PRIVATE_FLAG` and `FUTEX_CLOCK_REALTIME`.
    const COMMAND: u64 = 9 | 128 | 256;
    for (timeout, expected) in [(0, vec![]), (0x2000, vec![(Rule::WallClock, 10)])] {
        let report = waits_by("futex", [0x1000, COMMAND, 0, timeout, 0, 0], 0);
        let found = report.threads[0].breaches.iter().map(|one| (one.rule, one.count));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn signal_that_ends_pause_begins_a_cycle() {
    /// `ERESTARTNOHAND`, which the kernel reports for each return of these calls.
    const RESTART: i64 = -514;
    for (call, result) in [("pause", RESTART), ("rt_sigsuspend", RESTART), ("rt_sigtimedwait", 14)]
    {
        let report = waits_by(call, [0; 6], result);
        let counts: Vec<u64> = report.threads.iter().map(|thread| thread.cycle.count).collect();
        assert_eq!(counts, [10], "{call}");
    }
}

#[test]
fn signal_that_interrupts_another_wait_begins_no_cycle() {
    for (call, result) in [("rt_sigtimedwait", -4), ("poll", -514)] {
        let report = waits_by(call, [0; 6], result);
        assert!(report.threads.is_empty(), "{call}: {report:?}");
    }
}

#[test]
fn catch_up_is_judged_only_where_the_time_of_the_next_cycle_is_known() {
    for (clock, expected) in [(1, vec![Rule::Overrun, Rule::CatchUp]), (7, vec![Rule::Overrun])] {
        let mut script = Script::new(None);
        for cycle in 1..=100 {
            // On another clock, the thread skips the periods that it missed.
            if clock == 1 || !(51..53).contains(&cycle) {
                let time = Nanos(cycle * PERIOD * US);
                script.call("clock_nanosleep", [clock, 1, 0, 0, 0, 0], time);
                script.sleep(cycle * PERIOD, (120, WakeContext::Interrupt));
                script.add(1, LEAVE);
                script.now += if cycle == 50 { 2500 } else { 100 };
            }
        }
        script.wait(101);
        let report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
        let found: Vec<Rule> = report.threads[0].breaches.iter().map(|one| one.rule).collect();
        assert_eq!(found, expected, "{clock}");
    }
}
