//! The log of what was observed and decided, a line of JSON each, and whether deciding anew comes
//! to the same.

use super::{Adaptation, Decision, Observation};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// A daemon has begun: what follows was decided by it.
    Began(Began),
    /// This was seen, and decided upon it.
    Decided {
        /// What was seen.
        seen: Observation,
        /// What was decided.
        decisions: Vec<Decision>,
    },
    /// The same was seen as before, at this time, and nothing decided.
    Again(Nanos),
    /// What was decided could not be done.
    GaveUp(Decision),
}

/// What decisions follow from, besides what is observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Began {
    /// The version of latlab.
    pub latlab: String,
    /// The mechanisms at work.
    pub mechanisms: Vec<String>,
    /// The text of the configuration.
    pub configuration: String,
}

/// Makes entries of what is seen; much of it is seen again and again.
#[derive(Debug, Default)]
pub struct Short {
    last: Option<Observation>,
}

impl Short {
    /// The entry for this.
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

/// Decides anew upon what was observed.
#[derive(Debug, Default)]
pub struct Replay {
    adaptation: Option<Adaptation>,
    last: Option<Observation>,
    /// How many observations were decided upon.
    pub observations: u64,
    /// How many decisions came of it.
    pub decisions: u64,
}

impl Replay {
    /// Begins with these mechanisms, which have done nothing so far.
    pub fn begin(&mut self, adaptation: Adaptation) {
        (self.adaptation, self.last) = (Some(adaptation), None);
    }

    /// Takes the next entry. Says, as a sentence, what is decided otherwise now, or why nothing can
    /// be decided.
    pub fn take(&mut self, entry: Entry) -> Result<(), String> {
        let began = "it does not say first which mechanisms are at work".to_owned();
        let adaptation = self.adaptation.as_mut().ok_or(began)?;
        let (seen, then) = match entry {
            Entry::Began(_) => return Err("it begins twice".to_owned()),
            Entry::GaveUp(decision) => {
                adaptation.give_up(&decision);
                return Ok(());
            }
            Entry::Decided { seen, decisions } => (seen, decisions),
            Entry::Again(at) => {
                let last = self.last.take().ok_or("nothing was seen before")?;
                (Observation { at, ..last }, Vec::new())
            }
        };
        let now = adaptation.decide(&seen);
        self.last = Some(seen);
        self.observations += 1;
        self.decisions += now.len() as u64;
        if now == then {
            return Ok(());
        }
        let differs = now.iter().zip(&then).position(|(now, then)| now != then);
        let differs = differs.unwrap_or(now.len().min(then.len()));
        let shown = |decisions: &[Decision]| {
            decisions.get(differs).map_or_else(|| "nothing more".to_owned(), ToString::to_string)
        };
        Err(format!("then it was: {}; now it is: {}", shown(&then), shown(&now)))
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

    /// A machine on which so many real-time tasks are seen, and decisions carried out.
    fn log(steps: &[(u64, usize)]) -> Vec<String> {
        let (mut adaptation, mut short) = (adaptation(), Short::default());
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
    fn what_is_seen_again_takes_a_short_line() {
        let lines = log(&[(1, 0), (100, 0), (100, 0), (100, 0), (100, 1)]);
        assert!(lines[0].starts_with("{\"decided\":{\"seen\":{"), "{}", lines[0]);
        assert_eq!(lines[2], "{\"again\":201000000}");
        assert_eq!(lines[3], "{\"again\":301000000}");
        let replay = replayed(&lines).unwrap();
        assert_eq!((replay.observations, replay.decisions), (5, 2));
    }

    #[test]
    fn what_is_decided_otherwise_is_said() {
        let lines = log(&[(1, 0), (100, 1)]);
        let other = [lines[0].replace("\"to\":\"0\"", "\"to\":\"2\"")];
        let why = replayed(&other).unwrap_err();
        assert!(
            why.starts_with("then it was: suppress: wakeup_preemption goes from 1 to 2"),
            "{why}"
        );
        assert!(why.contains("now it is: suppress: wakeup_preemption goes from 1 to 0"), "{why}");
        let why = replayed(&lines[1..]).unwrap_err();
        assert!(why.contains("now it is: nothing more"), "{why}");
    }

    proptest! {
        #[test]
        fn whatever_was_seen_it_is_decided_as_it_was(
            steps in proptest::collection::vec((0..1500_u64, 0..3_usize), 1..40),
        ) {
            let replay = replayed(&log(&steps));
            prop_assert_eq!(replay.map(|replay| replay.observations), Ok(steps.len() as u64));
        }
    }
}
