//! Generalised Pareto distribution of the excesses over a threshold, fitted by maximum likelihood.

#[cfg(test)]
mod tests;

use crate::random::Random;

/// Below this shape the likelihood has no maximum of the usual kind.
pub(super) const LEAST_SHAPE: f64 = -0.5;
/// Above this shape the distribution has no mean.
const LARGEST_SHAPE: f64 = 1.0;

/// Excesses over a threshold: values above 0, each with its number of samples.
pub(super) type Excesses = [(f64, u64)];

/// P(excess > x) = (1 + shape · x / scale)^(-1 / shape).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pareto {
    pub(super) shape: f64,
    pub(super) scale: f64,
}

impl Pareto {
    /// Fits shapes from -0.5 to 1; none for fewer than two different values.
    ///
    /// For each ratio of shape and scale the most likely shape is a mean of logarithms (Grimshaw
    /// 1993), so that only the ratio has to be searched.
    pub(super) fn fit(excesses: &Excesses) -> Option<Pareto> {
        let (count, sum) = sums(excesses, |x| x);
        let largest = excesses.iter().map(|(x, _)| *x).fold(0.0, f64::max);
        if excesses.len() < 2 || largest <= 0.0 {
            return None;
        }
        let mean = sum / count;
        let shape = |ratio: f64| sums(excesses, |x| (ratio * x / mean).ln_1p()).1 / count;
        let scale = |ratio: f64, shape: f64| if ratio == 0.0 { 1.0 } else { shape / ratio };
        let unlikely = |ratio: f64| {
            let shape = shape(ratio);
            scale(ratio, shape).ln() + shape
        };
        // The shape grows with the ratio, whose lower bound follows from the largest excess.
        let edge = -(mean / largest) * (1.0 - 1e-9);
        let low = bisect(edge, 0.0, |ratio| shape(ratio) >= LEAST_SHAPE);
        let mut beyond = 1.0;
        while shape(beyond) < LARGEST_SHAPE && beyond < 1e9 {
            beyond *= 2.0;
        }
        let high = bisect(0.0, beyond, |ratio| shape(ratio) >= LARGEST_SHAPE);
        let ratio = least(&ratios(low, high), unlikely);
        let shape = shape(ratio);
        Some(Pareto { shape, scale: scale(ratio, shape) * mean })
    }

    /// Returns the 95 % confidence interval of the excess that a share `rare` of all excesses is
    /// above: all values that the likelihood ratio test does not refuse (profile likelihood). None
    /// if it is unbounded. A parametric bootstrap would underestimate the upper end.
    pub(super) fn interval(&self, rare: f64, excesses: &Excesses) -> Option<(f64, f64)> {
        // Half of the 95 % quantile of a chi-square with one degree of freedom.
        const REFUSED: f64 = 1.920_729;
        const FURTHEST: f64 = 100.0;
        let shapes: Vec<f64> = (0..=30).map(|n| LEAST_SHAPE + f64::from(n) * 0.05).collect();
        let with = |shape: f64, level: f64| {
            let one = Pareto { shape, scale: 1.0 };
            Pareto { shape, scale: level / one.inverse_survival(rare) }.neg_log_likelihood(excesses)
        };
        let least = |level: f64| with(least(&shapes, |shape| with(shape, level)), level);
        let most = self.neg_log_likelihood(excesses) + REFUSED;
        let level = self.inverse_survival(rare);
        if least(level * FURTHEST) < most {
            return None;
        }
        let low = bisect(level / FURTHEST, level, |level| least(level) <= most);
        let high = bisect(level, level * FURTHEST, |level| least(level) > most);
        Some((low, high))
    }

    /// Returns the negative log-likelihood.
    fn neg_log_likelihood(&self, excesses: &Excesses) -> f64 {
        let (count, sum) = if self.shape.abs() < 1e-9 {
            sums(excesses, |x| x / self.scale)
        } else {
            let (count, sum) = sums(excesses, |x| (self.shape * x / self.scale).ln_1p());
            (count, sum * (1.0 + 1.0 / self.shape))
        };
        let unlikely = count * self.scale.ln() + sum;
        // A value is beyond the end of the distribution.
        if unlikely.is_nan() { f64::INFINITY } else { unlikely }
    }

