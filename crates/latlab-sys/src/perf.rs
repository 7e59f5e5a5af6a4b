//! The processor's counters, the kernel's tracepoints, and probes of its functions
//! (`perf_event_open(2)`).

use crate::ioctl;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Loads of data that missed the translation lookaside buffer.
    TlbMisses,
    /// Accesses that missed the last level of the cache.
    CacheMisses,
}

/// Counts an event in the calling task and in all it forks or starts from now on.
#[derive(Debug)]
pub struct Counter(File);

/// `struct perf_event_attr` of `linux/perf_event.h` in its first version, which all kernels know.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    /// Of a probe, where the name of its function lies.
    address: u64,
}

/// `PERF_ATTR_SIZE_VER0`.
const SIZE: u32 = 64;
const HARDWARE: u32 = 0;
const TRACEPOINT: u32 = 2;
const HARDWARE_CACHE: u32 = 3;
const HW_CACHE_MISSES: u64 = 3;
/// The data TLB, its reads, their misses.
const DTLB_READ_MISSES: u64 = 3 | 1 << 16;
/// With the times for which it was wanted and for which it counted.
const TIMES: u64 = 1 | 2;
/// Children are counted as well; the hypervisor is not.
const FLAGS: u64 = 1 << 1 | 1 << 6;
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// The number of `PERF_EVENT_IOC_SET_FILTER`.
const SET_FILTER: libc::Ioctl = 6;
/// And that of `PERF_EVENT_IOC_SET_BPF`.
const SET_BPF: libc::Ioctl = 8;

impl Counter {
    /// Begins to count.
    pub fn open(event: Event) -> io::Result<Counter> {
        let (kind, config) = match event {
            Event::TlbMisses => (HARDWARE_CACHE, DTLB_READ_MISSES),
            Event::CacheMisses => (HARDWARE, HW_CACHE_MISSES),
        };
        let attributes = Attributes {
            kind,
            size: SIZE,
            config,
            read: TIMES,
            flags: FLAGS,
            ..Attributes::default()
        };
        let (this, any_cpu) = (0, -1);
        open(&attributes, this, any_cpu).map(Counter)
    }

    /// What it has counted so far; where counters are few and take turns, scaled to all of the
    /// time. None where it never counted.
    pub fn count(&self) -> io::Result<Option<u64>> {
        let mut words = [0; 24];
        (&self.0).read_exact(&mut words)?;
        let word = |nth: usize| {
            let bytes = words[nth * 8..][..8].try_into().expect("these are eight bytes");
            u64::from_ne_bytes(bytes)
        };
        Ok(scaled(word(0), word(1), word(2)))
    }
}

/// Begins to count or to hear what the attributes say, in this task or in all (-1), on this CPU or
/// on all (-1).
fn open(attributes: &Attributes, task: libc::pid_t, cpu: libc::c_int) -> io::Result<File> {
    let no_group = -1;
    // SAFETY: the attributes are valid and of the size they state.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
            task,
            cpu,
            no_group,
            CLOSE_ON_EXEC,
        )
    };
    let fd = i32::try_from(fd).map_err(|_| io::ErrorKind::InvalidData)?;
    let fd = crate::checked(fd)?;
    // SAFETY: the descriptor is fresh and nobody else's.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Has a tracepoint be heard on one CPU: each time that it is passed and `filter` holds, who polls
/// the file is woken.
pub(crate) fn tracepoint(id: u64, cpu: u32, filter: Option<&str>) -> io::Result<File> {
    let attributes = Attributes {
        kind: TRACEPOINT,
        size: SIZE,
        config: id,
        period: 1,
        wakeup: 1,
        ..Attributes::default()
    };
    let (all, cpu) = (-1, libc::c_int::try_from(cpu).map_err(|_| io::ErrorKind::InvalidInput)?);
    let file = open(&attributes, all, cpu)?;
    if let Some(filter) = filter {
        let filter = CString::new(filter)?;
        let call = ioctl::call(ioctl::WRITE, b'$', SET_FILTER, size_of::<usize>());
        // SAFETY: the filter is a string with its final zero; the descriptor is open.
        crate::checked(unsafe { libc::ioctl(file.as_raw_fd(), call, filter.as_ptr()) })?;
    }
    Ok(file)
}

/// Has a BPF program run each time that a function of the kernel has ended, on every CPU, until the
/// file is closed. The event has to be one of some CPU; that one may go. `kind` and `config` are the
/// kernel's number for probes and the bit that has it be a probe of the end.
pub(crate) fn end_of(
    function: &CStr,
    (kind, config): (u32, u64),
    cpu: u32,
    program: BorrowedFd<'_>,
) -> io::Result<File> {
    let address = function.as_ptr() as u64;
    let attributes = Attributes { kind, size: SIZE, config, address, ..Attributes::default() };
    let (all, cpu) = (-1, libc::c_int::try_from(cpu).map_err(|_| io::ErrorKind::InvalidInput)?);
    let file = open(&attributes, all, cpu)?;
    let call = ioctl::call(ioctl::WRITE, b'$', SET_BPF, size_of::<u32>());
    // SAFETY: both descriptors are open; no pointers.
    crate::checked(unsafe { libc::ioctl(file.as_raw_fd(), call, program.as_raw_fd()) })?;
    Ok(file)
}

/// `count` events in `counted` of `wanted` nanoseconds, scaled to all of them.
fn scaled(count: u64, wanted: u64, counted: u64) -> Option<u64> {
    let all = u128::from(count) * u128::from(wanted);
    all.checked_div(u128::from(counted)).map(|all| u64::try_from(all).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_took_turns_is_scaled_and_one_that_never_counted_is_none() {
        assert_eq!(scaled(10, 100, 100), Some(10));
        assert_eq!(scaled(10, 100, 25), Some(40));
        assert_eq!(scaled(0, 100, 0), None);
    }

    #[test]
    fn a_counter_counts_or_says_why_it_is_not_there() {
        match Counter::open(Event::CacheMisses) {
            Ok(counter) => drop(counter.count().unwrap()),
            Err(e) => assert!(e.raw_os_error().is_some(), "{e}"),
        }
    }
}
