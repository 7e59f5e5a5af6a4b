//! Real-time threads of a process that run and cause no event: no other task takes their CPU from them.

use crate::explain::proc;
use latlab_check::{Judge, Thread};
use latlab_core::explain::Comm;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::root::Root;

/// The threads of a process when watching begins, with their CPU times.
#[derive(Default)]
pub(super) struct Silent {
    at: Nanos,
    threads: Vec<(u32, Nanos)>,
}

impl Silent {
    /// Reads the real-time threads of a process.
    pub(super) fn of(pid: u32) -> Silent {
        let (at, all) = (clock::now(), proc::threads(pid).unwrap_or_default());
        let realtime = all.into_iter().filter(|tid| proc::is_realtime(*tid));
        Silent { at, threads: realtime.filter_map(|tid| Some((tid, cpu_time(tid)?))).collect() }
    }

    /// Tells the judge which of the threads ran, as watching ends at the time `end`.
    pub(super) fn tell(&self, judge: &mut Judge, pid: u32, end: Nanos) {
        for (tid, before) in &self.threads {
            let ran = cpu_time(*tid).map_or(Nanos(0), |now| now - *before);
            if let Some(thread) = thread(pid, *tid).filter(|_| ran > Nanos(0)) {
                judge.add_silent(thread, (self.at, end), ran);
            }
        }
    }
}

/// Time for which a thread has run.
fn cpu_time(tid: u32) -> Option<Nanos> {
    let text = Root::default().text(format!("proc/{tid}/schedstat"))?;
    text.split_ascii_whitespace().next()?.parse().ok().map(Nanos)
}

/// A real-time thread as it is now.
fn thread(pid: u32, tid: u32) -> Option<Thread> {
    let (policy, prio) = proc::scheduling(tid).filter(|_| proc::is_realtime(tid))?;
    let comm = Root::default().text(format!("proc/{tid}/comm")).unwrap_or_default();
    Some(Thread { tid, pid, prio, policy, comm: Comm::from(comm.trim_end()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_threads_are_not_told() {
        let own = std::process::id();
        assert!(cpu_time(own).is_some_and(|time| time > Nanos(0)));
        assert_eq!((Silent::of(own).threads, thread(own, own)), (vec![], None));
    }
}
