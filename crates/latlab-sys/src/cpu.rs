//! Which CPUs there are, and which the calling thread may use.

use crate::root::Root;
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
    // SAFETY: `mask` has room for the size announced; pid 0 is the calling thread.
    let answer = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size, mask.as_mut_ptr()) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    let set = |cpu: u32| mask[cpu as usize / 64] & (1 << (cpu % 64)) != 0;
    Ok((0..u32::try_from(WORDS * 64).unwrap_or(0)).filter(|cpu| set(*cpu)).collect())
}

/// Binds the calling thread, and what it starts, to `cpus`.
pub fn pin(cpus: &CpuList) -> io::Result<()> {
    Binding::to(cpus).take()
}

/// CPUs that a thread may be bound to, in the kernel's form: made before it matters how long that
/// takes.
#[derive(Clone, Debug)]
pub struct Binding(Mask);

impl Binding {
    /// These CPUs.
    pub fn to(cpus: &CpuList) -> Binding {
        let mut mask: Mask = [0; WORDS];
        for cpu in cpus.iter() {
            mask[cpu as usize / 64] |= 1 << (cpu % 64);
        }
        Binding(mask)
    }

    /// Binds the calling thread, and what it starts. When it comes back, it runs there.
    #[inline]
    pub fn take(&self) -> io::Result<()> {
        self.bind(0)
    }

    /// Binds the thread with this number; 0 is the calling one.
    #[inline]
    pub fn bind(&self, thread_id: i32) -> io::Result<()> {
        let (size, mask) = (size_of::<Mask>(), self.0.as_ptr());
        // SAFETY: the mask is as long as announced.
        let answer = unsafe { libc::syscall(libc::SYS_sched_setaffinity, thread_id, size, mask) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// The CPU that the calling thread runs on, which may be another one at once if it is not bound.
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
    fn a_thread_is_bound_and_set_free() {
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
