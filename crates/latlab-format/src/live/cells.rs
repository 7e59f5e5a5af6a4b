//! Progress over many cells, with the estimated time left.

use super::view;
use crate::say;
use latlab_core::atomic_histogram::AtomicHistogram;
use latlab_core::time::Nanos;
use latlab_part::progress::Watch;
use latlab_sys::{clock, terminal};
use std::sync::Arc;

/// Returns a view of `total` cells: a live view on a terminal, otherwise a line for each cell that
/// is done.
pub fn cells(total: usize) -> Box<dyn Watch> {
    let began = clock::now();
    Box::new(CellProgress { view: view(None), began, done: 0, measured: 0, total })
}

const SECOND: Nanos = Nanos::from_secs(1);

struct CellProgress {
    view: Box<dyn Watch>,
    began: Nanos,
    done: usize,
    /// Number of cells that were measured now rather than known before.
    measured: usize,
    total: usize,
}

impl CellProgress {
    /// Estimates the time left from the cells that are done.
    fn left(&self) -> Option<Nanos> {
        let measured = u64::try_from(self.measured).ok().filter(|measured| *measured > 0)?;
        let to_come = u64::try_from(self.total - self.done).ok().filter(|to_come| *to_come > 0)?;
        let each = (clock::now() - self.began).0 / measured;
        Some(Nanos::from_secs((each.saturating_mul(to_come) / SECOND.0).max(1)))
    }
}

impl Watch for CellProgress {
    fn begin(&mut self, probe: &str, cpus: &[(String, Arc<AtomicHistogram>)]) {
        self.view.begin(probe, cpus);
    }

    fn update(&mut self, elapsed: Nanos, total: Nanos) {
        self.view.update(elapsed, total);
    }

    fn end(&mut self) {
        self.view.end();
    }

    fn note(&mut self, text: &str) {
        match self.left().filter(|_| !text.is_empty()) {
            Some(left) => self.view.note(&format!("{text}; about {left} left")),
            None => self.view.note(text),
        }
    }

    fn done(&mut self, done: usize, total: usize) {
        (self.done, self.total) = (done, total);
        self.measured += 1;
        if terminal::size().is_none() {
            let left = self.left().map(|left| format!(", about {left} left"));
            say(&format!("{done} of {total} done{}", left.unwrap_or_default()));
        }
    }

    fn pace(&self) -> Nanos {
        self.view.pace()
    }
}
