//! Progress of long work that is not measuring: fetching, building, unpacking.

/// Shows progress, and lets the user end the work.
pub(crate) trait Progress {
    /// A new step begins, or a fact is worth knowing.
    fn note(&mut self, text: &str);
    /// `done` of `total` units of the last noted step are done.
    fn at(&mut self, done: u64, total: u64);
    /// Waits a moment; true when the user wants to end.
    fn pause(&mut self) -> bool;
}
