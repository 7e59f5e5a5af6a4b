//! Adapting: what mechanisms decide is done on this machine, and undone at the end.

mod account;
mod asking;
mod beside;
mod board;
mod control;
mod counting;
mod daemon;
mod foreseen;
mod log;

pub(crate) use asking::{ask, status};
pub(crate) use beside::{Beside, Ended};
pub(crate) use daemon::{Daemon, Orders};
pub(crate) use foreseen::foresee;
pub(crate) use log::replay;

use crate::failure::{Failure, Result};
use crate::mechanism;
use account::Account;
use counting::Counting;
use latlab_core::mechanism::configuration::Configuration;
use latlab_core::mechanism::{Adaptation, Decision, Knob, Observation};
use latlab_core::plan::Setting;
use latlab_core::record::Change;
use latlab_core::time::Nanos;
use latlab_sys::claim::{Claim, ClaimError};
use latlab_sys::guard::{Guard, GuardError};
use latlab_sys::knob::{self, Standing, Unreadable};
use latlab_sys::root::Root;
use latlab_sys::sched::Policy;
use latlab_sys::{clock, sched};
use std::time::Duration;

/// The longest for which nothing is looked at.
const STEP: Nanos = Nanos::from_millis(100);

/// Mechanisms at work on a machine. Dropping it gives everything back.
struct Adapting {
    root: Root,
    adaptation: Adaptation,
    guard: Guard,
    /// Where a mechanism decides by the number of real-time tasks.
    counting: Option<Counting>,
    account: Account,
    /// What people should know of a record that was made meanwhile.
    warnings: Vec<String>,
    _only: Claim,
}

/// Refuses, before anything starts, mechanisms that do not go together, and settings of knobs that
/// are theirs.
pub(crate) fn check(names: &[String], settings: &[Setting]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let knobs = mechanism::adaptation(names, &Configuration::default())?.knobs();
    match settings.iter().find(|setting| knobs.contains(&setting.knob.as_str())) {
        Some(Setting { knob, .. }) => Err(Failure::Failed(format!(
            "--set {knob} and --adapt would both turn {knob}: leave one of them out"
        ))),
        None => Ok(()),
    }
}

impl Adapting {
    /// Has these mechanisms decide for the first time, and does what they decide. Refused where a
    /// mechanism can do nothing here, or another latlab adapts this machine.
    fn begin(
        names: &[String],
        configuration: &Configuration,
        account: Account,
        root: Root,
        say: fn(&str),
    ) -> Result<Adapting> {
        let adaptation = mechanism::adaptation(names, configuration)?;
        let (knobs, unreadable) = look(&root, &adaptation.knobs());
        if let (true, Some((_, why))) = (knobs.is_empty(), unreadable.first()) {
            return Err(Failure::Unsupported(format!("{}: {why}", names.join(","))));
        }
        let only = Claim::take(&root, "adapt").map_err(|e| refused(&e))?;
        let counting = adaptation.counts_tasks().then(|| Counting::start(&root)).transpose()?;
        let guard = Guard::new(root.clone());
        let warnings = Vec::new();
        let mut adapting =
            Adapting { root, adaptation, guard, counting, account, warnings, _only: only };
        for (name, why) in unreadable {
            adapting.warn(format!("{name} stays as it is: {why}"), say);
        }
        for (mechanism, knob, wish) in adapting.adaptation.wishes(&knobs) {
            if let Err(why) = wish {
                say(&format!("{mechanism}: {} stays {}: {why}", knob.name, knob.value));
            }
        }
        for decision in adapting.decide(say) {
            adapting.act(&decision, say).map_err(|e| denied(&e))?;
        }
        Ok(adapting)
    }

    /// Looks again, and does what is decided then.
    fn step(&mut self, say: fn(&str)) {
        for decision in self.decide(say) {
            if let Err(error) = self.act(&decision, say) {
                self.adaptation.give_up(&decision);
                if let Some(why) = self.account.give_up(&decision, &error.to_string()) {
                    say(&why);
                }
                self.warn(format!("{} is left as it is: {error}", decision.knob()), say);
            }
        }
    }

