//! Waits of a task for locks of the kernel.

use super::segment::Segment;
use super::{EventKind, Task, Window};

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

/// The kind of a lock, as far as the kernel tells it.
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
    /// The task, with its priority when the wait began, before it inherits that of the waiting task.
    pub task: Task,
    /// The CPU it ran on.
    pub cpu: u32,
    /// Whether it is a reader, the last one that got the lock: others may have it too, or instead.
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

    /// What the task waits to do; none where only one task can have the lock.
    pub fn access(self) -> Option<Access> {
        match self {
            LockKind::Rwlock(access)
            | LockKind::RtRwlock(access)
            | LockKind::Rwsem(access)
            | LockKind::PerCpuRwsem(access) => Some(access),
            _ => None,
        }
    }

    /// Its name in the kernel. On `PREEMPT_RT` the functions tell it that were called, innermost
    /// first.
    pub fn name(self, called: &[String]) -> &'static str {
        match self {
            LockKind::Spinlock => "spinlock",
            LockKind::Rwlock(_) => "rwlock",
            LockKind::Mutex => "mutex",
            LockKind::Rwsem(_) => "rwsem",
            LockKind::PerCpuRwsem(_) => "percpu-rwsem",
            LockKind::Semaphore => "semaphore",
            LockKind::RtMutex | LockKind::RtRwlock(_) => {
                let of =
                    |function: &String| OF_RT.iter().find(|(start, _)| function.starts_with(start));
                called.iter().find_map(of).map_or("rtmutex", |(_, name)| name)
            }
        }
    }
}

/// Functions of `PREEMPT_RT` that take a lock, by how their names begin, and its kind.
const OF_RT: [(&str, &str); 12] = [
    ("rt_spin_lock", "spinlock"),
    ("rt_read_lock", "rwlock"),
    ("rt_write_lock", "rwlock"),
    ("mutex_lock", "mutex"),
    ("_mutex_lock", "mutex"),
    ("ww_mutex_lock", "mutex"),
    ("down_read", "rwsem"),
    ("down_write", "rwsem"),
    ("__down_read", "rwsem"),
    ("__down_write", "rwsem"),
    ("rt_mutex_lock", "rtmutex"),
    ("_rt_mutex_lock", "rtmutex"),
];

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
pub(super) fn is_taker(function: &str) -> bool {
    matches!(function, "down" | "rtlock_lock")
        || TAKERS.iter().any(|taker| function.starts_with(taker))
}

impl Window {
    /// Returns the lock that the task waits for in a segment, and the functions that called for it,
    /// innermost first. None if it was woken from that wait, or if another task has preempted it.
    pub fn lock_wait(&self, segment: &Segment) -> Option<(LockWait, Vec<u64>)> {
        let events = segment.events(self);
        let until = &events[..events.partition_point(|event| event.at <= segment.from)];
        let is_own = |task: Task| task.pid == self.task.pid;
        let begin = until.iter().rposition(|event| {
            is_own(event.task) && matches!(event.kind, EventKind::LockWait(_))
        })?;
        let EventKind::LockWait(wait) = until[begin].kind else { return None };
        let since = &until[begin + 1..];
        let ended = since.iter().any(|event| match event.kind {
            EventKind::LockReleased { pid } => pid == self.task.pid,
            EventKind::LockTaken => is_own(event.task),
            _ => false,
        });
        // An older wait whose end was recorded on another CPU.
        let is_stale = until[begin].at < self.due.min(self.switched);
        if ended || is_stale || self.is_preempted(segment) {
            return None;
        }
        let callers = since.iter().filter(|event| is_own(event.task));
        let callers = callers.filter_map(|event| match event.kind {
            EventKind::Callers(functions) => Some(functions),
            _ => None,
        });
        Some((wait, callers.flatten().filter(|function| *function != 0).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::Event;
    use crate::explain::any::{event, task};
    use crate::explain::segment::segments;
    use crate::time::Nanos;

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
        assert_eq!(found, Some((WAIT, vec![7, 8, 9, 10, 11, 12])));
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
        assert_eq!(name(&["rtlock_slowlock_locked", "rt_spin_lock", "mutex_lock"]), "spinlock");
        assert_eq!(name(&["rt_mutex_slowlock.constprop.0", "mutex_lock", "do_it"]), "mutex");
        assert_eq!(name(&[]), "rtmutex");
        assert_eq!(of(LockKind::Mutex, &["rt_spin_lock"]), "mutex");
    }
}
