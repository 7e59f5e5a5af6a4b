//! What is beyond the worst that was seen: peaks over a threshold, where they can be trusted.
//!
//! Above a high threshold the excesses of independent samples of one distribution are generalised
//! Pareto (Pickands 1975). That is a statement on latencies of one kind that come as they please;
//! many are not. What is estimated here has passed a test of each condition that records can be asked
//! for, and where one fails there is no estimate, but the reason.

mod causes;
mod pareto;
mod steady;
mod threshold;

#[cfg(test)]
mod tests;

use self::pareto::{Excesses, LEAST_SHAPE, Pareto};
use self::threshold::{excesses, stable, with_above};
use crate::histogram::Histogram;
use crate::random::Random;
use crate::record::{Record, Series};
use crate::time::Nanos;
use serde::Serialize;

/// A condition that chance would break more seldom than this is taken to be broken.
const REFUSED_BELOW: f64 = 0.05;
/// How many excesses a fit takes, at least and at most.
const FEWEST: u64 = 50;
const MOST: u64 = 500;
/// At most this share of all samples is a tail.
const TAIL: u64 = 10;
/// How many times further than was measured an estimate reaches.
const FURTHER: u64 = 10;
/// How many times a fit is repeated on what it would give.
const SIMULATED: usize = 199;
/// Buckets are a thousandth wide: excesses have to be wider than some of them.
const BUCKETS: f64 = 5.0;

const HEAVY: &str = "the tail is so heavy that a worse one can always come";

/// What is said of the tail of a latency.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Extreme {
    /// Of which cause, where wake-ups were explained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// A latency that is expected once in so many samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Level {
    /// In how many samples: ten times those that were measured.
    pub once_in: u64,
    /// The latency.
    pub latency: Nanos,
    /// The lower end of its interval of 95 %.
    pub low: Nanos,
    /// The upper end.
    pub high: Nanos,
    /// Above what samples are the tail.
    pub threshold: Nanos,
    /// How many they are.
    pub exceedances: u64,
    /// The shape of the fit.
    pub shape: f64,
    /// The scale of the fit, in nanoseconds.
    pub scale: f64,
}

/// One latency of one side: its series in all runs.
pub(super) struct Tail<'a> {
    pub(super) runs: &'a [&'a Record],
    pub(super) series: Vec<&'a Series>,
    pub(super) whole: &'a Histogram,
}

impl Tail<'_> {
    /// What is beyond, as far as it can be told: of all samples, or of each cause.
    pub(super) fn beyond(&self) -> Vec<Extreme> {
        if self.runs.iter().any(|run| run.explained.is_some()) {
            return causes::beyond(self);
        }
        vec![Extreme::of(None, self.estimate())]
    }

    fn estimate(&self) -> Result<Level, String> {
        if self.runs.iter().any(|run| run.runs > 1) {
            return Err("its runs were merged, so that their order is lost".to_owned());
        }
        let most = (self.whole.count() / TAIL).min(MOST);
        if most < 2 * FEWEST {
            let least = 2 * FEWEST * TAIL;
            return Err(format!("{} samples are too few: {least} are needed", self.whole.count()));
        }
        let threshold = stable(self.whole, most, Nanos(0))?;
        let late = self.series.iter().map(|series| late(series, threshold));
        spread_over_runs(&late.collect::<Vec<_>>())?;
        // A time line knows the worst of each interval only: of those that a threshold leaves some
        // without, it can tell.
        let intervals: usize = self.series.iter().map(|s| s.timeline.points().count()).sum();
        let some = with_above(self.whole, most.min(intervals as u64 / 4)).max(threshold);
        let lines = self.series.iter().map(|series| steady::above(series, some));
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

/// Refuses late samples that some of the runs or CPUs have more of: those late and all, of each.
fn spread_over_runs(late: &[(u64, u64)]) -> Result<(), String> {
    if steady::over_runs(late) < REFUSED_BELOW {
        let why = "late samples come more often in some runs or on some CPUs than in others";
        return Err(why.to_owned());
    }
    Ok(())
}

/// Refuses late samples that do not come as they please: whether each interval of the time lines
/// has any.
fn spread_over_time(lines: &[Vec<bool>]) -> Result<(), String> {
    match steady::over_time(lines) {
        None => {
            Err("the time lines are too short or too coarse to tell whether late samples come \
                     as they please"
                .to_owned())
        }
        Some(p) if p < REFUSED_BELOW => {
            Err("late samples come in bursts, or at some times more often".to_owned())
        }
        Some(_) => Ok(()),
    }
}

/// How many samples of a series are above the threshold, and how many there are.
fn late(series: &Series, threshold: Nanos) -> (u64, u64) {
    let late = series.histogram().map_or(0, |histogram| {
        let above = histogram.buckets().filter(|bucket| bucket.from >= threshold);
        above.map(|bucket| bucket.count).sum()
    });
    (late, series.counts.recorded)
}

/// The latency of one in ten times as many samples, if the fit is one.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a latency is positive and below 104 days"
)]
fn level(excesses: &Excesses, threshold: Nanos, all: u64) -> Result<Level, String> {
    let count: u64 = excesses.iter().map(|(_, count)| count).sum();
    let fit = Pareto::likeliest(excesses).ok_or("all late samples have the same latency")?;
    if fit.scale < BUCKETS * threshold.0 as f64 / 1_000.0 {
        return Err("late samples differ by less than the histogram can tell".to_owned());
    }
    if fit.shape > 0.5 {
        return Err(HEAVY.to_owned());
    }
    if fit.shape <= LEAST_SHAPE + 1e-3 {
        return Err("the tail ends as if cut off, which no fit describes".to_owned());
    }
    let rare = 1.0 / (FURTHER as f64 * count as f64);
    let mut random = Random::new(5);
    let mut worse = 0;
    let distance = fit.distance(excesses);
    for _ in 0..SIMULATED {
        let drawn = fit.draw(count, &mut random);
        let again = Pareto::likeliest(&drawn);
        worse += usize::from(again.is_none_or(|again| again.distance(&drawn) >= distance));
    }
    if ((worse + 1) as f64) < REFUSED_BELOW * (SIMULATED + 1) as f64 {
        return Err(
            "the tail is no generalised Pareto distribution: it is a mixture, or has steps"
                .to_owned(),
        );
    }
    let (low, high) = fit.interval(rare, excesses).ok_or(HEAVY)?;
    let latency = |excess: f64| threshold + Nanos(excess.round() as u64);
    Ok(Level {
        once_in: all.saturating_mul(FURTHER),
        latency: latency(fit.above(rare)),
        low: latency(low),
        high: latency(high),
        threshold,
        exceedances: count,
        shape: fit.shape,
        scale: fit.scale,
    })
}
