//! Knobs that are files: the set ones, and the ones to be left alone.

use super::{Decision, Knob, Observation, Wish};
use std::collections::{BTreeMap, BTreeSet};

/// The knobs that are set, and the knobs that must not be set any more, by name.
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

    /// Gives up two kinds of knobs. Knobs that others have changed keep their values. Knobs that
    /// can't be read any more are restored: nothing shows that another has set them.
    pub(super) fn stop(&mut self, seen: &Observation) -> Vec<Decision> {
        let end = |(knob, set): (&String, &SetKnob)| {
            let now = seen.knobs.iter().find(|there| there.name == *knob);
            set.end(knob, now.map(|there| there.value.as_str()))
        };
        let decisions: Vec<Decision> = self.set.iter().filter_map(end).collect();
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

impl SetKnob {
    /// What to do given the present value of the knob; `now` is none where it can't be read. None if
    /// it still has the value that was set.
    fn end(&self, knob: &str, now: Option<&str>) -> Option<Decision> {
        let (mechanism, knob, thread) = (self.mechanism.to_owned(), knob.to_owned(), None);
        let set = &self.to;
        match now {
            Some(now) if now == set => None,
            Some(now) => {
                let because = format!("something else changed it from {set} to {now}");
                Some(Decision::Stop { mechanism, knob, thread, because })
            }
            None => {
                let because = "it can't be read any more".to_owned();
                Some(Decision::Restore { mechanism, knob, thread, because, for_good: true })
            }
        }
    }
}
