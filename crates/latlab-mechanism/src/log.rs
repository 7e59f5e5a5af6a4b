//! Log of observations and decisions, one line of JSON each, and its replay.

use super::{Adaptation, Decision, Observation};
use latlab_core::time::Nanos;
use serde::{Deserialize, Serialize};

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// A daemon started: the following entries are its own.
    #[serde(rename = "began")]
    Started(LogHeader),
    /// An observation, and the decisions that followed from it.
    Decided {
        /// The observation.
        seen: Observation,
        /// The decisions.
        decisions: Vec<Decision>,
    },
    /// The same observation as before at this time, without a decision.
    Again(Nanos),
    /// A decision that could not be carried out.
    GaveUp(Decision),
}

/// The inputs of decisions other than observations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogHeader {
    /// The version of latlab.
    pub latlab: String,
    /// The names of the active mechanisms.
    pub mechanisms: Vec<String>,
    /// The text of the configuration.
    pub configuration: String,
}

/// Makes entries of observations, short ones where the observation is the same as before.
#[derive(Debug, Default)]
pub struct Shortener {
    last: Option<Observation>,
}

impl Shortener {
    /// Returns the entry for an observation and its decisions.
    pub fn entry(&mut self, seen: &Observation, decisions: &[Decision]) -> Entry {
        let again = self.last.as_mut().is_some_and(|last| {
            last.at = seen.at;
            last == seen
        });
        if again && decisions.is_empty() {
            return Entry::Again(seen.at);
        }
        self.last = Some(seen.clone());
        Entry::Decided { seen: seen.clone(), decisions: decisions.to_vec() }
    }
}

/// Decides again on logged observations, and compares the decisions.
#[derive(Debug, Default)]
pub struct Replay {
    adaptation: Option<Adaptation>,
    last: Option<Observation>,
    /// Number of observations.
    pub observations: u64,
    /// Number of decisions that followed from them.
    pub decisions: u64,
}

impl Replay {
    /// Starts over with these mechanisms, which have changed nothing so far.
    pub fn begin(&mut self, adaptation: Adaptation) {
        (self.adaptation, self.last) = (Some(adaptation), None);
    }

    /// Takes the next entry. Fails, with a sentence, if the decisions differ from the logged ones
    /// or if the entry can't be replayed.
    pub fn take(&mut self, entry: Entry) -> Result<(), String> {
        let missing = "the log does not begin with the mechanisms at work".to_owned();
        let adaptation = self.adaptation.as_mut().ok_or(missing)?;
        let (seen, logged) = match entry {
            Entry::Started(_) => return Err("the log begins twice".to_owned()),
            Entry::GaveUp(decision) => {
                adaptation.give_up(&decision);
                return Ok(());
            }
            Entry::Decided { seen, decisions } => (seen, decisions),
            Entry::Again(at) => {
                let last = self.last.take().ok_or("no observation precedes this line")?;
                (Observation { at, ..last }, Vec::new())
            }
        };
        let now = adaptation.decide(&seen);
        self.last = Some(seen);
        self.observations += 1;
        self.decisions += now.len() as u64;
        if now == logged {
            return Ok(());
        }
        let differs = now.iter().zip(&logged).position(|(now, then)| now != then);
        let differs = differs.unwrap_or(now.len().min(logged.len()));
        let shown = |decisions: &[Decision]| {
            decisions
                .get(differs)
                .map_or_else(|| "no further decision".to_owned(), ToString::to_string)
        };
        Err(format!("logged: {}; replayed: {}", shown(&logged), shown(&now)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::mode::ByTasks;
    use super::super::suppress::Suppress;
    use super::super::{Knob, RealTimeTask};
    use super::*;
    use proptest::prelude::*;

    fn adaptation() -> Adaptation {
        let mode = ByTasks::after(Nanos::from_secs(1));
        Adaptation::of(vec![Box::new(Suppress), Box::new(mode)], 90).unwrap()
    }

    fn task(id: i32) -> RealTimeTask {
        RealTimeTask { id, process: id, name: "player".to_owned(), priority: 50 }
    }

    /// The log of a machine that carries out decisions. Each step is the milliseconds since the
    /// step before, and the number of real-time tasks.
    fn log(steps: &[(u64, usize)]) -> Vec<String> {
        let (mut adaptation, mut short) = (adaptation(), Shortener::default());
        let (mut at, mut value) = (Nanos(0), "1".to_owned());
        let mut lines = Vec::new();
        for (after, tasks) in steps {
            at = at + Nanos::from_millis(*after);
            let (name, path) = ("wakeup_preemption".to_owned(), "/features".to_owned());
            let knobs = vec![Knob { name, path, value: value.clone(), possible: Vec::new() }];
            let realtime = Some((0..*tasks).map(|id| task(i32::try_from(id).unwrap())).collect());
            let seen = Observation { at, realtime, knobs, ..Observation::default() };
            let decisions = adaptation.decide(&seen);
            for decision in &decisions {
                match decision {
                    Decision::Set { to, .. } => value.clone_from(to),
                    _ => "1".clone_into(&mut value),
                }
            }
            lines.push(serde_json::to_string(&short.entry(&seen, &decisions)).unwrap());
        }
        lines
    }

    fn replayed(lines: &[String]) -> Result<Replay, String> {
        let mut replay = Replay::default();
        replay.begin(adaptation());
        for line in lines {
            replay.take(serde_json::from_str(line).map_err(|e| format!("{e}: {line}"))?)?;
        }
        Ok(replay)
    }

    #[test]
    fn repeated_observation_takes_a_short_line() {
        let lines = log(&[(1, 0), (100, 0), (100, 0), (100, 0), (100, 1)]);
        assert!(lines[0].starts_with("{\"decided\":{\"seen\":{"), "{}", lines[0]);
        assert_eq!(lines[2], "{\"again\":201000000}");
        assert_eq!(lines[3], "{\"again\":301000000}");
        let replay = replayed(&lines).unwrap();
        assert_eq!((replay.observations, replay.decisions), (5, 2));
    }

    #[test]
    fn replay_reports_different_decisions() {
        let lines = log(&[(1, 0), (100, 1)]);
        let other = [lines[0].replace("\"to\":\"0\"", "\"to\":\"2\"")];
        let why = replayed(&other).unwrap_err();
        assert!(why.starts_with("logged: suppress: wakeup_preemption goes from 1 to 2"), "{why}");
        assert!(why.contains("replayed: suppress: wakeup_preemption goes from 1 to 0"), "{why}");
        let why = replayed(&lines[1..]).unwrap_err();
        assert!(why.contains("replayed: no further decision"), "{why}");
    }

    proptest! {
        #[test]
        fn replay_of_any_log_gives_the_same_decisions(
            steps in proptest::collection::vec((0..1500_u64, 0..3_usize), 1..40),
        ) {
            let replay = replayed(&log(&steps));
            prop_assert_eq!(replay.map(|replay| replay.observations), Ok(steps.len() as u64));
        }
    }
}
