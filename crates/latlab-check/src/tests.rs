//! Tests of the judge with made-up events.

mod any_policy;
mod awake;
mod choice;
mod hanging;
mod many;
mod memory;
mod missing;
mod requests;
mod spin;
mod start;
mod stops;
mod tasks;
mod waits;
mod warm_up;

use super::*;
use latlab_core::explain::Comm;
use latlab_core::time::Nanos;

/// Microseconds.
const US: u64 = 1000;
/// The period of the thread, in microseconds.
const PERIOD: u64 = 1000;

/// The return of a system call.
const LEAVE: EventKind = EventKind::Leave { result: 0, call: None };

/// A thread of priority 50 and what happens to it.
struct Script {
    judge: Judge,
    now: u64,
    wake_ups: Vec<WakeUp>,
}

impl Script {
    fn new(deadline: Option<Nanos>) -> Script {
        Script { judge: Judge::new(deadline), now: 0, wake_ups: Vec::new() }
    }

    fn add(&mut self, after: u64, kind: EventKind) {
        self.add_of(after, kind, (49, 1));
    }

    /// Adds an event of a thread with that priority and policy.
    fn add_of(&mut self, after: u64, kind: EventKind, (prio, policy): (i16, u8)) {
        self.now += after;
        let comm = Comm::from("loop");
        let thread = Thread { tid: 7, pid: 6, prio, policy, comm };
        self.judge.add(&Event { at: Nanos(self.now * US), thread, kind });
    }

    fn call(&mut self, call: &'static str, arguments: [u64; 6], time: Nanos) {
        let locks = Locks { future: true, any: true };
        self.add(
            1,
            EventKind::Enter {
                call,
                arguments,
                time,
                file: None,
                lock: Lock::default(),
                locks,
                stack: Some(1),
            },
        );
    }

    /// Sleeps until the given microsecond, and is woken by this task in that context.
    fn sleep(&mut self, until: u64, waker: (i16, WakeContext)) {
        let comm = Comm::from("other");
        let out = |reason| EventKind::Out { reason, next: 9, prio: 120, comm, kernel: false };
        self.add(1, out(OutReason::Sleeps));
        let (prio, context) = waker;
        let after = until.saturating_sub(self.now);
        self.add(after, EventKind::Waking { waker: 9, prio, comm, context });
        self.add(2, EventKind::In);
    }

    /// Waits for the absolute time of a cycle.
    fn wait(&mut self, cycle: u64) {
        let due = cycle * PERIOD;
        self.call("clock_nanosleep", [1, 1, 0, 0, 0, 0], Nanos(due * US));
        if due > self.now {
            self.sleep(due, (120, WakeContext::Interrupt));
        }
        self.add(1, LEAVE);
    }

    /// Runs cycles, in each of which `act` happens.
    fn cycles(mut self, act: impl Fn(&mut Script, u64)) -> ThreadReport {
        for cycle in 1..=100 {
            self.wait(cycle);
            act(&mut self, cycle);
        }
        self.wait(101);
        self.wake_ups.iter().for_each(|wake_up| self.judge.explain(wake_up));
        let mut report = self.judge.report(&mut |_, stack| frames(stack), &|_| false);
        report.threads.pop().expect("it has a cycle")
    }
}

/// A stack in the page into which the kernel copies instructions of marks.
const COPIED: StackId = 99;

fn frames(stack: StackId) -> Vec<Frame> {
    let module = "[uprobes]".to_owned();
    let (function, file, line, offset, library) = (None, None, None, 4, false);
    let copied = Frame { function, file, line, module, offset, library };
    if stack == COPIED { vec![copied] } else { Vec::new() }
}

/// The breaches of cycles in each of which `act` happens.
fn breaches(act: impl Fn(&mut Script, u64)) -> Vec<(Rule, u64)> {
    let thread = Script::new(None).cycles(act);
    thread.breaches.iter().map(|breach| (breach.rule, breach.count)).collect()
}

