//! A start barrier: tasks gather at it, and all start at once.

use crate::descriptor::pipe;
use crate::poll;
use latlab_core::time::Nanos;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;

/// The barrier. Threads may wait at it, and children forked after it was made. It works as in
/// hackbench: each task announces itself in one pipe, and a byte in another pipe, which nobody
/// reads, starts them all.
#[derive(Debug)]
pub struct StartBarrier {
    /// Each task writes a byte here.
    arrivals: (File, File),
    /// Readable when the barrier is open.
    start: (File, File),
}

impl StartBarrier {
    /// A new barrier, closed.
    pub fn new() -> io::Result<StartBarrier> {
        Ok(StartBarrier { arrivals: pipe()?, start: pipe()? })
    }

    /// Announces the calling task, and waits until the barrier opens.
    pub fn wait(&self) -> io::Result<()> {
        (&self.arrivals.1).write_all(b"*")?;
        while !readable(&self.start.0, None)? {}
        Ok(())
    }

    /// Waits until this number of tasks have arrived. Meanwhile it calls `check` every 50 ms, which
    /// fails where a task can't arrive any more.
    pub fn gather(&self, tasks: usize, check: impl Fn() -> io::Result<()>) -> io::Result<()> {
        const PACE: Nanos = Nanos::from_millis(50);
        let mut arrived = vec![0; tasks];
        let mut missing = arrived.as_mut_slice();
        while !missing.is_empty() {
            if readable(&self.arrivals.0, Some(PACE))? {
                let came = (&self.arrivals.0).read(missing)?;
                missing = missing.split_at_mut(came).1;
            } else {
                check()?;
            }
        }
        Ok(())
    }

    /// Starts all tasks that wait, and those that arrive later.
    pub fn open(&self) -> io::Result<()> {
        (&self.start.1).write_all(b"*")
    }
}

/// Waits until there is something to read or no writer is left, at most for `patience`. False where
/// the time was up or a signal ended the wait.
pub fn readable(file: &impl AsFd, patience: Option<Nanos>) -> io::Result<bool> {
    poll::readable(file, patience)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    #[test]
    fn start_barrier_holds_all_tasks_until_it_opens() {
        let (barrier, passed) = (StartBarrier::new().unwrap(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    barrier.wait().unwrap();
                    passed.fetch_add(1, SeqCst);
                });
            }
            barrier.gather(3, || Ok(())).unwrap();
            assert_eq!(passed.load(SeqCst), 0);
            barrier.open().unwrap();
        });
        assert_eq!(passed.load(SeqCst), 3);
    }

    #[test]
    fn start_barrier_gather_fails_where_the_check_does() {
        let gone = || Err(io::Error::other("gone"));
        assert_eq!(StartBarrier::new().unwrap().gather(1, gone).unwrap_err().to_string(), "gone");
    }

    #[test]
    fn start_barrier_readable_ends_with_its_patience() {
        let (from, to) = pipe().unwrap();
        assert!(!readable(&from, Some(Nanos::from_millis(1))).unwrap());
        drop(to);
        assert!(readable(&from, None).unwrap());
    }
}
