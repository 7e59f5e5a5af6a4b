//! Numbers that look random and are the same for the same seed: for loads, never for statistics.

/// A stream of numbers (xorshift64*, Vigna 2016).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed; any seed is good.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
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
}
