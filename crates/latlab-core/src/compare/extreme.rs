//! Tail extrapolation beyond the maximum: peaks over threshold (POT), if its conditions hold.
//!
//! Above a high threshold the excesses of independent, identically distributed samples follow a
//! generalised Pareto distribution (Pickands 1975). Many latencies are neither independent nor
//! identically distributed. Every condition that a record allows to be tested is tested; if one
//! fails, the reason is reported instead of an estimate.

mod causes;
mod homogeneity;
mod pareto;
mod threshold;

#[cfg(test)]
mod tests;

use self::pareto::{Excesses, LEAST_SHAPE, Pareto};
use self::threshold::{excesses, stable, value_reached_by};
use crate::histogram::Histogram;
use crate::random::Random;
use crate::record::{Record, Series};
use crate::time::Nanos;
use serde::Serialize;

/// Significance level: a condition is refused if its p-value is below this.
const REFUSED_BELOW: f64 = 0.05;
/// Minimum and maximum number of excesses that are fitted.
const FEWEST: u64 = 50;
const MOST: u64 = 500;
/// At most one sample in this many belongs to the tail.
const TAIL: u64 = 10;
/// The estimate is for this many times as many samples as were measured.
const FURTHER: u64 = 10;
/// Number of simulations of the goodness-of-fit test (parametric bootstrap).
const SIMULATED: usize = 199;
/// Histogram buckets are a thousandth wide: the scale of a fit must exceed this many of them.
const BUCKETS: f64 = 5.0;

const HEAVY: &str = "the tail is too heavy: its upper limit cannot be estimated";

/// Estimate of the tail of a latency, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Extreme {
    /// The cause, where wake-ups were explained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// Why there is no estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Latency that is expected to be exceeded once in a number of samples (return level).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Level {
    /// Number of samples: ten times as many as were measured.
    pub once_in: u64,
    /// The latency.
    pub latency: Nanos,
    /// Lower end of the 95 % confidence interval.
    pub low: Nanos,
    /// Upper end.
    pub high: Nanos,
    /// Samples above it are the tail.
    pub threshold: Nanos,
    /// Number of samples above the threshold.
    pub exceedances: u64,
    /// Shape of the fit.
    pub shape: f64,
    /// Scale of the fit, in nanoseconds.
    pub scale: f64,
}

/// One latency of one side: its series in all runs, and their sum.
pub(super) struct Tail<'a> {
    pub(super) runs: &'a [&'a Record],
    pub(super) series: Vec<&'a Series>,
    pub(super) whole: &'a Histogram,
}

impl Tail<'_> {
    /// Estimates the tail of all samples or, where wake-ups were explained, of each cause.
    pub(super) fn beyond(&self) -> Vec<Extreme> {
        if self.runs.iter().any(|run| run.explained.is_some()) {
            return causes::beyond(self);
        }
        vec![Extreme::of(None, self.estimate())]
    }

    fn estimate(&self) -> Result<Level, String> {
        if self.series.iter().any(|series| series.beyond.is_some()) {
            return Err(
                "the longest samples are above the range of the tool that measured them".to_owned()
            );
        }
        if self.runs.iter().any(|run| run.runs > 1) {
            return Err("the runs were merged, which loses their order".to_owned());
        }
        let most = (self.whole.count() / TAIL).min(MOST);
        if most < 2 * FEWEST {
            let least = 2 * FEWEST * TAIL;
            return Err(format!("{} samples are too few: {least} are needed", self.whole.count()));
        }
        let threshold = stable(self.whole, most, Nanos(0))?;
        let late = self.series.iter().map(|series| late(series, threshold));
        spread_over_runs(&late.collect::<Vec<_>>())?;
        // A time line keeps only the worst sample of each interval. Its test needs a threshold that
        // some intervals do not reach.
        let intervals: usize = self.series.iter().map(|s| s.timeline.points().count()).sum();
        let some = value_reached_by(self.whole, most.min(intervals as u64 / 4)).max(threshold);
        let lines = self.series.iter().map(|series| homogeneity::above(series, some));
        spread_over_time(&lines.collect::<Vec<_>>())?;
        level(&excesses(self.whole, threshold), threshold, self.whole.count())
    }
}

