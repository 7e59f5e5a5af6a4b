//! Threads that handle interrupts: which of them are turned, and what is to be done about them.

use super::needs::{Joined, Wanted};
use super::{Decision, Observation, Policy, Thread};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The threads that were turned, and those that must not be touched, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Threads {
    turned: BTreeMap<i32, Turned>,
    left: BTreeMap<i32, String>,
}

/// A thread that is turned.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Turned {
    name: String,
    mechanism: &'static str,
    found: Policy,
    to: Policy,
}

impl Threads {
    /// From now on this thread is not touched.
    pub(super) fn give_up(&mut self, id: i32, name: &str) {
        self.turned.remove(&id);
        self.left.insert(id, name.to_owned());
    }

    /// Gives up threads that somebody else has turned, and forgets those that have ended.
    pub(super) fn stop(&mut self, seen: &Observation) -> Vec<Decision> {
        let is_there = |id: i32, name: &str| {
            seen.threads.iter().find(|thread| thread.id == id && thread.name == name)
        };
        self.left.retain(|&id, name| is_there(id, name).is_some());
        let mut decisions = Vec::new();
        for (&id, turned) in &self.turned {
            let Turned { name, mechanism, to, .. } = turned;
            let (mechanism, knob, thread) = ((*mechanism).to_owned(), name.clone(), Some(id));
            match is_there(id, name).map(|thread| thread.policy) {
                Some(now) if now == *to => {}
                Some(now) => {
                    let because = format!("somebody has turned it from {to} to {now}");
                    decisions.push(Decision::Stop { mechanism, knob, thread, because });
                }
                None => {
                    let because = "its thread has ended".to_owned();
                    let for_good = false;
                    let back = Decision::GiveBack { mechanism, knob, thread, because, for_good };
                    decisions.push(back);
                }
            }
        }
        for decision in &decisions {
            match (decision, decision.thread()) {
                (Decision::Stop { knob, .. }, Some(id)) => self.give_up(id, knob),
                (_, Some(id)) => drop(self.turned.remove(&id)),
                (_, None) => {}
            }
        }
        decisions
    }

    /// Has every thread be as all mechanisms together want it, those first that are to be the most
    /// urgent; `otherwise` is why one is to be as it was found.
    pub(super) fn turn(
        &mut self,
        seen: &Observation,
        joined: &Joined<'_>,
        otherwise: &str,
    ) -> Vec<Decision> {
        let free = |thread: &&Thread| !self.left.contains_key(&thread.id);
        let mut changes: Vec<(Policy, Decision)> = Vec::new();
        for thread in seen.threads.iter().filter(free) {
            let found = self.turned.get(&thread.id).map_or(thread.policy, |turned| turned.found);
            let decided = match joined.wanted(thread, found) {
                Some(wanted) if wanted.to == thread.policy => None,
                Some(wanted) => {
                    let to = wanted.to;
                    Some((to, set(&mut self.turned, thread, found, wanted)))
                }
                None => give_back(&mut self.turned, thread, otherwise).map(|back| (found, back)),
            };
            changes.extend(decided);
        }
        changes.sort_by_key(|(to, _)| Reverse(to.priority()));
        changes.into_iter().map(|(_, decision)| decision).collect()
    }
}

fn set(
    all: &mut BTreeMap<i32, Turned>,
    thread: &Thread,
    found: Policy,
    wanted: Wanted,
) -> Decision {
    let Wanted { mechanism, to, because } = wanted;
    all.insert(thread.id, Turned { name: thread.name.clone(), mechanism, found, to });
    Decision::Set {
        mechanism: mechanism.to_owned(),
        knob: thread.name.clone(),
        thread: Some(thread.id),
        was: thread.policy.to_string(),
        to: to.to_string(),
        because,
    }
}

fn give_back(all: &mut BTreeMap<i32, Turned>, thread: &Thread, because: &str) -> Option<Decision> {
    let turned = all.remove(&thread.id)?;
    Some(Decision::GiveBack {
        mechanism: turned.mechanism.to_owned(),
        knob: turned.name,
        thread: Some(thread.id),
        because: because.to_owned(),
        for_good: false,
    })
}
