//! Many cells: how far they have come, and the time left.

use super::view;
use crate::format::say;
use crate::rig::Watch;
use latlab_core::tally::Tally;
use latlab_core::time::Nanos;
use latlab_sys::{clock, terminal};
use std::sync::Arc;

/// A view of so many cells: on a terminal what goes on, elsewhere a line whenever one is done.
pub(crate) fn cells(total: usize) -> Box<dyn Watch> {
    let began = clock::now();
    Box::new(Cells { view: view(), began, done: 0, measured: 0, total })
}

const SECOND: Nanos = Nanos::from_secs(1);

struct Cells {
    view: Box<dyn Watch>,
    began: Nanos,
    done: usize,
    /// How many of these were not known before, and took time.
    measured: usize,
    total: usize,
}

impl Cells {
    /// The time left, if the others take as long as those that are done.
    fn left(&self) -> Option<Nanos> {
        let measured = u64::try_from(self.measured).ok().filter(|measured| *measured > 0)?;
        let to_come = u64::try_from(self.total - self.done).ok().filter(|to_come| *to_come > 0)?;
        let each = (clock::now() - self.began).0 / measured;
        Some(Nanos::from_secs((each.saturating_mul(to_come) / SECOND.0).max(1)))
    }
}

impl Watch for Cells {
    fn begin(&mut self, probe: &str, lanes: &[(String, Arc<Tally>)]) {
        self.view.begin(probe, lanes);
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
