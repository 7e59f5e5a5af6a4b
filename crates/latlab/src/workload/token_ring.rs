//! A token that goes around a ring of processes through pipes, as lmbench has them.

use latlab_core::size::Bytes;
use latlab_core::tally::Tally;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::process::{self, Forked, SingleThread, pipe};
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read as _, Write as _};

type Token = [u8; 4];

/// A ring of processes, of which the caller is one. Dropping it ends the others.
pub(crate) struct Ring {
    to: File,
    from: File,
    set: WorkingSet,
    others: Vec<Forked>,
}

/// The ends of a pipe, as far as they are still open here: to read from, and to write to.
type Ends = (Option<File>, Option<File>);

impl Ring {
    /// So many processes, each with a working set of this size. The token has been around once.
    pub(crate) fn of(processes: u32, size: Bytes, single: &SingleThread) -> io::Result<Ring> {
        let open = |_| pipe().map(|(from, to)| (Some(from), Some(to)));
        let mut pipes: Vec<Ends> = (0..processes).map(open).collect::<io::Result<_>>()?;
        let mut others = Vec::with_capacity(pipes.len());
        for nth in 1..pipes.len() {
            others.push(single.try_fork(|| pass_on(&mut pipes, nth, size))?);
        }
        let to = pipes.first_mut().and_then(|(_, to)| to.take());
        let from = pipes.last_mut().and_then(|(from, _)| from.take());
        // The other ends are the others': who waits for one that is gone must hear it.
        drop(pipes);
        let (to, from) = to.zip(from).ok_or(io::ErrorKind::InvalidInput)?;
        let mut ring = Ring { to, from, set: WorkingSet::of(size), others };
        ring.go_around()?;
        Ok(ring)
    }

    /// Sends the token around once.
    #[inline]
    pub(crate) fn go_around(&mut self) -> io::Result<()> {
        let mut token = Token::default();
        let around = self.to.write_all(&token).and_then(|()| self.from.read_exact(&mut token));
        self.set.sum();
        around.map_err(|_| io::Error::other("a process of the ring has ended"))
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        process::end_all(std::mem::take(&mut self.others));
    }
}

/// The life of the process at this place: it passes the token on until somebody before or after
/// it is gone.
fn pass_on(pipes: &mut Vec<Ends>, nth: usize, size: Bytes) -> io::Result<()> {
    let ends = pipes[nth - 1].0.take().zip(pipes[nth].1.take());
    pipes.clear();
    let (mut from, mut to) = ends.ok_or(io::ErrorKind::InvalidInput)?;
    let (set, mut token) = (WorkingSet::of(size), Token::default());
    loop {
        from.read_exact(&mut token)?;
        set.sum();
        to.write_all(&token)?;
    }
}

/// What passing the token on takes when no other process runs in between: writing it to a pipe,
/// reading it from there, and summing up the working set. One of so many pipes is taken after
/// another; the median of all that was done in 10 ms, and at least of 1000.
pub(crate) fn overhead(pipes: u32, size: Bytes, clock_read: Nanos) -> io::Result<Nanos> {
    const LONG_ENOUGH: Nanos = Nanos::from_millis(10);
    const OFTEN_ENOUGH: u64 = 1_000;
    let pipes = (0..pipes).map(|_| pipe()).collect::<io::Result<Vec<_>>>()?;
    let (set, mut token, tally) = (WorkingSet::of(size), Token::default(), Tally::new());
    let first = clock::now();
    let mut begin = first;
    for (from, to) in pipes.iter().cycle() {
        (&*to).write_all(&token)?;
        (&*from).read_exact(&mut token)?;
        set.sum();
        let end = clock::now();
        tally.record(end - begin - clock_read);
        if end - first > LONG_ENOUGH && tally.recorded() >= OFTEN_ENOUGH {
            break;
        }
        begin = clock::now();
    }
    Ok(tally.histogram().quantile(0.5))
}

/// Memory that a process looks through each time it has the token.
struct WorkingSet(Vec<u64>);

impl WorkingSet {
    fn of(size: Bytes) -> WorkingSet {
        // Written once, so that there is memory behind it.
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
    fn a_token_is_passed_on_through_all_pipes_and_the_set_is_summed_up() {
        let overhead = overhead(3, Bytes(4096), Nanos(0)).unwrap();
        assert!(overhead > Nanos(0));
        assert_eq!(WorkingSet::of(Bytes(4096)).0.len(), 512);
    }
}
