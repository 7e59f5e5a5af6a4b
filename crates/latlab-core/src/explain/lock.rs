//! Waits of a task for locks of the kernel.

use super::segment::Segment;
use super::{EventKind, Task, Window};
use crate::time::Nanos;

/// A wait for a lock, as the kernel reports its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockWait {
    /// The lock.
    pub place: LockAddress,
    /// Its kind.
    pub kind: LockKind,
    /// The task that has it, where the kernel keeps that.
    pub owner: Option<Owner>,
}

/// Which lock it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockAddress {
    /// The one at this address.
    At(u64),
    /// `mmap_lock` of the waiting task's process.
    OwnMemory,
    /// `mmap_lock` of the owner's process, which is another one.
    OwnersMemory,
}

/// The kind of a lock, as far as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// A spinlock without an owner.
    Spinlock,
    /// A spinlock for readers and writers.
    Rwlock(Access),
    /// A mutex.
    Mutex,
    /// A mutex of `PREEMPT_RT` with priority inheritance, which may be a spinlock there.
    RtMutex,
    /// A lock of `PREEMPT_RT` for readers and writers, which may be a spinlock there.
    RtRwlock(Access),
    /// A semaphore for readers and writers.
    Rwsem(Access),
    /// The same with a counter of readers for each CPU.
    PerCpuRwsem(Access),
    /// A counting semaphore.
    Semaphore,
}

/// What a task waits to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To read, beside other readers.
    Read,
    /// To write.
    Write,
}

/// The task that has a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The task, with its priority when the wait began: before it inherits the waiting task's.
    pub task: Task,
    /// The CPU it ran on.
    pub cpu: u32,
    /// Whether it is a reader: the last reader that got the lock. Other readers may hold the lock
    /// too, or instead.
    pub is_reader: bool,
}

impl LockKind {
    /// Decodes the flags of `lock:contention_begin` (`include/trace/events/lock.h`).
    pub fn from_flags(flags: u8) -> LockKind {
        const SPIN: u8 = 1;
        const READ: u8 = 2;
        const WRITE: u8 = 4;
        const RT: u8 = 8;
        const PER_CPU: u8 = 16;
        const MUTEX: u8 = 32;
        let is = |flag| flags & flag != 0;
        let access = match (is(READ), is(WRITE)) {
            (true, _) => Some(Access::Read),
            (_, true) => Some(Access::Write),
            _ => None,
        };
        match access {
            _ if is(MUTEX) => LockKind::Mutex,
            Some(access) if is(RT) => LockKind::RtRwlock(access),
            Some(access) if is(PER_CPU) => LockKind::PerCpuRwsem(access),
            Some(access) if is(SPIN) => LockKind::Rwlock(access),
            Some(access) => LockKind::Rwsem(access),
            None if is(RT) => LockKind::RtMutex,
            None if is(SPIN) => LockKind::Spinlock,
            None => LockKind::Semaphore,
        }
    }

    /// The access that the task waits for; none if only one task can have the lock.
    pub fn access(self) -> Option<Access> {
        match self {
            LockKind::Rwlock(access)
            | LockKind::RtRwlock(access)
            | LockKind::Rwsem(access)
            | LockKind::PerCpuRwsem(access) => Some(access),
            _ => None,
        }
    }

    /// Its name in the kernel. On `PREEMPT_RT` the called functions decide it.
    pub fn name(self, called: &[String]) -> &'static str {
        let is_called = |start| called.iter().any(|function| function.starts_with(start));
        match self {
            LockKind::Spinlock => "spinlock",
            LockKind::Rwlock(_) => "rwlock",
            LockKind::PerCpuRwsem(_) => "percpu-rwsem",
            LockKind::Semaphore => "semaphore",
            LockKind::RtMutex if is_called("rt_spin_lock") || is_called("rtlock_") => "spinlock",
            LockKind::Mutex | LockKind::RtMutex => "mutex",
            LockKind::RtRwlock(_) if is_called("rt_read_lock") => "rwlock",
            LockKind::RtRwlock(_) if is_called("rt_write_lock") => "rwlock",
            LockKind::Rwsem(_) | LockKind::RtRwlock(_) => "rwsem",
        }
    }
}

/// How the names of functions begin that take a lock of any kind.
const TAKERS: &[&str] = &[
    "__down",
    "__mutex_lock",
    "__percpu_down_",
    "__pv_queued_",
    "__raw_callee_save___",
    "__rt_mutex_",
    "__rwbase_",
    "__ww_mutex_",
    "_mutex_lock",
    "_raw_read_lock",
    "_raw_spin_lock",
    "_raw_write_lock",
    "_rt_mutex_lock",
    "down_",
    "mutex_lock",
    "native_queued_",
    "percpu_down_",
    "percpu_rwsem_",
    "queued_",
    "rt_mutex_",
    "rt_read_lock",
    "rt_spin_lock",
    "rt_write_lock",
    "rtlock_",
    "rwbase_",
    "rwsem_",
    "ww_mutex_lock",
];

