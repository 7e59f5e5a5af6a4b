//! Mechanisms of the adaptive daemon: which knobs are to be turned, and when, decided by nothing
//! but what was observed (Seo, Park, Sohn, Lim, Song 2009, section 3).

pub mod configuration;
pub mod mode;
pub mod suppress;
#[cfg(test)]
mod tests;

use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A knob as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// Its name, as `latlab list knobs` shows it.
    pub name: &'static str,
    /// Where it is, as the user finds it.
    pub path: String,
    /// The value it has.
    pub value: String,
    /// All values it can have; empty where that is not known.
    pub possible: Vec<String>,
}

/// What is seen of the machine at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// When, by a clock that only goes on.
    pub at: Nanos,
    /// Programs' tasks of real-time policy there are, kernel threads not among them. None where
    /// nobody has looked.
    pub realtime: Option<u64>,
    /// The knobs that can be read.
    pub knobs: Vec<Knob>,
}

/// What a process has asked for. It stands until the process ends or takes it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The process, by its number.
    pub process: i32,
    /// The device groups that it needs, by the names that the configuration gives them.
    pub groups: Vec<String>,
}

/// What the machine is to be good at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Ordinary tasks get much done: the wishes of all mechanisms are fulfilled.
    Throughput,
    /// Whoever is woken runs at once: every knob is as it was found.
    Latency,
}

/// What a mechanism would have a knob be, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The value.
    pub value: String,
    /// What it is good for, as the end of a sentence.
    pub because: &'static str,
}

/// One way to adapt a machine. It observes and wishes; it never acts.
pub trait Mechanism: Send {
    /// What the user calls it.
    fn name(&self) -> &'static str;

    /// The knobs that are its own, the one that takes longest to turn first: it is given back last.
    /// No other mechanism may have a wish for them.
    fn knobs(&self) -> &'static [&'static str] {
        &[]
    }

    /// What this knob of its own should be, standing as it does, for throughput; or why it is to
    /// stay, as the end of a sentence.
    fn wish(&self, _knob: &Knob) -> Result<Wish, &'static str> {
        Err("nothing is wished of it")
    }

    /// Whether it decides the mode, from the number of real-time tasks.
    fn decides_mode(&self) -> bool {
        false
    }

    /// The mode it decides for, and why, as the end of a sentence.
    fn mode(&mut self, _seen: &Observation) -> Option<(Mode, String)> {
        None
    }
}

/// What is to be done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// A knob is to be turned.
    Set {
        /// Whose wish it is.
        mechanism: &'static str,
        /// The knob.
        knob: &'static str,
        /// What it is.
        was: String,
        /// What it is to be.
        to: String,
        /// Why, as the end of a sentence.
        because: String,
    },
    /// A knob that was turned is to be given back.
    GiveBack {
        /// Whose wish it was to have it turned.
        mechanism: &'static str,
        /// The knob.
        knob: &'static str,
        /// Why, as the end of a sentence.
        because: String,
    },
    /// A knob is not to be touched any more.
    Stop {
        /// Whose wish it was to have it turned.
        mechanism: &'static str,
        /// The knob.
        knob: &'static str,
        /// Why, as a sentence's second half.
        because: String,
    },
}

/// A knob that is turned.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Turned {
    mechanism: &'static str,
    to: String,
}

/// Mechanisms at work together: what they have had turned, and what they must not touch.
pub struct Adaptation {
    mechanisms: Vec<Box<dyn Mechanism>>,
    turned: BTreeMap<&'static str, Turned>,
    left: BTreeSet<&'static str>,
}

impl Adaptation {
    /// These mechanisms, which have done nothing so far. Refused, in a sentence, where two of them
    /// would turn one knob, where two decide the mode, or where none turns anything.
    pub fn of(mechanisms: Vec<Box<dyn Mechanism>>) -> Result<Adaptation, String> {
        let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
        for mechanism in &mechanisms {
            for knob in mechanism.knobs() {
                if let Some(other) = owners.insert(knob, mechanism.name()) {
                    let name = mechanism.name();
                    return Err(format!("{other} and {name} both turn {knob}: take one of them"));
                }
            }
        }
        let deciding: Vec<&str> =
            mechanisms.iter().filter(|one| one.decides_mode()).map(|one| one.name()).collect();
        match deciding.as_slice() {
            [name] if owners.is_empty() => Err(format!(
                "{name} only says when others are to act: name suppress as well, or leave \
                 --mechanisms out"
            )),
            [one, other, ..] => Err(format!("{one} and {other} both decide the mode: take one")),
            _ => Ok(Adaptation { mechanisms, turned: BTreeMap::new(), left: BTreeSet::new() }),
        }
    }

