//! Joint adaptation: the wishes of all active mechanisms, combined into decisions.

use super::history::History;
use super::knobs::Knobs;
use super::needs::JoinedNeeds;
use super::threads::Threads;
use super::{
    Assessment, Decision, Description, Knob, Mechanism, Mode, Observation, ThreadRole, Wake, Wish,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The active mechanisms, the knobs that they have set, and the knobs that they must leave alone.
pub struct Adaptation {
    mechanisms: Vec<Box<dyn Mechanism>>,
    ceiling: u32,
    knobs: Knobs,
    threads: Threads,
    mode: Option<(Mode, String)>,
    /// Task, its process and the thread that wakes it, of the wake-ups that a mechanism has noted.
    known_wakes: BTreeSet<(i32, i32, i32)>,
    history: History,
}

impl Adaptation {
    /// Starts with these mechanisms, before they have changed anything. They give no thread a
    /// priority above `ceiling`. Refuses, in a sentence, two mechanisms that set the same knob or
    /// both decide the mode, and a mechanism that has no effect without another.
    pub fn of(mechanisms: Vec<Box<dyn Mechanism>>, ceiling: u32) -> Result<Adaptation, String> {
        let adaptation = Adaptation {
            mechanisms,
            ceiling,
            knobs: Knobs::default(),
            threads: Threads::default(),
            mode: None,
            known_wakes: BTreeSet::new(),
            history: History::default(),
        };
        adaptation.check()?;
        Ok(adaptation)
    }

    /// Returns the decisions that follow from an observation, usually none. The same
    /// observations in the same order give the same decisions.
    pub fn decide(&mut self, seen: &Observation) -> Vec<Decision> {
        let mut decisions = self.knobs.stop(seen);
        decisions.extend(self.threads.stop(seen));
        self.history.note(&decisions);
        decisions.extend(self.relieve(seen));
        let noted = decisions.len();
        let assessments: Vec<Assessment> =
            self.mechanisms.iter_mut().map(|one| one.assess(seen)).collect();
        let mode = assessments.iter().find_map(|one| one.mode.clone());
        self.note_wakes(&assessments);
        decisions.extend(self.schedule_threads(seen, mode.as_ref(), &assessments));
        decisions.extend(self.serve_throughput(seen, mode.as_ref()));
        // Knobs that serve latency make no task starve: they are not undone because one does.
        self.history.note(&decisions[noted..]);
        decisions.extend(self.serve_latency(seen, mode.as_ref()));
        self.mode = mode;
        decisions
    }

    /// Leaves the knob of this decision alone from now on, as the decision could not be carried out.
    /// A thread that has a policy from an earlier decision is restored first.
    pub fn give_up(&mut self, decision: &Decision) {
        self.history.revert(decision);
        match decision.thread() {
            Some(id) => self.threads.give_up(id, decision),
            None => self.knobs.give_up(decision.knob()),
        }
    }

    /// Returns the mode that was decided last, and why; none where no mechanism decides it.
    pub fn mode(&self) -> Option<&(Mode, String)> {
        self.mode.as_ref()
    }

    /// Whether a mechanism has noted this wake-up already, so that observing it once more would
    /// not change any decision.
    pub fn knows(&self, wake: &Wake) -> bool {
        let is_known = |thread| self.known_wakes.contains(&(wake.task, wake.process, thread));
        is_known(wake.thread) && wake.behind.is_none_or(is_known)
    }

    /// Returns the value that each mechanism wants each of these knobs to have, or why it stays as
    /// it is. Knobs that are left alone are not among them.
    pub fn wishes(&self, knobs: &[Knob]) -> Vec<(&'static str, Knob, Result<Wish, &'static str>)> {
        let may_set = |knob: &&Knob| self.knobs.may_set(&knob.name);
        let mut wishes = Vec::new();
        for mechanism in &self.mechanisms {
            let Description { name, knobs: own, .. } = mechanism.description();
            let own = |knob: &&Knob| own.contains(&knob.name.as_str());
            for knob in knobs.iter().filter(may_set).filter(own) {
                wishes.push((name, knob.clone(), mechanism.wish(knob)));
            }
        }
        wishes
    }

    /// Returns the knobs that are files and may be set.
    pub fn knobs(&self) -> Vec<&'static str> {
        self.descriptions().flat_map(|one| one.knobs.iter().copied()).collect()
    }

    /// Returns the knobs that serve this mode.
    pub fn knobs_for(&self, mode: Mode) -> Vec<&'static str> {
        let serving = self.descriptions().filter(|one| one.serves == mode);
        serving.flat_map(|one| one.knobs.iter().copied()).collect()
    }

    /// Returns the names of the mechanisms that decide from the real-time tasks there are.
    pub fn need_task_counts(&self) -> Vec<&'static str> {
        let counts = |one: &Description| one.decides_mode || one.threads != ThreadRole::None;
        self.descriptions().filter(counts).map(|one| one.name).collect()
    }

    /// Whether a mechanism decides the mode.
    pub fn decides_mode(&self) -> bool {
        self.descriptions().any(|one| one.decides_mode)
    }

    /// Whether threads that handle interrupts may get another scheduling policy.
    pub fn schedules_threads(&self) -> bool {
        self.descriptions().any(|one| one.threads.finds())
    }

    /// Returns the names of the mechanisms that have no effect unless wake-ups of real-time tasks
    /// are observed.
    pub fn need_wakeups(&self) -> Vec<&'static str> {
        let has = |role| self.descriptions().any(|one| one.threads == role);
        let by_wakes = has(ThreadRole::FindsByWakes);
        let only_by_wakes = by_wakes && !has(ThreadRole::FindsByRequests);
        let needing = self.descriptions().filter(|one| match one.threads {
            ThreadRole::FindsByWakes => true,
            role => only_by_wakes && role.depends().is_some(),
        });
        needing.map(|one| one.name).collect()
    }

    fn descriptions(&self) -> impl Iterator<Item = Description> {
        self.mechanisms.iter().map(|one| one.description())
    }

    /// Refuses mechanisms that can't work together, or not without others.
    fn check(&self) -> Result<(), String> {
        let mut deciding = self.descriptions().filter(|one| one.decides_mode).map(|one| one.name);
        let mode = deciding.next();
        if let (Some(one), Some(other)) = (mode, deciding.next()) {
            return Err(format!("{one} and {other} both decide the mode: name only one of them"));
        }
        self.check_owners()?;
        let mut depending =
            self.descriptions().filter_map(|one| Some((one.name, one.threads.depends()?)));
        if let (Some((name, what)), false) = (depending.next(), self.schedules_threads()) {
            return Err(format!(
                "{name} {what}: name transparent as well or, for latlab adapt, selective"
            ));
        }
        let has_effect = !self.knobs_for(Mode::Throughput).is_empty() || self.schedules_threads();
        if let (Some(name), false) = (mode, has_effect) {
            return Err(format!(
                "{name} only decides when other mechanisms act: name suppress as well"
            ));
        }
        Ok(())
    }

    /// Refuses mechanisms that set the same knob.
    fn check_owners(&self) -> Result<(), String> {
        let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
        for Description { name, knobs, .. } in self.descriptions() {
            for knob in knobs {
                if let Some(other) = owners.insert(knob, name) {
                    return Err(format!(
                        "{other} and {name} both set {knob}: name only one of them"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Undoes a change for good if `SCHED_OTHER` tasks starve.
    fn relieve(&mut self, seen: &Observation) -> Option<Decision> {
        let undone = (!seen.starved.is_empty()).then(|| self.history.undo(&seen.starved))??;
        self.give_up(&undone);
        Some(undone)
    }

    fn note_wakes(&mut self, assessments: &[Assessment]) {
        self.known_wakes.clear();
        for (mechanism, assessment) in self.mechanisms.iter().zip(assessments) {
            if mechanism.description().threads == ThreadRole::FindsByWakes {
                let wakes = assessment.needs.iter().map(|one| (one.task, one.process, one.thread));
                self.known_wakes.extend(wakes);
            }
        }
    }

    fn schedule_threads(
        &mut self,
        seen: &Observation,
        mode: Option<&(Mode, String)>,
        assessments: &[Assessment],
    ) -> Vec<Decision> {
        let all = self.descriptions().zip(assessments).collect();
        let Some(needs) = JoinedNeeds::join(all, mode, self.ceiling) else { return Vec::new() };
        let latency = mode.filter(|(mode, _)| *mode == Mode::Latency);
        self.threads.schedule(seen, &needs, latency.map(|(_, why)| why.as_str()))
    }

    fn serve_throughput(
        &mut self,
        seen: &Observation,
        mode: Option<&(Mode, String)>,
    ) -> Vec<Decision> {
        match mode {
            // Where the threads that real-time tasks wait for are known, these run before
            // SCHED_OTHER tasks, and the knobs may stay set.
            Some((Mode::Latency, why)) if !self.schedules_threads() => {
                self.restore(Mode::Throughput, why)
            }
            // While SCHED_OTHER tasks starve, nothing is set that they may starve for.
            _ if !seen.starved.is_empty() => Vec::new(),
            Some((Mode::Throughput, why)) if !self.schedules_threads() => {
                self.fulfil(Mode::Throughput, seen, Some(why))
            }
            _ => self.fulfil(Mode::Throughput, seen, None),
        }
    }

    fn serve_latency(
        &mut self,
        seen: &Observation,
        mode: Option<&(Mode, String)>,
    ) -> Vec<Decision> {
        match mode {
            Some((Mode::Latency, why)) => self.fulfil(Mode::Latency, seen, Some(why)),
            Some((Mode::Throughput, why)) => self.restore(Mode::Latency, why),
            None => Vec::new(),
        }
    }

    /// Fulfils all wishes for this mode that are not fulfilled yet.
    fn fulfil(&mut self, mode: Mode, seen: &Observation, now: Option<&str>) -> Vec<Decision> {
        let serving = self.knobs_for(mode);
        let mut decisions = Vec::new();
        for (mechanism, knob, wish) in self.wishes(&seen.knobs) {
            if let (true, Ok(wish)) = (serving.contains(&knob.name.as_str()), wish) {
                decisions.extend(self.knobs.set(mechanism, knob, wish, now));
            }
        }
        decisions
    }

    /// Restores all knobs that were set for this mode, in reverse order.
    fn restore(&mut self, mode: Mode, why: &str) -> Vec<Decision> {
        let knobs = self.knobs_for(mode);
        knobs.into_iter().rev().filter_map(|knob| self.knobs.restore(knob, why)).collect()
    }
}

impl fmt::Debug for Adaptation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adaptation")
            .field("knobs", &self.knobs)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}
