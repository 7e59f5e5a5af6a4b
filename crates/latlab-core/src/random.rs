//! Reproducible pseudo-random numbers: for loads, and for resampling runs, so that the same records
//! always give the same result. Not for cryptography.

/// A sequence of pseudo-random numbers (xorshift64*, Vigna 2016).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts the sequence of a seed; any seed is valid.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns a number from 0 to `end` - 1; `end` must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        // The high bits are the better ones; with 2^64 numbers the bias is negligible.
        let drawn = u128::from(self.next().unwrap_or_default()) * end as u128;
        usize::try_from(drawn >> 64).unwrap_or_default()
    }

    /// Returns a number between 0 and 1, both excluded.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are kept, which a float holds")]
    pub fn share(&mut self) -> f64 {
        ((self.next().unwrap_or_default() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }
}

impl Iterator for Random {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        Some(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn seeds_give_reproducible_and_different_sequences() {
        let draw = |seed| Random::new(seed).take(100).collect::<Vec<_>>();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(0), draw(2));
        assert_eq!(draw(0).into_iter().collect::<BTreeSet<_>>().len(), 100);
    }

    #[test]
    fn numbers_and_shares_are_uniform() {
        let mut random = Random::new(7);
        let (mut places, mut shares) = ([0; 6], [0; 6]);
        for _ in 0..60_000 {
            places[random.below(6)] += 1;
            let share = random.share();
            shares[(0..5).filter(|n| share > f64::from(n + 1) / 6.0).count()] += 1;
        }
        // Five standard deviations of a count of 10 000 are 460.
        assert!(places.iter().chain(&shares).all(|n| (9_540..10_460).contains(n)), "{places:?}");
    }
}
