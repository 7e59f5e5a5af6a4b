//! Decodes the waits of a window: moves between run queues, stops, and quotas of control groups.

use super::{Reader, current_task};
use latlab_core::explain::queue::Move;
use latlab_core::explain::stop::{Stop, StopKind};
use latlab_core::explain::{Event, EventKind};
use latlab_core::time::Nanos;

/// Number of moves that a wake-up keeps.
const MOVES: usize = 4;
/// Kinds of events: a control group is throttled, or unthrottled, since the time in the event.
pub(super) const THROTTLED: u8 = 23;
pub(super) const UNTHROTTLED: u8 = 24;

/// When a group was throttled or unthrottled: the second number of an event of these kinds.
pub(super) fn quota_since(kind: u8, rest: &[u8; 24]) -> Option<Nanos> {
    let mut read = Reader(rest);
    let [_group, since] = [(); 2].map(|()| read.time());
    matches!(kind, THROTTLED | UNTHROTTLED).then_some(since)
}

/// Inserts the enqueue event, whose time is from the kernel's accounting: no event was recorded.
/// Its current task is therefore the task of the event before.
pub(super) fn insert_queued(events: &mut Vec<Event>, kind: EventKind, at: Nanos) {
    let place = events.partition_point(|event| event.at <= at);
    let Some(task) = current_task(events, at) else { return };
    events.insert(place, Event { at, task, kind, stolen: Nanos(0) });
}

impl Reader<'_> {
    /// Decodes who stopped the task since it was due, if anything did.
    pub(super) fn stop(&mut self, kind: u32, since: Nanos) -> Option<Stop> {
        let kind = match kind {
            2 => Some(StopKind::Signal),
            3 => Some(StopKind::Tracer),
            4 => Some(StopKind::Freezer),
            _ => None,
        };
        let (by, _) = self.who();
        Some(Stop { kind: kind?, since, by: (by.pid != 0).then_some(by) })
    }

    /// Decodes the last moves of a wake-up that had this number of them, and returns whether there
    /// were more before.
    pub(super) fn moves(&mut self, number: u32) -> (Vec<Move>, bool) {
        let number = number as usize;
        let all: [Move; MOVES] =
            std::array::from_fn(|_| Move { at: self.time(), from: self.u32(), to: self.u32() });
        let first = number.saturating_sub(MOVES);
        ((first..number).map(|nth| all[nth % MOVES]).collect(), first > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{current, encoded, encoded_by, switch};
    use super::super::window;
    use super::*;

    /// Moved from CPU 0, which woke it, over CPU 7 to CPU 1, where only the events since matter.
    #[test]
    fn window_of_a_moved_task_has_the_events_of_each_queue() {
        let mut bytes = encoded_by(
            0,
            (0, &[current(1, 185, 7), switch(2, 190, 7, 3)]),
            &[switch(1, 95, 1, 2), switch(2, 155, 2, 4)],
        );
        let former = [switch(1, 90, 5, 6)];
        bytes[156..160].copy_from_slice(&1_u32.to_ne_bytes());
        bytes[168..172].copy_from_slice(&6_u32.to_ne_bytes());
        for (nth, (at, from, to)) in [(2, (160_u64, 0_u32, 7_u32)), (3, (170, 7, 9))] {
            write_move(&mut bytes, nth, (at, from, to));
        }
        for (nth, (at, from, to)) in [(0, (180, 9, 8)), (1, (187, 8, 1))] {
            write_move(&mut bytes, nth, (at, from, to));
        }
        bytes.extend(former.concat());
        let read = window(&bytes).expect("the window is complete");
        let moves: Vec<_> = read.moves.iter().map(|one| (one.at.0, one.from, one.to)).collect();
        assert_eq!(moves, [(160, 0, 7), (170, 7, 9), (180, 9, 8), (187, 8, 1)]);
        assert!(read.lacks_moves && !read.torn);
        assert_eq!((read.former_cpu, read.former.len(), read.elsewhere.len()), (7, 1, 2));
    }

    fn write_move(bytes: &mut [u8], nth: usize, (at, from, to): (u64, u32, u32)) {
        let place = 208 + 16 * nth;
        bytes[place..place + 8].copy_from_slice(&at.to_ne_bytes());
        bytes[place + 8..place + 12].copy_from_slice(&from.to_ne_bytes());
        bytes[place + 12..place + 16].copy_from_slice(&to.to_ne_bytes());
    }

    #[test]
    fn quota_counts_from_the_moment_that_its_event_tells() {
        let mut event = switch(2, 190, 1, 2);
        event[4] = THROTTLED;
        event[40..48].copy_from_slice(&7_u64.to_ne_bytes());
        event[48..56].copy_from_slice(&130_u64.to_ne_bytes());
        let mut bytes = encoded(0, &[switch(1, 90, 1, 2), event, switch(3, 195, 2, 3)]);
        bytes[176..184].copy_from_slice(&7_u64.to_ne_bytes());
        let window = window(&bytes).expect("the window is complete");
        assert_eq!(window.events[1].kind, EventKind::Throttled { group: 7 });
        assert_eq!((window.events[1].at, window.group), (Nanos(130), 7));
        assert!(window.meets_quota());
    }

    #[test]
    fn stop_is_read_with_who_did_it() {
        let stopped_by = |kind: u32, pid: u32| {
            let mut bytes = encoded(0, &[]);
            bytes[172..176].copy_from_slice(&kind.to_ne_bytes());
            bytes[184..188].copy_from_slice(&pid.to_ne_bytes());
            let stop = window(&bytes).expect("the window is complete").stop;
            stop.map(|stop| (stop.kind, stop.since.0, stop.by.map(|by| by.pid)))
        };
        assert_eq!(stopped_by(2, 7), Some((StopKind::Signal, 100, Some(7))));
        assert_eq!(stopped_by(3, 7), Some((StopKind::Tracer, 100, Some(7))));
        assert_eq!(stopped_by(4, 0), Some((StopKind::Freezer, 100, None)));
        assert_eq!(stopped_by(0, 7), None);
    }

    #[test]
    fn account_of_run_queue_is_an_event_if_another_cpu_woke_the_task() {
        let own = [switch(1, 90, 1, 2), switch(2, 190, 2, 3)];
        let queued_at = |waker_cpu, at: u64| {
            let mut bytes = encoded_by(waker_cpu, (0, &own), &own);
            bytes[64..72].copy_from_slice(&at.to_ne_bytes());
            window(&bytes).expect("the window is complete")
        };
        let known = queued_at(2, 170);
        assert_eq!(known.queued(), Some(Nanos(170)));
        assert_eq!((known.events[1].at, known.events[1].task.pid), (Nanos(170), 2));
        assert_eq!(queued_at(2, 0).queued(), None, "the kernel keeps no account");
        assert_eq!(queued_at(1, 170).queued(), Some(Nanos(150)), "the waking says it");
    }
}