    /// Returns the share of excesses up to `x` (cumulative distribution function).
    pub(super) fn cdf(&self, x: f64) -> f64 {
        if self.shape.abs() < 1e-9 {
            return -(-x / self.scale).exp_m1();
        }
        let base = (self.shape * x / self.scale).max(-1.0);
        -(-base.ln_1p() / self.shape).exp_m1()
    }

    /// Returns the excess that a share `rare` of all excesses is above.
    pub(super) fn inverse_survival(&self, rare: f64) -> f64 {
        if self.shape.abs() < 1e-9 {
            return -self.scale * rare.ln();
        }
        self.scale / self.shape * (-self.shape * rare.ln()).exp_m1()
    }

    /// Draws this many excesses, in ascending order.
    pub(super) fn draw(&self, count: u64, random: &mut Random) -> Vec<(f64, u64)> {
        let mut drawn: Vec<(f64, u64)> =
            (0..count).map(|_| (self.inverse_survival(random.share()), 1)).collect();
        drawn.sort_by(|a, b| a.0.total_cmp(&b.0));
        drawn
    }

    /// Returns the Kolmogorov-Smirnov distance between the fitted and the empirical distribution;
    /// the excesses must be in ascending order.
    pub(super) fn distance(&self, excesses: &Excesses) -> f64 {
        let (count, _) = sums(excesses, |x| x);
        let (mut before, mut most) = (0.0, 0.0f64);
        for (x, times) in excesses {
            #[expect(clippy::cast_precision_loss, reason = "at most some hundreds are fitted")]
            let after = before + *times as f64 / count;
            let fitted = self.cdf(*x);
            // A value represents a bucket: half of its samples are below.
            most = most.max((fitted - f64::midpoint(before, after)).abs());
            before = after;
        }
        most
    }
}

/// Returns the number of excesses, and the sum of `of` over them.
#[expect(clippy::cast_precision_loss, reason = "at most some hundreds are fitted")]
fn sums(excesses: &Excesses, of: impl Fn(f64) -> f64) -> (f64, f64) {
    excesses.iter().fold((0.0, 0.0), |(count, sum), (x, times)| {
        (count + *times as f64, sum + of(*x) * *times as f64)
    })
}

/// Returns the point from which on `is_so` is true.
fn bisect(mut low: f64, mut high: f64, is_so: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if is_so(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// Returns the ratios from low to high at which the search for the maximum starts: shapes grow with
/// the logarithm of a large ratio.
fn ratios(low: f64, high: f64) -> Vec<f64> {
    const NEAR: f64 = 0.01;
    let below = (0..8).map(|n| low * f64::from(8 - n) / 8.0);
    let times = high.max(NEAR) / NEAR;
    let above = (0..20).map(|n| NEAR * times.powf(f64::from(n) / 19.0));
    below.chain([0.0]).chain(above).collect()
}

/// Returns the minimum of `of`: the best of these ascending points, refined by golden section.
fn least(places: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let best = (0..places.len()).min_by(|x, y| of(places[*x]).total_cmp(&of(places[*y])));
    let best = best.unwrap_or_default();
    let (mut from, mut to) =
        (places[best.saturating_sub(1)], places[(best + 1).min(places.len() - 1)]);
    let mut inner = [to - GOLDEN * (to - from), from + GOLDEN * (to - from)];
    let mut values = inner.map(&of);
    for _ in 0..40 {
        if values[0] < values[1] {
            to = inner[1];
            inner = [to - GOLDEN * (to - from), inner[0]];
            values = [of(inner[0]), values[0]];
        } else {
            from = inner[0];
            inner = [inner[1], from + GOLDEN * (to - from)];
            values = [values[1], of(inner[1])];
        }
    }
    f64::midpoint(from, to)
}
