//! A change that was made, and what became of it.

use super::entry::Entry;
use latlab_core::record::Change;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A change for the record, with the files or threads that were changed.
#[derive(Debug)]
pub(super) struct Made {
    change: Change,
    places: BTreeSet<PathBuf>,
}

impl Made {
    /// The change of a knob, or of a thread, that has these entries in the journal.
    pub(super) fn of(entries: &[Entry], new: &str) -> Made {
        let knob = entries.first().map(|entry| entry.knob.as_str()).unwrap_or_default();
        let places = entries.iter().map(|entry| entry.path.clone()).collect();
        Made { places, ..Made::held(knob, &summary(entries), new) }
    }

    /// The change of a knob that has no entry in the journal, as it ends with this process.
    pub(super) fn held(knob: &str, old: &str, new: &str) -> Made {
        let [knob, old, new] = [knob, old, new].map(str::to_owned);
        let (reason, restored, unrestored) = (String::new(), false, None);
        let change = Change { knob, old, new, reason, restored, unrestored };
        Made { change, places: BTreeSet::new() }
    }

    /// The same, with its reason.
    pub(super) fn because(mut self, reason: &str) -> Made {
        reason.clone_into(&mut self.change.reason);
        self
    }

    /// Whether both are the same change, made again.
    pub(super) fn is_like(&self, other: &Made) -> bool {
        let what = |made: &Made| {
            let Change { knob, old, new, .. } = &made.change;
            [knob, old, new].map(String::clone)
        };
        what(self) == what(other)
    }

    /// Adds the files or threads of the same change, made again.
    pub(super) fn add_places(&mut self, again: Made) {
        self.places.extend(again.places);
    }

    /// The change once everything was restored, except the entries that another program has changed
    /// and those that failed.
    pub(super) fn ended(self, left_alone: &[Entry], failed: &[(Entry, String)]) -> Change {
        let is_own =
            |entry: &Entry| entry.knob == self.change.knob && self.places.contains(&entry.path);
        let mut why = BTreeSet::new();
        for entry in left_alone.iter().filter(|entry| is_own(entry)) {
            why.insert(format!("another program has changed {}", entry.path.display()));
        }
        for (entry, error) in failed.iter().filter(|(entry, _)| is_own(entry)) {
            why.insert(format!("{} can't be restored yet: {error}", entry.path.display()));
        }
        let why: Vec<String> = why.into_iter().collect();
        let unrestored = (!why.is_empty()).then(|| why.join("; "));
        Change { restored: unrestored.is_none(), unrestored, ..self.change }
    }
}

/// The old value, if all files had the same; else the value of each file, in order.
fn summary(entries: &[Entry]) -> String {
    let values: Vec<&str> = entries.iter().map(|entry| entry.was.as_str()).collect();
    if values.windows(2).all(|pair| pair[0] == pair[1]) {
        values.first().copied().unwrap_or_default().to_owned()
    } else {
        values.join(" ")
    }
}
