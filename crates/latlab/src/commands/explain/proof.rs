//! Proofs: tries, in turns, the changes that can be made at once against the leading causes.
//!
//! Each change is part of a plan, so that the run that makes it also undoes it, through the guard.

use crate::target::Target;
use latlab_core::compare::turns;
use latlab_core::plan::{Plan, Setting};
use latlab_core::proof::{self, Candidate, Effect, Judged, Proof, Proofs};
use latlab_core::record::{
    Change, Record, Warning, WarningCode, settings_turned, settings_were_there,
};
use latlab_core::time::Nanos;
use latlab_format::{self as format, live};
use latlab_measure::engine::{Outcome, Prepared};
use latlab_measure::session::Session;
use latlab_part::failure::{Failure, FailureKind, Result};
use latlab_part::progress::Watch;

/// Most turns on a machine whose runs differ for other reasons than their seeds, too.
const MOST: usize = 10;

/// Turns in the laboratory, where nothing but the seed makes runs differ.
const MOST_IN_LABORATORY: usize = 6;

/// Tries remedies against the leading causes of an explained run of `plan`, and adds the proofs to
/// its record. A remedy that can't be measured is reported in its verdict. The explanation is kept.
pub(in crate::commands) fn prove(
    explained: Outcome,
    plan: &Prepared,
    target: &dyn Target,
    session: &mut Session<'_>,
) -> Outcome {
    let mut outcome = explained;
    let failed = outcome.verdict.as_ref().is_some_and(|why| why.kind != FailureKind::Worse);
    if failed || outcome.record.cut_short().is_some() {
        return outcome;
    }
    let candidates = proof::candidates(&outcome.record);
    let not_tried = proof::not_tried(&outcome.record);
    if candidates.is_empty() {
        outcome.verdict = outcome.verdict.or_else(|| nothing_to_try(&not_tried));
        outcome.record.proofs = Some(Proofs { tried: Vec::new(), not_tried });
        return outcome;
    }
    let mut view = live::view(None);
    let mut turns = Turns::of(plan, candidates);
    let mut session_of_turns = session_of(session, view.as_mut());
    let end = turns.measure(target, &mut session_of_turns);
    let ended = session_of_turns.ended;
    session.ended |= ended;
    match end {
        Ok(End::Complete) => {}
        Ok(End::Interrupted) => {
            let text = "ended early, before all remedies were judged";
            outcome.record.warnings.push(Warning::new(WarningCode::Interrupted, text));
        }
        Err(failure) => outcome.verdict = Some(failure.about("trying remedies")),
    }
    add_changes(&mut outcome.record, std::mem::take(&mut turns.changes));
    outcome.record.proofs = Some(Proofs { tried: turns.proofs(), not_tried });
    outcome
}

/// The verdict where no remedy can be tried; none where nothing was late.
fn nothing_to_try(not_tried: &[String]) -> Option<Failure> {
    if not_tried.is_empty() {
        format::say(
            "nothing was late, so that nothing is to be proven: set a threshold with --above",
        );
        return None;
    }
    let why =
        "no remedy can be tried at once against the leading causes: see what to do against each";
    Some(Failure::unsupported(why))
}

/// The same session with another view: records of turns do not replace the file of `--out`.
fn session_of<'a>(session: &'a mut Session<'_>, watch: &'a mut dyn Watch) -> Session<'a> {
    Session {
        here: session.here,
        signals: session.signals,
        watch,
        progress: &mut *session.progress,
        keep: None,
        jobs: session.jobs,
        fresh: session.fresh,
        cold: session.cold,
        accel: session.accel,
        limit: session.limit,
        ended: session.ended,
    }
}

fn add_changes(record: &mut Record, changes: Vec<Change>) {
    for change in changes {
        if !record.changes.contains(&change) {
            record.changes.push(change);
        }
    }
}

/// Why no more turns are measured.
enum End {
    Complete,
    Interrupted,
}

/// One remedy, and its runs so far.
struct Trial {
    candidate: Candidate,
    /// The plan with the change.
    plan: Plan,
    records: Vec<Record>,
    /// What came of it, once that is known.
    outcome: Option<proof::Outcome>,
}

