//! The Rhealstone figure: six mean times combined into one number (Kar and Porter 1989).

use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Weights of the components, in the order switch, preemption, interrupt, semaphore, deadlock,
/// message. None is negative, and at least one is positive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Weights([f64; COMPONENTS]);

/// Number of components.
pub const COMPONENTS: usize = 6;

/// Error for a text that is not a list of weights.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is neither mean nor six weights of 0 or more, not all 0, such as 4/2/2/1/0/1 for \
     switch, preemption, interrupt, semaphore, deadlock and message"
)]
pub struct WeightsError(String);

impl FromStr for Weights {
    type Err = WeightsError;

    /// Parses `mean`, or six numbers separated by slashes.
    fn from_str(text: &str) -> Result<Weights, WeightsError> {
        if text == "mean" {
            return Ok(Weights([1.0; COMPONENTS]));
        }
        let wrong = || WeightsError(text.to_owned());
        let numbers = text.split('/').map(|number| number.parse().map_err(|_| wrong()));
        let weights: Vec<f64> = numbers.collect::<Result<_, _>>()?;
        let usable = |weight: &f64| weight.is_finite() && *weight >= 0.0;
        if !weights.iter().all(usable) || weights.iter().all(|weight| *weight == 0.0) {
            return Err(wrong());
        }
        weights.try_into().map(Weights).map_err(|_| wrong())
    }
}

impl TryFrom<String> for Weights {
    type Error = WeightsError;

    fn try_from(text: String) -> Result<Weights, WeightsError> {
        text.parse()
    }
}

impl From<Weights> for String {
    fn from(weights: Weights) -> String {
        weights.to_string()
    }
}

impl fmt::Display for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.map(|weight| weight.to_string()).join("/"))
    }
}

impl Weights {
    /// Returns Rhealstones per second: the reciprocal of the weighted mean of the components' mean
    /// times. None if a component with a weight has a mean of zero: it was not measured, and would
    /// improve the figure.
    #[expect(clippy::cast_precision_loss, reason = "means have fewer than 52 bits")]
    pub fn per_second(&self, means: [Nanos; COMPONENTS]) -> Option<f64> {
        let weighed = self.0.iter().zip(means).map(|(weight, mean)| weight * mean.0 as f64);
        let mean = weighed.sum::<f64>() / self.0.iter().sum::<f64>();
        let is_there = |(weight, mean): (&f64, Nanos)| *weight == 0.0 || mean > Nanos(0);
        self.0.iter().zip(means).all(is_there).then_some(1e9 / mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MICROSECONDS: [Nanos; COMPONENTS] =
        [Nanos(1_000), Nanos(2_000), Nanos(3_000), Nanos(4_000), Nanos(5_000), Nanos(9_000)];

    fn per_second(weights: &str) -> Option<f64> {
        weights.parse::<Weights>().unwrap().per_second(MICROSECONDS)
    }

    #[test]
    fn figure_is_the_reciprocal_of_the_weighted_mean() {
        assert_eq!(per_second("mean"), Some(250_000.0));
        assert_eq!(per_second("0/0/0/0/2/0"), Some(200_000.0));
        assert_eq!(per_second("1/1/0/0/0/2"), per_second("2/2/0/0/0/4"));
        let mean: Weights = "mean".parse().unwrap();
        assert_eq!(mean.per_second([Nanos(0); COMPONENTS]), None);
    }

    #[test]
    fn figure_is_none_without_a_weighted_component() {
        let of = |text: &str, means| text.parse::<Weights>().unwrap().per_second(means);
        let mut means = MICROSECONDS;
        means[3] = Nanos(0);
        assert_eq!(of("mean", means), None);
        assert_eq!(of("1/0/0/2/0/0", means), None);
        assert_eq!(of("0/0/0/0/2/0", means), Some(200_000.0));
    }

    #[test]
    fn weights_other_than_six_are_refused() {
        for text in
            ["", "no", "1/2/3", "1/1/1/1/1/1/1", "-1/1/1/1/1/1", "0/0/0/0/0/0", "NaN/1/1/1/1/1"]
        {
            let said = text.parse::<Weights>().unwrap_err().to_string();
            assert!(said.starts_with(&format!("'{text}' is neither")), "{said}");
        }
    }

    proptest! {
        #[test]
        fn weights_survive_formatting_and_parsing(weights in prop::array::uniform6(0.001..1e6_f64)) {
            let weights = Weights(weights);
            prop_assert_eq!(weights.to_string().parse(), Ok(weights));
        }
    }
}
