//! Length, warm-up and limit of a measurement, and when its samples are expected.

use latlab_core::plan::Length;
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result};

/// Length of the measurement of a sampler, and the limit that ends it early.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    pub(super) length: Length,
    pub(super) warm_up: Nanos,
    /// The first sample above this ends the run.
    pub(super) limit: Nanos,
    /// Whether it lasts for a period at least, whatever its length is.
    pub(super) brief: bool,
}

impl Conditions {
    /// The conditions of a probe with this pacing. Refuses a measurement, or a step of one, that is
    /// shorter than a period or a pause: its thread would sleep on after the end.
    pub(super) fn of(self, probe: &str, pacing: Pacing) -> Result<Conditions> {
        match (self.length, pacing.interval().or(pacing.pause())) {
            (Length::For(time), Some(interval)) if self.brief => {
                Ok(Conditions { length: Length::For(time.max(interval)), ..self })
            }
            (Length::For(time), Some(interval)) if interval > self.warm_up + time => {
                Err(Failure::failed(format!(
                    "{probe}: its interval of {interval} is longer than the measurement or its \
                     steps: use a shorter interval, or a longer --for"
                )))
            }
            _ => Ok(self),
        }
    }

    /// Returns the length of one of `parts` equal parts.
    pub(super) fn share(self, parts: u64) -> Length {
        match self.length {
            Length::For(time) => Length::For(Nanos((time.0 / parts).max(1))),
            Length::Count(count) => Length::Count(count.div_ceil(parts)),
        }
    }

    /// Estimates the duration of a run after the time `elapsed` and `recorded` samples.
    pub(super) fn estimate(self, pacing: Pacing, elapsed: Nanos, recorded: u64) -> Nanos {
        match (self.length, pacing.interval()) {
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

/// When the samples of a probe are expected.
#[derive(Clone, Copy, Debug)]
pub enum Pacing {
    /// One per period.
    Periodic(Nanos),
    /// One after another. No sample for this long means that a wake-up was lost or that a task of
    /// the probe is dead: the probe fails.
    BackToBack(Nanos),
    /// One or more after each pause of this length; no sample for `timeout` fails the probe.
    AfterPauses {
        /// Length of a pause.
        pause: Nanos,
        /// Longest time without a sample.
        timeout: Nanos,
    },
    /// At unknown times, possibly never: only time ends the measurement.
    Irregular,
    /// One per period of an external device, which may stop: no sample for `timeout` fails the
    /// probe.
    External {
        /// Period of the device.
        period: Nanos,
        /// Longest time without a sample.
        timeout: Nanos,
    },
}

impl Pacing {
    /// Repetitions of a few microseconds each. The timeout allows for a very busy machine.
    pub const REPETITIONS: Pacing = Pacing::BackToBack(Nanos::from_secs(5));

    /// Returns the period, if there is one.
    pub fn interval(self) -> Option<Nanos> {
        match self {
            Pacing::Periodic(period) | Pacing::External { period, .. } => Some(period),
            Pacing::BackToBack(_) | Pacing::AfterPauses { .. } | Pacing::Irregular => None,
        }
    }

    /// Returns the length of the pauses, if there are any.
    fn pause(self) -> Option<Nanos> {
        match self {
            Pacing::AfterPauses { pause, .. } => Some(pause),
            _ => None,
        }
    }

    /// Returns the longest time without a sample, if it is limited.
    pub(super) fn timeout(self) -> Option<Nanos> {
        match self {
            Pacing::Periodic(_) | Pacing::Irregular => None,
            Pacing::BackToBack(timeout)
            | Pacing::AfterPauses { timeout, .. }
            | Pacing::External { timeout, .. } => Some(timeout),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurement_shorter_than_a_period_or_a_pause_is_refused() {
        let second = Nanos::from_secs(1);
        let of = |length: Length, pacing: Pacing| {
            let conditions =
                Conditions { length, warm_up: Nanos(0), limit: Nanos::MAX, brief: false };
            conditions.of("test", pacing).map(|conditions| conditions.length)
        };
        for pacing in [
            Pacing::Periodic(second),
            Pacing::AfterPauses { pause: second, timeout: Nanos::MAX },
            Pacing::External { period: second, timeout: Nanos::MAX },
        ] {
            let shorter = of(Length::For(Nanos(second.0 - 1)), pacing);
            assert!(shorter.is_err_and(|why| why.to_string().contains("its interval of 1 s")));
            assert_eq!(of(Length::For(second), pacing).unwrap(), Length::For(second));
            assert_eq!(of(Length::Count(1), pacing).unwrap(), Length::Count(1));
        }
        assert!(of(Length::For(Nanos(1)), Pacing::BackToBack(second)).is_ok());
    }
}
