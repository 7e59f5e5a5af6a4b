//! What measuring itself costs: found before the first sample, so that it can be taken off.

use super::Rig;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The cost of something that is done once for each sample.
#[derive(Debug)]
pub(crate) struct Cost {
    name: &'static str,
    /// On the CPU where it is least.
    least: AtomicU64,
}

impl Cost {
    /// One that will be known under this name.
    pub(crate) const fn of(name: &'static str) -> Cost {
        Cost { name, least: AtomicU64::new(u64::MAX) }
    }

    /// One reading of the clock.
    pub(crate) const fn of_the_clock() -> Cost {
        Cost::of("one reading of the clock")
    }

    /// What one reading of the clock costs on this CPU.
    pub(crate) fn read_the_clock(&self) -> Nanos {
        self.note(clock::read_cost())
    }

    /// What doing something once costs on this CPU: the least of several batches, back to back.
    pub(crate) fn measure(&self, mut once: impl FnMut() -> io::Result<()>) -> io::Result<Nanos> {
        const ROUNDS: u64 = 200;
        let mut least = Nanos::MAX;
        for _ in 0..5 {
            let begin = clock::now();
            for _ in 0..ROUNDS {
                once()?;
            }
            least = least.min(Nanos((clock::now() - begin).0 / ROUNDS));
        }
        Ok(self.note(least))
    }

    fn note(&self, cost: Nanos) -> Nanos {
        self.least.fetch_min(cost.0, Relaxed);
        cost
    }
}

impl Rig<'_> {
    /// Keeps what was found of a cost.
    #[expect(clippy::cast_precision_loss, reason = "a cost has fewer than 52 bits")]
    pub(crate) fn keep_cost(&mut self, probe: &str, cost: &Cost) {
        let least = cost.least.load(Relaxed);
        // Who was stopped before that has found none.
        if least != u64::MAX {
            self.figure(probe, cost.name, least as f64, "ns");
        }
    }
}