/// The entry into a call of a thread whose memory is locked.
fn enter(call: &'static str, arguments: [u64; 6], time: Nanos) -> EventKind {
    let (locks, lock) = (Locks { future: true, any: true }, Lock::default());
    EventKind::Enter { call, arguments, time, file: None, lock, locks, stack: None }
}

#[test]
fn correct_loop_breaches_no_rule_and_has_its_times() {
    let thread = Script::new(None).cycles(|script, _| script.now += 100);
    assert_eq!(thread.breaches, []);
    let cycle = thread.cycle;
    assert_eq!((cycle.count, cycle.period), (100, Some(Nanos(PERIOD * US))));
    assert_eq!((thread.policy.as_str(), cycle.overruns), ("SCHED_FIFO 50", 0));
    let latency = cycle.latency.map(|latency| latency.max);
    assert_eq!((latency, cycle.running.max), (Some(Nanos(3 * US)), Nanos(101 * US)));
    assert_eq!(cycle.response.max, Nanos(104 * US));
}

#[test]
fn start_and_end_of_a_program_are_not_judged() {
    let mut script = Script::new(None);
    script.call("mmap", [0; 6], Nanos(0));
    script.add(1, LEAVE);
    for cycle in 1..=10 {
        script.wait(cycle);
    }
    script.call("munmap", [0; 6], Nanos(0));
    script.add(1, LEAVE);
    script.add(1, EventKind::Exit { last: true });
    let report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
    assert_eq!(report.threads[0].breaches, []);
    assert_eq!(report.threads[0].cycle.count, 9);
}

#[test]
fn system_calls_breach_the_rules_of_their_kind() {
    for (call, rule) in [
        ("mmap", Some(Rule::Allocation)),
        ("openat", Some(Rule::FileIo)),
        ("clone", Some(Rule::Syscall)),
        ("gettid", None),
    ] {
        let found = breaches(|script, _| {
            script.call(call, [5, 0, 0, 0, 0, 0], Nanos(0));
            script.add(1, LEAVE);
        });
        assert_eq!(found, rule.map(|rule| (rule, 100)).into_iter().collect::<Vec<_>>(), "{call}");
    }
}

#[test]
fn write_to_a_file_is_a_breach_and_a_mark_in_the_trace_is_not() {
    for (name, count) in [("log", 100), ("trace_marker", 0), ("trace_marker_ra", 0)] {
        let found = breaches(|script, _| {
            let file = Some(File { kind: FileKind::Regular, name: name.to_owned(), peer: None });
            let (arguments, time, locks) = ([5, 0, 0, 0, 0, 0], Nanos(0), Locks::default());
            let call = "write";
            script.add(
                1,
                EventKind::Enter {
                    call,
                    arguments,
                    time,
                    file,
                    lock: Lock::default(),
                    locks,
                    stack: Some(1),
                },
            );
            script.add(1, LEAVE);
        });
        let all: u64 =
            found.iter().filter(|(rule, _)| *rule == Rule::FileIo).map(|one| one.1).sum();
        assert_eq!(all, count, "{name}");
    }
}

#[test]
fn sleep_is_judged_by_what_it_waits_for() {
    const MUTEX: [u64; 6] = [0x1000, 128, 2, 0, 0, 0];
    const PI_MUTEX: [u64; 6] = [0x1000, 128 | 6, 0, 0, 0, 0];
    for (call, arguments, waker, rule) in [
        ("getrandom", [0; 6], 120, Some(Rule::Sleep)),
        ("futex", MUTEX, 120, Some(Rule::Inversion)),
        ("futex", MUTEX, 9, Some(Rule::NonPi)),
        ("futex", PI_MUTEX, 120, None),
    ] {
        let found = breaches(|script, _| {
            script.call(call, arguments, Nanos(0));
            script.sleep(script.now + 50, (waker, WakeContext::Task));
            script.add(1, LEAVE);
        });
        assert_eq!(found, rule.map(|rule| (rule, 100)).into_iter().collect::<Vec<_>>(), "{call}");
    }
}

