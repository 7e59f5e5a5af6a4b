//! Numbers that look random and are the same for the same seed: for loads, and for resampling runs
//! so that the same records always give the same answer. Never for secrets.

/// A stream of numbers (xorshift64*, Vigna 2016).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed; any seed is good.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number from 0 up to, but not including, `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        // The high bits are the better ones; of 2^64 numbers the unevenness is not to be seen.
        let drawn = u128::from(self.next().unwrap_or_default()) * end as u128;
        usize::try_from(drawn >> 64).unwrap_or_default()
    }

    /// A share of one, above 0 and below 1.
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
    fn a_seed_gives_its_own_stream_again() {
        let draw = |seed| Random::new(seed).take(100).collect::<Vec<_>>();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(0), draw(2));
        assert_eq!(draw(0).into_iter().collect::<BTreeSet<_>>().len(), 100);
    }

    #[test]
    fn each_place_and_each_share_comes_as_often_as_the_others() {
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
