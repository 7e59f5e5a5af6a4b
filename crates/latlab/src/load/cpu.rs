//! Computing: matrices are multiplied.

use super::{Bench, Load, Place};
use crate::failure::{Failure, Result};
use crate::registry::About;
use crate::rig::Tasks;
use latlab_core::random::Random;
use latlab_core::time::Nanos;
use latlab_sys::{clock, sched};
use std::hint::black_box;
use std::io;

/// Multiplies matrices of doubles, one worker on each CPU.
///
/// The computing load of Seo et al. 2009 (section 4): it takes the CPU and its caches, and asks
/// nothing of the kernel. With `busy=400ms,every=1s,policy=fifo` and a priority it is the task in
/// the middle of its figure 9, which wakes up every second and computes for so long. Its work is
/// counted in matrix products.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Cpu {
    /// Rows and columns of each matrix; three of them lie in memory
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(2..=4096))]
    size: u32,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
    /// CPU time that a worker takes from one waking to its sleep; it never sleeps if not given
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    busy: Option<Nanos>,
    /// Time from one waking to the next, for busy=
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    every: Option<Nanos>,
    #[command(flatten)]
    #[serde(flatten)]
    tasks: Tasks,
}

impl Load for Cpu {
    const ABOUT: About = About { name: "cpu", summary: "matrix multiplication" };
    const UNIT: &'static str = "matrix products";

    fn place(&self) -> &Place {
        &self.place
    }

    fn check(&self, _workers: u64) -> Result<()> {
        self.spell()?;
        self.tasks.check_or("; or give it policy=other")
    }

    fn work(&self, bench: &Bench) -> io::Result<()> {
        let n = self.size as usize;
        let (a, b) = (filled(n, bench.seed), filled(n, bench.seed + 1));
        let mut product = vec![0.0; n * n];
        let mut spell = self.spell().map_err(io::Error::other)?;
        sched::set_policy(self.tasks.scheduling().policy_at(0))?;
        bench.ready();
        spell.iter_mut().for_each(Spell::begin);
        let mut go_on = || {
            spell.iter_mut().for_each(Spell::sleep_after_it);
            bench.running()
        };
        while go_on() {
            if multiply(&a, &b, &mut product, n, &mut go_on) {
                bench.done(1);
            }
            black_box(&product);
        }
        Ok(())
    }
}

impl Cpu {
    /// How it computes and sleeps in turns; none where it never sleeps.
    fn spell(&self) -> Result<Option<Spell>> {
        const BOTH: &str = "give both, as in busy=400ms,every=1s";
        let refused = |why: String| Err(Failure::Failed(format!("cpu: {why}")));
        let policy = self.tasks.scheduling().policy;
        match (self.busy, self.every) {
            (Some(busy), Some(every)) if Nanos(0) < busy && busy < every => {
                Ok(Some(Spell { busy, every, wake: Nanos(0), until: Nanos(0) }))
            }
            (Some(Nanos(0)), Some(_)) => refused("busy=0s is no load".to_owned()),
            (Some(busy), Some(every)) => refused(format!(
                "who computes for busy={busy} can't wake up every={every}: give a shorter busy="
            )),
            (Some(_), None) => refused(format!("busy= is nothing without every=: {BOTH}")),
            (None, Some(_)) => refused(format!("every= is nothing without busy=: {BOTH}")),
            (None, None) if policy != "other" => refused(format!(
                "tasks of policy={policy} that never sleep leave no time to others, latlab \
                 included: give busy= and every=, as in busy=400ms,every=1s"
            )),
            (None, None) => Ok(None),
        }
    }
}

/// Computing for some CPU time after each waking.
#[derive(Debug)]
struct Spell {
    busy: Nanos,
    every: Nanos,
    /// When it last was to wake up.
    wake: Nanos,
    /// The CPU time of the thread at which it is to sleep.
    until: Nanos,
}

impl Spell {
    fn begin(&mut self) {
        (self.wake, self.until) = (clock::now(), clock::of_thread() + self.busy);
    }

    /// Sleeps until the next waking that is still to come, if the time is used up.
    fn sleep_after_it(&mut self) {
        if clock::of_thread() < self.until {
            return;
        }
        let passed = (clock::now() - self.wake).0 / self.every.0;
        self.wake = self.wake + Nanos(self.every.0 * (passed + 1));
        clock::sleep_until(self.wake);
        self.until = clock::of_thread() + self.busy;
    }
}

/// A matrix of numbers between 0 and 1.
#[expect(clippy::cast_precision_loss, reason = "any number will do")]
fn filled(n: usize, seed: u64) -> Vec<f64> {
    Random::new(seed).map(|number| number as f64 / u64::MAX as f64).take(n * n).collect()
}

/// Row by row, so that a large product can be left half-way. Whether it was finished.
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
    fn the_product_is_right() {
        let mut product = vec![0.0; 4];
        assert!(multiply(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], &mut product, 2, || true));
        assert_eq!(product, [19.0, 22.0, 43.0, 50.0]);
    }

    #[test]
    fn it_sleeps_once_it_has_had_its_time_and_until_a_waking_that_is_to_come() {
        let (busy, every) = (Nanos::from_millis(3), Nanos::from_millis(10));
        let mut spell = Spell { busy, every, wake: Nanos(0), until: Nanos(0) };
        spell.begin();
        let began = spell.wake;
        spell.sleep_after_it();
        assert_eq!(spell.wake, began, "its time is not used up");
        while clock::of_thread() < spell.until {}
        let computed = clock::now();
        spell.sleep_after_it();
        assert!(spell.wake > computed && clock::now() >= spell.wake);
        assert_eq!((spell.wake - began).0 % every.0, 0);
        assert!(spell.until > clock::of_thread());
    }
}
