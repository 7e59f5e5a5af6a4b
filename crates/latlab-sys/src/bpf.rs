//! BPF programs (`bpf(2)`): their run statistics, and one that wakes its waiter.

mod bell;

pub(crate) use bell::Bell;

use latlab_core::time::Nanos;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _};

/// The kernel's statistics of a loaded program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Number of runs while runs were counted.
    pub runs: u64,
    /// Total time of those runs.
    pub time: Nanos,
    /// Number of runs skipped because the CPU was already running it.
    pub missed: u64,
    /// Number of instructions that the verifier followed; 0 before Linux 5.16.
    pub verified: u32,
    /// Size of the machine code compiled from it, in bytes; 0 where it is interpreted.
    pub machine_code: u32,
}

// As in `linux/bpf.h`.
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const ENABLE_STATS: libc::c_int = 32;
const STATS_RUN_TIME: u32 = 0;

/// The size of `struct bpf_prog_info`, in words of four bytes.
const WORDS: usize = 58;
// The indices of its fields. Fields of eight bytes take two words.
const JITED_PROG_LEN: usize = 4;
const RUN_TIME: usize = 48;
const RUN_COUNT: usize = 50;
const RECURSION_MISSES: usize = 52;
const VERIFIED: usize = 54;

/// `union bpf_attr` for [`OBJ_GET_INFO_BY_FD`].
#[repr(C)]
struct InfoByFd {
    fd: u32,
    length: u32,
    info: u64,
}

/// Has the kernel count the runs of all programs until the file is closed.
pub fn count_runs() -> io::Result<File> {
    let kind = STATS_RUN_TIME;
    // SAFETY: this command takes one number.
    unsafe { make(ENABLE_STATS, &kind) }
}

/// Makes a BPF object, which is a file.
///
/// # Safety
///
/// The attributes must belong to the command, and their pointers must be valid.
unsafe fn make<T>(command: libc::c_int, attributes: &T) -> io::Result<File> {
    let (attributes, size) = (std::ptr::from_ref(attributes), size_of::<T>());
    // SAFETY: the attributes have this size; the caller guarantees the rest.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size) };
    let fd = crate::checked(i32::try_from(fd).map_err(|_| io::ErrorKind::InvalidData)?)?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// The statistics of the program behind `fd`.
pub fn program(fd: BorrowedFd<'_>) -> io::Result<Program> {
    let mut info = [0_u32; WORDS];
    let attributes = InfoByFd {
        fd: fd.as_raw_fd().cast_unsigned(),
        length: u32::try_from(size_of_val(&info)).map_err(|_| io::ErrorKind::InvalidData)?,
        info: info.as_mut_ptr() as u64,
    };
    let size = size_of::<InfoByFd>();
    // SAFETY: the attributes have this size. `info` has the length that they state; its pointers
    // are zero, so the kernel writes nothing elsewhere.
    let answer =
        unsafe { libc::syscall(libc::SYS_bpf, OBJ_GET_INFO_BY_FD, &raw const attributes, size) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    let long = |at: usize| {
        let (low, high) = if cfg!(target_endian = "little") { (0, 1) } else { (1, 0) };
        u64::from(info[at + low]) | u64::from(info[at + high]) << 32
    };
    Ok(Program {
        runs: long(RUN_COUNT),
        time: Nanos(long(RUN_TIME)),
        missed: long(RECURSION_MISSES),
        verified: info[VERIFIED],
        machine_code: info[JITED_PROG_LEN],
    })
}
