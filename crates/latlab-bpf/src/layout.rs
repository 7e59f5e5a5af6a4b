//! The data layout of `recorder.h`: windows are decoded from bytes, settings encoded.

mod lock;

use crate::kernel::Variables;
use latlab_core::explain::{Call, Comm, Event, EventKind, InterruptedContext, Line, Task, Window};
use latlab_core::time::Nanos;
use lock::{CALLERS, LOCK_TAKEN, LOCK_WAIT};

/// Size of a `struct watched` in bytes; it begins with the PID of its task.
pub(crate) const WATCHED: usize = 64 + 2 * WAKE;
/// Largest number of watched tasks. The slot of a task is its PID modulo this.
pub(crate) const WAKES: u32 = 4096;
/// Number of bytes of the filter of watched tasks: one per PID modulo this.
pub(crate) const FILTER: u32 = 8192;
/// Size of a `struct wake` in bytes, with which a window begins.
const WAKE: usize = 672;
const EVENT: usize = 64;
/// The PID of an event whose task is that of the event before.
const SAME: u32 = u32::MAX;
/// The kind of an event that is a timer interrupt with its first callback.
const EXPIRY: u8 = 17;
/// The kind of an event that is a function called by another CPU.
const CALLED: u8 = 19;
const FRAMES: usize = 32;
/// Offset of `running` in a `struct ring`.
pub(crate) const RUNNING: usize = 84;
/// Size of the state of a CPU in `struct ring`, which its events follow.
const RING: usize = 448;
/// Number of events kept for each CPU.
const EVENTS: u64 = 16384;
/// The oldest of them, which may be overwritten while they are copied.
const OLDEST: u64 = 1024;

/// `struct settings`.
#[expect(clippy::struct_excessive_bools, reason = "the programs read each alone")]
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) name: Comm,
    /// Latency above which a stack is taken.
    pub(crate) slow: Nanos,
    pub(crate) variables: Variables,
    pub(crate) how: u32,
    /// Whether kernel code is not preempted before it returns to user space or reaches a scheduling
    /// point.
    pub(crate) non_preemptible: bool,
    /// Whether timers expire in the local timer interrupt only.
    pub(crate) local_timer: bool,
    /// Whether context switches are recorded only while a watched task waits for the CPU.
    pub(crate) sparse: bool,
    /// Whether latencies are judged when the task sleeps again.
    pub(crate) later: bool,
}

impl Settings {
    /// Whether wake-ups are kept with the CPU until the task sleeps again: where its own clock may be
    /// read, and steal time is not accounted at ticks.
    fn defers(&self) -> bool {
        self.later && self.variables.cpustat_steal == 0
    }

    /// Encodes the settings for the BPF programs.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let Variables { hrtimer_bases, irq_regs, preempt_count, steal_time, cpustat_steal, .. } =
            self.variables;
        let variables = [hrtimer_bases, irq_regs, preempt_count, steal_time, cpustat_steal];
        let ways = [self.how, u32::from(self.non_preemptible), u32::from(self.local_timer)];
        let words = variables
            .into_iter()
            .chain(ways)
            .chain([self.variables.interrupts, u32::from(self.sparse)])
            .chain([u32::from(self.later), u32::from(self.defers())]);
        let mut bytes = self.name.0.to_vec();
        bytes.extend(self.slow.0.to_ne_bytes());
        bytes.extend(words.flat_map(u32::to_ne_bytes));
        bytes
    }
}

/// Duration of a window, which the BPF program compares with the threshold. None if there are too
/// few bytes.
pub(crate) fn duration(bytes: &[u8]) -> Option<Nanos> {
    if bytes.len() < WAKE {
        return None;
    }
    let mut read = Reader(bytes);
    let [due, _, _, _, out] = [(); 5].map(|()| read.time());
    Some(out - due)
}

