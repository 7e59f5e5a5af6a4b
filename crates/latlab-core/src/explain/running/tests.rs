//! Tests of the account: events whose truth is known.

use super::*;
use crate::cause::Cause;
use crate::explain::{Call, Comm, InterruptedContext, Line};
use proptest::prelude::*;

const OURS: u32 = 7;
const OTHER: u32 = 8;
const SERVER: u32 = 9;
const IDLE: u32 = 0;

fn task(pid: u32, prio: i16) -> Task {
    let comm = match pid {
        IDLE => "swapper",
        OURS => "busy",
        OTHER => "other",
        _ => "ktimers/0",
    };
    Task { pid, prio, comm: Comm::from(comm) }
}

fn event(at: u64, current: Task, kind: EventKind) -> (u32, Event) {
    (0, Event { at: Nanos(at), task: current, kind, stolen: Nanos(0) })
}

fn interrupt(line: Line) -> EventKind {
    EventKind::Interrupt { line, context: InterruptedContext::default() }
}

fn to(next: Task) -> EventKind {
    EventKind::Switch { next, preempted: true }
}

fn sleeps(next: Task) -> EventKind {
    EventKind::Switch { next, preempted: false }
}

/// The account of a thread of this priority.
fn account(events: Vec<(u32, Event)>, until: u64) -> RunningThread {
    let mut account = Account::default();
    account.watch(OURS);
    account.add(events, Nanos(until));
    account.thread(OURS, &Names::default()).expect("events tell of it")
}

/// What took the CPU: cause, how often, time, longest.
fn taken(thread: &RunningThread) -> Vec<(&str, u64, u64, u64)> {
    let mut all: Vec<_> = thread.taken.iter().collect();
    all.sort_by_key(|one| one.cause.clone());
    all.iter().map(|one| (&*one.cause, one.count, one.total.0, one.longest.0)).collect()
}

#[test]
fn time_is_that_of_the_innermost_and_an_occurrence_counts_once() {
    let ours = task(OURS, 20);
    let thread = account(
        vec![
            event(100, ours, interrupt(Line::Timer)),
            event(110, ours, EventKind::Timer { function: 5, due: Nanos(90) }),
            event(120, ours, EventKind::TimerEnd),
            event(130, ours, EventKind::InterruptEnd),
            event(140, ours, EventKind::Softirq(1)),
            event(150, ours, interrupt(Line::Device(4))),
            event(170, ours, EventKind::InterruptEnd),
            event(180, ours, EventKind::SoftirqEnd),
            event(300, ours, interrupt(Line::Timer)),
            event(340, ours, EventKind::InterruptEnd),
        ],
        400,
    );
    assert_eq!(
        taken(&thread),
        [("interrupt", 2, 70, 40), ("interrupt", 1, 20, 20), ("softirq", 1, 20, 10 + 10)]
    );
    assert_eq!((thread.ran, thread.span(), thread.sleeps), (Nanos(190), Nanos(300), 0));
    assert_eq!(thread.priority, Some(79));
}

#[test]
fn throttling_is_one_occurrence_whoever_runs_meanwhile() {
    let (ours, other, idle) = (task(OURS, 20), task(OTHER, 120), task(IDLE, 120));
    let thread = account(
        vec![
            event(100, ours, interrupt(Line::Timer)),
            event(110, ours, EventKind::InterruptEnd),
            event(200, ours, to(other)),
            event(220, other, interrupt(Line::Timer)),
            event(225, other, EventKind::InterruptEnd),
            event(230, other, sleeps(idle)),
            event(250, idle, to(ours)),
            event(350, ours, EventKind::InterruptEnd),
        ],
        400,
    );
    assert_eq!(taken(&thread), [("interrupt", 2, 15, 10), ("throttled", 1, 45, 45)]);
    assert_eq!(thread.meanwhile, ["other", "swapper"]);
    assert_eq!(thread.span(), Nanos(300));
}

#[test]
fn task_that_preempts_is_told_by_its_priority() {
    let preempted_by = |ours: i16, by: i16| {
        let (ours, by) = (task(OURS, ours), task(OTHER, by));
        let thread = account(vec![event(100, ours, to(by)), event(130, by, sleeps(ours))], 150);
        taken(&thread)[0].0.to_owned()
    };
    assert_eq!(preempted_by(20, 10), Cause::HigherPriority.name());
    assert_eq!(preempted_by(20, 20), "equal-priority");
    assert_eq!(preempted_by(20, 30), "throttled");
    assert_eq!(preempted_by(120, 139), "equal-priority");
    assert_eq!(preempted_by(120, 30), Cause::HigherPriority.name());
}

