//! How progress is shown: of a measurement, and of long work before it.

use latlab_core::atomic_histogram::AtomicHistogram;
use latlab_core::record::Record;
use latlab_core::record::explained::Explained;
use latlab_core::time::Nanos;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Shows the progress of a measurement.
pub trait Watch {
    /// A probe starts with these samplers: the CPUs of each, and the histogram it records into.
    fn begin(&mut self, probe: &str, samplers: &[(String, Arc<AtomicHistogram>)]);
    /// `elapsed` has passed of about `total`.
    fn update(&mut self, elapsed: Nanos, total: Nanos);
    /// The probe has ended.
    fn end(&mut self);
    /// Shows an activity other than measuring, in a few words that replace the previous ones.
    fn note(&mut self, text: &str);
    /// `done` of `total` plans are carried out.
    fn done(&mut self, _done: usize, _total: usize) {}
    /// Offers the causes of late wake-ups found so far. Calling `so_far` is expensive, so a view
    /// that does not show them must not call it.
    fn causes(&mut self, _elapsed: Nanos, _so_far: &mut dyn FnMut() -> Option<Explained>) {}
    /// Whether [`Watch::keep`] does anything.
    fn keeps(&self) -> bool {
        false
    }
    /// Keeps this record of a run that has not ended, in case it never does.
    fn keep(&mut self, _record: &Record) {}
    /// Interval between two calls of `update`. It also bounds how long an offline CPU goes
    /// unnoticed.
    fn pace(&self) -> Nanos;
}

/// Shows the progress of long work that is not measuring, as fetching and building, and lets the user
/// end it.
pub trait Progress {
    /// Shows a new step or a message.
    fn note(&mut self, text: &str);
    /// Shows that `done` of `total` units of the last noted step are done.
    fn at(&mut self, done: u64, total: u64);
    /// Waits briefly. Returns true if the user wants to end.
    fn pause(&mut self) -> bool;
}

/// Output stream of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}