/// Decodes a window; none if it is incomplete. Its `ran` is the moment of the context switch to the
/// task.
pub(crate) fn window(bytes: &[u8]) -> Option<Window> {
    if bytes.len() < WAKE {
        return None;
    }
    let mut read = Reader(bytes);
    let (due, expiry, waking) = (read.time(), read.time(), read.time());
    let (switched, out, stolen, _steal, _head) =
        (read.time(), read.time(), read.time(), read.u64(), read.u64());
    let queued = read.time();
    let (task, waker) = (read.who().0, read.who().0);
    let (cpu, waker_cpu) = (read.u32(), read.u32());
    let depths = [read.u32(), read.u32()];
    let (own, remote) = ((read.u32(), read.u32()), (read.u32(), read.u32()));
    let (switch_pid, _reserved) = (read.u32(), read.u32());
    let [waking_stack, switch_stack] = depths.map(|depth| read.stack(depth));
    if read.0.len() != EVENT * (own.1 as usize + remote.1 as usize) {
        return None;
    }
    let (mut own, own_torn) = events(&mut read, own, Nanos::MAX);
    let (mut elsewhere, remote_torn) = events(&mut read, remote, waking);
    if waker_cpu != cpu {
        insert_queued(&mut own, EventKind::Queued { pid: task.pid, cpu }, queued);
    }
    drop_stale(&mut own, (due, Nanos::MAX));
    // Switches after the waking do not matter. But the first of them that were not recorded came
    // before it if another task than the waker seems to run then.
    let current = current_task(&elsewhere, waking).map(|task| task.pid);
    let end = if current == Some(waker.pid) { waking } else { Nanos::MAX };
    drop_stale(&mut elsewhere, (due, end));
    let cut = |events: &[Event]| events.first().is_none_or(|event| event.at > due);
    let remote_cut = waker_cpu != cpu && cut(&elsewhere);
    let torn = own_torn || remote_torn || cut(&own) || remote_cut;
    let unreported = waking == Nanos(0) || switched == Nanos(0);
    let ran = if switched == Nanos(0) { out } else { switched };
    #[rustfmt::skip]
    let window = Window {
        task, cpu, due, expiry, waking, waker, waker_cpu, switched, unreported, out, ran, events: own,
        elsewhere, waking_stack, switch_stack, switch_pid, stolen, torn,
    };
    Some(window)
}

/// Decodes the complete events in the order of time, and returns whether others before `end` are
/// missing. Events after `end` may have been incomplete when they were copied.
fn events(read: &mut Reader<'_>, (first, count): (u32, u32), end: Nanos) -> (Vec<Event>, bool) {
    let numbers = (0..count).map(|nth| first.wrapping_add(nth).wrapping_add(1));
    let found: Vec<Option<_>> = numbers.map(|seq| read.event(seq)).collect();
    let mut needed = found.iter().take_while(|found| found.is_none_or(|(event, _)| event.at < end));
    let torn = needed.any(Option::is_none);
    let mut events = both(found.into_iter().flatten());
    in_order(&mut events);
    let needed = &events[..events.partition_point(|event| event.at < end)];
    let torn = torn || is_switch_missing(needed);
    (events, torn)
}

/// Inserts that the task was put on the run queue, where the kernel's account tells of it instead of an
/// event. Nothing was recorded then, so that the current task is that of the event before.
fn insert_queued(events: &mut Vec<Event>, kind: EventKind, at: Nanos) {
    let place = events.partition_point(|event| event.at <= at);
    let Some(task) = current_task(events, at) else { return };
    events.insert(place, Event { at, task, kind, stolen: Nanos(0) });
}

/// The current task of a CPU at `moment`, by the last event before. None without one.
fn current_task(events: &[Event], moment: Nanos) -> Option<Task> {
    let last = events.partition_point(|event| event.at <= moment).checked_sub(1)?;
    let before = events.get(last)?;
    Some(match before.kind {
        EventKind::Switch { next, .. } => next,
        _ => before.task,
    })
}

/// Drops the events before unrecorded context switches that came after `due` and until `end`: what
/// the CPU did at `due` is unknown.
fn drop_stale(events: &mut Vec<Event>, (due, end): (Nanos, Nanos)) {
    let is_new =
        |event: &Event| event.kind == EventKind::Current && event.at > due && event.at <= end;
    if let Some(last) = events.iter().rposition(is_new) {
        events.drain(..last);
    }
}

/// Decodes a `struct ring`: the last events of a CPU that are complete, in the order of time.
pub(crate) fn ring(bytes: &[u8]) -> Vec<Event> {
    let written = Reader(bytes).u64();
    let event = |nth: u64| {
        let place = usize::try_from(nth % EVENTS).ok()? * EVENT + RING;
        let seq = u32::try_from((nth + 1) & u64::from(u32::MAX)).ok()?;
        Reader(bytes.get(place..)?).event(seq)
    };
    let kept = written.saturating_sub(EVENTS - OLDEST)..written;
    let mut events = both(kept.filter_map(event));
    in_order(&mut events);
    events
}

/// The events of slots that tell of one or two.
fn both(slots: impl Iterator<Item = (Event, Option<Event>)>) -> Vec<Event> {
    slots.flat_map(|(first, second)| [Some(first), second]).flatten().collect()
}

