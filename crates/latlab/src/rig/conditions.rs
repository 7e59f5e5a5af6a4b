//! How long a probe measures, how its samples follow each other, and what ends it early.

use latlab_core::plan::Length;
use latlab_core::time::Nanos;

/// How long a lane measures, and what ends it early.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    pub(super) length: Length,
    pub(super) warm_up: Nanos,
    /// The first sample above this ends the run.
    pub(super) limit: Nanos,
}

impl Conditions {
    /// The length of one of so many equal parts.
    pub(super) fn share(self, parts: u64) -> Length {
        match self.length {
            Length::For(time) => Length::For(Nanos((time.0 / parts).max(1))),
            Length::Count(count) => Length::Count(count.div_ceil(parts)),
        }
    }

    /// How long a run under these conditions should take, of which `elapsed` has passed and
    /// `recorded` samples have come.
    pub(super) fn about(self, rhythm: Rhythm, elapsed: Nanos, recorded: u64) -> Nanos {
        match (self.length, rhythm.interval()) {
            (Length::For(time), _) => self.warm_up + time,
            (Length::Count(count), Some(interval)) => {
                self.warm_up + Nanos(interval.0.saturating_mul(count))
            }
            (Length::Count(count), None) => {
                let measured = u128::from((elapsed - self.warm_up).0);
                let total = measured * u128::from(count) / u128::from(recorded.max(1));
                self.warm_up + Nanos(u64::try_from(total).unwrap_or(u64::MAX))
            }
        }
    }
}

/// How the samples of a probe follow each other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rhythm {
    /// Periodically.
    Every(Nanos),
    /// One after another. Where none comes for so long, a wake-up was lost or somebody who takes
    /// part is dead: the probe ends as a failure.
    Within(Nanos),
    /// Whenever something happens, which may be never: only time ends it.
    Irregular,
    /// Periodically, as long as somebody else keeps the time, who may fall silent: where none
    /// comes for so long, the probe ends as a failure, too.
    Driven {
        /// The period.
        every: Nanos,
        /// How long none may come.
        within: Nanos,
    },
}

impl Rhythm {
    /// Repetitions that take microseconds, on a machine that may be very busy.
    pub(crate) const REPETITIONS: Rhythm = Rhythm::Within(Nanos::from_secs(5));

    /// The period, where there is one.
    pub(crate) fn interval(self) -> Option<Nanos> {
        match self {
            Rhythm::Every(interval) | Rhythm::Driven { every: interval, .. } => Some(interval),
            Rhythm::Within(_) | Rhythm::Irregular => None,
        }
    }

    /// How long no sample may come.
    pub(super) fn limit(self) -> Option<Nanos> {
        match self {
            Rhythm::Every(_) | Rhythm::Irregular => None,
            Rhythm::Within(limit) | Rhythm::Driven { within: limit, .. } => Some(limit),
        }
    }
}
