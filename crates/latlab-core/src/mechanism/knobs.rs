//! Knobs that are files: those that are set, and those that are left alone.

use super::{Decision, Knob, Observation, Wish};
use std::collections::{BTreeMap, BTreeSet};

/// The knobs that are set, and those that must not be set any more, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Knobs {
    set: BTreeMap<String, SetKnob>,
    left_alone: BTreeSet<String>,
}

/// A knob that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SetKnob {
    mechanism: &'static str,
    to: String,
}

impl Knobs {
    /// Whether this knob may be set.
    pub(super) fn may_set(&self, knob: &str) -> bool {
        !self.left_alone.contains(knob)
    }

    /// Leaves this knob alone from now on.
    pub(super) fn give_up(&mut self, knob: &str) {
        self.set.remove(knob);
        self.left_alone.insert(knob.to_owned());
    }

    /// Gives up the knobs that were changed by others or can't be read any more.
    pub(super) fn stop(&mut self, seen: &Observation) -> Vec<Decision> {
        let changed = |(knob, set): (&String, &SetKnob)| {
            let now = seen.knobs.iter().find(|there| there.name == *knob);
            let because = why_changed(&set.to, now.map(|there| there.value.as_str()))?;
            let (mechanism, knob) = (set.mechanism.to_owned(), knob.clone());
            Some(Decision::Stop { mechanism, knob, thread: None, because })
        };
        let decisions: Vec<Decision> = self.set.iter().filter_map(changed).collect();
        for decision in &decisions {
            self.give_up(decision.knob());
        }
        decisions
    }

    /// Sets a knob as its mechanism wants it, unless it is set already. `now` is why that is done
    /// at this moment.
    pub(super) fn set(
        &mut self,
        mechanism: &'static str,
        knob: Knob,
        wish: Wish,
        now: Option<&str>,
    ) -> Option<Decision> {
        if self.set.contains_key(&knob.name) {
            return None;
        }
        let Wish { value: to, because } = wish;
        self.set.insert(knob.name.clone(), SetKnob { mechanism, to: to.clone() });
        Some(Decision::Set {
            mechanism: mechanism.to_owned(),
            knob: knob.name,
            thread: None,
            was: knob.value,
            to,
            because: now.map_or_else(|| because.to_owned(), |now| format!("{because}, as {now}")),
        })
    }

    /// Restores a knob if it is set.
    pub(super) fn restore(&mut self, knob: &str, because: &str) -> Option<Decision> {
        let SetKnob { mechanism, .. } = self.set.remove(knob)?;
        Some(Decision::Restore {
            mechanism: mechanism.to_owned(),
            knob: knob.to_owned(),
            thread: None,
            because: because.to_owned(),
            for_good: false,
        })
    }
}

/// Why a knob that was set does not have that value any more, as a sentence; none if it has.
fn why_changed(set: &str, now: Option<&str>) -> Option<String> {
    match now {
        Some(now) if now == set => None,
        Some(now) => Some(format!("something else changed it from {set} to {now}")),
        None => Some("it can't be read any more".to_owned()),
    }
}
