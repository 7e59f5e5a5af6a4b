//! A gate at which tasks gather, and which lets all of them go at once.

use crate::process::pipe;
use latlab_core::time::Nanos;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd;

/// The gate: threads and children forked after it was made may wait at it. It is hackbench's:
/// each says that it is there in one pipe, and is let go by a byte in another that nobody reads.
#[derive(Debug)]
pub struct Gate {
    here: (File, File),
    go: (File, File),
}

impl Gate {
    /// One that is closed.
    pub fn new() -> io::Result<Gate> {
        Ok(Gate { here: pipe()?, go: pipe()? })
    }

    /// Says that the caller is there, and waits until the gate opens.
    pub fn wait(&self) -> io::Result<()> {
        (&self.here.1).write_all(b"*")?;
        while !readable(&self.go.0, None)? {}
        Ok(())
    }

    /// Waits until so many are there. Meanwhile `look` says from time to time whether all that are
    /// missing can still come.
    pub fn gather(&self, tasks: usize, look: impl Fn() -> io::Result<()>) -> io::Result<()> {
        const PACE: Nanos = Nanos::from_millis(50);
        let mut there = vec![0; tasks];
        let mut missing = there.as_mut_slice();
        while !missing.is_empty() {
            if readable(&self.here.0, Some(PACE))? {
                let came = (&self.here.0).read(missing)?;
                missing = missing.split_at_mut(came).1;
            } else {
                look()?;
            }
        }
        Ok(())
    }

    /// Lets all go who wait, and who come later.
    pub fn open(&self) -> io::Result<()> {
        (&self.go.1).write_all(b"*")
    }
}

/// Waits until there is something to read, or nobody is left who could write, at most for
/// `patience`. False where the time was up or a signal ended the wait.
pub fn readable(file: &impl AsRawFd, patience: Option<Nanos>) -> io::Result<bool> {
    let mut waiting = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let patience = patience.map(crate::clock::timespec);
    let patience = patience.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: one pollfd, valid to write to; the time is null or outlives the call; no signal mask.
    let answer = unsafe { libc::ppoll(&raw mut waiting, 1, patience, std::ptr::null()) };
    match crate::checked(answer) {
        Ok(ready) => Ok(ready > 0),
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    #[test]
    fn nobody_passes_before_it_opens_and_everybody_after() {
        let (gate, passed) = (Gate::new().unwrap(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    gate.wait().unwrap();
                    passed.fetch_add(1, SeqCst);
                });
            }
            gate.gather(3, || Ok(())).unwrap();
            assert_eq!(passed.load(SeqCst), 0);
            gate.open().unwrap();
        });
        assert_eq!(passed.load(SeqCst), 3);
    }

    #[test]
    fn who_can_not_come_is_not_waited_for() {
        let gone = || Err(io::Error::other("gone"));
        assert_eq!(Gate::new().unwrap().gather(1, gone).unwrap_err().to_string(), "gone");
    }

    #[test]
    fn a_wait_for_nothing_ends_with_its_patience() {
        let (from, to) = pipe().unwrap();
        assert!(!readable(&from, Some(Nanos::from_millis(1))).unwrap());
        drop(to);
        assert!(readable(&from, None).unwrap());
    }
}