#[test]
fn page_fault_that_watching_causes_is_no_breach() {
    let of = |stack| {
        breaches(|script, _| {
            let (address, stack_pointer, protection, in_kernel) = (64, 8, false, false);
            let stack = Some(stack);
            script
                .add(1, EventKind::Fault { address, stack_pointer, protection, in_kernel, stack });
            script.add(20, EventKind::Faulted { major: false });
        })
    };
    assert_eq!((of(2), of(COPIED)), (vec![(Rule::Fault, 100)], vec![]));
}

#[test]
fn fault_has_its_kind_and_duration() {
    let thread = Script::new(None).cycles(|script, cycle| {
        let (address, stack_pointer) = (0x7000_0000, 0x7000_0100);
        let (protection, in_kernel, stack) = (false, false, Some(2));
        let fault = EventKind::Fault { address, stack_pointer, protection, in_kernel, stack };
        script.add(1, fault);
        script.add(20, EventKind::Faulted { major: cycle == 3 });
    });
    let found = thread.breaches.iter().map(|b| (b.subject.as_str(), b.count, b.longest));
    let took = Nanos(20 * US);
    let expected = [("page fault (stack)", 99, took), ("major page fault (stack)", 1, took)];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert_eq!(thread.breaches[1].first, 2);
}

#[test]
fn fault_without_its_end_has_all_of_its_sleep() {
    let thread = Script::new(None).cycles(|script, _| {
        let (address, stack_pointer, protection, in_kernel) = (64, 8, false, false);
        let stack = Some(2);
        script.add(1, EventKind::Fault { address, stack_pointer, protection, in_kernel, stack });
        let comm = Comm::from("other");
        for (reason, until) in [(OutReason::SleepsInKernel, 10), (OutReason::Preempted, 30)] {
            script.add(1, EventKind::Out { reason, next: 9, prio: 9, comm, kernel: true });
            script.add(until, EventKind::In);
        }
    });
    let worst = thread.cycle.worst.expect("there are cycles");
    let fault = worst.parts.iter().find(|part| part.cause == "fault").expect("it is a part");
    assert_eq!((fault.length, fault.own), (Nanos(10 * US), Nanos(10 * US)));
}

#[test]
fn overruns_are_errors_only_with_a_deadline() {
    let act = |script: &mut Script, cycle: u64| {
        script.now += if cycle == 50 { 2500 } else { 100 };
    };
    let found = Script::new(None).cycles(act);
    let rules: Vec<(Rule, Level)> = found.breaches.iter().map(|b| (b.rule, b.level)).collect();
    assert_eq!(rules, [(Rule::Overrun, Level::Warning), (Rule::CatchUp, Level::Warning)]);
    let worst = found.cycle.worst.expect("there are cycles");
    assert_eq!((worst.number, worst.running), (49, Nanos(2501 * US)));
    let found = Script::new(Some(Nanos(50 * US))).cycles(act);
    assert_eq!(found.cycle.overruns, 100);
    assert_eq!((found.breaches[0].rule, found.breaches[0].level), (Rule::Overrun, Level::Error));
}

/// The part `control` runs for 50 us, of which another task takes 30, and maps memory.
fn marked(script: &mut Script, cycle: u64) {
    let name = || "control".to_owned();
    script.add(10, EventKind::Begin { name: name(), id: cycle.cast_signed() });
    let (comm, reason) = (Comm::from("other"), OutReason::Preempted);
    script.add(5, EventKind::Out { reason, next: 9, prio: 9, comm, kernel: true });
    script.add(30, EventKind::In);
    script.call("mmap", [0; 6], Nanos(0));
    script.add(14, LEAVE);
    script.now += if cycle == 50 { 950 } else { 0 };
    script.add(0, EventKind::End { name: name() });
    script.now += 50;
}