#[test]
fn function_of_another_cpu_names_its_sender_though_it_is_told_later() {
    let ours = task(OURS, 120);
    let call = Call { function: 77, sender: task(OTHER, 120), cpu: 3 };
    let thread = account(
        vec![
            event(100, ours, interrupt(Line::Call)),
            event(104, ours, EventKind::Called(call)),
            event(110, ours, EventKind::InterruptEnd),
        ],
        150,
    );
    assert_eq!(taken(&thread), [("interrupt", 1, 10, 10)]);
    assert_eq!(thread.taken[0].culprit, "function call interrupt by other on CPU 3");
}

#[test]
fn wait_after_a_waking_and_sleep_are_told_apart() {
    let (ours, idle) = (task(OURS, 120), task(IDLE, 120));
    let waking = EventKind::Waking { task: ours, cpu: 0 };
    let thread = account(
        vec![
            event(100, ours, EventKind::InterruptEnd),
            event(150, ours, sleeps(idle)),
            event(400, idle, waking),
            event(420, idle, to(ours)),
            event(500, ours, sleeps(idle)),
        ],
        900,
    );
    assert_eq!((thread.ran, thread.slept, thread.sleeps), (Nanos(130), Nanos(250), 2));
    assert_eq!(taken(&thread), [("idle-exit", 1, 20, 20)]);
}

#[test]
fn waiting_goes_on_where_the_thread_was_moved() {
    let (ours, other) = (task(OURS, 120), task(OTHER, 120));
    let on = |cpu: u32, event: (u32, Event)| (cpu, event.1);
    let thread = account(
        vec![
            on(1, event(50, task(SERVER, 10), EventKind::InterruptEnd)),
            event(100, ours, to(other)),
            on(1, event(130, task(SERVER, 10), EventKind::Migrated { pid: OURS, cpu: 1 })),
            on(1, event(160, task(SERVER, 10), sleeps(ours))),
        ],
        200,
    );
    assert_eq!(
        taken(&thread),
        [("equal-priority", 1, 30, 30), (Cause::HigherPriority.name(), 1, 30, 30)]
    );
    assert_eq!((thread.taken[0].cpu, thread.taken[1].cpu, thread.ran), (0, 1, Nanos(40)));
}

#[test]
fn task_of_lower_priority_waits_until_it_runs_or_the_account_ends() {
    let (ours, server) = (task(OURS, 20), task(SERVER, 98));
    let waking = EventKind::Waking { task: server, cpu: 0 };
    let thread = account(
        vec![
            event(100, ours, EventKind::InterruptEnd),
            event(200, ours, waking),
            event(900, ours, to(server)),
            event(950, server, sleeps(ours)),
            event(960, ours, waking),
        ],
        1_000,
    );
    let starved = &thread.starved[0];
    assert_eq!((&*starved.task, starved.count, starved.longest.0), ("ktimers/0", 2, 700));
}

#[test]
fn time_with_lost_events_is_unrecorded() {
    let ours = task(OURS, 20);
    let mut account = Account::default();
    account.watch(OURS);
    account.add(vec![event(100, ours, EventKind::InterruptEnd)], Nanos(200));
    account.lose(0);
    account.add(vec![event(350, ours, EventKind::InterruptEnd)], Nanos(400));
    let thread = account.thread(OURS, &Names::default()).expect("events tell of it");
    assert_eq!((thread.ran, thread.unrecorded), (Nanos(150), Nanos(150)));
}

/// A busy loop with one timer interrupt from 1000 to 1300, and stolen time before it.
fn busy_loop(stolen: u64) -> Account {
    let ours = task(OURS, 20);
    let mut account = Account::default();
    account.watch_loop(OURS, 0, Nanos(50));
    let (cpu, tick) = event(1_000, ours, interrupt(Line::Timer));
    let events = vec![
        event(10, ours, EventKind::InterruptEnd),
        (cpu, Event { stolen: Nanos(stolen), ..tick }),
        event(1_300, ours, EventKind::InterruptEnd),
    ];
    account.add(events, Nanos(2_000));
    account
}

#[test]
fn rest_of_a_gap_with_an_event_is_the_way_into_the_kernel_and_out_of_it() {
    let mut account = busy_loop(0);
    let found = account.gap(OURS, Nanos(1_400), Nanos(500), Nanos(1_000));
    let charges: Vec<_> =
        found.charges.iter().map(|one| (one.cause, one.from.0, one.to.0)).collect();
    let expected =
        [("dispatch", 900, 1_000), ("interrupt", 1_000, 1_300), ("dispatch", 1_300, 1_400)];
    assert_eq!((charges, found.unexplained), (expected.to_vec(), Nanos(0)));
    let thread = account.thread(OURS, &Names::default()).expect("it ran");
    assert_eq!(taken(&thread), [("dispatch", 1, 200, 200), ("interrupt", 1, 300, 300)]);
    assert_eq!((thread.ran, thread.span()), (Nanos(1_450), Nanos(1_950)));
}