/// All remedies, measured in the same turns.
struct Turns {
    plan: Plan,
    without: Vec<Record>,
    trials: Vec<Trial>,
    most: usize,
    /// Changes of the machine that turns have made.
    changes: Vec<Change>,
}

impl Turns {
    fn of(explained: &Prepared, candidates: Vec<Candidate>) -> Turns {
        let plan = Plan { explain: None, fail_above: None, ..explained.plan().clone() };
        let in_laboratory = plan.target.starts_with("lab:");
        let trial = |candidate: Candidate| Trial {
            plan: candidate.remedy.applied_to(&plan),
            candidate,
            records: Vec::new(),
            outcome: None,
        };
        Turns {
            trials: candidates.into_iter().map(trial).collect(),
            plan,
            without: Vec::new(),
            most: if in_laboratory { MOST_IN_LABORATORY } else { MOST },
            changes: Vec::new(),
        }
    }

    /// Measures turns until each remedy is judged. Refuses a remedy that can't be made, whose run
    /// loses a load or a CPU, or whose setting another program changes. Ends if a run without a
    /// remedy fails, or if something can't be restored.
    fn measure(&mut self, target: &dyn Target, session: &mut Session<'_>) -> Result<End> {
        format::say(&self.intention(duration(&self.plan)?));
        for turn in 1..=self.most {
            if self.undecided().next().is_none() {
                break;
            }
            let names: Vec<String> = self.undecided().map(Trial::words).collect();
            let (most, names) = (self.most, names.join(", "));
            format::say(&format!("turn {turn} of at most {most}: without and with {names}"));
            if let End::Interrupted = self.take_turn(turn, target, session)? {
                return Ok(End::Interrupted);
            }
            self.judge(turn);
        }
        Ok(End::Complete)
    }

