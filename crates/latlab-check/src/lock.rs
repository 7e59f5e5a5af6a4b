//! User-space locks: the kind of lock that a `futex(2)` call waits for, and the holder. Both are
//! read from the lock's memory.

use super::breach::Held;
use super::wait::{inherits, is_mutex, is_wait};

/// A lock that a thread waits for, as far as the lock's memory shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    /// The holder, for a read-write lock of glibc (`std::shared_mutex` has one).
    pub read_write: Option<ReadWrite>,
    /// ID of the thread that holds it, in the PID namespace of the process.
    pub owner: Option<u32>,
    /// That thread, if it is one of the process.
    pub holder: Option<Held>,
}

/// Who holds a read-write lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadWrite {
    /// One thread that writes.
    Writer,
    /// Threads that read: the lock has their number, and not who they are.
    Readers,
}

/// Number of words of memory by which a lock is known, and the place of the futex's among them.
pub const WORDS: usize = 8;
const OWN: usize = 3;

impl Lock {
    /// The lock of a call of `futex(2)` with these arguments; `words` are the words of memory
    /// around the address in its first argument.
    pub fn of(arguments: &[u64; 6], words: &[u32; WORDS]) -> Lock {
        /// The ID of the owner in a futex that inherits priority (`FUTEX_TID_MASK`).
        const OWNER: u32 = 0x3fff_ffff;
        let owner = |id: u32| (id != 0).then_some(id);
        if inherits(arguments) {
            return Lock { owner: owner(words[OWN] & OWNER), ..Lock::default() };
        }
        if let Some((holder, writer)) = read_write(arguments, words) {
            return Lock { read_write: Some(holder), owner: owner(writer), holder: None };
        }
        // `pthread_mutex_t`: the word, a count, the owner.
        let owner = owner(words[OWN + 2]).filter(|_| is_mutex(arguments));
        Lock { owner, ..Lock::default() }
    }
}

/// The holder of a read-write lock of glibc (`struct __pthread_rwlock_arch_t`), and the thread that
/// writes. None if the wait is for another kind of lock. A thread waits on one of two words, whose
/// bit for waiters is set: the phase, where a thread that is to read waits at 1 and one that is to
/// write at 0, or the word of writers (1).
fn read_write(arguments: &[u64; 6], words: &[u32; WORDS]) -> Option<(ReadWrite, u32)> {
    const WAITERS: u64 = 2;
    /// Flags of the number of readers: it is the phase of a writer, and a writer has or awaits the lock.
    const WRITE_PHASE: u32 = 1;
    const WRITER: u32 = 2;
    /// More threads than wait for a lock.
    const MANY: u32 = 1 << 17;
    if !is_wait(arguments) {
        return None;
    }
    let value = arguments[2] & u64::from(u32::MAX);
    // The fields from the first one on: readers, writers, phase, word of writers, two of padding, the writer.
    let lock = |first: usize| -> Option<&[u32]> {
        let fields = &words[first..];
        let is_one = fields[1] < MANY && fields[3] & !3 == 0 && fields[4..6] == [0, 0];
        is_one.then_some(fields)
    };
    let by_phase = lock(OWN - 2);
    if value == WAITERS {
        let is_read = |readers: u32| readers & 3 == WRITER && (1..MANY).contains(&(readers >> 3));
        let fields = by_phase.filter(|fields| is_read(fields[0]) && fields[6] == 0);
        return fields.map(|_| (ReadWrite::Readers, 0));
    }
    if value != WAITERS | 1 {
        return None;
    }
    let by_writers = lock(OWN - 3).filter(|fields| fields[0] & WRITER != 0 && fields[1] > 0);
    let by_phase = by_phase.filter(|fields| fields[0] & WRITE_PHASE != 0);
    by_phase.or(by_writers).map(|fields| (ReadWrite::Writer, fields[6]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUTEX: [u64; 6] = [0x1000, 128, 2, 0, 0, 0];
    const INHERITS: [u64; 6] = [0x1000, 128 | 6, 0, 0, 0, 0];

    /// A wait of glibc, with its clock, for this value.
    fn wait(value: u64) -> [u64; 6] {
        [0x1000, 9 | 128 | 256, value, 0, 0, u64::from(u32::MAX)]
    }

    #[test]
    fn lock_tells_its_kind_and_its_holder() {
        let of = |arguments, words| {
            let lock = Lock::of(&arguments, &words);
            (lock.read_write, lock.owner)
        };
        assert_eq!(of(MUTEX, [9, 9, 9, 2, 0, 77, 1, 0]), (None, Some(77)));
        assert_eq!(of(INHERITS, [9, 9, 9, 0x8000_004d, 0, 0, 0, 0]), (None, Some(77)));
        // A reader that waits for the writer 77, and a writer that does; the latter at another word.
        let (reads, writes) = ([9, 7, 0, 3, 1, 0, 0, 77], [3, 1, 0, 3, 0, 0, 77, 0]);
        assert_eq!(of(wait(3), reads), (Some(ReadWrite::Writer), Some(77)));
        assert_eq!(of(wait(3), writes), (Some(ReadWrite::Writer), Some(77)));
        // A writer that waits for two readers.
        let read = [9, 2 << 3 | 2, 0, 2, 1, 0, 0, 0];
        assert_eq!(of(wait(2), read), (Some(ReadWrite::Readers), None));
    }

    #[test]
    fn other_futex_is_no_lock() {
        for (arguments, words) in [
            // A condition variable, a mutex whose memory is not glibc's, a semaphore, memory that can't be read.
            (wait(4), [1, 1, 1, 4, 0, 0, 0, 0]),
            (MUTEX, [0, 0, 0, 2, 5, 0, 6, 7]),
            (wait(0), [0; WORDS]),
            (wait(3), [0; WORDS]),
            (wait(2), [0; WORDS]),
        ] {
            assert_eq!(Lock::of(&arguments, &words), Lock::default(), "{arguments:?}");
        }
    }
}
