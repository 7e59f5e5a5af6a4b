//! Fixtures for the tests of causes, and a property test of all causes together.

pub(super) use super::explain;
pub(super) use latlab_core::explain::charge::{Circumstances, Culprit};
pub(super) use latlab_core::explain::{Call, EventKind, InterruptedContext, Line, Task, Window};
pub(super) use latlab_core::time::Nanos;

use super::CAUSES;
use latlab_core::explain::Comm;
pub(super) use latlab_core::explain::Event;
use latlab_core::explain::lock::{LockAddress, LockKind, LockWait};
use latlab_core::explain::queue::Move;
use latlab_core::explain::stop::{Stop, StopKind};
use proptest::prelude::*;

pub(super) const IDLE: u32 = 0;
pub(super) const OURS: u32 = 1;
pub(super) const STRESS: u32 = 2;
pub(super) const URGENT: u32 = 3;
pub(super) const PEER: u32 = 4;
pub(super) const THREAD: u32 = 5;
pub(super) const KSOFTIRQD: u32 = 6;

pub(super) const METAL: Circumstances =
    Circumstances { timer_resolution: Nanos(1), hypervisor: false };
pub(super) const GUEST: Circumstances =
    Circumstances { timer_resolution: Nanos(1), hypervisor: true };

pub(super) const PROGRAM: InterruptedContext = InterruptedContext { ip: 400, user: true };
pub(super) const KERNEL: InterruptedContext = InterruptedContext { ip: 900, user: false };

/// A reschedule IPI in unknown context.
pub(super) const CALL: EventKind = EventKind::Interrupt {
    line: Line::Reschedule,
    context: InterruptedContext { ip: 0, user: false },
};

/// The end of the waking interrupt, just after the wake-up.
pub(super) const ENDS: (u64, u32, EventKind) = (21_000, URGENT, EventKind::InterruptEnd);
pub(super) const ENDS_OF_STRESS: (u64, u32, EventKind) = (21_000, STRESS, EventKind::InterruptEnd);

/// The task with this id in all windows of the tests.
pub(super) fn task(pid: u32) -> Task {
    let (prio, comm) = match pid {
        IDLE => (120, "swapper/0"),
        OURS => (19, "latlab"),
        STRESS => (120, "stress"),
        URGENT => (9, "urgent"),
        PEER => (19, "peer"),
        THREAD => (49, "irq/24-nvme0q1"),
        _ => (120, "ksoftirqd/0"),
    };
    Task { pid, prio, comm: Comm::from(comm) }
}

/// A wake-up due at 10 000, woken at 20 000, switched to at 30 000 and running at 31 000, with
/// these events. The CPU switches to the task from the task of the last event.
pub(super) fn scene(seen: &[(u64, u32, EventKind)]) -> Window {
    let event =
        |at, pid, what| Event { at: Nanos(at), task: task(pid), kind: what, stolen: Nanos(0) };
    let mut events: Vec<Event> =
        seen.iter().map(|(at, pid, what)| event(*at, *pid, *what)).collect();
    let last =
        seen.iter().rfind(|(at, ..)| *at < 30_000).map_or(STRESS, |(_, pid, what)| match what {
            EventKind::Switch { next, .. } => next.pid,
            _ => *pid,
        });
    let place = events.partition_point(|event| event.at.0 < 30_000);
    let switch = EventKind::Switch { next: task(OURS), preempted: true };
    events.insert(place, event(30_000, last, switch));
    Window {
        task: task(OURS),
        due: Nanos(10_000),
        expiry: Nanos(10_000),
        waking: Nanos(20_000),
        waker: task(last),
        switched: Nanos(30_000),
        ran: Nanos(31_000),
        events,
        ..Window::default()
    }
}

pub(super) fn timer_upon(context: InterruptedContext) -> EventKind {
    EventKind::Interrupt { line: Line::Timer, context }
}

/// The charges of a window, without their culprits.
pub(super) fn charged(window: &Window, machine: Circumstances) -> Vec<(&'static str, u64)> {
    let explained = explain(window, &machine);
    explained.charges.iter().map(|charge| (charge.cause, charge.length().0)).collect()
}

/// The culprit of the first charge to this cause.
pub(super) fn blamed(window: &Window, machine: Circumstances, cause: &str) -> Culprit {
    let explained = explain(window, &machine);
    let charge = explained.charges.into_iter().find(|charge| charge.cause == cause);
    charge.expect("it is charged").culprit
}

