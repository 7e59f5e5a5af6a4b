//! The data layout of `recorder.h`: windows are decoded from bytes, settings encoded.

mod lock;
#[cfg(test)]
mod tests;
mod wait;

use crate::kernel::Variables;
use crate::recorder::Latest;
use latlab_core::explain::{Call, Comm, Event, EventKind, InterruptedContext, Line, Task, Window};
use latlab_core::time::Nanos;
use lock::{CALLERS, LOCK_TAKEN, LOCK_WAIT};
use wait::{THROTTLED, UNTHROTTLED};

/// Size of a `struct watched` in bytes; it begins with the PID of its task.
pub(crate) const WATCHED: usize = 64 + 2 * WAKE + 48;
/// Largest number of watched tasks. The slot of a task is its PID modulo this.
pub(crate) const WAKES: u32 = 4096;
/// Number of bytes of the filter of watched tasks: one per PID modulo this.
pub(crate) const FILTER: u32 = 8192;
/// Size of a `struct wake` in bytes, with which a window begins.
const WAKE: usize = 784;
const EVENT: usize = 64;
/// The PID of an event that has the same task as the event before.
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
    /// Whether the wakings of watched tasks are events.
    pub(crate) wakings: bool,
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
            .chain([u32::from(self.later), u32::from(self.defers())])
            .chain([u32::from(self.wakings), 0]);
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
    let [own, remote, third] = [(); 3].map(|()| (read.u32(), read.u32()));
    let (former_cpu, switch_pid) = (read.u32(), read.u32());
    let (number, stopped, group) = (read.u32(), read.u32(), read.u64());
    let stop = read.stop(stopped, due);
    let (moves, lacks_moves) = read.moves(number);
    let [waking_stack, switch_stack] = depths.map(|depth| read.stack(depth));
    let count = own.1 as usize + remote.1 as usize + third.1 as usize;
    if read.0.len() != EVENT * count {
        return None;
    }
    let last_move = moves.last().map(|last| last.at);
    let left = last_move.unwrap_or(waking);
    let (mut own, own_torn) = events(&mut read, own, Nanos::MAX);
    let (mut elsewhere, remote_torn) = events(&mut read, remote, left);
    let (mut former, former_torn) = events(&mut read, third, left);
    if waker_cpu != cpu && last_move.is_none() {
        wait::insert_queued(&mut own, EventKind::Queued { pid: task.pid, cpu }, queued);
    }
    let came = last_move.filter(|_| !moves.iter().any(|one| one.from == cpu)).unwrap_or(due);
    drop_stale(&mut own, (came, Nanos::MAX));
    // Switches after the waking do not matter. But the first of them that were not recorded came
    // before it if another task than the waker seems to run then.
    let current = current_task(&elsewhere, waking).map(|task| task.pid);
    let end = if current == Some(waker.pid) { waking } else { Nanos::MAX };
    drop_stale(&mut elsewhere, (due, end));
    drop_stale(&mut former, (waking, left));
    let cut = |events: &[Event], from| events.first().is_none_or(|event| event.at > from);
    let remote_cut = waker_cpu != cpu && cut(&elsewhere, due);
    let torn = own_torn || remote_torn || former_torn || cut(&own, came) || remote_cut;
    let unreported = waking == Nanos(0) || switched == Nanos(0);
    let ran = if switched == Nanos(0) { out } else { switched };
    #[rustfmt::skip]
    let window = Window {
        task, cpu, due, expiry, waking, waker, waker_cpu, switched, unreported, out, ran, events: own,
        elsewhere, stop, moves, lacks_moves, former_cpu, former, waking_stack, switch_stack, switch_pid,
        stolen, torn, group, lacks_interrupts: false, quota: None,
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
    ring_after(bytes, 0, Nanos::MAX).events
}

/// Decodes the complete events of a `struct ring` after the first `seen`, and a few before. The
/// earlier events may have been incomplete at the last call, and later events take their task and
/// stolen time from them. Events after `until` are left to the next call.
pub(crate) fn ring_after(bytes: &[u8], seen: u64, until: Nanos) -> Latest {
    let written = Reader(bytes).u64();
    let kept = written.saturating_sub(EVENTS - OLDEST);
    let first = kept.max(seen.saturating_sub(OLDEST));
    let event = |nth: u64| {
        let place = usize::try_from(nth % EVENTS).ok()? * EVENT + RING;
        let seq = u32::try_from((nth + 1) & u64::from(u32::MAX)).ok()?;
        Reader(bytes.get(place..)?).event(seq)
    };
    let is_later = |nth: &u64| event(*nth).is_some_and(|(event, _)| event.at > until);
    let next = (first..written).find(is_later).unwrap_or(written);
    let mut events = both((first..written).filter_map(event));
    in_order(&mut events);
    events.truncate(events.partition_point(|event| event.at <= until));
    Latest { events, seen: next, torn: kept > seen }
}

/// Flattens slots that hold one or two events.
fn both(slots: impl Iterator<Item = (Event, Option<Event>)>) -> Vec<Event> {
    slots.flat_map(|(first, second)| [Some(first), second]).flatten().collect()
}

/// Sorts events by time, and completes each by those before it.
fn in_order(events: &mut Vec<Event>) {
    events.sort_by_key(|event| event.at);
    name_tasks(events);
    stolen_since_previous(events);
}

/// Gives each event without a task the task of the event before. Events before the first task are
/// dropped.
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

    /// Decodes an event, and a second event (at the same moment or earlier) if the slot holds one.
    /// None if the sequence number is not the `expected` one.
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
        let at = wait::quota_since(kind, &rest).unwrap_or(at);
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
        THROTTLED => EventKind::Throttled { group: a },
        UNTHROTTLED => EventKind::Unthrottled { group: a },
        _ => return None,
    })
}

/// A function that another CPU asked for: its address stands in the name of the event's task.
fn called(task: Task, rest: &[u8; 24]) -> EventKind {
    let (sender, cpu) = Reader(rest).who();
    let function = Reader(&task.comm.0).u64();
    EventKind::Called(Call { function, sender, cpu })
}

/// The event of the first timer callback in an interrupt.
fn timer(rest: &[u8; 24]) -> EventKind {
    let mut read = Reader(rest);
    let [function, _ip, due] = [(); 3].map(|()| read.u64());
    EventKind::Timer { function, due: Nanos(due) }
}

/// Converts a number that the kernel keeps in 32 bits.
fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
