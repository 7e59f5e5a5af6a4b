//! Progress of long work that is not measuring: fetching, building, unpacking.

/// Shows progress, and lets the user end the work.
pub(crate) trait Progress {
    /// Shows a new step or a message.
    fn note(&mut self, text: &str);
    /// Shows that `done` of `total` units of the last noted step are done.
    fn at(&mut self, done: u64, total: u64);
    /// Waits briefly. Returns true if the user wants to end.
    fn pause(&mut self) -> bool;
}