#[test]
fn marks_give_the_parts_of_cycles_and_the_part_of_each_breach() {
    let thread = Script::new(None).cycles(marked);
    let found = thread.breaches.iter().map(|one| (one.rule, one.count, one.part.as_deref()));
    let expected = [(Rule::Allocation, 100, Some("control")), (Rule::Overrun, 1, Some("control"))];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    let parts = thread.cycle.parts.expect("it has marks");
    let PartReport { name, count, running, id, .. } = &parts.parts[0];
    assert_eq!((name.as_str(), *count, *id), ("control", 100, 50));
    assert_eq!((running.min, running.max), (Nanos(20 * US), Nanos(970 * US)));
    assert_eq!((parts.parts.len(), parts.without_end, parts.without_begin), (1, 0, 0));
    let worst = thread.cycle.worst.expect("there are cycles");
    let MarkedPart { from, length, running, .. } = worst.marked[0];
    assert_eq!((from, length, running), (Nanos(13 * US), Nanos(1000 * US), Nanos(970 * US)));
}

#[test]
fn marks_outside_of_cycles_make_no_part() {
    let mut script = Script::new(None);
    let name = || "start".to_owned();
    script.add(1, EventKind::Begin { name: name(), id: 0 });
    script.add(1, EventKind::End { name: name() });
    let thread = script.cycles(|_, _| {});
    assert_eq!(thread.cycle.parts, None);
}

/// A cycle in which a mutex of a lower-priority task makes the thread late, after a late waking.
fn overrunning(script: &mut Script, cycle: u64) {
    if cycle != 50 {
        script.now += 100;
        return;
    }
    script.call("futex", [0x1000, 128, 2, 0, 0, 0], Nanos(0));
    script.sleep(script.now + 1000, (120, WakeContext::Task));
    script.add(1, LEAVE);
    let (due, ran) = (Nanos(cycle * PERIOD * US), Nanos((cycle * PERIOD + 2) * US));
    let charge = |from: u64, length: u64, cause| Charged {
        from: due + Nanos(from * US),
        length: Nanos(length * US),
        cause,
        culprit: "other (pid 9)".to_owned(),
        function: Some("slow_function".to_owned()),
    };
    script.wake_ups.push(WakeUp {
        tid: 7,
        due,
        ran,
        slept: due + Nanos(5 * US),
        charges: vec![charge(0, 2, "interrupts-off")],
        interrupts: vec![charge(4, 1, "interrupt")],
        locks: Vec::new(),
    });
}

#[test]
fn overrun_that_waited_for_lock_of_the_kernel_names_it() {
    let waiting = |script: &mut Script, cycle| {
        overrunning(script, cycle);
        let Some(wake_up) = script.wake_ups.last_mut().filter(|_| cycle == 50) else { return };
        wake_up.locks.push(Charged {
            from: wake_up.due,
            length: Nanos(1000 * US),
            cause: "lock",
            culprit: "mutex rtnl_mutex held by other (pid 9)".to_owned(),
            function: Some("rtnetlink_rcv_msg".to_owned()),
        });
    };
    let cycle = Script::new(None).cycles(waiting).cycle;
    let found = |cause: &str| cycle.reasons.iter().find(|reason| reason.cause == cause);
    let lock = found("kernel-lock").expect("it waited for one");
    let expected = "mutex rtnl_mutex held by other (pid 9), called from rtnetlink_rcv_msg";
    assert_eq!(lock.culprit, expected);
    assert_eq!(found("blocked"), None);
}

#[test]
fn stack_of_many_parts_is_named_once() {
    let mut script = Script::new(None);
    for cycle in 1..=100 {
        script.wait(cycle);
        for _ in 0..20 {
            script.call("mmap", [0; 6], Nanos(0));
            script.add(100, LEAVE);
        }
    }
    script.wait(101);
    let mut named = 0;
    let mut name = |_, _| {
        named += 1;
        Vec::new()
    };
    let report = script.judge.report(&mut name, &|_| false);
    assert!(report.threads[0].cycle.overruns > 90);
    // For its parts, and for each of its breaches.
    assert_eq!(named, 1 + report.threads[0].breaches.len());
}

