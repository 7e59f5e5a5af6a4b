//! Result of one ring: the switches between its processes.

use crate::rig::{Sampler, Share};
use crate::workload::worker::Worker;
use latlab_core::histogram::Histogram;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::samples::{Sample, Samples};
use std::io;

/// Result of one number of processes with one size.
pub(super) struct RingResult {
    pub(super) processes: u32,
    pub(super) size: Bytes,
    /// Time of the pipe and the sum in a single process.
    pub(super) overhead: Nanos,
    /// Cost of one clock reading.
    pub(super) clock_read: Nanos,
    pub(super) switches: Histogram,
}

impl RingResult {
    /// Collects the samples of a running ring for one of `left` shares of the remaining run, and
    /// then stops it.
    pub(super) fn collect(
        &mut self,
        sampler: &mut Sampler<'_>,
        left: u64,
        shared: &Samples,
        worker: &mut Worker,
    ) -> io::Result<()> {
        const PACE: Nanos = Nanos::from_millis(10);
        let (share, mut taken, lost) = (sampler.next_share(left), Vec::new(), shared.lost());
        while sampler.running_in(share) {
            if worker.receive_within::<Nanos>(PACE)?.is_some() {
                return Err(io::Error::other("the ring ended before it was told to stop"));
            }
            shared.take(&mut taken);
            taken.iter().all(|sample| self.record(sampler, share, *sample));
        }
        shared.set_stopped(true);
        worker.receive_last::<Nanos>()?;
        // Samples after the end of the share are dropped.
        shared.take(&mut taken);
        sampler.advance(clock::now(), shared.lost() - lost);
        Ok(())
    }

    /// Records one round. Returns whether to go on.
    fn record(&mut self, sampler: &mut Sampler<'_>, share: Share, around: Sample) -> bool {
        let each = per_process(around.latency, self.clock_read, self.processes);
        if each < self.overhead {
            sampler.count_below_zero();
        }
        let switch = each - self.overhead;
        sampler.record(0, around.at, switch);
        sampler.advance(around.at, 0);
        if sampler.is_counting() {
            self.switches.record(switch);
        }
        sampler.running_in(share)
    }
}

/// Returns the share of each process in the time of one round, which includes one reading of the
/// clock.
fn per_process(around: Nanos, clock_read: Nanos, processes: u32) -> Nanos {
    Nanos((around - clock_read).0 / u64::from(processes.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn per_process_divides_time_without_clock_read() {
        assert_eq!(per_process(Nanos(8_040), Nanos(40), 8), Nanos(1_000));
        assert_eq!(per_process(Nanos(10), Nanos(40), 8), Nanos(0));
    }
}
