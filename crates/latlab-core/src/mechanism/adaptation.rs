//! Mechanisms at work together: what all of them want is decided in one place.

use super::newest::Newest;
use super::suppress::SCHED_EXT;
use super::threads::Threads;
use super::{Decision, Knob, Mechanism, Mode, Observation, Part, Wake, Wish, needs};
use std::collections::{BTreeMap, BTreeSet};

/// Mechanisms at work together: what they have had turned, and what they must not touch.
pub struct Adaptation {
    mechanisms: Vec<Box<dyn Mechanism>>,
    ceiling: u32,
    turned: BTreeMap<&'static str, Turned>,
    left: BTreeSet<&'static str>,
    threads: Threads,
    mode: Option<(Mode, String)>,
    newest: Newest,
}

/// A knob that is turned.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Turned {
    mechanism: &'static str,
    to: String,
}

impl Adaptation {
    /// These mechanisms, which have done nothing so far, and give no thread a priority above
    /// `ceiling`. Refused, in a sentence, where two of them would turn one knob, where two decide
    /// the mode, or where one can do nothing without another.
    pub fn of(mechanisms: Vec<Box<dyn Mechanism>>, ceiling: u32) -> Result<Adaptation, String> {
        let mut deciding = mechanisms.iter().filter(|one| one.decides_mode());
        let mode = deciding.next().map(|one| one.name());
        if let (Some(one), Some(other)) = (mode, deciding.next()) {
            let other = other.name();
            return Err(format!("{one} and {other} both decide the mode: take one"));
        }
        one_owner_each(&mechanisms)?;
        let adaptation = Adaptation {
            mechanisms,
            ceiling,
            turned: BTreeMap::new(),
            left: BTreeSet::new(),
            threads: Threads::default(),
            mode: None,
            newest: Newest::default(),
        };
        let follows = adaptation.mechanisms.iter().find(|one| one.part() == Part::Follows);
        if let (Some(one), false) = (follows, adaptation.turns_threads()) {
            return Err(format!(
                "{} only raises threads that others know to be needed: name transparent or \
                 selective as well, or leave --mechanisms out",
                one.name()
            ));
        }
        match mode {
            Some(name)
                if adaptation.knobs_for(Mode::Throughput).is_empty()
                    && !adaptation.turns_threads() =>
            {
                Err(format!(
                    "{name} only says when others are to act: name suppress as well, or leave \
                     --mechanisms out"
                ))
            }
            _ => Ok(adaptation),
        }
    }