    fn decide(&mut self, say: fn(&str)) -> Vec<Decision> {
        let (knobs, _) = look(&self.root, &self.adaptation.knobs());
        let realtime = self.counting.as_mut().map(Counting::tasks);
        let (at, requests) = (clock::now(), self.account.requests());
        let seen = Observation { at, realtime, knobs, requests, ..Observation::default() };
        let decisions = self.adaptation.decide(&seen);
        if let Some(why) = self.account.note(&seen, &decisions, self.adaptation.mode()) {
            say(&why);
        }
        decisions
    }

    fn act(&mut self, decision: &Decision, say: fn(&str)) -> std::result::Result<(), GuardError> {
        match decision {
            Decision::Set { mechanism, knob, was, to, because, .. } => {
                self.guard.set(knob, to, &format!("{mechanism}: {because}"))?;
                say(&format!("{mechanism}: {knob} goes from {was} to {to}: {because}"));
            }
            Decision::GiveBack { mechanism, knob, because, .. } => {
                self.guard.release(knob)?;
                say(&format!("{mechanism}: {knob} is given back: {because}"));
            }
            Decision::Stop { mechanism, knob, because, .. } => {
                self.guard.forget(knob)?;
                let text = format!("{mechanism}: {knob} is left alone from now on: {because}");
                self.warn(text, say);
            }
        }
        Ok(())
    }

    fn warn(&mut self, text: String, say: fn(&str)) {
        say(&text);
        self.warnings.push(text);
    }

    /// Waits until there may be something to decide.
    fn wait(&mut self) {
        match &mut self.counting {
            Some(counting) => counting.wait(STEP),
            None => std::thread::park_timeout(Duration::from_nanos(STEP.0)),
        }
    }

    /// Has the calling thread be able to act while ordinary tasks keep all CPUs busy, where that
    /// matters: a real-time task that has come is not to wait for them.
    fn be_prompt(&mut self, say: fn(&str)) {
        if self.counting.is_some()
            && let Err(error) = sched::set_policy(Policy::Fifo(1))
        {
            self.warn(format!("mode: real-time tasks may be seen late: {error}"), say);
        }
    }

    /// Gives everything back.
    fn end(mut self, say: fn(&str)) -> Ended {
        let changes = self.guard.restore();
        for Change { knob, was, restored, .. } in &changes {
            if *restored {
                say(&format!("{knob} is {was} again"));
            }
        }
        Ended { changes, warnings: std::mem::take(&mut self.warnings) }
    }
}

/// These knobs as they stand, and why others can't be read.
fn look(root: &Root, names: &[&'static str]) -> (Vec<Knob>, Vec<(&'static str, Unreadable)>) {
    let (mut knobs, mut unreadable) = (Vec::new(), Vec::new());
    for &name in names {
        match knob::standing(root, name) {
            Ok(Standing { path, value, possible }) => {
                knobs.push(Knob {
                    name: name.to_owned(),
                    path: path.display().to_string(),
                    value,
                    possible,
                });
            }
            Err(why) => unreadable.push((name, why)),
        }
    }
    (knobs, unreadable)
}

fn refused(error: &ClaimError) -> Failure {
    match error {
        ClaimError::Taken(pid) => Failure::Failed(format!(
            "another latlab (process {pid}) adapts this machine: end that one first"
        )),
        ClaimError::Failed(..) => {
            Failure::Unsupported(format!("{error}: run latlab as root to adapt a machine"))
        }
    }
}

fn denied(error: &GuardError) -> Failure {
    match error {
        GuardError::Refused(..) | GuardError::Taken { .. } => Failure::Failed(error.to_string()),
        _ => Failure::Unsupported(error.to_string()),
    }
}
