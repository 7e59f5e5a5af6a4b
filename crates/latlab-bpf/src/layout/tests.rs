//! Tests of the data layout: bytes as the programs write them.

use super::*;
use proptest::prelude::*;

/// An event at `at`: a context switch.
pub(super) fn switch(seq: u32, at: u64, from: u32, to: u32) -> Vec<u8> {
    let who = |pid: u32| {
        [&pid.to_ne_bytes()[..], &[120, 0, 3, 0], b"a task\0\0\0\0\0\0\0\0\0\0"].concat()
    };
    let head = [&seq.to_ne_bytes()[..], &[1, 1, 0, 0], &at.to_ne_bytes()].concat();
    [head, who(from), who(to)].concat()
}

/// The bytes of a wake-up due at 100 that ran at 200, with a stack of two functions and these
/// events.
pub(super) fn encoded(first: u32, events: &[Vec<u8>]) -> Vec<u8> {
    encoded_by(1, (first, events), &[])
}

/// The same, woken at 150 by that CPU, with the events `remote` of that CPU.
pub(super) fn encoded_by(
    waker_cpu: u32,
    (first, events): (u32, &[Vec<u8>]),
    remote: &[Vec<u8>],
) -> Vec<u8> {
    let times = [100_u64, 101, 150, 200, 300, 7, 0, 0, 0];
    let mut bytes: Vec<u8> = times.into_iter().flat_map(u64::to_ne_bytes).collect();
    bytes.extend([0; 48]);
    let count = |events: &[Vec<u8>]| u32::try_from(events.len()).unwrap();
    let depths = [16, (-14_i32).cast_unsigned()];
    let ranges = [first, count(events), 0, count(remote), 0, 0];
    let words = [1, waker_cpu].into_iter().chain(depths).chain(ranges).chain([7, 2, 0, 0]);
    bytes.extend(words.flat_map(u32::to_ne_bytes));
    bytes.extend([0; 8 + 24 + 16 * 4]);
    bytes.extend((0..64_u64).flat_map(u64::to_ne_bytes));
    assert_eq!(bytes.len(), WAKE);
    bytes.extend([events.concat(), remote.concat()].concat());
    bytes
}

#[test]
fn window_is_read_with_its_events_in_order() {
    let events = [switch(8, 190, 2, 3), switch(9, 90, 1, 2)];
    let window = window(&encoded(7, &events)).unwrap();
    assert_eq!((window.due, window.expiry, window.waking), (Nanos(100), Nanos(101), Nanos(150)));
    assert_eq!((window.ran, window.stolen, window.cpu), (Nanos(200), Nanos(7), 1));
    assert_eq!((window.waking_stack, window.switch_stack), (vec![0, 1], vec![]));
    assert_eq!(window.switch_pid, 2);
    assert_eq!(window.events[0].at, Nanos(90));
    let task = |pid| Task { pid, prio: 120, comm: Comm::from("a task") };
    assert_eq!(window.events[0].task, task(1));
    assert_eq!(window.events[0].kind, EventKind::Switch { next: task(2), preempted: true });
    assert!(!window.torn);
}

#[test]
fn window_with_missing_events_is_torn() {
    let whole = [switch(1, 90, 1, 2), switch(2, 110, 2, 3), switch(3, 120, 3, 4)];
    let torn = |events: &[Vec<u8>]| window(&encoded(0, events)).unwrap().torn;
    assert!(!torn(&whole));
    let overwritten = [whole[0].clone(), switch(7, 110, 2, 3), whole[2].clone()];
    assert!(torn(&overwritten), "an event was overwritten");
    assert!(torn(&[whole[0].clone(), switch(2, 120, 3, 4)]), "a context switch was not reported");
    assert!(torn(&[switch(1, 110, 1, 2)]), "events of the beginning are missing");
    let mut cut = encoded(0, &whole);
    cut.pop();
    assert_eq!(window(&cut), None);
}

/// The event after context switches that were not recorded: a task has the CPU since `at`.
pub(super) fn current(seq: u32, at: u64, pid: u32) -> Vec<u8> {
    let mut event = switch(seq, at, pid, 0);
    event[4] = 18;
    event
}

#[test]
fn unrecorded_switches_before_due_tear_no_window() {
    let events = [switch(1, 50, 1, 2), current(2, 90, 7), switch(3, 190, 7, 3)];
    let whole = window(&encoded(0, &events)).unwrap();
    assert!(!whole.torn);
    let seen: Vec<_> = whole.events.iter().map(|event| (event.at.0, event.task.pid)).collect();
    assert_eq!(seen, [(50, 1), (90, 7), (190, 7)]);
    assert_eq!(whole.events[1].kind, EventKind::Current);
    // What ran at 100 is unknown.
    let events = [switch(1, 50, 1, 2), current(2, 120, 7), switch(3, 190, 7, 3)];
    let torn = window(&encoded(0, &events)).unwrap();
    assert!(torn.torn);
    assert_eq!(torn.events[0].at, Nanos(120));
    let other = [current(1, 90, 7), switch(2, 190, 8, 3)];
    assert!(window(&encoded(0, &other)).unwrap().torn, "a context switch was not reported");
}

#[test]
fn unrecorded_switches_of_waking_cpu_after_waking_tear_no_window() {
    let remote = [switch(1, 50, 1, 2), current(2, 155, 7), switch(3, 160, 7, 3)];
    let woken_by = |waker: u32| {
        let mut bytes = encoded_by(0, (0, &[switch(1, 90, 1, 2)]), &remote);
        bytes[96..100].copy_from_slice(&waker.to_ne_bytes());
        window(&bytes).expect("the window is complete")
    };
    let whole = woken_by(2);
    assert!(!whole.torn);
    assert_eq!(whole.elsewhere.first().map(|event| event.at), Some(Nanos(50)));
    assert!(woken_by(7).torn, "one of them came before the waking");
}