    /// The knobs that are files and may be turned.
    pub fn knobs(&self) -> Vec<&'static str> {
        self.mechanisms.iter().flat_map(|one| one.knobs().iter().copied()).collect()
    }

    /// Those of them that may be turned for this mode.
    pub fn knobs_for(&self, mode: Mode) -> Vec<&'static str> {
        let those = self.mechanisms.iter().filter(|one| one.turns_for() == mode);
        those.flat_map(|one| one.knobs().iter().copied()).collect()
    }

    /// The mechanisms that decide by the real-time tasks there are.
    pub fn counts_tasks(&self) -> Vec<&'static str> {
        let all = self.mechanisms.iter();
        let counting = all.filter(|one| one.decides_mode() || one.part() != Part::None);
        counting.map(|one| one.name()).collect()
    }

    /// Whether one of them decides the mode.
    pub fn decides_mode(&self) -> bool {
        self.mechanisms.iter().any(|one| one.decides_mode())
    }

    /// Whether threads that handle interrupts may be turned.
    pub fn turns_threads(&self) -> bool {
        let finds = |part| matches!(part, Part::Asked | Part::Wakes);
        self.mechanisms.iter().any(|one| finds(one.part()))
    }

    /// The mechanisms that can't do without knowing who wakes real-time tasks.
    pub fn hears_wakes(&self) -> Vec<&'static str> {
        let has = |part| self.mechanisms.iter().any(|one| one.part() == part);
        if !has(Part::Wakes) {
            return Vec::new();
        }
        let needing = |part| part == Part::Wakes || (part == Part::Follows && !has(Part::Asked));
        let all = self.mechanisms.iter().filter(|one| needing(one.part()));
        all.map(|one| one.name()).collect()
    }

    /// Whether nothing would be decided otherwise if this wake-up were seen once more.
    pub fn knows(&self, wake: &Wake) -> bool {
        self.mechanisms.iter().any(|one| one.knows(wake))
    }

    /// What each mechanism would have each of these knobs be, but for those that are left alone.
    pub fn wishes(&self, knobs: &[Knob]) -> Vec<(&'static str, Knob, Result<Wish, &'static str>)> {
        let there = |knob: &&Knob| !self.left.contains(knob.name.as_str());
        let knobs: Vec<Knob> = knobs.iter().filter(there).cloned().collect();
        let mut wishes = Vec::new();
        for mechanism in &self.mechanisms {
            for knob in knobs.iter().filter(|knob| mechanism.knobs().contains(&knob.name.as_str()))
            {
                wishes.push((mechanism.name(), knob.clone(), mechanism.wish(knob, &knobs)));
            }
        }
        wishes
    }

    /// What is to be done after this was seen; nothing, mostly. The same observations in the same
    /// order give the same decisions.
    pub fn decide(&mut self, seen: &Observation) -> Vec<Decision> {
        let mut decisions = self.stop(seen);
        decisions.extend(self.threads.stop(seen));
        self.newest.note(&decisions);
        decisions.extend(self.relieve(seen));
        let before = decisions.len();
        let mode = self.mechanisms.iter_mut().find_map(|one| one.mode(seen));
        decisions.extend(self.turn_threads(seen, mode.as_ref()));
        decisions.extend(self.turn_for_throughput(seen, mode.as_ref()));
        // Nobody starves for what is turned for latency: it is never the newest to be taken back.
        self.newest.note(&decisions[before..]);
        decisions.extend(self.turn_for_latency(seen, mode.as_ref()));
        self.mode = mode;
        decisions
    }

    fn turn_for_throughput(
        &mut self,
        seen: &Observation,
        mode: Option<&(Mode, String)>,
    ) -> Vec<Decision> {
        match mode {
            // Who real-time tasks wait for is known, and goes before ordinary tasks.
            Some((Mode::Latency, why)) if !self.turns_threads() => {
                self.disengage(Mode::Throughput, why)
            }
            // What ordinary tasks may starve for is not turned while they do.
            _ if !seen.starved.is_empty() => Vec::new(),
            Some((Mode::Throughput, why)) if !self.turns_threads() => {
                self.engage(Mode::Throughput, seen, Some(why))
            }
            _ => self.engage(Mode::Throughput, seen, None),
        }
    }

    fn turn_for_latency(
        &mut self,
        seen: &Observation,
        mode: Option<&(Mode, String)>,
    ) -> Vec<Decision> {
        match mode {
            Some((Mode::Latency, why)) => self.engage(Mode::Latency, seen, Some(why)),
            Some((Mode::Throughput, why)) => self.disengage(Mode::Latency, why),
            None => Vec::new(),
        }
    }

    /// Takes back what may have ordinary tasks starve, if they do, for good.
    fn relieve(&mut self, seen: &Observation) -> Option<Decision> {
        let back = (!seen.starved.is_empty()).then(|| self.newest.take_back(&seen.starved))??;
        self.give_up(&back);
        Some(back)
    }

    /// The mode that was decided for last, where a mechanism decides that, and why.
    pub fn mode(&self) -> Option<&(Mode, String)> {
        self.mode.as_ref()
    }

    /// From now on the knob of this decision is not touched: it could not be turned.
    pub fn give_up(&mut self, decision: &Decision) {
        self.newest.forget(decision);
        match decision.thread() {
            Some(id) => self.threads.give_up(id, decision.knob()),
            None => self.leave(decision.knob()),
        }
    }

    fn leave(&mut self, name: &str) {
        if let Some(knob) = self.knobs().into_iter().find(|knob| *knob == name) {
            self.turned.remove(knob);
            self.left.insert(knob);
        }
    }

    /// Gives up knobs that somebody else has turned, or that are not there any more.
    fn stop(&mut self, seen: &Observation) -> Vec<Decision> {
        let mut decisions = Vec::new();
        for (&knob, turned) in &self.turned {
            let now = seen.knobs.iter().find(|there| there.name == knob).map(|there| &there.value);
            if now == Some(&turned.to) {
                continue;
            }
            let to = &turned.to;
            let because = match now {
                // The kernel ejects one that lets tasks wait.
                Some(now) if knob == SCHED_EXT && now == "none" => {
                    "it is at work no more".to_owned()
                }
                Some(now) => format!("somebody has turned it from {to} to {now}"),
                None => "it can't be read any more".to_owned(),
            };
            let (mechanism, knob) = (turned.mechanism.to_owned(), knob.to_owned());
            decisions.push(Decision::Stop { mechanism, knob, thread: None, because });
        }
        for decision in &decisions {
            self.leave(decision.knob());
        }
        decisions
    }

    fn turn_threads(&mut self, seen: &Observation, mode: Option<&(Mode, String)>) -> Vec<Decision> {
        let joined = needs::join(&mut self.mechanisms, seen, mode, self.ceiling);
        let otherwise = match mode {
            Some((Mode::Latency, why)) => why,
            _ => "no real-time task needs it any more",
        };
        joined.map_or_else(Vec::new, |joined| self.threads.turn(seen, &joined, otherwise))
    }

    /// Fulfils every wish for this mode that is not fulfilled.
    fn engage(&mut self, mode: Mode, seen: &Observation, why_now: Option<&str>) -> Vec<Decision> {
        let mut decisions = Vec::new();
        for (mechanism, knob, wish) in self.wishes(&seen.knobs) {
            let own = self.knobs_for(mode).into_iter().find(|own| *own == knob.name);
            let Some(name) = own.filter(|name| !self.turned.contains_key(name)) else { continue };
            let Ok(Wish { value: to, because }) = wish else { continue };
            let because =
                why_now.map_or_else(|| because.to_owned(), |why| format!("{because}, as {why}"));
            self.turned.insert(name, Turned { mechanism, to: to.clone() });
            decisions.push(Decision::Set {
                mechanism: mechanism.to_owned(),
                knob: knob.name,
                thread: None,
                was: knob.value,
                to,
                because,
            });
        }
        decisions
    }

    /// Has everything given back that was turned for this mode, in the opposite order.
    fn disengage(&mut self, mode: Mode, why: &str) -> Vec<Decision> {
        let mut decisions = Vec::new();
        for knob in self.knobs_for(mode).into_iter().rev() {
            if let Some(Turned { mechanism, .. }) = self.turned.remove(knob) {
                decisions.push(Decision::GiveBack {
                    mechanism: mechanism.to_owned(),
                    knob: knob.to_owned(),
                    thread: None,
                    because: why.to_owned(),
                    for_good: false,
                });
            }
        }
        decisions
    }
}

/// Refuses mechanisms that would fight over a knob.
fn one_owner_each(mechanisms: &[Box<dyn Mechanism>]) -> Result<(), String> {
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    for mechanism in mechanisms {
        for knob in mechanism.knobs() {
            if let Some(other) = owners.insert(knob, mechanism.name()) {
                let name = mechanism.name();
                return Err(format!("{other} and {name} both turn {knob}: take one of them"));
            }
        }
    }
    Ok(())
}

impl std::fmt::Debug for Adaptation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Adaptation")
            .field("turned", &self.turned)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}