    fn undecided(&self) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(|trial| trial.outcome.is_none())
    }

    /// The intention, and the time that all turns take if each run takes this long.
    fn intention(&self, each: Nanos) -> String {
        let causes = |trial: &Trial| {
            format!("{} against {}", trial.words(), trial.candidate.causes.join(" and "))
        };
        let all: Vec<String> = self.trials.iter().map(causes).collect();
        let runs = self.most * (self.trials.len() + 1);
        let longest = Nanos(each.0.saturating_mul(runs as u64));
        format!(
            "trying {}; each change is undone after each run; at most {runs} runs, in which {longest} \
             are measured",
            all.join("; ")
        )
    }

    /// Measures once without any change and once with each that is not judged yet, every other time
    /// in the opposite order.
    fn take_turn(
        &mut self,
        turn: usize,
        target: &dyn Target,
        session: &mut Session<'_>,
    ) -> Result<End> {
        let seed = self.plan.seed.saturating_add(turn as u64 - 1);
        let mut runs: Vec<(Option<usize>, Plan)> = vec![(None, self.plan.clone())];
        let trials = self.trials.iter().enumerate().filter(|(_, trial)| trial.outcome.is_none());
        runs.extend(trials.map(|(nth, trial)| (Some(nth), trial.plan.clone())));
        if turn.is_multiple_of(2) {
            runs.reverse();
        }
        let plans = runs.iter().map(|(_, plan)| Prepared::of(&Plan { seed, ..plan.clone() }));
        let prepared: Vec<Prepared> = plans.collect::<Result<_>>()?;
        let outcomes = target.run(&prepared, session);
        if session.ended {
            for ((nth, _), outcome) in runs.iter().zip(&outcomes) {
                if let (Some(_), Ok(outcome)) = (nth, outcome) {
                    self.add_tried_changes(&outcome.record);
                }
            }
            return outcomes.into_iter().find_map(unrestored).map_or(Ok(End::Interrupted), Err);
        }
        for ((nth, _), outcome) in runs.iter().zip(outcomes) {
            self.keep(*nth, outcome)?;
        }
        Ok(End::Complete)
    }

    /// Keeps the record of a whole run with the remedy of this index, or without any. A remedy whose
    /// run is not whole is refused.
    fn keep(&mut self, nth: Option<usize>, outcome: Result<Outcome>) -> Result<()> {
        if let (Some(_), Ok(outcome)) = (nth, &outcome) {
            self.add_tried_changes(&outcome.record);
        }
        match (nth, outcome.and_then(Outcome::whole)) {
            (None, record) => self.without.push(record?),
            (Some(nth), Ok(record)) => {
                self.trials[nth].records.push(record);
                if let Some(why) = self.turned(nth) {
                    self.refuse(nth, &Failure::failed(why));
                }
            }
            (Some(_), Err(failure)) if failure.kind == FailureKind::Unrestored => {
                return Err(failure);
            }
            (Some(nth), Err(failure)) => self.refuse(nth, &failure),
        }
        Ok(())
    }

    /// Why another program turns the settings of a remedy, if it does.
    fn turned(&self, nth: usize) -> Option<String> {
        let (own, trial) = (&self.plan.settings, &self.trials[nth]);
        let tried = trial.plan.settings.iter().filter(|setting| !own.contains(setting));
        let tried: Vec<Setting> = tried.cloned().collect();
        // A setting that runs without the remedy make themselves may be there before.
        let is_new = |setting: &&Setting| !own.iter().any(|known| known.knob == setting.knob);
        let new: Vec<Setting> = tried.iter().filter(is_new).cloned().collect();
        settings_turned(&tried, &trial.records)
            .or_else(|| settings_were_there(&new, &trial.records))
    }

    fn refuse(&mut self, nth: usize, failure: &Failure) {
        let trial = &mut self.trials[nth];
        trial.outcome = Some(proof::Outcome::Refused(failure.to_string()));
        format::say(&trial.proof().sentence(|time| time.to_string()));
    }

    /// Adds the changes that a run with a remedy made for it.
    fn add_tried_changes(&mut self, record: &Record) {
        let settings = &self.plan.settings;
        let own = |change: &&Change| !settings.iter().any(|set| set.knob == change.knob);
        let tried =
            |change: &Change| Change { reason: "tried with --prove".to_owned(), ..change.clone() };
        self.changes.extend(record.changes.iter().filter(own).map(tried));
    }

    /// Judges the remedies that are not judged yet, where a judgement is due after this turn.
    fn judge(&mut self, turn: usize) {
        if turns::look(turn, self.most).is_none() {
            return;
        }
        let remedies = self.trials.len();
        for trial in self.trials.iter_mut().filter(|trial| trial.outcome.is_none()) {
            let judged = judged(&self.without, &trial.records, self.most, remedies);
            let is_decided = !matches!(judged.effect, Effect::NoneShown | Effect::Unknown);
            if is_decided || turn == self.most {
                trial.outcome = Some(proof::Outcome::Judged(judged));
                format::say(&trial.proof().sentence(|time| time.to_string()));
            }
        }
    }

    /// The proofs of all remedies; those that were not judged are unknown.
    fn proofs(&self) -> Vec<Proof> {
        self.trials.iter().map(Trial::proof).collect()
    }
}

impl Trial {
    fn words(&self) -> String {
        self.candidate.remedy.words()
    }

    fn proof(&self) -> Proof {
        let unknown =
            || proof::Outcome::Judged(Judged { effect: Effect::Unknown, figures: Vec::new() });
        Proof {
            remedy: self.candidate.remedy.clone(),
            causes: self.candidate.causes.clone(),
            pairs: self.records.len(),
            outcome: self.outcome.clone().unwrap_or_else(unknown),
        }
    }
}

/// The failure of a run to restore something, if it is one.
fn unrestored(outcome: Result<Outcome>) -> Option<Failure> {
    let failure = outcome.map_or_else(Some, |outcome| outcome.verdict);
    failure.filter(|failure| failure.kind == FailureKind::Unrestored)
}

/// Time that one run of this plan measures.
fn duration(plan: &Plan) -> Result<Nanos> {
    Ok(Prepared::of(plan)?.duration())
}

/// Judges the runs so far. The effect is unknown if they can't be compared.
fn judged(without: &[Record], with: &[Record], most: usize, remedies: usize) -> Judged {
    let unknown = Judged { effect: Effect::Unknown, figures: Vec::new() };
    proof::judge(without, with, most, remedies).unwrap_or(unknown)
}

#[cfg(test)]
mod tests;
