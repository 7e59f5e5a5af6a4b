//! The CPUs that are online, and the CPU affinity of threads.
//!
//! Through the C library: the CPU set of rustix ends at 1024 CPUs, and probes measure these calls.

use crate::root::Root;
use crate::thread;
use latlab_core::cpulist::CpuList;
use std::io;

/// Room for 8192 CPUs, the kernel's largest `NR_CPUS`.
const WORDS: usize = 128;
type Mask = [u64; WORDS];

/// The CPUs that are online now.
pub fn online(root: &Root) -> CpuList {
    root.cpulist("sys/devices/system/cpu/online").unwrap_or_default()
}

/// The CPUs that the calling thread may run on.
pub fn allowed() -> io::Result<CpuList> {
    let mut mask: Mask = [0; WORDS];
    let size = size_of::<Mask>();
    // SAFETY: `mask` has this size; 0 is the calling thread.
    let answer = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size, mask.as_mut_ptr()) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    let set = |cpu: u32| mask[cpu as usize / 64] & (1 << (cpu % 64)) != 0;
    Ok((0..u32::try_from(WORDS * 64).unwrap_or(0)).filter(|cpu| set(*cpu)).collect())
}

/// The CPUs of `online` that threads of this process can be bound to: those of its cpuset. The affinity of
/// the calling thread does not matter, and stays.
pub fn assignable(online: &CpuList) -> io::Result<CpuList> {
    thread::on_its_own(|| pin(online).and_then(|()| allowed()))
}

/// Binds the calling thread, and the threads and children that it starts, to `cpus`.
pub fn pin(cpus: &CpuList) -> io::Result<()> {
    Affinity::to(cpus).take()
}

/// CPUs to bind a thread to, in the kernel's format: converted before the call, whose duration is
/// measured.
#[derive(Clone, Debug)]
pub struct Affinity(Mask);

impl Affinity {
    /// These CPUs.
    pub fn to(cpus: &CpuList) -> Affinity {
        let mut mask: Mask = [0; WORDS];
        for cpu in cpus.iter() {
            mask[cpu as usize / 64] |= 1 << (cpu % 64);
        }
        Affinity(mask)
    }

    /// Binds the calling thread, and what it starts from now on. It runs on one of the CPUs when
    /// this returns.
    #[inline]
    pub fn take(&self) -> io::Result<()> {
        self.bind(0)
    }

    /// Binds the thread with this id; 0 is the calling thread.
    #[inline]
    pub fn bind(&self, thread_id: i32) -> io::Result<()> {
        let (size, mask) = (size_of::<Mask>(), self.0.as_ptr());
        // SAFETY: the mask has this size.
        let answer = unsafe { libc::syscall(libc::SYS_sched_setaffinity, thread_id, size, mask) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// The CPU that the calling thread runs on. A thread that is not bound may move to another at any
/// time.
#[inline]
pub fn current() -> io::Result<u32> {
    // SAFETY: sched_getcpu takes nothing.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinity_of_the_caller_does_not_limit_the_assignable_cpus() {
        std::thread::spawn(|| {
            let all = allowed().unwrap();
            pin(&all.iter().take(1).collect()).unwrap();
            let online = online(&Root::default());
            let assignable = assignable(&online).unwrap();
            assert!(all.minus(&assignable).is_empty() && assignable.minus(&online).is_empty());
            assert_eq!(allowed().unwrap().len(), 1, "the caller's stays");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn cpu_affinity_is_set_and_read_back() {
        std::thread::spawn(|| {
            let all = allowed().unwrap();
            let one: CpuList = all.iter().take(1).collect();
            pin(&one).unwrap();
            assert_eq!(allowed().unwrap(), one);
            assert!(one.contains(current().unwrap()));
        })
        .join()
        .unwrap();
    }
}
