//! Perf events (`perf_event_open(2)`): hardware counters, tracepoints and kprobes.

use crate::ioctl;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _};

/// A hardware event that can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HardwareEvent {
    /// Data loads that missed the translation lookaside buffer.
    TlbMisses,
    /// Accesses that missed the last-level cache.
    CacheMisses,
}

/// Counts an event in the calling task and in all tasks that it starts from now on.
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
    /// Of a kprobe: the address of the name of its function.
    address: u64,
}

/// `PERF_ATTR_SIZE_VER0`.
const SIZE: u32 = 64;
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const TRACEPOINT: u32 = 2;
const HARDWARE_CACHE: u32 = 3;
const HW_CACHE_MISSES: u64 = 3;
const SW_PAGE_FAULTS: u64 = 2;
/// Data TLB, reads, misses.
const DTLB_READ_MISSES: u64 = 3 | 1 << 16;
/// Reads return the time enabled and the time counted as well.
const TIMES: u64 = 1 | 2;
/// Children are counted; the hypervisor is not.
const FLAGS: u64 = 1 << 1 | 1 << 6;
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// `PERF_EVENT_IOC_SET_FILTER`.
const SET_FILTER: libc::Ioctl = 6;
/// `PERF_EVENT_IOC_SET_BPF`.
const SET_BPF: libc::Ioctl = 8;

impl Counter {
    /// Starts to count.
    pub fn open(event: HardwareEvent) -> io::Result<Counter> {
        let (kind, config) = match event {
            HardwareEvent::TlbMisses => (HARDWARE_CACHE, DTLB_READ_MISSES),
            HardwareEvent::CacheMisses => (HARDWARE, HW_CACHE_MISSES),
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

    /// The count so far. Where several events share a hardware counter in turns, it is scaled to
    /// the whole time; None where the event was never counted.
    pub fn count(&self) -> io::Result<Option<u64>> {
        let mut words = [0_u8; 24];
        (&self.0).read_exact(&mut words)?;
        let (words, _) = words.as_chunks::<8>();
        let [count, wanted, counted] = [0, 1, 2].map(|at| u64::from_ne_bytes(words[at]));
        Ok(scaled(count, wanted, counted))
    }
}

/// Opens an event of this task, or of all (-1), on this CPU, or on all (-1).
fn open(attributes: &Attributes, task: libc::pid_t, cpu: libc::c_int) -> io::Result<File> {
    let no_group = -1;
    // SAFETY: the attributes are valid and have the size that they state.
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
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Opens a tracepoint on one CPU. Each time it is hit and `filter` matches, tasks that poll the
/// file are woken.
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
        // SAFETY: the filter is a string with its final zero.
        crate::checked(unsafe { libc::ioctl(file.as_raw_fd(), call, filter.as_ptr()) })?;
    }
    Ok(file)
}

/// Opens the event of page faults on one CPU. Each fault counts.
pub fn page_faults(cpu: u32) -> io::Result<File> {
    let attributes = Attributes {
        kind: SOFTWARE,
        size: SIZE,
        config: SW_PAGE_FAULTS,
        period: 1,
        ..Attributes::default()
    };
    let (all, cpu) = (-1, libc::c_int::try_from(cpu).map_err(|_| io::ErrorKind::InvalidInput)?);
    open(&attributes, all, cpu)
}

/// Runs a BPF program each time that a kernel function returns, on every CPU, until the file is
/// closed. The event must belong to a CPU, which may go offline. `kind` is the kernel's number for
/// kprobes, `config` the bit for a probe at the end of the function.
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
    // SAFETY: this call takes a descriptor and no pointer.
    crate::checked(unsafe { libc::ioctl(file.as_raw_fd(), call, program.as_raw_fd()) })?;
    Ok(file)
}

/// Scales `count` events in `counted` ns to `wanted` ns.
fn scaled(count: u64, wanted: u64, counted: u64) -> Option<u64> {
    let all = u128::from(count) * u128::from(wanted);
    all.checked_div(u128::from(counted)).map(|all| u64::try_from(all).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_count_is_scaled_to_the_whole_time() {
        assert_eq!(scaled(10, 100, 100), Some(10));
        assert_eq!(scaled(10, 100, 25), Some(40));
        assert_eq!(scaled(0, 100, 0), None);
    }

    #[test]
    fn perf_counter_counts_or_fails_with_an_error_number() {
        match Counter::open(HardwareEvent::CacheMisses) {
            Ok(counter) => drop(counter.count().unwrap()),
            Err(e) => {
                assert!(e.raw_os_error().is_some(), "{e}");
                latlab_testing::not_run(latlab_testing::Missing::Optional, "no hardware counters");
            }
        }
    }
}