/// Whether a function takes a lock: who called it is of interest.
pub fn is_taker(function: &str) -> bool {
    matches!(function, "down" | "rtlock_lock")
        || TAKERS.iter().any(|taker| function.starts_with(taker))
}

impl LockWait {
    /// Returns the priority of a task. For the owner of the lock: without inheritance.
    fn without_inheritance(&self, task: Task) -> i16 {
        let owner = self.owner.filter(|owner| owner.task.pid == task.pid);
        owner.map_or(task.prio, |owner| owner.task.prio)
    }
}

/// A wait for a lock, with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waited {
    /// When it began.
    pub from: Nanos,
    /// When the task was woken from it, or had the lock by spinning.
    pub released: Nanos,
    /// When the task had the CPU again, or had the lock by spinning.
    pub to: Nanos,
    /// The lock.
    pub wait: LockWait,
    /// Functions on the stack then, innermost first.
    pub callers: Vec<u64>,
}

impl Window {
    /// Returns the waits for locks from the switch to the task until it slept, in order of time. If
    /// a wait ended on another CPU, its end is not known: it lasts until the task slept.
    pub fn lock_waits(&self) -> Vec<Waited> {
        let is_own = |task: Task| task.pid == self.task.pid;
        let mut waits: Vec<Waited> = Vec::new();
        // An earlier event may belong to a wait whose end was recorded on another CPU.
        for event in self.events.iter().filter(|event| event.at >= self.due.min(self.switched)) {
            if let (EventKind::LockWait(wait), true) = (event.kind, is_own(event.task)) {
                waits.push(Waited::begin(event.at, self.out, wait));
            }
            let Some(open) = waits.last_mut().filter(|wait| wait.to == self.out) else { continue };
            match event.kind {
                EventKind::Callers(functions) if is_own(event.task) => {
                    open.callers.extend(functions.into_iter().filter(|function| *function != 0));
                }
                EventKind::LockReleased { pid } if pid == self.task.pid => open.released = event.at,
                EventKind::Switch { next, .. } if is_own(next) && open.released < event.at => {
                    open.to = event.at;
                }
                EventKind::LockTaken if is_own(event.task) => open.end(event.at),
                _ => {}
            }
        }
        waits
    }

    /// Returns the wait for a lock that a segment is a part of. None where another task has the CPU
    /// although this one is runnable: where it has preempted this one, and after the release where
    /// its priority is as high.
    pub fn lock_wait(&self, segment: &Segment) -> Option<Waited> {
        let mut waits = self.lock_waits().into_iter();
        let found = waits.find(|wait| wait.from <= segment.from && segment.from < wait.to)?;
        let other = segment.activity.task.filter(|task| task.pid != self.task.pid);
        let as_high = other.is_some_and(|task| {
            !task.is_idle() && found.wait.without_inheritance(task) <= self.task.prio
        });
        let is_delayed =
            if segment.from < found.released { self.is_preempted(segment) } else { as_high };
        (!is_delayed).then_some(found)
    }
}

impl Waited {
    /// A wait that has begun, and lasts until the task sleeps as far as is known.
    fn begin(from: Nanos, out: Nanos, wait: LockWait) -> Waited {
        Waited { from, released: out, to: out, wait, callers: Vec::new() }
    }