    /// The knobs that may be turned.
    pub fn knobs(&self) -> Vec<&'static str> {
        self.mechanisms.iter().flat_map(|one| one.knobs().iter().copied()).collect()
    }

    /// Whether the number of real-time tasks matters.
    pub fn counts_tasks(&self) -> bool {
        self.mechanisms.iter().any(|one| one.decides_mode())
    }

    /// What each mechanism would have each of these knobs be.
    pub fn wishes(&self, knobs: &[Knob]) -> Vec<(&'static str, Knob, Result<Wish, &'static str>)> {
        let mut wishes = Vec::new();
        for mechanism in &self.mechanisms {
            for knob in knobs.iter().filter(|knob| mechanism.knobs().contains(&knob.name)) {
                wishes.push((mechanism.name(), knob.clone(), mechanism.wish(knob)));
            }
        }
        wishes
    }

    /// What is to be done after this was seen; nothing, mostly. The same observations in the same
    /// order give the same decisions.
    pub fn decide(&mut self, seen: &Observation) -> Vec<Decision> {
        let mut decisions = self.stop(seen);
        let mode = self.mechanisms.iter_mut().find_map(|one| one.mode(seen));
        match mode {
            None => decisions.extend(self.engage(seen, None)),
            Some((Mode::Throughput, why)) => decisions.extend(self.engage(seen, Some(&why))),
            Some((Mode::Latency, why)) => decisions.extend(self.disengage(&why)),
        }
        decisions
    }

    /// From now on this knob is not touched: it could not be turned.
    pub fn give_up(&mut self, knob: &'static str) {
        self.turned.remove(knob);
        self.left.insert(knob);
    }

    /// Gives up knobs that somebody else has turned, or that are not there any more.
    fn stop(&mut self, seen: &Observation) -> Vec<Decision> {
        let mut decisions = Vec::new();
        for (knob, turned) in &self.turned {
            let now = seen.knobs.iter().find(|there| there.name == *knob).map(|there| &there.value);
            if now == Some(&turned.to) {
                continue;
            }
            let to = &turned.to;
            let because = match now {
                Some(now) => format!("somebody has turned it from {to} to {now}"),
                None => "it can't be read any more".to_owned(),
            };
            decisions.push(Decision::Stop { mechanism: turned.mechanism, knob, because });
        }
        for decision in &decisions {
            self.give_up(decision.knob());
        }
        decisions
    }

    /// Fulfils every wish that is not fulfilled.
    fn engage(&mut self, seen: &Observation, why_now: Option<&str>) -> Vec<Decision> {
        let mut decisions = Vec::new();
        for (mechanism, knob, wish) in self.wishes(&seen.knobs) {
            if self.turned.contains_key(knob.name) || self.left.contains(knob.name) {
                continue;
            }
            let Ok(Wish { value: to, because }) = wish else { continue };
            let because =
                why_now.map_or_else(|| because.to_owned(), |why| format!("{because}, as {why}"));
            self.turned.insert(knob.name, Turned { mechanism, to: to.clone() });
            decisions.push(Decision::Set {
                mechanism,
                knob: knob.name,
                was: knob.value,
                to,
                because,
            });
        }
        decisions
    }

    /// Has everything given back, in the order opposite to that in which it was turned.
    fn disengage(&mut self, why: &str) -> Vec<Decision> {
        let mut decisions = Vec::new();
        for knob in self.knobs().into_iter().rev() {
            if let Some(Turned { mechanism, .. }) = self.turned.remove(knob) {
                decisions.push(Decision::GiveBack { mechanism, knob, because: why.to_owned() });
            }
        }
        decisions
    }
}

impl Decision {
    /// The knob it is about.
    pub fn knob(&self) -> &'static str {
        match self {
            Decision::Set { knob, .. }
            | Decision::GiveBack { knob, .. }
            | Decision::Stop { knob, .. } => knob,
        }
    }
}

impl std::fmt::Debug for Adaptation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Adaptation").field("turned", &self.turned).finish_non_exhaustive()
    }
}