#[test]
fn overrun_has_its_parts_before_and_while_it_ran() {
    let cycle = Script::new(None).cycles(overrunning).cycle;
    assert_eq!(cycle.overruns, 1);
    let found = |cause: &str| cycle.reasons.iter().find(|reason| reason.cause == cause);
    let blocked = found("blocked").expect("it slept");
    assert_eq!((blocked.count, blocked.waking), (1, false));
    assert!(blocked.culprit.ends_with("ended by other [9, SCHED_OTHER]"), "{blocked:?}");
    assert_eq!(cycle.reasons.first(), Some(blocked));
    let late = found("interrupts-off").expect("its wake-up was late");
    assert_eq!((late.total, late.waking), (Nanos(2 * US), true));
    assert_eq!(found("interrupt").map(|reason| reason.total), Some(Nanos(US)));
    // It ran for a shorter time than in other cycles.
    assert_eq!(found("program"), None);
    let worst = cycle.worst.expect("there are cycles");
    let sum = worst.parts.iter().fold(Nanos(0), |sum, part| sum + part.own);
    assert_eq!(sum, worst.response);
}

#[test]
fn wake_up_explained_before_its_cycle_ends_belongs_to_it() {
    let at_once = |script: &mut Script, cycle| {
        overrunning(script, cycle);
        for wake_up in std::mem::take(&mut script.wake_ups) {
            script.judge.explain(&wake_up);
        }
    };
    let cycle = Script::new(None).cycles(at_once).cycle;
    let late = cycle.reasons.iter().find(|reason| reason.cause == "interrupts-off");
    assert_eq!(late.map(|reason| (reason.count, reason.total)), Some((1, Nanos(2 * US))));
}

#[test]
fn thread_that_skips_missed_periods_overran() {
    let mut script = Script::new(None);
    let (mut cycle, mut cycles) = (1, 0);
    while cycle < 100 {
        script.wait(cycle);
        script.now += if cycle == 50 { 2500 } else { 100 };
        cycle = script.now / PERIOD + 1;
        cycles += 1;
    }
    script.wait(cycle);
    let report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
    let found = &report.threads[0].cycle;
    assert_eq!((found.count, found.overruns), (cycles, 1));
    assert_eq!(found.reasons[0].cause, "program");
}

#[test]
fn latency_of_a_deadline_period_is_unknown() {
    let mut script = Script::new(None);
    let (comm, kernel) = (Comm::from("other"), false);
    for _ in 0..100 {
        let enter = enter("sched_yield", [0; 6], Nanos(0));
        let reason = OutReason::Preempted;
        let out = EventKind::Out { reason, next: 9, prio: 120, comm, kernel };
        for (after, kind) in [(1, enter), (1, out), (997, EventKind::In), (1, LEAVE)] {
            script.add_of(after, kind, (-1, 6));
        }
    }
    let report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
    let cycle = &report.threads[0].cycle;
    assert_eq!((cycle.count, cycle.overruns, cycle.latency), (99, 0, None));
    assert_eq!(cycle.worst.as_ref().map(|worst| worst.latency), Some(None));
    assert_eq!((cycle.response.max, cycle.period), (Nanos(US), Some(Nanos(PERIOD * US))));
}

#[test]
fn preemption_is_charged_to_its_task() {
    for (prio, kernel, rule) in
        [(120, false, Some(Rule::Throttled)), (9, false, Some(Rule::SharedCpu)), (9, true, None)]
    {
        let thread = Script::new(None).cycles(|script, _| {
            let (comm, reason) = (Comm::from("other"), OutReason::Preempted);
            script.add(1, EventKind::Out { reason, next: 9, prio, comm, kernel });
            script.add(30, EventKind::In);
        });
        let found: Vec<Rule> = thread.breaches.iter().map(|breach| breach.rule).collect();
        assert_eq!(found, rule.into_iter().collect::<Vec<_>>());
        let worst = thread.cycle.worst.expect("there are cycles");
        let cause = if prio == 120 { "throttled" } else { "preempted" };
        let part = worst.parts.iter().find(|part| part.cause == cause).expect("it is a part");
        assert_eq!((part.own, part.culprit.starts_with("other [9, ")), (Nanos(30 * US), true));
    }
}

