//! A BPF program that does nothing but wake who waits for it to have run.

use super::make;
use crate::mapping::{Mapping, Sealed};
use latlab_core::size::Bytes;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::Ordering::Release;

/// The program, for probes of the kernel's functions, and the ring buffer that it writes to (Linux
/// 5.8). When it has run, poll(2) says that the buffer can be read, until that is noted.
#[derive(Debug)]
pub(crate) struct Bell {
    program: File,
    ring: File,
    /// Up to where the ring buffer was read. The kernel reads that.
    read: Mapping,
    /// Up to where it is written, on its second page.
    written: Sealed,
}

// As in `linux/bpf.h`.
const MAP_CREATE: libc::c_int = 0;
const PROG_LOAD: libc::c_int = 5;
const RINGBUF: u32 = 27;
const KPROBE: u32 = 2;
const RINGBUF_OUTPUT: i32 = 130;

/// What the kernel's memory is made of, and a ring buffer of.
fn page() -> usize {
    // SAFETY: it asks for a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// `union bpf_attr` for [`MAP_CREATE`], as far as it is needed.
#[repr(C)]
struct MapCreate {
    kind: u32,
    key: u32,
    value: u32,
    entries: u32,
}

/// And for [`PROG_LOAD`].
#[repr(C)]
struct ProgLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
}

/// `struct bpf_insn`, where bytes are little-endian: the registers are four bits each.
#[repr(C)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    number: i32,
}

impl Bell {
    /// Loads it. It runs nowhere yet.
    pub(crate) fn new() -> io::Result<Bell> {
        let entries = u32::try_from(page()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let wanted = MapCreate { kind: RINGBUF, key: 0, value: 0, entries };
        // SAFETY: these are that command's attributes, without pointers.
        let ring = unsafe { make(MAP_CREATE, &wanted) }?;
        let read = Mapping::of_file(&ring, Bytes(page() as u64))?;
        let written = Mapping::to_read(&ring, Bytes(2 * page() as u64))?;
        let program = load(&rings(ring.as_raw_fd()))?;
        Ok(Bell { program, ring, read, written })
    }

    /// What is to be run.
    pub(crate) fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Notes that it has run, until it runs again.
    pub(crate) fn silence(&self) {
        self.read.number(0).store(self.written.number(page()), Release);
    }
}

/// Can be read when it has run.
impl AsRawFd for Bell {
    fn as_raw_fd(&self) -> RawFd {
        self.ring.as_raw_fd()
    }
}

/// Adds eight bytes to the ring buffer, and says that perf need not note anything. Where there is no
/// room, somebody was woken and has not looked yet.
fn rings(ring: RawFd) -> [Instruction; 10] {
    let line = |code, to: u8, from: u8, offset, number| {
        let registers = to | from << 4;
        Instruction { code, registers, offset, number }
    };
    [
        // r1 is the ring buffer, which takes two.
        line(0x18, 1, 1, 0, ring),
        line(0, 0, 0, 0, 0),
        // A zero on the stack is what is added, r2 is where it lies, r3 how long it is.
        line(0x7a, 10, 0, -8, 0),
        line(0xbf, 2, 10, 0, 0),
        line(0x07, 2, 0, 0, -8),
        line(0xb7, 3, 0, 0, 8),
        // r4: whoever has read everything is woken.
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
    // SAFETY: these are that command's attributes; so many instructions and a string with its final
    // zero are where they say.
    unsafe { make(PROG_LOAD, &wanted) }
}
