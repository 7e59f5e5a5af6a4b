//! Lock wait events.

use super::{Reader, narrow};
use latlab_core::explain::lock::{LockAddress, LockKind, LockWait, Owner};
use latlab_core::explain::{EventKind, Task};
use latlab_core::time::Nanos;

/// The kind of an event that is a wait for a lock.
pub(super) const LOCK_WAIT: u8 = 20;
/// The kind of an event that is a part of the stack of such a wait.
pub(super) const CALLERS: u8 = 21;
/// The kind of an event that is the end of such a wait.
pub(super) const LOCK_TAKEN: u8 = 22;

/// The wait for a lock: its address stands in the name of the event's task, and whose it is in the
/// priority.
pub(super) fn wait(task: Task, flags: u8, rest: &[u8; 24]) -> EventKind {
    const OF_OWN_MEMORY: i16 = 1;
    const OF_OWNERS_MEMORY: i16 = 2;
    const OF_READERS: i16 = 4;
    let is = |bit: i16| task.prio & bit != 0;
    let (owner, cpu) = Reader(rest).who();
    let owner = (owner.pid != 0).then_some(Owner { task: owner, cpu, is_reader: is(OF_READERS) });
    let place = match Reader(&task.comm.0).u64() {
        _ if is(OF_OWN_MEMORY) => LockAddress::OwnMemory,
        _ if is(OF_OWNERS_MEMORY) => LockAddress::OwnersMemory,
        address => LockAddress::At(address),
    };
    EventKind::LockWait(LockWait { place, kind: LockKind::from_flags(flags), owner })
}

/// Five functions of a stack: two in the name of the event's task, three after it.
pub(super) fn callers(task: Task, rest: &[u8; 24]) -> EventKind {
    let (mut first, mut read) = (Reader(&task.comm.0), Reader(rest));
    EventKind::Callers([first.u64(), first.u64(), read.u64(), read.u64(), read.u64()])
}

/// When which task was woken from the wait for a lock that ends; none if it did not sleep.
pub(super) fn released(rest: &[u8; 24]) -> Option<(Nanos, EventKind)> {
    let mut read = Reader(rest);
    let (at, pid) = (read.time(), narrow(read.u64()));
    (at > Nanos(0)).then_some((at, EventKind::LockReleased { pid }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::tests::{encoded, switch};
    use crate::layout::{SAME, window};
    use latlab_core::explain::Comm;

    /// An event with the same task as the event before. Two words replace the task's name, three
    /// follow it.
    fn same(seq: u32, at: u64, [kind, flag]: [u8; 2], prio: i16, words: [u64; 5]) -> Vec<u8> {
        let head = [&seq.to_ne_bytes()[..], &[kind, flag, 0, 0], &at.to_ne_bytes()].concat();
        let who = [&SAME.to_ne_bytes()[..], &prio.to_ne_bytes(), &[0, 0]].concat();
        [head, who, words.into_iter().flat_map(u64::to_ne_bytes).collect()].concat()
    }

    #[test]
    fn wait_for_lock_is_read_with_owner_callers_and_release() {
        let owner = &switch(0, 0, 7, 7)[40..];
        let mut wait = same(2, 210, [LOCK_WAIT, 32], 0, [0x5000, 0, 0, 0, 0]);
        wait[40..].copy_from_slice(owner);
        let events = [
            switch(1, 90, 1, 2),
            wait,
            same(3, 211, [CALLERS, 0], 0, [1, 2, 3, 4, 5]),
            switch(4, 220, 2, 7),
            switch(5, 260, 7, 2),
            same(6, 270, [LOCK_TAKEN, 0], 0, [0, 0, 250, 2, 0]),
        ];
        let window = window(&encoded(0, &events)).unwrap();
        let task = |pid| Task { pid, prio: 120, comm: Comm::from("a task") };
        let seen: Vec<_> = window.events.iter().map(|e| (e.at.0, e.task.pid, e.kind)).collect();
        let owner = Some(Owner { task: task(7), cpu: 3, is_reader: false });
        let (place, kind) = (LockAddress::At(0x5000), LockKind::Mutex);
        assert_eq!(seen[1], (210, 2, EventKind::LockWait(LockWait { place, kind, owner })));
        assert_eq!(seen[2], (211, 2, EventKind::Callers([1, 2, 3, 4, 5])));
        assert_eq!(seen[4], (250, 7, EventKind::LockReleased { pid: 2 }));
        assert_eq!(seen[6], (270, 2, EventKind::LockTaken));
        assert!(!window.torn);
    }

    #[test]
    fn lock_without_owner_is_read_with_whose_memory_it_protects() {
        let wait = |bits| {
            let wait = same(2, 210, [LOCK_WAIT, 2], bits, [0x5000, 0, 0, 0, 0]);
            let window = window(&encoded(0, &[switch(1, 90, 1, 2), wait])).unwrap();
            match window.events[1].kind {
                EventKind::LockWait(wait) => wait,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(wait(0).place, LockAddress::At(0x5000));
        assert_eq!((wait(1).place, wait(1).owner), (LockAddress::OwnMemory, None));
        assert_eq!(wait(2).place, LockAddress::OwnersMemory);
    }
}
