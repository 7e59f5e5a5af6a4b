//! The executable files that processes map, as perf records them: those of processes that have ended, too
//! (`perf_event_open(2)`, `PERF_RECORD_MMAP2`).

use latlab_core::cpulist::CpuList;
use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, SampleFlag, Sampler};
use std::fmt::{self, Write as _};
use std::io;

/// What happened to the code of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeEvent {
    /// The process mapped an executable file: its line of `/proc/PID/maps`.
    Mapped(String),
    /// The process executes another program: its former mappings are gone.
    Executed,
    /// The process was forked from the one with this ID, and has the same mappings.
    Forked(u32),
}

/// Perf events of the code of all processes, one for each CPU.
pub struct CodeEvents(Vec<Sampler>);

impl fmt::Debug for CodeEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeEvents").field("cpus", &self.0.len()).finish()
    }
}

impl CodeEvents {
    /// Listens from now on to all processes on these CPUs. Needs the same privilege as perf
    /// (`Documentation/admin-guide/perf-security.rst`).
    pub fn start(cpus: &CpuList) -> io::Result<CodeEvents> {
        /// Of each CPU, in bytes: the events of some hundred programs that start.
        const ROOM: usize = 256 << 10;
        let start = |cpu: u32| {
            let cpu = usize::try_from(cpu).map_err(|_| io::ErrorKind::InvalidInput)?;
            let mut event = Builder::new(Software::DUMMY);
            event.any_pid().one_cpu(cpu).enabled(true);
            event.mmap(true).mmap2(true).comm(true).comm_exec(true).task(true);
            event.sample(SampleFlag::TIME).sample_id_all(true);
            event.build()?.sampled(ROOM)
        };
        cpus.iter().map(start).collect::<io::Result<_>>().map(CodeEvents)
    }

    /// The events since the last call, by time, each with its process ID. Events that found a full buffer are
    /// missing.
    pub fn read(&mut self) -> Vec<(u32, CodeEvent)> {
        let mut all = Vec::new();
        for sampler in &mut self.0 {
            while let Some(record) = sampler.next_record() {
                let bytes = record.to_contiguous();
                // Each record ends with the sampled fields, except for sample records.
                let time = bytes.last_chunk().map_or(0, |time| u64::from_ne_bytes(*time));
                let code = record.parse_record().ok().and_then(|parsed| of(&parsed, record.misc()));
                all.extend(code.map(|(pid, code)| (time, pid, code)));
            }
        }
        all.sort_by_key(|(time, ..)| *time);
        all.into_iter().map(|(_, pid, code)| (pid, code)).collect()
    }
}

/// The process ID and the event of a record. None for other records.
fn of(record: &Record<'_>, misc: u16) -> Option<(u32, CodeEvent)> {
    /// `PERF_RECORD_MISC_COMM_EXEC`.
    const EXEC: u16 = 1 << 13;
    match record {
        Record::Mmap2(map) => {
            let (start, end) = (map.addr, map.addr.wrapping_add(map.len));
            let mut line = format!("{start:x}-{end:x} r-xp {:08x} ", map.pgoff);
            let device = (map.maj().unwrap_or_default(), map.min().unwrap_or_default());
            let path = map.filename_os().to_string_lossy();
            let inode = map.ino().unwrap_or_default();
            let _ = write!(line, "{:02x}:{:02x} {inode} {path}", device.0, device.1);
            Some((map.pid, CodeEvent::Mapped(line)))
        }
        Record::Comm(name) if misc & EXEC != 0 => Some((name.pid, CodeEvent::Executed)),
        Record::Fork(fork) if fork.pid != fork.ppid => {
            Some((fork.pid, CodeEvent::Forked(fork.ppid)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;

    #[test]
    fn code_of_a_program_that_has_ended_is_known() {
        let Ok(mut events) = CodeEvents::start(&crate::cpu::online(&Root::default())) else {
            latlab_testing::not_run(latlab_testing::Missing::Required, "perf events of all CPUs");
            return;
        };
        let mut child = crate::process::command("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        let all = events.read();
        let its: Vec<&CodeEvent> =
            all.iter().filter(|(of, _)| *of == pid).map(|(_, code)| code).collect();
        assert_eq!(
            its[..2],
            [&CodeEvent::Forked(std::process::id()), &CodeEvent::Executed],
            "{its:?}"
        );
        let maps = |name: &str| {
            its.iter().any(|code| matches!(code, CodeEvent::Mapped(line) if line.ends_with(name)))
        };
        assert!(maps("/true") && maps("/libc.so.6"), "{its:?}");
    }
}
