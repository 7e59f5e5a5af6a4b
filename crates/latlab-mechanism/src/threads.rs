//! Threads that handle interrupts: the ones whose policy is set, and the ones to be left alone.

use super::needs::{JoinedNeeds, WantedPolicy};
use super::{Decision, Observation, Policy, Thread};
use latlab_core::time::Nanos;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The reason for restoring a raised thread.
const NEEDLESS: &str = "no real-time task needs it any more";

/// The reason for restoring a lowered thread where no mode is decided.
const NO_LONGER_LAST: &str = "other threads no longer go before it";

/// The time between two attempts to restore a thread whose policy could not be changed further.
const RETRY: Nanos = Nanos::from_secs(10);

/// The threads whose policy is set, and the threads that must be left alone, by ID.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Threads {
    set: BTreeMap<i32, SetThread>,
    left_alone: BTreeMap<i32, String>,
}

/// A thread whose policy is set.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SetThread {
    name: String,
    mechanism: &'static str,
    found: Policy,
    to: Policy,
    /// Where its policy could not be changed further: when it is to be restored for good, and the
    /// policy that it was to get.
    giving_up: Option<(Nanos, String)>,
}

impl Threads {
    /// Leaves this thread alone from now on, as the decision could not be carried out. One that has
    /// a policy from an earlier decision is restored first.
    pub(super) fn give_up(&mut self, id: i32, decision: &Decision) {
        match (self.set.get_mut(&id), decision) {
            (Some(set), Decision::Set { was, to, .. }) if *was != set.found.to_string() => {
                set.to = was.parse().unwrap_or(set.to);
                set.giving_up = Some((Nanos(0), to.clone()));
            }
            (Some(set), Decision::Restore { .. }) if set.giving_up.is_some() => {}
            _ => self.leave(id, decision.knob()),
        }
    }

    fn leave(&mut self, id: i32, name: &str) {
        self.set.remove(&id);
        self.left_alone.insert(id, name.to_owned());
    }

    /// Gives up threads whose policy others have changed, and forgets ended threads.
    pub(super) fn stop(&mut self, seen: &Observation) -> Vec<Decision> {
        self.leave_restored(seen);
        let mut decisions = self.stop_lost(seen);
        decisions.extend(self.restore_given_up(seen.at));
        decisions
    }

    /// Leaves threads alone that were given up and have their own policies again.
    fn leave_restored(&mut self, seen: &Observation) {
        for thread in &seen.threads {
            let is_restored = |set: &SetThread| {
                set.giving_up.is_some() && set.name == thread.name && set.found == thread.policy
            };
            if self.set.get(&thread.id).is_some_and(is_restored) {
                self.leave(thread.id, &thread.name);
            }
        }
    }

    fn restore_given_up(&mut self, at: Nanos) -> Vec<Decision> {
        let mut decisions = Vec::new();
        for (&id, set) in &mut self.set {
            let Some((next, wanted)) = &mut set.giving_up else { continue };
            if at >= *next {
                *next = at + RETRY;
                decisions.push(Decision::Restore {
                    mechanism: set.mechanism.to_owned(),
                    knob: set.name.clone(),
                    thread: Some(id),
                    because: format!(
                        "it could not be set to {wanted}, and is left alone from now on"
                    ),
                    for_good: true,
                });
            }
        }
        decisions
    }

    fn stop_lost(&mut self, seen: &Observation) -> Vec<Decision> {
        let find = |id: i32, name: &str| {
            seen.threads.iter().find(|thread| thread.id == id && thread.name == name)
        };
        let is_unusual =
            |id: i32, name: &str| seen.unusual.iter().any(|(one, its)| *one == id && its == name);
        self.left_alone.retain(|&id, name| find(id, name).is_some() || is_unusual(id, name));
        let mut decisions = Vec::new();
        for (&id, set) in &self.set {
            let SetThread { name, mechanism, to, .. } = set;
            let (mechanism, knob, thread) = ((*mechanism).to_owned(), name.clone(), Some(id));
            match find(id, name).map(|thread| thread.policy) {
                Some(now) if now == *to => {}
                Some(now) => {
                    let because = format!("another program changed it from {to} to {now}");
                    decisions.push(Decision::Stop { mechanism, knob, thread, because });
                }
                None if is_unusual(id, name) => {
                    let because = format!("another program changed it from {to} to another class");
                    decisions.push(Decision::Stop { mechanism, knob, thread, because });
                }
                None => {
                    let because = "its thread has ended".to_owned();
                    let for_good = false;
                    let ended = Decision::Restore { mechanism, knob, thread, because, for_good };
                    decisions.push(ended);
                }
            }
        }
        for decision in &decisions {
            match (decision, decision.thread()) {
                (Decision::Stop { knob, .. }, Some(id)) => self.leave(id, knob),
                (_, Some(id)) => drop(self.set.remove(&id)),
                (_, None) => {}
            }
        }
        decisions
    }

    /// Gives every thread the policy that all mechanisms together want, the most urgent threads
    /// first. `latency` is the reason for the latency mode, and so for restoring lowered threads.
    pub(super) fn schedule(
        &mut self,
        seen: &Observation,
        needs: &JoinedNeeds<'_>,
        latency: Option<&str>,
    ) -> Vec<Decision> {
        let mut changes: Vec<(Policy, Decision)> = Vec::new();
        for thread in &seen.threads {
            let set = self.set.get(&thread.id);
            let is_given_up = set.is_some_and(|set| set.giving_up.is_some());
            if is_given_up || self.left_alone.contains_key(&thread.id) {
                continue;
            }
            let found = set.map_or(thread.policy, |set| set.found);
            match needs.wanted(thread, found) {
                Some(wanted) if wanted.to == thread.policy => {}
                Some(wanted) => changes.push((wanted.to, self.set(thread, found, wanted))),
                None => {
                    let is_lowered = thread.policy.priority() < found.priority();
                    let because =
                        if is_lowered { latency.unwrap_or(NO_LONGER_LAST) } else { NEEDLESS };
                    changes.extend(self.restore(thread, because).map(|back| (found, back)));
                }
            }
        }
        changes.sort_by_key(|(to, _)| Reverse(to.priority()));
        changes.into_iter().map(|(_, decision)| decision).collect()
    }

    fn set(&mut self, thread: &Thread, found: Policy, wanted: WantedPolicy) -> Decision {
        let WantedPolicy { mechanism, to, because } = wanted;
        let (name, giving_up) = (thread.name.clone(), None);
        self.set.insert(thread.id, SetThread { name, mechanism, found, to, giving_up });
        Decision::Set {
            mechanism: mechanism.to_owned(),
            knob: thread.name.clone(),
            thread: Some(thread.id),
            was: thread.policy.to_string(),
            to: to.to_string(),
            because,
        }
    }

    fn restore(&mut self, thread: &Thread, because: &str) -> Option<Decision> {
        let set = self.set.remove(&thread.id)?;
        Some(Decision::Restore {
            mechanism: set.mechanism.to_owned(),
            knob: set.name,
            thread: Some(thread.id),
            because: because.to_owned(),
            for_good: false,
        })
    }
}
