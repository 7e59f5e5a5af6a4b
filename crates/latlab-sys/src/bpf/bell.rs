//! A BPF program that only wakes the task that waits for it to run.

use super::make;
use crate::mapping::{Mapping, Sealed};
use crate::memory::page_size;
use latlab_core::size::Bytes;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, RawFd};
use std::sync::atomic::Ordering::Release;

/// The program, for kprobes, and the ring buffer that it writes to (Linux 5.8). After it has run,
/// the buffer is readable for poll(2), until that is cleared.
#[derive(Debug)]
pub(crate) struct Bell {
    program: File,
    ring: File,
    /// The position up to which the ring buffer was read. The kernel reads it.
    read: Mapping,
    /// The position up to which it is written, on its second page.
    written: Sealed,
}

// As in `linux/bpf.h`.
const MAP_CREATE: libc::c_int = 0;
const PROG_LOAD: libc::c_int = 5;
const RINGBUF: u32 = 27;
const KPROBE: u32 = 2;
const RINGBUF_OUTPUT: i32 = 130;

/// The first fields of `union bpf_attr` for [`MAP_CREATE`].
#[repr(C)]
struct MapCreate {
    kind: u32,
    key: u32,
    value: u32,
    entries: u32,
}

/// The first fields of `union bpf_attr` for [`PROG_LOAD`].
#[repr(C)]
struct ProgLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
}

/// `struct bpf_insn` on little-endian machines. A register takes four bits.
#[repr(C)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    number: i32,
}

impl Bell {
    /// Loads the program. It is attached to nothing yet.
    pub(crate) fn new() -> io::Result<Bell> {
        let entries = u32::try_from(page_size()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let wanted = MapCreate { kind: RINGBUF, key: 0, value: 0, entries };
        // SAFETY: these are the attributes of this command; they have no pointers.
        let ring = unsafe { make(MAP_CREATE, &wanted) }?;
        let read = Mapping::of_file(&ring, Bytes(page_size() as u64))?;
        let written = Mapping::read_only(&ring, Bytes(2 * page_size() as u64))?;
        let program = load(&instructions(ring.as_raw_fd()))?;
        Ok(Bell { program, ring, read, written })
    }

    /// The program, to be attached.
    pub(crate) fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Clears its runs so far: it is readable when it runs again.
    pub(crate) fn clear(&self) {
        self.read.number(0).store(self.written.number(page_size()), Release);
    }
}

/// Readable after it has run.
impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

/// The program: it adds eight bytes to the ring buffer, and returns 0 so that perf records nothing.
/// Where the buffer is full, the waiter was woken and has not cleared it yet.
fn instructions(ring: RawFd) -> [Instruction; 10] {
    let line = |code, to: u8, from: u8, offset, number| {
        let registers = to | from << 4;
        Instruction { code, registers, offset, number }
    };
    [
        // r1: the ring buffer. This instruction takes two slots.
        line(0x18, 1, 1, 0, ring),
        line(0, 0, 0, 0, 0),
        // A zero on the stack is the data: r2 is its address, r3 its length.
        line(0x7a, 10, 0, -8, 0),
        line(0xbf, 2, 10, 0, 0),
        line(0x07, 2, 0, 0, -8),
        line(0xb7, 3, 0, 0, 8),
        // r4: the flags. Without any, a waiter that has read everything is woken.
        line(0xb7, 4, 0, 0, 0),
        line(0x85, 0, 0, 0, RINGBUF_OUTPUT),
        line(0xb7, 0, 0, 0, 0),
        line(0x95, 0, 0, 0, 0),
    ]
}

fn load(instructions: &[Instruction]) -> io::Result<File> {
    let wanted = ProgLoad {
        kind: KPROBE,
        count: u32::try_from(instructions.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        instructions: instructions.as_ptr() as u64,
        license: c"Dual MIT/GPL".as_ptr() as u64,
    };
    // SAFETY: these are the attributes of this command; they point to this number of instructions
    // and to a string with its final zero.
    unsafe { make(PROG_LOAD, &wanted) }
}