/// Sorts events by time, and completes each by those before it.
fn in_order(events: &mut Vec<Event>) {
    events.sort_by_key(|event| event.at);
    name_tasks(events);
    stolen_since_previous(events);
}

/// Gives events that do not name their task that of the event before. The first ones are dropped
/// where none does.
fn name_tasks(events: &mut Vec<Event>) {
    let mut current = None;
    events.retain_mut(|event| {
        if event.task.pid != SAME {
            current = Some(event.task);
        }
        event.task = current.unwrap_or_default();
        let named = current.is_some();
        if let EventKind::Switch { next, .. } = event.kind {
            current = Some(next);
        }
        named
    });
}

/// Converts the total stolen time of each event, kept in 16 bits in units of 1024 ns, to the time
/// stolen since the previous event. A unit that has only begun does not count; zero means unknown.
fn stolen_since_previous(events: &mut [Event]) {
    let (mut before, mut last) = (0, Nanos(0));
    for event in events {
        let until = u16::try_from(event.stolen.0).unwrap_or_default();
        let known = before != 0 && until != 0;
        let units = if known { until.wrapping_sub(before).saturating_sub(1) } else { 0 };
        let stolen = Nanos(u64::from(units) * 1024);
        // More than the time since the previous event: an interrupt came while the event was
        // recorded.
        event.stolen = if stolen <= event.at - last { stolen } else { Nanos(0) };
        (before, last) = (until, event.at);
    }
}

/// Whether a task ran to which no context switch was recorded.
fn is_switch_missing(events: &[Event]) -> bool {
    let mut running = None;
    events.iter().any(|event| match event.kind {
        EventKind::Switch { next, .. } => {
            running.replace(next.pid).is_some_and(|pid| pid != event.task.pid)
        }
        EventKind::Current => {
            running = Some(event.task.pid);
            false
        }
        _ => false,
    })
}

/// The bytes left to decode. Past the end it returns zeros.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self.0.split_first_chunk().unwrap_or((&[0; N], &[]));
        self.0 = rest;
        *first
    }

    fn u16(&mut self) -> u16 {
        u16::from_ne_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }

    fn time(&mut self) -> Nanos {
        Nanos(self.u64())
    }

    /// Decodes a `struct who`: the task, and the CPU it last ran on.
    fn who(&mut self) -> (Task, u32) {
        let pid = self.u32();
        let prio = i16::from_ne_bytes(self.take());
        let cpu = u32::from(self.u16());
        (Task { pid, prio, comm: Comm(self.take()) }, cpu)
    }

    /// Decodes a stack of `depth` bytes; a negative depth is an error code of the kernel and means
    /// none.
    fn stack(&mut self, depth: u32) -> Vec<u64> {
        let depth = usize::try_from(depth.cast_signed()).unwrap_or(0) / 8;
        let all: [u64; FRAMES] = std::array::from_fn(|_| self.u64());
        all.into_iter().take(depth).collect()
    }

    /// Decodes an event, and what it says of another one at the same moment or before; none if its
    /// sequence number is not the expected one.
    fn event(&mut self, expected: u32) -> Option<(Event, Option<Event>)> {
        let seq = self.u32();
        let [kind, flag] = self.take();
        let (stolen, at) = (self.u16(), self.time());
        let (task, _) = self.who();
        let rest: [u8; 24] = self.take();
        let what = match kind {
            CALLED => called(task, &rest),
            LOCK_WAIT => lock::wait(task, flag, &rest),
            CALLERS => lock::callers(task, &rest),
            _ => what(kind, flag == 1, &rest)?,
        };
        // The total so far; `stolen_since_previous` converts it.
        let stolen = Nanos(stolen.into());
        let event = Event { at, task, kind: what, stolen };
        let second = match kind {
            EXPIRY => Some(Event { kind: timer(&rest), ..event }),
            LOCK_TAKEN => lock::released(&rest).map(|(at, kind)| Event {
                at,
                kind,
                stolen: Nanos(0),
                ..event
            }),
            _ => None,
        };
        (seq == expected).then_some((event, second))
    }
}

