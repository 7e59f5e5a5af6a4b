//! Costs of measuring: the clock, recording a sample, and whatever else a probe subtracts.

use super::conditions::Conditions;
use super::coordination::Coordination;
use super::{Phase, Rig, Sampler};
use latlab_core::plan::Length;
use latlab_core::random::Random;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Cost of an operation that is done once per sample, measured before the first sample.
#[derive(Debug)]
pub struct Cost {
    name: &'static str,
    /// Minimum over all CPUs.
    min: AtomicU64,
}

impl Cost {
    /// Returns a cost, not yet measured, whose figure has this name.
    pub const fn new(name: &'static str) -> Cost {
        Cost { name, min: AtomicU64::new(u64::MAX) }
    }

    /// Returns the cost of one clock reading, not yet measured.
    pub const fn of_clock_read() -> Cost {
        Cost::new("one reading of the clock")
    }

    /// Measures one clock reading on this CPU.
    pub fn measure_clock_read(&self) -> Nanos {
        self.note(clock::read_cost())
    }

    /// Measures `operation` on this CPU: the minimum over several batches of back-to-back calls.
    pub fn measure(&self, mut operation: impl FnMut() -> io::Result<()>) -> io::Result<Nanos> {
        const ROUNDS: u64 = 200;
        let mut min = Nanos::MAX;
        for _ in 0..5 {
            let begin = clock::now();
            for _ in 0..ROUNDS {
                operation()?;
            }
            min = min.min(Nanos((clock::now() - begin).0 / ROUNDS));
        }
        Ok(self.note(min))
    }

    fn note(&self, cost: Nanos) -> Nanos {
        self.min.fetch_min(cost.0, Relaxed);
        cost
    }
}

impl Rig<'_> {
    /// Adds the figure of a cost, if it was measured: a probe may be stopped before.
    #[expect(clippy::cast_precision_loss, reason = "a cost has fewer than 52 bits")]
    pub fn add_cost(&mut self, probe: &str, cost: &Cost) {
        let min = cost.min.load(Relaxed);
        if min != u64::MAX {
            self.add_figure(probe, cost.name, min as f64, "ns");
        }
    }
}

/// Measures the cost of recording one sample: the minimum over several batches on a sampler of its
/// own. The samples vary as real ones do, so that not all buckets are in the cache.
pub fn record_cost() -> Nanos {
    const SAMPLES: u16 = 2_000;
    let coordination = Coordination::new(1);
    let conditions = Conditions {
        length: Length::Count(u64::MAX),
        warm_up: Nanos(0),
        limit: Nanos::MAX,
        brief: false,
    };
    let mut sampler = Sampler::new(0, 1, Some(Nanos::from_millis(1)), conditions, &coordination);
    let mut due = sampler.first_due(Phase::Aligned);
    let delays: Vec<Nanos> =
        Random::new(0).map(|n| Nanos(3_000 + n % 30_000)).take(SAMPLES.into()).collect();
    let mut batch = || {
        let begin = clock::now();
        for delay in &delays {
            sampler.running();
            due = sampler.record_wakeup(due, due + *delay);
        }
        (clock::now() - begin).0 / u64::from(SAMPLES)
    };
    Nanos((0..5).map(|_| batch()).min().unwrap_or(0))
}