/// The kernel may skip the start of a system call, its end, or both of different ones.
#[test]
fn cycle_with_a_missing_event_is_left_out() {
    let mut script = Script::new(None);
    for cycle in 1..=100_u64 {
        script.call("clock_nanosleep", [1, 1, 0, 0, 0, 0], Nanos(cycle * PERIOD * US));
        script.sleep(cycle * PERIOD, (120, WakeContext::Interrupt));
        if cycle != 60 {
            script.add(1, LEAVE);
        }
        if cycle == 70 {
            script.add(1, LEAVE);
        }
    }
    let report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
    let cycle = &report.threads[0].cycle;
    assert_eq!((cycle.count, cycle.left_out, cycle.overruns), (97, 2, 0));
    assert!(report.threads[0].breaches.is_empty());
}

#[test]
fn relative_and_wall_clock_waits_are_breaches() {
    for (call, arguments, rule) in [
        ("nanosleep", [0; 6], Rule::Drift),
        ("clock_nanosleep", [1, 0, 0, 0, 0, 0], Rule::Drift),
        ("clock_nanosleep", [0, 1, 0, 0, 0, 0], Rule::WallClock),
    ] {
        let mut script = Script::new(None);
        for cycle in 1..=10 {
            script.call(call, arguments, Nanos(900 * US));
            script.sleep(cycle * PERIOD, (120, WakeContext::Interrupt));
            script.add(1, LEAVE);
        }
        script.call(call, arguments, Nanos(900 * US));
        let report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
        let found: Vec<Rule> = report.threads[0].breaches.iter().map(|one| one.rule).collect();
        assert_eq!(found, [rule], "{call}");
    }
}

#[test]
fn thread_that_sleeps_for_what_is_left_of_its_period_does_not_drift() {
    let mut script = Script::new(None);
    for cycle in 1..=11 {
        script.call("nanosleep", [0; 6], Nanos((900 + cycle) * US));
        script.sleep(cycle * PERIOD, (120, WakeContext::Interrupt));
        script.add(1, LEAVE);
    }
    let report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
    assert!(report.threads[0].breaches.is_empty(), "{report:?}");
}

#[test]
fn wake_up_by_a_lower_priority_task_is_a_breach() {
    for (prio, context, count) in [
        (120, WakeContext::Task, 10),
        (9, WakeContext::Task, 0),
        (120, WakeContext::Interrupt, 0),
        (120, WakeContext::Unknown, 0),
    ] {
        let mut script = Script::new(None);
        for cycle in 1..=11 {
            script.call("futex", [0x1000, 137, 0, 0, 0, 0], Nanos(0));
            script.sleep(cycle * PERIOD, (prio, context));
            script.add(1, LEAVE);
        }
        let report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
        let found: u64 = report.threads[0].breaches.iter().map(|breach| breach.count).sum();
        assert_eq!(found, count, "{prio} {context:?}");
    }
}

#[test]
fn threads_of_a_process_that_has_ended_have_ended() {
    let mut script = Script::new(None);
    (0..3).for_each(|cycle| script.wait(cycle));
    assert_eq!((script.judge.threads_of(6), script.judge.threads_of(7)), (vec![7], Vec::new()));
    script.add(1, EventKind::Exit { last: true });
    assert_eq!((script.judge.threads_of(6), script.judge.watched_threads()), (Vec::new(), 1));
}

#[test]
fn thread_that_never_waits_has_no_cycle() {
    let mut script = Script::new(None);
    script.call("mmap", [0; 6], Nanos(0));
    script.add(1, LEAVE);
    let report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
    assert_eq!((report.threads.len(), report.without_cycle), (0, vec!["loop [7]".to_owned()]));
}
