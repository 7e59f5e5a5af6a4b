//! Computing load: matrix multiplication.

use super::{Load, LoadContext, Place, space};
use crate::rig::TaskScheduling;
use latlab_core::random::Random;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result};
use latlab_part::part::{About, Describe};
use latlab_sys::{clock, sched};
use std::hint::black_box;
use std::io;

/// Multiplies matrices of doubles, one worker on each CPU.
///
/// The computing load of Seo et al. 2009 (section 4): it uses the CPU and its caches, and makes no
/// system calls. With `busy=400ms,every=1s,policy=fifo` and a priority it is the medium-priority
/// task of figure 9, which wakes up every second and computes for 400 ms. Counts matrix products.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Cpu {
    /// Rows and columns of each of the three matrices
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(2..=4096))]
    size: u32,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
    /// CPU time that a worker uses after each wake-up; without it, it never sleeps
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    busy: Option<Nanos>,
    /// Time from one wake-up to the next, for busy=
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    every: Option<Nanos>,
    #[command(flatten)]
    #[serde(flatten)]
    tasks: TaskScheduling,
}

impl Describe for Cpu {
    const ABOUT: About = About { name: "cpu", summary: "matrix multiplication" };
}

impl Load for Cpu {
    fn unit(&self) -> &'static str {
        "matrix products"
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn check(&self, workers: u64) -> Result<()> {
        self.cycle()?;
        // Three matrices of numbers of eight bytes.
        let each = 3 * 8 * u64::from(self.size).pow(2);
        space::check_memory(Self::ABOUT.name, Bytes(each.saturating_mul(workers)))?;
        self.tasks.check_with_alternative("; or use policy=other")
    }

    fn work(&self, context: &LoadContext) -> io::Result<()> {
        let n = self.size as usize;
        let (a, b) = (filled(n, context.seed), filled(n, context.seed + 1));
        let mut product = vec![0.0; n * n];
        let mut cycle = self.cycle().map_err(io::Error::other)?;
        sched::set_policy(self.tasks.scheduling().policy_with_offset(0))?;
        context.ready();
        cycle.iter_mut().for_each(Cycle::begin);
        let mut go_on = || {
            cycle.iter_mut().for_each(Cycle::sleep_if_used_up);
            context.running()
        };
        while go_on() {
            if multiply(&a, &b, &mut product, n, &mut go_on) {
                context.done(1);
            }
            black_box(&product);
        }
        Ok(())
    }
}

impl Cpu {
    /// The cycle of computing and sleeping; none for a worker that never sleeps.
    fn cycle(&self) -> Result<Option<Cycle>> {
        const BOTH: &str = "give both, as in busy=400ms,every=1s";
        let refused = |why: String| Err(Failure::failed(format!("cpu: {why}")));
        let policy = self.tasks.scheduling().policy;
        match (self.busy, self.every) {
            (Some(busy), Some(every)) if Nanos(0) < busy && busy < every => {
                Ok(Some(Cycle { busy, every, wake: Nanos(0), until: Nanos(0) }))
            }
            (Some(Nanos(0)), Some(_)) => refused("busy=0s is too short".to_owned()),
            (Some(busy), Some(every)) => {
                refused(format!("busy={busy} must be shorter than every={every}"))
            }
            (Some(_), None) => refused(format!("busy= has no effect without every=: {BOTH}")),
            (None, Some(_)) => refused(format!("every= has no effect without busy=: {BOTH}")),
            (None, None) if policy != "other" => refused(format!(
                "tasks with policy={policy} that never sleep would starve all others, latlab \
                 included: give busy= and every=, as in busy=400ms,every=1s"
            )),
            (None, None) => Ok(None),
        }
    }
}

/// Computing for some CPU time after each wake-up.
#[derive(Debug)]
struct Cycle {
    busy: Nanos,
    every: Nanos,
    /// Time of the last wake-up, as planned.
    wake: Nanos,
    /// CPU time of the thread at which it sleeps next.
    until: Nanos,
}

impl Cycle {
    fn begin(&mut self) {
        (self.wake, self.until) = (clock::now(), clock::thread_cpu_time() + self.busy);
    }

    /// Sleeps until the next planned wake-up in the future, if the CPU time is used up.
    fn sleep_if_used_up(&mut self) {
        if clock::thread_cpu_time() < self.until {
            return;
        }
        let passed = (clock::now() - self.wake).0 / self.every.0;
        self.wake = self.wake + Nanos(self.every.0 * (passed + 1));
        clock::sleep_until(self.wake);
        self.until = clock::thread_cpu_time() + self.busy;
    }
}

/// A matrix of numbers between 0 and 1.
#[expect(clippy::cast_precision_loss, reason = "any number serves")]
fn filled(n: usize, seed: u64) -> Vec<f64> {
    Random::new(seed).map(|number| number as f64 / u64::MAX as f64).take(n * n).collect()
}

/// Multiplies row by row, so that a large product can be interrupted. Whether it was finished.
fn multiply(
    a: &[f64],
    b: &[f64],
    product: &mut [f64],
    n: usize,
    mut go_on: impl FnMut() -> bool,
) -> bool {
    for (row, out) in a.chunks(n).zip(product.chunks_mut(n)) {
        if !go_on() {
            return false;
        }
        out.fill(0.0);
        for (factor, line) in row.iter().zip(b.chunks(n)) {
            for (cell, number) in out.iter_mut().zip(line) {
                *cell += factor * number;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_of_two_matrices_is_correct() {
        let mut product = vec![0.0; 4];
        assert!(multiply(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], &mut product, 2, || true));
        assert_eq!(product, [19.0, 22.0, 43.0, 50.0]);
    }

    #[test]
    fn cycle_sleeps_after_its_cpu_time_until_next_planned_wake_up() {
        let (busy, every) = (Nanos::from_millis(3), Nanos::from_millis(10));
        let mut cycle = Cycle { busy, every, wake: Nanos(0), until: Nanos(0) };
        cycle.begin();
        let began = cycle.wake;
        cycle.sleep_if_used_up();
        assert_eq!(cycle.wake, began, "the CPU time is not used up");
        while clock::thread_cpu_time() < cycle.until {}
        let computed = clock::now();
        cycle.sleep_if_used_up();
        assert!(cycle.wake > computed && clock::now() >= cycle.wake);
        assert_eq!((cycle.wake - began).0 % every.0, 0);
        assert!(cycle.until > clock::thread_cpu_time());
    }
}
