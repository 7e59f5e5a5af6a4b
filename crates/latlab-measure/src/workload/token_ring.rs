//! A token that processes in a ring pass on through pipes, as in lmbench.

use latlab_core::atomic_histogram::AtomicHistogram;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::process::{self, Forked, SingleThread, pipe};
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read as _, Write as _};

type Token = [u8; 4];

/// A ring of processes, one of which is the caller. Dropping it ends the others.
pub struct Ring {
    to: File,
    from: File,
    set: WorkingSet,
    others: Vec<Forked>,
}

/// Read end and write end of a pipe, if they are still open in this process.
type Ends = (Option<File>, Option<File>);

impl Ring {
    /// Creates a ring of processes, each with a working set of this size, and sends the token
    /// around once.
    pub fn new(processes: u32, size: Bytes, single: &SingleThread) -> io::Result<Ring> {
        let open = |_| pipe().map(|(from, to)| (Some(from), Some(to)));
        let mut pipes: Vec<Ends> = (0..processes).map(open).collect::<io::Result<_>>()?;
        let mut others = Vec::with_capacity(pipes.len());
        for nth in 1..pipes.len() {
            others.push(single.try_fork(|| pass_on(&mut pipes, nth, size))?);
        }
        let to = pipes.first_mut().and_then(|(_, to)| to.take());
        let from = pipes.last_mut().and_then(|(from, _)| from.take());
        // The other ends must be closed here, so that a process notices when its neighbour is gone.
        drop(pipes);
        let (to, from) = to.zip(from).ok_or(io::ErrorKind::InvalidInput)?;
        let mut ring = Ring { to, from, set: WorkingSet::new(size), others };
        ring.go_around()?;
        Ok(ring)
    }

    /// Sends the token once around the ring.
    #[inline]
    pub fn go_around(&mut self) -> io::Result<()> {
        let mut token = Token::default();
        let around = self.to.write_all(&token).and_then(|()| self.from.read_exact(&mut token));
        self.set.sum();
        around.map_err(|_| io::Error::other("a process of the ring has ended"))
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        process::kill_all(std::mem::take(&mut self.others));
    }
}

/// Body of process `nth` of the ring: passes the token on until one of its neighbours is gone.
fn pass_on(pipes: &mut Vec<Ends>, nth: usize, size: Bytes) -> io::Result<()> {
    let ends = pipes[nth - 1].0.take().zip(pipes[nth].1.take());
    pipes.clear();
    let (mut from, mut to) = ends.ok_or(io::ErrorKind::InvalidInput)?;
    let (set, mut token) = (WorkingSet::new(size), Token::default());
    loop {
        from.read_exact(&mut token)?;
        set.sum();
        to.write_all(&token)?;
    }
}

/// Measures what passing the token on takes without a context switch: writing it to a pipe, reading
/// it back, and summing up the working set. Uses the pipes in turn. Returns the median of at least
/// 1000 repetitions in at least 10 ms, without `clock_read`.
pub fn overhead(pipes: u32, size: Bytes, clock_read: Nanos) -> io::Result<Nanos> {
    const MIN_TIME: Nanos = Nanos::from_millis(10);
    const MIN_REPETITIONS: u64 = 1_000;
    let pipes = (0..pipes).map(|_| pipe()).collect::<io::Result<Vec<_>>>()?;
    let (set, mut token, tally) = (WorkingSet::new(size), Token::default(), AtomicHistogram::new());
    let first = clock::now();
    let mut begin = first;
    for (from, to) in pipes.iter().cycle() {
        (&*to).write_all(&token)?;
        (&*from).read_exact(&mut token)?;
        set.sum();
        let end = clock::now();
        tally.record(end - begin - clock_read);
        if end - first > MIN_TIME && tally.recorded() >= MIN_REPETITIONS {
            break;
        }
        begin = clock::now();
    }
    Ok(tally.histogram().quantile(0.5))
}

/// Memory that a process sums up each time it has the token.
struct WorkingSet(Vec<u64>);

impl WorkingSet {
    fn new(size: Bytes) -> WorkingSet {
        // Written once, so that its pages are allocated.
        WorkingSet(vec![1; usize::try_from(size.0).unwrap_or(0) / size_of::<u64>()])
    }

    #[inline]
    fn sum(&self) {
        black_box(black_box(&self.0).iter().sum::<u64>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overhead_is_positive_and_working_set_has_its_size() {
        let overhead = overhead(3, Bytes(4096), Nanos(0)).unwrap();
        assert!(overhead > Nanos(0));
        assert_eq!(WorkingSet::new(Bytes(4096)).0.len(), 512);
    }
}