#[test]
fn window_is_torn_if_events_of_waking_cpu_before_waking_are_missing() {
    let own = [switch(1, 90, 1, 2)];
    let torn = |remote: &[Vec<u8>]| {
        window(&encoded_by(0, (0, &own), remote)).expect("the window is complete").torn
    };
    let whole = [switch(1, 95, 1, 2), switch(2, 120, 2, 3), switch(3, 151, 3, 4)];
    assert!(!torn(&whole));
    let incomplete = switch(0, 152, 4, 5);
    assert!(!torn(&[&whole[..], std::slice::from_ref(&incomplete)].concat()));
    let overwritten = [whole[0].clone(), switch(9, 120, 2, 3), whole[2].clone()];
    assert!(torn(&overwritten), "a later event does not replace it");
    assert!(
        torn(&[switch(1, 110, 2, 3), switch(2, 151, 3, 4)]),
        "events of its beginning are missing"
    );
    assert!(torn(&[]), "there are no events");
}

#[test]
fn stolen_time_is_attributed_to_each_event() {
    let stolen = |seq: u32, at: u64, until: u16| {
        let mut event = switch(seq, at, 1, 1);
        event[6..8].copy_from_slice(&until.to_ne_bytes());
        event
    };
    let since = |events: &[Vec<u8>]| -> Vec<u64> {
        let window = window(&encoded(0, events)).expect("the window is complete");
        window.events.iter().map(|event| event.stolen.0).collect()
    };
    let counted = [stolen(1, 50, 65_530), stolen(2, 20_050, 5), stolen(3, 20_051, 5)];
    assert_eq!(since(&counted), [0, 10 * 1024, 0], "the counter wraps around");
    assert_eq!(
        since(&[stolen(1, 50, 0), stolen(2, 90_000, 40)]),
        [0, 0],
        "the first value is unknown"
    );
    let nested = [stolen(1, 50, 40), stolen(2, 60, 39)];
    assert_eq!(since(&nested), [0, 0], "more than the elapsed time");
}

#[test]
fn ring_has_the_last_complete_events() {
    let mut bytes = vec![0; RING + usize::try_from(EVENTS).unwrap() * EVENT];
    let mut put = |seq: u32, at: u64| {
        let place = RING + (seq as usize - 1) % usize::try_from(EVENTS).unwrap() * EVENT;
        bytes[place..place + EVENT].copy_from_slice(&switch(seq, at, 1, 2));
    };
    // The ring has wrapped around; the slot of event 1027 still has an older one.
    (3..=16_386).filter(|seq| *seq != 1027).for_each(|seq| put(seq, u64::from(seq) * 10));
    bytes[..8].copy_from_slice(&16_386_u64.to_ne_bytes());
    let times: Vec<u64> = ring(&bytes).iter().map(|event| event.at.0).collect();
    assert_eq!((times.len(), times[0], times[times.len() - 1]), (15_359, 10_280, 163_860));
    assert!(ring(&[]).is_empty() && ring(&[255; 8]).is_empty());
}

/// A reader that loses the CPU between its moment and the copy finds any number of later events.
#[test]
fn events_after_a_moment_are_left_to_the_next_call() {
    let mut bytes = vec![0; RING + usize::try_from(EVENTS).unwrap() * EVENT];
    for seq in 1..=9_000_u32 {
        let place = RING + (seq as usize - 1) * EVENT;
        bytes[place..place + EVENT].copy_from_slice(&switch(seq, u64::from(seq) * 10, 1, 2));
    }
    bytes[..8].copy_from_slice(&9_000_u64.to_ne_bytes());
    let first = ring_after(&bytes, 0, Nanos(20_005));
    assert_eq!((first.events.len(), first.seen, first.torn), (2_000, 2_000, false));
    let rest = ring_after(&bytes, first.seen, Nanos(90_000));
    let new = rest.events.iter().filter(|event| event.at > Nanos(20_005));
    assert_eq!((new.count(), rest.seen, rest.torn), (7_000, 9_000, false));
}

#[test]
fn window_length_is_known_before_window_is_read() {
    let whole = encoded(0, &[]);
    assert_eq!(duration(&whole), Some(Nanos(200)));
    assert_eq!(duration(&whole[..WAKE - 1]), None);
    assert_eq!(duration(&[]), None);
}

#[test]
fn settings_have_the_layout_of_the_c_header() {
    let variables =
        Variables { hrtimer_bases: 1, cpustat_steal: 5, interrupts: 7, ..Variables::default() };
    let name = Comm::from("abc");
    let bytes = Settings {
        name,
        slow: Nanos(9),
        variables,
        how: 2,
        non_preemptible: true,
        local_timer: true,
        sparse: true,
        later: true,
        wakings: true,
    }
    .bytes();
    assert_eq!(bytes.len(), 80);
    assert_eq!((&bytes[..4], bytes[16]), (&b"abc\0"[..], 9));
    assert_eq!(
        [24, 40, 44, 48, 52, 56, 60, 64, 72].map(|at| bytes[at]),
        [1, 5, 2, 1, 1, 7, 1, 1, 1]
    );
}

proptest! {
    #[test]
    fn window_of_arbitrary_bytes_does_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..1000)) {
        let _ = window(&bytes);
        // Set the numbers of events to 0, whatever the other bytes are.
        if bytes.len() >= WAKE {
            bytes.truncate(WAKE);
            bytes[136..160].fill(0);
            prop_assert!(window(&bytes).is_some());
        }
    }
}
