//! Confidence intervals.

use serde::{Deserialize, Serialize};

/// 95 % confidence interval: the range of a figure in 95 of 100 resamplings of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval<T> {
    /// Lower end.
    pub low: T,
    /// Upper end.
    pub high: T,
}