fn any_event() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        prop_oneof![Just(Line::Timer), Just(Line::Device(3)), Just(Line::Reschedule)]
            .prop_flat_map(|line| prop_oneof![
                Just(PROGRAM),
                Just(KERNEL),
                Just(InterruptedContext::default())
            ]
            .prop_map(move |context| EventKind::Interrupt { line, context })),
        Just(EventKind::InterruptEnd),
        (0u8..10).prop_map(EventKind::Softirq),
        Just(EventKind::SoftirqEnd),
        (0u32..7).prop_map(|pid| EventKind::Switch { next: task(pid), preempted: true }),
        (0u32..7).prop_map(|pid| EventKind::Waking { task: task(pid), cpu: 0 }),
        (0u32..2).prop_map(|cpu| EventKind::Queued { pid: OURS, cpu }),
        Just(EventKind::Timer { function: 8, due: Nanos(500) }),
        Just(EventKind::TimerEnd),
        Just(EventKind::Throttled { group: 7 }),
        Just(EventKind::Unthrottled { group: 7 }),
        Just(EventKind::Callback { function: 9 }),
        Just(EventKind::CallbackEnd),
        Just(EventKind::Called(Call { function: 9, cpu: 1, ..Call::default() })),
        Just(EventKind::PageFault { address: 4_096 }),
        prop_oneof![
            Just(EventKind::LockWait(LockWait {
                place: LockAddress::At(64),
                kind: LockKind::Mutex,
                owner: None,
            })),
            Just(EventKind::Callers([5, 0, 0, 0, 0])),
            (0u32..7).prop_map(|pid| EventKind::LockReleased { pid }),
            Just(EventKind::LockTaken),
        ],
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn charges_and_unexplained_time_always_add_up_to_latency(
        happened in proptest::collection::vec(
            (0u64..9_000, 0u32..7, any_event(), 0u64..900),
            0..40,
        ),
        mut moments in proptest::collection::vec(0u64..9_000, 5),
        waker in 0u32..7,
        waker_cpu in 0u32..3,
        mut moves in proptest::collection::vec((0u64..9_000, 0u32..4, 0u32..4), 0..4),
        stolen in 0u64..9_000,
        stop in proptest::option::of(0u64..9_000),
        resolution in 0u64..5_000,
        hypervisor in any::<bool>(),
    ) {
        moments.sort_unstable();
        moves.sort_unstable();
        let moved = |(at, from, to)| Move { at: Nanos(at), from, to };
        let mut events: Vec<Event> = happened
            .into_iter()
            .map(|(at, pid, what, stolen)| {
                Event { at: Nanos(at), task: task(pid), kind: what, stolen: Nanos(stolen) }
            })
            .collect();
        events.sort_by_key(|event| event.at);
        let window = Window {
            task: task(OURS),
            due: Nanos(moments[0]),
            expiry: Nanos(moments[1]),
            waking: Nanos(moments[2]),
            switched: Nanos(moments[3]),
            ran: Nanos(moments[4]),
            out: Nanos(9_000),
            waker: task(waker),
            waker_cpu,
            moves: moves.into_iter().map(moved).collect(),
            former_cpu: 3,
            former: events.clone(),
            elsewhere: events.clone(),
            events,
            stolen: Nanos(stolen),
            group: 7,
            stop: stop.map(|since| Stop { kind: StopKind::Tracer, since: Nanos(since), by: None }),
            ..Window::default()
        };
        let machine = Circumstances { timer_resolution: Nanos(resolution), hypervisor };
        let explained = explain(&window, &machine);
        let (mut reached, mut sum) = (window.due, explained.unexplained);
        for charge in &explained.charges {
            prop_assert!(charge.from >= reached && charge.to > charge.from);
            prop_assert!(CAUSES.iter().any(|entry| entry.about.name == charge.cause));
            (reached, sum) = (charge.to, sum + charge.length());
        }
        prop_assert_eq!(sum, window.latency());
    }
}

#[test]
fn causes_have_the_names_that_verdicts_know_in_the_same_order() {
    let names: Vec<&str> = CAUSES.iter().map(|entry| entry.about.name).collect();
    assert_eq!(
        names,
        latlab_core::cause::Cause::all().map(latlab_core::cause::Cause::name).collect::<Vec<_>>()
    );
}
