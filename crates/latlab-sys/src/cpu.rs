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
    pin_thread(0, cpus)
}

/// Binds the thread with this number to `cpus`; 0 is the calling one.
pub fn pin_thread(thread_id: i32, cpus: &CpuList) -> io::Result<()> {
    let mut mask: Mask = [0; WORDS];
    for cpu in cpus.iter() {
        mask[cpu as usize / 64] |= 1 << (cpu % 64);
    }
    let size = size_of::<Mask>();
    let mask = mask.as_ptr();
    // SAFETY: `mask` is as long as announced.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setaffinity, thread_id, size, mask) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
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
        })
        .join()
        .unwrap();
    }
}
