//! State of the adaptive daemon, as `latlab adapt status` shows it.

use super::violations::{BpfCost, Violations};
use super::{Decision, Mode, Request};
use latlab_core::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The state of a daemon at one moment. All times are on one monotonic clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its latlab version.
    pub latlab: String,
    /// Its process id.
    pub process: u32,
    /// The moment.
    pub at: Nanos,
    /// When the daemon started.
    pub began: Nanos,
    /// The names of the active mechanisms.
    pub mechanisms: Vec<String>,
    /// The mode; none where no mechanism decides it.
    pub mode: Option<Mode>,
    /// The reason for the mode, as the end of a sentence.
    pub mode_because: Option<String>,
    /// Number of programs' tasks with a real-time policy; none where they are not counted.
    pub realtime_tasks: Option<u64>,
    /// The knobs that are set, the earliest first.
    pub changes: Vec<ActiveChange>,
    /// The knobs that are left alone, the earliest first; at most [`MAX_LEFT_ALONE`].
    pub left: Vec<LeftAlone>,
    /// The requests of processes.
    pub requests: Vec<Request>,
    /// Number of decisions of each mechanism.
    pub decisions: BTreeMap<String, u64>,
    /// Number of refused requests.
    pub refused: u64,
    /// Number of log messages that were dropped because they were not read.
    pub unsaid: u64,
    /// Wake-ups of real-time tasks by lower-priority tasks; none where they are not watched.
    pub violations: Option<Violations>,
    /// CPU time of all threads of the daemon.
    pub cpu: Nanos,
    /// CPU time of its BPF programs; none where it has none, or where that is not known.
    pub programs: Option<BpfCost>,
}

/// A knob that is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveChange {
    /// The mechanism that set it.
    pub mechanism: String,
    /// The knob.
    pub knob: String,
    /// The thread whose policy the knob is; none for a knob that is a file.
    pub thread: Option<i32>,
    /// The value that it was found with.
    pub was: String,
    /// The value that it was set to.
    pub to: String,
    /// The reason, as the end of a sentence.
    pub because: String,
    /// When it was set.
    pub since: Nanos,
}

/// A knob that is left alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftAlone {
    /// The knob.
    pub knob: String,
    /// The thread whose policy the knob is; none for a knob that is a file.
    pub thread: Option<i32>,
    /// The reason, as the end of a sentence.
    pub because: String,
}

/// Maximum number of knobs in [`Status::left`]. IRQ threads come and go, and the daemon may
/// run for years.
pub const MAX_LEFT_ALONE: usize = 64;

impl Status {
    /// Notes a decision that was carried out.
    pub fn note(&mut self, at: Nanos, decision: &Decision) {
        *self.decisions.entry(decision.mechanism().to_owned()).or_default() += 1;
        match decision {
            Decision::Set { mechanism, knob, thread, was, to, because } => {
                let before = self.forget(decision);
                self.changes.push(ActiveChange {
                    mechanism: mechanism.clone(),
                    knob: knob.clone(),
                    thread: *thread,
                    was: before.map_or_else(|| was.clone(), |before| before.was),
                    to: to.clone(),
                    because: because.clone(),
                    since: at,
                });
            }
            Decision::Restore { for_good: false, .. } => drop(self.forget(decision)),
            Decision::Restore { because, .. } | Decision::Stop { because, .. } => {
                self.leave(decision, because);
            }
        }
    }

    /// Notes that this decision could not be carried out, and why: its knob is left alone from now
    /// on, or has the value that was set before.
    pub fn fail(&mut self, decision: &Decision, because: &str) {
        let before = self.forget(decision);
        match (before, decision) {
            (Some(before), Decision::Set { was, .. }) if before.was != *was => {
                self.changes.push(ActiveChange { to: was.clone(), ..before });
            }
            _ => self.leave(decision, because),
        }
    }

    fn leave(&mut self, decision: &Decision, because: &str) {
        self.forget(decision);
        let (knob, thread) = (decision.knob(), decision.thread());
        self.left.retain(|left| left.knob != knob || left.thread != thread);
        if self.left.len() < MAX_LEFT_ALONE {
            self.left.push(LeftAlone {
                knob: knob.to_owned(),
                thread,
                because: because.to_owned(),
            });
        }
    }