#[test]
fn rest_that_is_longer_than_any_way_into_the_kernel_is_unexplained() {
    let mut account = busy_loop(0);
    let found = account.gap(OURS, Nanos(1_400), Nanos(500), Nanos(100));
    assert_eq!((found.charges.len(), found.unexplained), (1, Nanos(200)));
    let thread = account.thread(OURS, &Names::default()).expect("it ran");
    assert_eq!(taken(&thread), [("interrupt", 1, 300, 300), (NOTHING, 1, 200, 200)]);
}

#[test]
fn gap_without_an_event_is_the_host_as_far_as_it_counts_the_time_as_stolen() {
    let gap = |stolen: u64| {
        let mut account = busy_loop(stolen);
        let first = account.gap(OURS, Nanos(600), Nanos(300), Nanos(100));
        let second = account.gap(OURS, Nanos(800), Nanos(100), Nanos(100));
        [first, second]
            .map(|found| (found.charges.first().map(|one| one.cause), found.unexplained.0))
    };
    assert_eq!(gap(0), [(None, 300), (None, 100)]);
    assert_eq!(gap(200), [(Some("host"), 100), (None, 100)]);
    assert_eq!(gap(350), [(Some("host"), 0), (Some("host"), 50)]);
}

#[test]
fn busy_loop_runs_from_its_begin_on_though_the_first_event_comes_late() {
    let (ours, idle) = (task(OURS, 20), task(IDLE, 120));
    let mut account = Account::default();
    account.watch_loop(OURS, 0, Nanos(100));
    account.add(Vec::new(), Nanos(300));
    assert_eq!(account.gap(OURS, Nanos(250), Nanos(50), Nanos(9)).unexplained, Nanos(50));
    account.add(vec![event(900, ours, sleeps(idle))], Nanos(1_000));
    let thread = account.thread(OURS, &Names::default()).expect("it ran");
    assert_eq!((thread.ran, thread.unrecorded, thread.span()), (Nanos(750), Nanos(0), Nanos(800)));
    assert_eq!(taken(&thread), [(NOTHING, 1, 50, 50)]);
}

fn any_events() -> impl Strategy<Value = Vec<(u32, Event)>> {
    let kind = prop_oneof![
        Just(interrupt(Line::Timer)),
        Just(EventKind::InterruptEnd),
        Just(EventKind::Softirq(2)),
        Just(EventKind::SoftirqEnd),
        any::<bool>().prop_map(|preempted| EventKind::Switch { next: task(OURS, 20), preempted }),
        any::<bool>().prop_map(|preempted| EventKind::Switch { next: task(OTHER, 120), preempted }),
        Just(EventKind::Waking { task: task(OURS, 20), cpu: 1 }),
        Just(EventKind::Migrated { pid: OURS, cpu: 1 }),
    ];
    let event = (0u32..2, 0u64..1_000, kind, any::<bool>(), 0u64..50);
    let event = event.prop_map(|(cpu, at, kind, ours, stolen)| {
        let current = if ours { task(OURS, 20) } else { task(OTHER, 120) };
        (cpu, Event { at: Nanos(at), task: current, kind, stolen: Nanos(stolen) })
    });
    proptest::collection::vec(event, 0..60)
}

proptest! {
    #[test]
    fn times_never_exceed_the_span_of_the_events(events in any_events(), lose in any::<bool>()) {
        let mut account = Account::default();
        account.watch(OURS);
        if lose {
            account.lose(0);
        }
        account.add(events, Nanos(1_000));
        if let Some(thread) = account.thread(OURS, &Names::default()) {
            prop_assert!(thread.span() <= Nanos(1_000));
            prop_assert!(thread.taken.iter().all(|one| one.longest <= one.total && one.count > 0));
        }
    }

    #[test]
    fn charges_of_a_gap_do_not_overlap_and_add_up(
        events in any_events(), at in 0u64..1_000, length in 0u64..1_000, most in 0u64..500,
    ) {
        let length = length.min(at);
        let mut account = Account::default();
        account.watch_loop(OURS, 0, Nanos(0));
        account.add(events, Nanos(1_000));
        let found = account.gap(OURS, Nanos(at), Nanos(length), Nanos(most));
        let (mut reached, mut sum) = (at - length, found.unexplained.0);
        for charge in &found.charges {
            prop_assert!(charge.from.0 >= reached && charge.to > charge.from);
            (reached, sum) = (charge.to.0, sum + charge.length().0);
        }
        prop_assert!(reached <= at);
        prop_assert_eq!(sum, length);
    }
}
