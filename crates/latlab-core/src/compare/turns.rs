//! Runs of two sides taken in turns, A B, B A, until a difference is decided.
//!
//! Each look at the runs is one more chance to find a difference where there is none, so that the
//! error rate is divided among the looks (Bonferroni): half among the early ones, half for the
//! last. Early looks judge the runs as sets, because six pairs allow no probability below 1 in 32,
//! while six runs that all lie above six others have 1 in 462.

use super::{Comparison, Verdict};

/// At most this share of comparisons in turns decides on a difference where there is none.
pub const ERROR_RATE: f64 = 1.0 / 40.0;

/// Numbers of pairs after which a difference may be decided before the last pair.
const EARLY: [usize; 9] = [6, 8, 12, 16, 24, 32, 48, 64, 96];

/// Smallest number of pairs that is judged pair by pair at the last look.
const FEWEST_PAIRED: usize = 8;

/// Smallest and largest number of pairs that may be asked for.
pub const PAIRS: std::ops::RangeInclusive<usize> = 6..=100;

/// A look at the runs taken so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Significance level.
    pub level: f64,
    /// Whether this look judges pair by pair, which drift of the machine affects least.
    pub paired: bool,
}

/// Returns the look after this number of pairs, of at most `most`; none where more pairs are
/// needed first.
pub fn look(pairs: usize, most: usize) -> Option<Look> {
    let early = || EARLY.iter().filter(|at| **at < most);
    if pairs >= most {
        let level = if early().next().is_none() { ERROR_RATE } else { ERROR_RATE / 2.0 };
        // Seven pairs allow no probability below 1 in 64.
        return Some(Look { level, paired: most >= FEWEST_PAIRED });
    }
    #[expect(clippy::cast_precision_loss, reason = "there are nine")]
    let looks = early().count() as f64;
    EARLY.contains(&pairs).then(|| Look { level: ERROR_RATE / 2.0 / looks, paired: false })
}

/// Returns the look after the last pair.
pub fn last_look(most: usize) -> Look {
    look(most, most).expect("the last pair is looked at")
}

/// Returns how many more pairs are taken before the next look.
pub fn pairs_to_next_look(pairs: usize, most: usize) -> usize {
    (pairs + 1..=most).find(|next| look(*next, most).is_some()).map_or(0, |next| next - pairs)
}

/// Whether a difference was found.
pub fn is_decided(comparison: &Comparison) -> bool {
    let differs = |verdict| matches!(verdict, Verdict::Faster | Verdict::Slower | Verdict::Mixed);
    comparison.latencies.iter().any(|latency| differs(latency.verdict()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_share_the_error_rate() {
        for most in PAIRS {
            let looks: Vec<Look> = (1..=most).filter_map(|pairs| look(pairs, most)).collect();
            let sum: f64 = looks.iter().map(|look| look.level).sum();
            assert!((sum - ERROR_RATE).abs() < 1e-9, "{most}: {sum}");
            assert!(looks.last().is_some_and(|look| look.paired || most < 8), "{most}");
            assert_eq!(look(5, most), None);
            assert_eq!(pairs_to_next_look(3, most), 3, "{most}");
            assert_eq!(pairs_to_next_look(most, most), 0);
        }
        assert_eq!(pairs_to_next_look(6, 10), 2);
        assert_eq!(pairs_to_next_look(8, 10), 2);
    }
}
