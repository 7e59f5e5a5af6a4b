//! Adapting: what mechanisms decide is done on this machine, and undone at the end.

mod able;
mod account;
mod acting;
mod asking;
mod beside;
mod board;
mod canaries;
mod control;
mod counting;
mod daemon;
mod foreseen;
mod log;
mod observing;
mod scheduler;
mod voice;

pub(crate) use asking::{ask, status};
pub(crate) use beside::{Beside, Ended};
pub(crate) use daemon::{Daemon, Orders};
pub(crate) use foreseen::foresee;
pub(crate) use log::replay;
pub(crate) use voice::{Speaker, Voice};

use crate::failure::{Failure, Result};
use crate::mechanism;
use account::Account;
use latlab_core::mechanism::configuration::Configuration;
use latlab_core::mechanism::suppress::SCHED_EXT;
use latlab_core::mechanism::watching::Violations;
use latlab_core::mechanism::{Adaptation, Decision, Mode, Observation};
use latlab_core::plan::Setting;
use latlab_core::record::Change;
use latlab_core::time::Nanos;
use latlab_sys::claim::{Claim, ClaimError};
use latlab_sys::guard::{Guard, GuardError};
use latlab_sys::root::Root;
use latlab_sys::sched::Policy;
use latlab_sys::{clock, sched};
use observing::Observing;
use scheduler::Scheduler;

/// The longest for which nothing is looked at.
const STEP: Nanos = Nanos::from_millis(100);
/// Of so much time, one part may go into steps, but for what can't wait; no rest is longer than that.
const SHARE: u64 = 10;
const REST: Nanos = Nanos::from_secs(1);

/// Mechanisms at work on a machine. Dropping it gives everything back.
struct Adapting {
    adaptation: Adaptation,
    observing: Observing,
    guard: Guard,
    scheduler: Scheduler,
    /// What processes ask for, and what became of it.
    account: Account,
    voice: Voice,
    /// What people should know of a record that was made meanwhile.
    warnings: Vec<String>,
    /// The least time between this step and the next, as it took CPU time.
    rest: Nanos,
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
        told: &Configuration,
        mut account: Account,
        root: Root,
        voice: Voice,
    ) -> Result<Adapting> {
        let adaptation = mechanism::adaptation(names, told)?;
        let cant = able::check(&adaptation, names, &root)?;
        let only = Claim::take(&root, "adapt").map_err(|e| refused(&e))?;
        account.begin_log()?;
        let observing = Observing::start(&adaptation, names, &root)?;
        let mut adapting = Adapting {
            adaptation,
            observing,
            guard: Guard::new(root),
            scheduler: Scheduler::default(),
            account,
            voice,
            warnings: Vec::new(),
            rest: Nanos(0),
            _only: only,
        };
        for what in cant.into_iter().chain(adapting.observing.complaint()) {
            adapting.warn(what);
        }
        let seen = adapting.look();
        for (mechanism, knob, wish) in adapting.adaptation.wishes(&seen.knobs) {
            if let Err(why) = wish {
                adapting
                    .voice
                    .say(&format!("{mechanism}: {} stays {}: {why}", knob.name, knob.value));
            }
        }
        let decisions = adapting.decide(&seen);
        for (decisions, error) in adapting.carry_out(&decisions) {
            // Other knobs do as well, and are turned next; one thread is not all; and it is not for
            // what is turned for latency that a machine is adapted.
            let spared = adapting.adaptation.knobs_for(Mode::Latency);
            let others_do = |one: &Decision| {
                one.knob() == SCHED_EXT || is_stubborn(one, &error) || spared.contains(&one.knob())
            };
            if !decisions.iter().all(others_do) {
                return Err(denied(&error));
            }
            for decision in decisions {
                adapting.leave(decision, &error);
            }
        }
        Ok(adapting)
    }

    /// Looks again, and does what is decided then.
    fn step(&mut self) {
        let begin = clock::of_thread();
        let mut seen = self.look();
        if let Some(why) = self.observing.complaint() {
            self.warn(why);
        }
        seen.starved = self.account.starved(seen.at);
        let decisions = self.decide(&seen);
        for (decisions, error) in self.carry_out(&decisions) {
            for decision in decisions {
                self.leave(decision, &error);
            }
        }
        if let Err(error) = self.guard.settle() {
            self.warn(error.to_string());
        }
        let cost = clock::of_thread() - begin;
        self.rest = Nanos(cost.0 * SHARE).min(REST);
    }

    fn look(&mut self) -> Observation {
        let adaptation = &self.adaptation;
        self.observing.look(self.account.requests(), |wake| adaptation.knows(wake))
    }

    fn decide(&mut self, seen: &Observation) -> Vec<Decision> {
        let decisions = self.adaptation.decide(seen);
        if let Some(why) = self.account.note(seen, &decisions, self.adaptation.mode()) {
            self.voice.say(&why);
        }
        decisions
    }

    /// Waits until there may be something to decide.
    fn wait(&mut self) {
        let adaptation = &self.adaptation;
        self.observing.wait(STEP, self.rest, |wake| adaptation.knows(wake));
    }

    /// Has the calling thread be able to act while ordinary tasks keep all CPUs busy, where that
    /// matters: a real-time task that has come is not to wait for them.
    fn be_prompt(&mut self) {
        if self.observing.is_in_a_hurry()
            && let Err(error) = sched::set_policy(Policy::Fifo(1))
        {
            self.warn(format!("real-time tasks may be seen late: {error}"));
        }
    }

    /// Gives everything back.
    fn end(mut self) -> Ended {
        let violations = self.observing.meter().map(|meter| meter.violations());
        if let Some(Violations { by_interrupts, by_others, .. }) = violations {
            self.voice.say(&format!(
                "tasks of lower priority have woken real-time tasks: interrupt threads \
                 {by_interrupts} times, others {by_others} times"
            ));
        }
        let mut changes = self.guard.restore();
        changes.extend(self.scheduler.end());
        for Change { knob, old, restored, .. } in &changes {
            if *restored {
                self.voice.say(&format!("{knob} is {old} again"));
            }
        }
        Ended { changes, warnings: std::mem::take(&mut self.warnings) }
    }
}

/// Whether the kernel does not let this one thread be turned.
fn is_stubborn(decision: &Decision, error: &GuardError) -> bool {
    decision.thread().is_some() && matches!(error, GuardError::Refused(..))
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
