//! Windows with arbitrary events, for property tests.

use super::{Comm, Event, EventKind, InterruptedContext, Line, Task, Window};
use crate::time::Nanos;
use proptest::prelude::*;

/// A `SCHED_OTHER` task with this id.
pub(super) fn task(pid: u32) -> Task {
    Task { pid, prio: 120, comm: Comm::from("task") }
}

/// An event during a `SCHED_OTHER` task, without stolen time.
pub(super) fn event(at: u64, what: EventKind) -> Event {
    Event { at: Nanos(at), task: task(1), kind: what, stolen: Nanos(0) }
}

fn any_what() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        Just(EventKind::Interrupt {
            line: Line::Device(3),
            context: InterruptedContext::default()
        }),
        Just(EventKind::InterruptEnd),
        Just(EventKind::Softirq(2)),
        Just(EventKind::SoftirqEnd),
        Just(EventKind::Switch { next: task(2), preempted: false }),
    ]
}

/// Arbitrary events around five ordered moments, on one CPU or two.
pub(super) fn window() -> impl Strategy<Value = Window> {
    let stolen = (0u64..1000).prop_map(Nanos);
    let events = proptest::collection::vec((0u64..1000, any_what(), stolen), 0..40);
    let moments = proptest::collection::vec(0u64..1000, 5);
    (events, moments, any::<bool>()).prop_map(|(happened, mut moments, elsewhere)| {
        moments.sort_unstable();
        let mut events: Vec<Event> = happened
            .into_iter()
            .map(|(at, what, stolen)| Event { stolen, ..event(at, what) })
            .collect();
        events.sort_by_key(|event| event.at);
        Window {
            due: Nanos(moments[0]),
            expiry: Nanos(moments[1]),
            waking: Nanos(moments[2]),
            switched: Nanos(moments[3]),
            ran: Nanos(moments[4]),
            waker_cpu: u32::from(elsewhere),
            elsewhere: events.clone(),
            events,
            ..Window::default()
        }
    })
}