fn what(kind: u8, flag: bool, rest: &[u8; 24]) -> Option<EventKind> {
    let (task, cpu) = Reader(rest).who();
    let mut read = Reader(rest);
    let (a, b) = (read.u64(), read.u64());
    let interrupt = |line: Line| EventKind::Interrupt {
        line,
        context: InterruptedContext { ip: b, user: flag },
    };
    Some(match kind {
        1 => EventKind::Switch { next: task, preempted: flag },
        2 => EventKind::Waking { task, cpu },
        3 => EventKind::Queued { pid: narrow(a), cpu: narrow(b) },
        4 => EventKind::Migrated { pid: narrow(a), cpu: narrow(b) },
        5 => interrupt(Line::Device(narrow(a))),
        6 | EXPIRY => interrupt(Line::Timer),
        7 => interrupt(Line::Reschedule),
        8 => interrupt(Line::Call),
        9 => EventKind::InterruptEnd,
        10 => EventKind::Softirq(u8::try_from(a).unwrap_or(u8::MAX)),
        11 => EventKind::SoftirqEnd,
        12 => EventKind::Timer { function: a, due: Nanos(b) },
        13 => EventKind::TimerEnd,
        14 => EventKind::Callback { function: a },
        15 => EventKind::CallbackEnd,
        16 => EventKind::PageFault { address: a },
        18 => EventKind::Current,
        LOCK_TAKEN => EventKind::LockTaken,
        _ => return None,
    })
}

/// A function that another CPU asked for: its address stands in the name of the event's task.
fn called(task: Task, rest: &[u8; 24]) -> EventKind {
    let (sender, cpu) = Reader(rest).who();
    let function = Reader(&task.comm.0).u64();
    EventKind::Called(Call { function, sender, cpu })
}

/// The first callback of an interrupt, of which the event tells.
fn timer(rest: &[u8; 24]) -> EventKind {
    let mut read = Reader(rest);
    let [function, _ip, due] = [(); 3].map(|()| read.u64());
    EventKind::Timer { function, due: Nanos(due) }
}

/// Converts a number that the kernel keeps in 32 bits.
fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
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
    fn encoded_by(
        waker_cpu: u32,
        (first, events): (u32, &[Vec<u8>]),
        remote: &[Vec<u8>],
    ) -> Vec<u8> {
        let times = [100_u64, 101, 150, 200, 300, 7, 0, 0, 0];
        let mut bytes: Vec<u8> = times.into_iter().flat_map(u64::to_ne_bytes).collect();
        bytes.extend([0; 48]);
        let count = |events: &[Vec<u8>]| u32::try_from(events.len()).unwrap();
        let depths = [16, (-14_i32).cast_unsigned()];
        let ranges = [first, count(events), 0, count(remote)];
        let words = [1, waker_cpu].into_iter().chain(depths).chain(ranges).chain([2, 0]);
        bytes.extend(words.flat_map(u32::to_ne_bytes));
        bytes.extend((0..64_u64).flat_map(u64::to_ne_bytes));
        assert_eq!(bytes.len(), WAKE);
        bytes.extend([events.concat(), remote.concat()].concat());
        bytes
    }

    #[test]
    fn window_is_read_with_its_events_in_order() {
        let events = [switch(8, 190, 2, 3), switch(9, 90, 1, 2)];
        let window = window(&encoded(7, &events)).unwrap();
        assert_eq!(
            (window.due, window.expiry, window.waking),
            (Nanos(100), Nanos(101), Nanos(150))
        );
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
        assert!(
            torn(&[whole[0].clone(), switch(2, 120, 3, 4)]),
            "a context switch was not reported"
        );
        assert!(torn(&[switch(1, 110, 1, 2)]), "events of the beginning are missing");
        let mut cut = encoded(0, &whole);
        cut.pop();
        assert_eq!(window(&cut), None);
    }

    /// The event after context switches that were not recorded: a task has the CPU since `at`.
    fn current(seq: u32, at: u64, pid: u32) -> Vec<u8> {
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
        assert_eq!(queued_at(1, 170).queued(), None, "the waking says it");
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
        }
        .bytes();
        assert_eq!(bytes.len(), 72);
        assert_eq!((&bytes[..4], bytes[16]), (&b"abc\0"[..], 9));
        assert_eq!([24, 40, 44, 48, 52, 56, 60, 64].map(|at| bytes[at]), [1, 5, 2, 1, 1, 7, 1, 1]);
    }

    proptest! {
        #[test]
        fn window_of_arbitrary_bytes_does_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..1000)) {
            let _ = window(&bytes);
            // Set the numbers of events to 0, whatever the other bytes are.
            if bytes.len() >= WAKE {
                bytes.truncate(WAKE);
                bytes[136..152].fill(0);
                prop_assert!(window(&bytes).is_some());
            }
        }
    }
}