    /// Forgets that the knob of this decision is set. Returns its entry.
    fn forget(&mut self, decision: &Decision) -> Option<ActiveChange> {
        let same =
            |one: &ActiveChange| one.knob == decision.knob() && one.thread == decision.thread();
        let at = self.changes.iter().position(same)?;
        Some(self.changes.remove(at))
    }

    /// Returns the number of processes that have requested each group.
    pub fn asked(&self) -> BTreeMap<&str, u64> {
        let mut asked: BTreeMap<&str, BTreeSet<i32>> = BTreeMap::new();
        for request in &self.requests {
            for group in &request.groups {
                asked.entry(group).or_default().insert(request.process);
            }
        }
        asked.into_iter().map(|(group, processes)| (group, processes.len() as u64)).collect()
    }

    /// Returns its share of one CPU's time since it started.
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

    fn restore(knob: &str, for_good: bool) -> Decision {
        let [mechanism, because] = ["suppress", "a task is there"].map(str::to_owned);
        Decision::Restore { mechanism, knob: knob.to_owned(), thread: None, because, for_good }
    }

    #[test]
    fn changes_list_knob_until_it_is_restored() {
        let mut status = Status::default();
        status.note(Nanos(5), &set("a", "1", "2"));
        status.note(Nanos(6), &set("b", "1", "2"));
        status.note(Nanos(7), &set("a", "2", "3"));
        let shown: Vec<_> =
            status.changes.iter().map(|one| (&*one.knob, &*one.was, &*one.to, one.since)).collect();
        assert_eq!(shown, [("b", "1", "2", Nanos(6)), ("a", "1", "3", Nanos(7))]);
        status.note(Nanos(8), &restore("a", false));
        assert_eq!(status.changes.len(), 1);
        assert_eq!(status.decisions, BTreeMap::from([("suppress".to_owned(), 4)]));
        assert!(status.left.is_empty(), "it may be set again");
        status.note(Nanos(9), &restore("b", true));
        assert!(status.changes.is_empty());
        assert_eq!(status.left.iter().map(|one| &*one.knob).collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn left_lists_each_knob_once_and_has_a_maximum() {
        let mut status = Status::default();
        status.note(Nanos(1), &set("a", "1", "2"));
        status.fail(&set("a", "1", "2"), "it was refused");
        status.fail(&set("a", "1", "2"), "it was refused again");
        assert!(status.changes.is_empty());
        assert_eq!(status.left.len(), 1);
        (0..1000).for_each(|n| status.fail(&set(&n.to_string(), "1", "2"), "so"));
        assert_eq!(status.left.len(), MAX_LEFT_ALONE);
    }

    #[test]
    fn changes_list_knob_that_could_not_be_set_again_with_the_value_before() {
        let mut status = Status::default();
        status.note(Nanos(1), &set("a", "1", "2"));
        status.note(Nanos(2), &set("a", "2", "3"));
        status.fail(&set("a", "2", "3"), "the journal can't be written");
        let [change] = status.changes.as_slice() else { panic!("{status:?}") };
        assert_eq!((change.was.as_str(), change.to.as_str()), ("1", "2"));
        assert!(status.left.is_empty(), "it is still set");
        status.note(Nanos(3), &restore("a", true));
        assert!(status.changes.is_empty());
        assert_eq!(status.left.len(), 1);
    }

    #[test]
    fn status_counts_requests_and_cpu_time() {
        let request = |process, groups: &[&str]| Request {
            process,
            thread: None,
            groups: groups.iter().map(|name| (*name).to_owned()).collect(),
        };
        let status = Status {
            began: Nanos::from_secs(10),
            at: Nanos::from_secs(30),
            cpu: Nanos::from_millis(20),
            requests: vec![
                request(1, &["AUDIO", "VIDEO"]),
                Request { thread: Some(9), ..request(1, &["AUDIO"]) },
                request(2, &["AUDIO"]),
            ],
            ..Status::default()
        };
        assert_eq!(status.asked(), BTreeMap::from([("AUDIO", 2), ("VIDEO", 1)]));
        assert!((status.share() - 0.001).abs() < 1e-12);
        assert!(Status::default().share().abs() < 1e-12);
        let text = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status);
    }
}