    fn end(&mut self, at: Nanos) {
        (self.released, self.to) = (self.released.min(at), at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::Event;
    use crate::explain::any::{event, task};
    use crate::explain::segment::segments;

    const WAIT: LockWait =
        LockWait { place: LockAddress::At(0x5000), kind: LockKind::Mutex, owner: None };

    fn own(at: u64, kind: EventKind) -> Event {
        Event { task: task(2), ..event(at, kind) }
    }

    /// Task 2, switched to at 100, waits for a lock from 110 on; task 1 releases it at 150.
    fn window() -> Window {
        let to = |pid, preempted| EventKind::Switch { next: task(pid), preempted };
        Window {
            task: task(2),
            due: Nanos(90),
            expiry: Nanos(90),
            waking: Nanos(95),
            switched: Nanos(100),
            ran: Nanos(180),
            out: Nanos(200),
            events: vec![
                event(100, to(2, true)),
                own(110, EventKind::LockWait(WAIT)),
                own(111, EventKind::Callers([7, 8, 9, 10, 11])),
                own(112, EventKind::Callers([12, 0, 0, 0, 0])),
                own(120, to(1, false)),
                event(150, EventKind::LockReleased { pid: 2 }),
                event(155, to(2, true)),
                own(160, EventKind::LockTaken),
            ],
            ..Window::default()
        }
    }

    /// When segments begin in which the task waits for the lock.
    fn waiting(window: &Window) -> Vec<u64> {
        let all = segments(window).into_iter();
        all.filter(|part| window.lock_wait(part).is_some()).map(|part| part.from.0).collect()
    }

    #[test]
    fn task_waits_for_lock_until_it_is_woken() {
        let mut window = window();
        assert_eq!(waiting(&window), [110, 111, 112, 120]);
        let segment = segments(&window).into_iter().find(|part| part.from == Nanos(120));
        let found = window.lock_wait(&segment.expect("the task is switched out then"));
        let callers = vec![7, 8, 9, 10, 11, 12];
        let (released, to) = (Nanos(150), Nanos(155));
        let waited = Waited { from: Nanos(110), released, to, wait: WAIT, callers };
        assert_eq!(found.as_ref(), Some(&waited));
        assert_eq!(window.lock_waits(), [waited]);
        window.events[5] = event(150, EventKind::LockReleased { pid: 3 });
        assert_eq!(waiting(&window), [110, 111, 112, 120, 150, 155], "another task was woken");
        window.events.retain(|event| event.at < Nanos(150) || event.at > Nanos(155));
        assert_eq!(
            waiting(&window),
            [110, 111, 112, 120],
            "a task may spin until it gets the lock"
        );
    }

    #[test]
    fn holder_of_lower_priority_delays_the_task_until_it_has_the_cpu() {
        let mut window = window();
        window.task.prio = 49;
        assert_eq!(waiting(&window), [110, 111, 112, 120, 150]);
        // The priority that it inherits is as high.
        let owner = Owner { task: task(1), cpu: 0, is_reader: false };
        window.events[1].kind = EventKind::LockWait(LockWait { owner: Some(owner), ..WAIT });
        window.events[4].kind =
            EventKind::Switch { next: Task { prio: 49, ..task(1) }, preempted: false };
        window.events[5].task.prio = 49;
        assert_eq!(waiting(&window), [110, 111, 112, 120, 150]);
    }

    #[test]
    fn preempted_task_does_not_wait_for_the_lock() {
        let mut window = window();
        window.events[4] = own(120, EventKind::Switch { next: task(1), preempted: true });
        assert_eq!(waiting(&window), [110, 111, 112]);
    }

    #[test]
    fn wait_of_another_task_or_of_an_earlier_wake_up_does_not_count() {
        let mut other = window();
        other.task = task(3);
        assert_eq!(waiting(&other), [] as [u64; 0]);
        let mut later = window();
        (later.due, later.switched) = (Nanos(130), Nanos(140));
        (later.expiry, later.waking) = (Nanos(130), Nanos(135));
        assert_eq!(waiting(&later), [] as [u64; 0]);
    }

    #[test]
    fn kind_is_that_of_the_kernels_flags() {
        let kinds = [0, 1, 3, 5, 2, 4, 8, 10, 12, 18, 20, 32, 33].map(LockKind::from_flags);
        let expected = [
            LockKind::Semaphore,
            LockKind::Spinlock,
            LockKind::Rwlock(Access::Read),
            LockKind::Rwlock(Access::Write),
            LockKind::Rwsem(Access::Read),
            LockKind::Rwsem(Access::Write),
            LockKind::RtMutex,
            LockKind::RtRwlock(Access::Read),
            LockKind::RtRwlock(Access::Write),
            LockKind::PerCpuRwsem(Access::Read),
            LockKind::PerCpuRwsem(Access::Write),
            LockKind::Mutex,
            LockKind::Mutex,
        ];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn lock_of_preempt_rt_has_the_kind_that_was_asked_for() {
        let of = |kind: LockKind, functions: &[&str]| {
            kind.name(&functions.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        let name = |functions: &[&str]| of(LockKind::RtMutex, functions);
        let access = |functions: &[&str]| of(LockKind::RtRwlock(Access::Read), functions);
        assert_eq!(name(&["rtlock_slowlock_locked", "rt_spin_lock", "do_it"]), "spinlock");
        assert_eq!(access(&["__rwbase_read_lock", "rt_read_lock", "do_it"]), "rwlock");
        assert_eq!(access(&["__rwbase_read_lock", "down_read", "do_it"]), "rwsem");
        assert_eq!(name(&["rt_mutex_slowlock.constprop.0", "do_it"]), "mutex");
        assert_eq!(of(LockKind::Mutex, &["rt_spin_lock"]), "mutex");
    }
}
