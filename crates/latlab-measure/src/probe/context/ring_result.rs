//! Result of one ring: the switches between its processes.

use super::Order;
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
    /// Lets a ring circulate for one of `left` shares of the remaining run, and takes its samples
    /// whenever it rests.
    pub(super) fn collect(
        &mut self,
        sampler: &mut Sampler<'_>,
        left: u64,
        shared: &Samples,
        worker: &mut Worker,
    ) -> io::Result<()> {
        let (share, mut taken) = (sampler.next_share(left), Vec::new());
        while sampler.running_in(share) {
            worker.send(&Order::Circulate)?;
            let Some(()) = worker.receive(sampler)? else { break };
            shared.take(&mut taken);
            // Samples after the end of the share are dropped.
            taken.iter().all(|sample| self.record(sampler, share, *sample));
        }
        sampler.advance(clock::now(), 0);
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
