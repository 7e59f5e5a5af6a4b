//! What the adaptive daemon has done and why: what `latlab adapt status` shows.

use super::watching::{Programs, Violations};
use super::{Decision, Mode, Request};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A daemon at work, at one moment. All times are of one clock, which only goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its version.
    pub latlab: String,
    /// Its process.
    pub process: u32,
    /// When this was so.
    pub at: Nanos,
    /// When it began.
    pub began: Nanos,
    /// The mechanisms at work.
    pub mechanisms: Vec<String>,
    /// What the machine is to be good at, where a mechanism decides that.
    pub mode: Option<Mode>,
    /// Why, as the end of a sentence.
    pub mode_because: Option<String>,
    /// Programs' tasks of real-time policy there are; none where they are not counted.
    pub realtime_tasks: Option<u64>,
    /// What is turned now, the earliest first.
    pub changes: Vec<Turned>,
    /// What is not to be touched any more, and why; the earliest first, at most [`MOST_LEFT`].
    pub left: Vec<Left>,
    /// What processes have asked for.
    pub requests: Vec<Request>,
    /// How many decisions each mechanism has made.
    pub decisions: BTreeMap<String, u64>,
    /// How many requests were refused.
    pub refused: u64,
    /// How many sentences about what it does were not said, for want of a reader.
    pub unsaid: u64,
    /// Wake-ups of real-time tasks by tasks of lower priority; none where nobody watches for them.
    pub violations: Option<Violations>,
    /// CPU time that it has used, all its threads together.
    pub cpu: Nanos,
    /// What its BPF programs cost besides; none where it has none, or that is not known.
    pub programs: Option<Programs>,
}

/// A knob that is turned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turned {
    /// The mechanism whose wish that was.
    pub mechanism: String,
    /// The knob.
    pub knob: String,
    /// The thread whose policy the knob is; none for a knob that is a file.
    pub thread: Option<i32>,
    /// What it was before.
    pub was: String,
    /// What it was turned to.
    pub to: String,
    /// Why, as the end of a sentence.
    pub because: String,
    /// When.
    pub since: Nanos,
}

/// A knob that is not to be touched any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// The knob.
    pub knob: String,
    /// The thread whose policy the knob is; none for a knob that is a file.
    pub thread: Option<i32>,
    /// Why, as a sentence's second half.
    pub because: String,
}

/// So many knobs are remembered as left alone: interrupt threads come and go, and the daemon may
/// run for years.
pub const MOST_LEFT: usize = 64;

impl Status {
    /// Notes that something was decided.
    pub fn note(&mut self, at: Nanos, decision: &Decision) {
        *self.decisions.entry(decision.mechanism().to_owned()).or_default() += 1;
        match decision {
            Decision::Set { mechanism, knob, thread, was, to, because } => {
                let before = self.forget(decision);
                self.changes.push(Turned {
                    mechanism: mechanism.clone(),
                    knob: knob.clone(),
                    thread: *thread,
                    was: before.map_or_else(|| was.clone(), |before| before.was),
                    to: to.clone(),
                    because: because.clone(),
                    since: at,
                });
            }
            Decision::GiveBack { for_good: false, .. } => drop(self.forget(decision)),
            Decision::GiveBack { because, .. } | Decision::Stop { because, .. } => {
                self.leave(decision, because);
            }
        }
    }

    /// Notes that the knob of this decision is not touched any more, and why.
    pub fn leave(&mut self, decision: &Decision, because: &str) {
        self.forget(decision);
        let (knob, thread) = (decision.knob(), decision.thread());
        self.left.retain(|left| left.knob != knob || left.thread != thread);
        if self.left.len() < MOST_LEFT {
            self.left.push(Left { knob: knob.to_owned(), thread, because: because.to_owned() });
        }
    }

    /// Forgets that the knob of this decision is turned. How it was.
    fn forget(&mut self, decision: &Decision) -> Option<Turned> {
        let same =
            |turned: &Turned| turned.knob == decision.knob() && turned.thread == decision.thread();
        let at = self.changes.iter().position(same)?;
        Some(self.changes.remove(at))
    }

    /// How many processes have asked for each group.
    pub fn asked(&self) -> BTreeMap<&str, u64> {
        let mut asked = BTreeMap::new();
        for group in self.requests.iter().flat_map(|request| &request.groups) {
            *asked.entry(group.as_str()).or_default() += 1;
        }
        asked
    }

    /// Which part of one CPU's time it has used since it began.
    pub fn share(&self) -> f64 {
        let elapsed = (self.at - self.began).as_secs_f64();
        if elapsed > 0.0 { self.cpu.as_secs_f64() / elapsed } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(knob: &str, was: &str, to: &str) -> Decision {
        let (mechanism, because) = ("suppress".to_owned(), "it is better".to_owned());
        let [knob, was, to] = [knob, was, to].map(str::to_owned);
        Decision::Set { mechanism, knob, thread: None, was, to, because }
    }

    fn give_back(knob: &str, for_good: bool) -> Decision {
        let [mechanism, because] = ["suppress", "a task is there"].map(str::to_owned);
        Decision::GiveBack { mechanism, knob: knob.to_owned(), thread: None, because, for_good }
    }

    #[test]
    fn what_is_turned_stands_there_until_it_is_given_back() {
        let mut status = Status::default();
        status.note(Nanos(5), &set("a", "1", "2"));
        status.note(Nanos(6), &set("b", "1", "2"));
        status.note(Nanos(7), &set("a", "2", "3"));
        let shown: Vec<_> =
            status.changes.iter().map(|one| (&*one.knob, &*one.was, &*one.to, one.since)).collect();
        assert_eq!(shown, [("b", "1", "2", Nanos(6)), ("a", "1", "3", Nanos(7))]);
        status.note(Nanos(8), &give_back("a", false));
        assert_eq!(status.changes.len(), 1);
        assert_eq!(status.decisions, BTreeMap::from([("suppress".to_owned(), 4)]));
        assert!(status.left.is_empty(), "it may be turned again");
        status.note(Nanos(9), &give_back("b", true));
        assert!(status.changes.is_empty());
        assert_eq!(status.left.iter().map(|one| &*one.knob).collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn what_is_left_alone_is_remembered_but_not_endlessly() {
        let mut status = Status::default();
        status.note(Nanos(1), &set("a", "1", "2"));
        status.leave(&set("a", "1", "2"), "it was refused");
        status.leave(&set("a", "1", "2"), "it was refused again");
        assert!(status.changes.is_empty());
        assert_eq!(status.left.len(), 1);
        (0..1000).for_each(|n| status.leave(&set(&n.to_string(), "1", "2"), "so"));
        assert_eq!(status.left.len(), MOST_LEFT);
    }

    #[test]
    fn it_says_who_asked_and_what_it_costs() {
        let request = |process, groups: &[&str]| Request {
            process,
            groups: groups.iter().map(|name| (*name).to_owned()).collect(),
        };
        let status = Status {
            began: Nanos::from_secs(10),
            at: Nanos::from_secs(30),
            cpu: Nanos::from_millis(20),
            requests: vec![request(1, &["AUDIO", "VIDEO"]), request(2, &["AUDIO"])],
            ..Status::default()
        };
        assert_eq!(status.asked(), BTreeMap::from([("AUDIO", 2), ("VIDEO", 1)]));
        assert!((status.share() - 0.001).abs() < 1e-12);
        assert!(Status::default().share().abs() < 1e-12);
        let text = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status);
    }
}
