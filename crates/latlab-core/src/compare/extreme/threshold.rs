//! Threshold selection: the lowest threshold above which the shape of the tail is stable.

use super::FEWEST;
use super::pareto::Pareto;
use crate::histogram::Histogram;
use crate::time::Nanos;

/// Returns the lowest threshold above which the fitted shape stays the same. At most `most` samples
/// are above it, at least twice [`FEWEST`]; it is not below `floor`.
pub(super) fn stable(histogram: &Histogram, most: u64, floor: Nanos) -> Result<Nanos, String> {
    let mut fits: Vec<(Nanos, f64, f64)> = Vec::new();
    let mut wanted = most;
    while wanted >= FEWEST {
        let threshold = value_reached_by(histogram, wanted).max(floor);
        let excesses = excesses(histogram, threshold);
        let count: u64 = excesses.iter().map(|(_, count)| count).sum();
        let fit = Pareto::fit(&excesses).filter(|_| count >= FEWEST / 2);
        #[expect(clippy::cast_precision_loss, reason = "at most some hundreds are fitted")]
        if let Some(fit) = fit {
            // Variance of the maximum-likelihood shape (Smith 1987).
            fits.push((threshold, fit.shape, (1.0 + fit.shape).powi(2) / count as f64));
        }
        wanted = (wanted * 5).div_ceil(7);
    }
    fits.dedup_by_key(|fit| fit.0);
    // The excesses over a higher threshold are a subset of those over a lower one: the variance of
    // the difference of their shapes is the difference of their variances.
    let agrees = |(_, shape, variance): &(Nanos, f64, f64), (_, other, more): &(_, f64, f64)| {
        (shape - other).abs() <= 2.5 * (more - variance).max(variance * 0.1).sqrt()
    };
    let from = (0..fits.len()).find(|n| fits[n + 1..].iter().all(|fit| agrees(&fits[*n], fit)));
    match from {
        Some(n) if fits.len() - n >= 3 => Ok(fits[n].0),
        _ => Err("no stable POT threshold found".to_owned()),
    }
}

/// Returns the lowest value that at most this many samples reach.
pub(super) fn value_reached_by(histogram: &Histogram, most: u64) -> Nanos {
    let mut above = 0;
    let buckets: Vec<_> = histogram.buckets().collect();
    for bucket in buckets.iter().rev() {
        above += bucket.count;
        if above > most {
            return bucket.to;
        }
    }
    Nanos(0)
}

/// Returns the middle of each bucket above the threshold, minus the threshold.
#[expect(clippy::cast_precision_loss, reason = "a latency of 2^53 ns is 104 days long")]
pub(super) fn excesses(histogram: &Histogram, threshold: Nanos) -> Vec<(f64, u64)> {
    let above = histogram.buckets().filter(|bucket| bucket.from >= threshold);
    let middle = |from: Nanos, to: Nanos| f64::midpoint(from.0 as f64, to.0 as f64);
    above.map(|b| (middle(b.from, b.to) - threshold.0 as f64, b.count)).collect()
}
