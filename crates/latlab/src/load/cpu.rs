//! Computing: matrices are multiplied.

use super::{Bench, Load, Place};
use crate::registry::About;
use latlab_core::random::Random;
use std::hint::black_box;
use std::io;

/// Multiplies matrices of doubles, one worker on each CPU.
///
/// The computing load of Seo et al. 2009 (section 4): it takes the CPU and its caches, and asks
/// nothing of the kernel. Its work is counted in matrix products.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Cpu {
    /// Rows and columns of each matrix; three of them lie in memory
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(2..=4096))]
    size: u32,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Load for Cpu {
    const ABOUT: About = About { name: "cpu", summary: "matrix multiplication" };
    const UNIT: &'static str = "matrix products";

    fn place(&self) -> &Place {
        &self.place
    }

    fn work(&self, bench: &Bench) -> io::Result<()> {
        let n = self.size as usize;
        let (a, b) = (filled(n, bench.seed), filled(n, bench.seed + 1));
        let mut product = vec![0.0; n * n];
        bench.ready();
        while bench.running() {
            if multiply(&a, &b, &mut product, n, || bench.running()) {
                bench.done(1);
            }
            black_box(&product);
        }
        Ok(())
    }
}

/// A matrix of numbers between 0 and 1.
#[expect(clippy::cast_precision_loss, reason = "any number will do")]
fn filled(n: usize, seed: u64) -> Vec<f64> {
    Random::new(seed).map(|number| number as f64 / u64::MAX as f64).take(n * n).collect()
}

/// Row by row, so that a large product can be left half-way. Whether it was finished.
fn multiply(a: &[f64], b: &[f64], product: &mut [f64], n: usize, go_on: impl Fn() -> bool) -> bool {
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
}
