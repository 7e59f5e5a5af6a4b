//! Memory of another process that is read while that process writes it, and what its threads use.

use crate::mapping::{Mapping, Sealed};
use crate::procfs;
use latlab_core::record::Disturbed;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_core::watch::ThreadUsage;
use rustix::fs::{OFlags, SealFlags, fcntl_get_seals};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Sealed memory of another process, mapped read-only. It stays readable after that process has
/// ended.
#[derive(Debug)]
pub struct WatchedMemory {
    memory: Sealed,
    numbers: usize,
    id: u64,
}

impl WatchedMemory {
    /// Returns the memory of a process with this name (`memfd_create(2)`), each with the number of its
    /// descriptor. Memory that can't be mapped safely is an error in its place.
    pub fn of_process(pid: u32, name: &str) -> io::Result<Vec<(i32, io::Result<WatchedMemory>)>> {
        let name = format!("/memfd:{name} (deleted)");
        let mut descriptors = descriptors(pid)?;
        descriptors.sort_by_key(|path| procfs::number(path));
        let is_wanted = |path: &PathBuf| {
            fs::read_link(path).is_ok_and(|target| target.as_os_str() == name.as_str())
        };
        let found = descriptors.into_iter().filter(is_wanted);
        let found = found.filter_map(|path| Some((procfs::number(&path)?, open(&path)?)));
        Ok(found.map(|(number, file)| (number, file.and_then(|file| map(&file)))).collect())
    }

    /// Identifies the memory among all of this machine.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Copies all numbers. Each is whole; the process may change others meanwhile.
    pub fn read(&self) -> Vec<u64> {
        // From the last to the first: the number that is counted first is read last.
        let mut numbers: Vec<u64> =
            (0..self.numbers).rev().map(|nth| self.memory.number(8 * nth)).collect();
        numbers.reverse();
        numbers
    }
}

/// The descriptors of a process. A main thread that has ended has none, while other threads may.
fn descriptors(pid: u32) -> io::Result<Vec<PathBuf>> {
    let main = procfs::numbered(Path::new(&format!("/proc/{pid}/fd")));
    if main.as_ref().is_ok_and(|found| !found.is_empty()) {
        return main;
    }
    let tasks = procfs::numbered(Path::new(&format!("/proc/{pid}/task"))).unwrap_or_default();
    let mut found = tasks.into_iter().filter_map(|task| procfs::numbered(&task.join("fd")).ok());
    found.find(|found| !found.is_empty()).map_or(main, Ok)
}

/// Opens a descriptor of another process; none if that has closed it meanwhile.
fn open(path: &Path) -> Option<io::Result<File>> {
    // What only has the name of memory may be a pipe, which would block.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if procfs::is_gone(&error) => None,
        opened => Some(opened),
    }
}

fn map(file: &File) -> io::Result<WatchedMemory> {
    /// Far more than is watched.
    const LARGEST: u64 = 16 << 20;
    let wrong = |why| io::Error::new(io::ErrorKind::InvalidData, why);
    // An access beyond the end of a file that has shrunk would kill this process.
    let seals = fcntl_get_seals(file).unwrap_or(SealFlags::empty());
    if !seals.contains(SealFlags::SHRINK) {
        return Err(wrong("it may become smaller while it is read (it has no F_SEAL_SHRINK)"));
    }
    let facts = file.metadata()?;
    if facts.len() == 0 || facts.len() > LARGEST || !facts.len().is_multiple_of(8) {
        return Err(wrong("its size is not that of statistics"));
    }
    let numbers = usize::try_from(facts.len() / 8).map_err(|_| wrong("it is too large"))?;
    let memory = Mapping::read_only(file, Bytes(facts.len()))?;
    Ok(WatchedMemory { memory, numbers, id: facts.ino() })
}

/// The usage so far of a thread of another process, and the CPU on which it ran last. `thread` is
/// its ID as the process knows it: it differs in a PID namespace. None if it has ended.
pub fn thread_usage(pid: u32, thread: u32) -> Option<(ThreadUsage, u32)> {
    let tasks = procfs::numbered(Path::new(&format!("/proc/{pid}/task"))).ok()?;
    tasks.iter().find_map(|task| {
        let status = fs::read_to_string(task.join("status")).ok()?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let own = field("NSpid:")?.split_whitespace().next_back()?;
        if own.parse() != Ok(thread) {
            return None;
        }
        let preempted = field("nonvoluntary_ctxt_switches:")?.trim().parse().ok()?;
        let stat = fs::read_to_string(task.join("stat")).ok()?;
        let stat: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        // The first field after the name has the number 3.
        let stat = |field: usize| stat.get(field - 3)?.parse::<u64>().ok();
        let cpu_time = fs::read_to_string(task.join("schedstat")).ok();
        let cpu_time = cpu_time.and_then(|text| text.split(' ').next()?.parse().ok());
        let disturbed = Disturbed { minor_faults: stat(10)?, major_faults: stat(12)?, preempted };
        let cpu = u32::try_from(stat(39)?).ok()?;
        Some((ThreadUsage { cpu: Nanos(cpu_time.unwrap_or(0)), disturbed }, cpu))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, fcntl_add_seals, memfd_create};
    use std::os::unix::fs::FileExt as _;

    fn memory(name: &str, size: u64, seals: SealFlags) -> File {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file: File = memfd_create(name, flags).unwrap().into();
        file.set_len(size).unwrap();
        fcntl_add_seals(&file, seals).unwrap();
        file
    }

    fn found(name: &str) -> Vec<io::Result<WatchedMemory>> {
        let found = WatchedMemory::of_process(std::process::id(), name).unwrap();
        found.into_iter().map(|(_, memory)| memory).collect()
    }

    #[test]
    fn memory_is_found_by_name_and_read_while_it_changes() {
        let file = memory("watched-test", 4096, SealFlags::SHRINK);
        let watched = found("watched-test").pop().unwrap().unwrap();
        assert_eq!(watched.read(), vec![0; 512]);
        file.write_all_at(&42_u64.to_ne_bytes(), 8).unwrap();
        assert_eq!(watched.read()[..3], [0, 42, 0]);
        drop(file);
        assert!(found("watched-test").is_empty());
        assert_eq!(watched.read()[1], 42);
    }

    /// An access to it could kill this process.
    #[test]
    fn memory_that_can_shrink_or_is_empty_or_huge_is_refused() {
        for (size, seals) in [
            (4096, SealFlags::GROW),
            (0, SealFlags::SHRINK),
            (1 << 30, SealFlags::SHRINK),
            (9, SealFlags::SHRINK),
        ] {
            let _file = memory("unsafe-test", size, seals);
            let error = found("unsafe-test").pop().unwrap().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{size}");
        }
    }

    #[test]
    fn thread_usage_is_that_of_this_thread() {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let (before, _) = thread_usage(std::process::id(), thread).unwrap();
        Mapping::new(Bytes(1 << 20)).unwrap().touch();
        let (after, _) = thread_usage(std::process::id(), thread).unwrap();
        assert!(after.disturbed.minor_faults > before.disturbed.minor_faults);
        assert_eq!(thread_usage(std::process::id(), 0), None);
    }
}