impl Extreme {
    fn of(cause: Option<String>, estimate: Result<Level, String>) -> Extreme {
        let (level, refused) = match estimate {
            Ok(level) => (Some(level), None),
            Err(why) => (None, Some(why)),
        };
        Extreme { cause, level, refused }
    }
}

/// Refuses late samples that are unevenly distributed: (late samples, all samples) of each series.
fn spread_over_runs(late: &[(u64, u64)]) -> Result<(), String> {
    if homogeneity::over_runs(late) < REFUSED_BELOW {
        let why = "samples are not identically distributed across runs or CPUs";
        return Err(why.to_owned());
    }
    Ok(())
}

/// Refuses late samples that are not independent in time: for each interval of the time lines,
/// whether it has a late sample.
fn spread_over_time(lines: &[Vec<bool>]) -> Result<(), String> {
    match homogeneity::over_time(lines) {
        None => Err("the time lines are too short or too coarse to test whether late samples are \
                     independent"
            .to_owned()),
        Some(p) if p < REFUSED_BELOW => {
            Err("late samples are not independent: they come in bursts or with a trend".to_owned())
        }
        Some(_) => Ok(()),
    }
}

/// Returns how many samples of a series are above the threshold, and how many there are.
fn late(series: &Series, threshold: Nanos) -> (u64, u64) {
    let late = series.histogram().map_or(0, |histogram| {
        let above = histogram.buckets().filter(|bucket| bucket.from >= threshold);
        above.map(|bucket| bucket.count).sum()
    });
    (late, series.counts.recorded)
}

/// Returns the level for ten times as many samples, if the fit passes its tests.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a latency is positive and below 104 days"
)]
fn level(excesses: &Excesses, threshold: Nanos, all: u64) -> Result<Level, String> {
    let count: u64 = excesses.iter().map(|(_, count)| count).sum();
    let fit = Pareto::fit(excesses).ok_or("all late samples have the same latency")?;
    if fit.scale < BUCKETS * threshold.0 as f64 / 1_000.0 {
        return Err("late samples differ by less than the histogram's resolution".to_owned());
    }
    if fit.shape > 0.5 {
        return Err(HEAVY.to_owned());
    }
    if fit.shape <= LEAST_SHAPE + 1e-3 {
        return Err("the tail is cut off at an upper limit, which no fit describes".to_owned());
    }
    if !is_plausible(&fit, excesses, count) {
        let why =
            "the tail is not a generalised Pareto distribution: it is a mixture, or has steps";
        return Err(why.to_owned());
    }
    let rare = 1.0 / (FURTHER as f64 * count as f64);
    let (low, high) = fit.interval(rare, excesses).ok_or(HEAVY)?;
    let latency = |excess: f64| threshold + Nanos(excess.round() as u64);
    Ok(Level {
        once_in: all.saturating_mul(FURTHER),
        latency: latency(fit.inverse_survival(rare)),
        low: latency(low),
        high: latency(high),
        threshold,
        exceedances: count,
        shape: fit.shape,
        scale: fit.scale,
    })
}

/// Goodness of fit: whether the excesses are as close to the fit as samples drawn from it are.
#[expect(clippy::cast_precision_loss, reason = "a count of simulations")]
fn is_plausible(fit: &Pareto, excesses: &Excesses, count: u64) -> bool {
    let distance = fit.distance(excesses);
    let mut random = Random::new(5);
    let mut worse = 0;
    for _ in 0..SIMULATED {
        let drawn = fit.draw(count, &mut random);
        let again = Pareto::fit(&drawn);
        worse += usize::from(again.is_none_or(|again| again.distance(&drawn) >= distance));
    }
    (worse + 1) as f64 >= REFUSED_BELOW * (SIMULATED + 1) as f64
}
