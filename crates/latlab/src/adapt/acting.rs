//! Doing what was decided.

use super::Adapting;
use latlab_core::mechanism::Decision;
use latlab_core::mechanism::suppress::SCHED_EXT;
use latlab_sys::guard::{GuardError, Wanted};

impl Adapting {
    /// Does these. Those that could not be done, and why.
    pub(super) fn carry_out<'a>(
        &mut self,
        decisions: &'a [Decision],
    ) -> Vec<(&'a [Decision], GuardError)> {
        let turns_thread = |one: &Decision| matches!(one, Decision::Set { thread: Some(_), .. });
        let mut failed = Vec::new();
        // Threads that are turned one after another are journalled together.
        for some in decisions.chunk_by(|one, next| turns_thread(one) && turns_thread(next)) {
            match some {
                [one] if !turns_thread(one) => {
                    failed.extend(self.act(one).err().map(|error| (some, error)));
                }
                _ => failed.extend(self.turn_threads(some)),
            }
        }
        failed
    }

    fn turn_threads<'a>(&mut self, all: &'a [Decision]) -> Vec<(&'a [Decision], GuardError)> {
        let wanted: Vec<Wanted<'_>> = all.iter().filter_map(wanted).collect();
        let done = match self.guard.set_threads(&wanted) {
            Ok(done) => done,
            Err(error) => return vec![(all, error)],
        };
        let mut failed = Vec::new();
        for (one, done) in all.chunks(1).zip(done) {
            match done {
                Ok(()) => self.voice.say(&one[0].to_string()),
                // The next look finds that it is not there.
                Err(GuardError::Ended(_)) => {}
                Err(error) => failed.push((one, error)),
            }
        }
        failed
    }

    /// Does what is no thread's to be turned.
    fn act(&mut self, decision: &Decision) -> Result<(), GuardError> {
        let guard = &mut self.guard;
        match decision {
            Decision::Set { mechanism, knob, to, because, .. } => {
                let why = format!("{mechanism}: {because}");
                if knob == SCHED_EXT {
                    self.scheduler.take_over(&why)?;
                } else {
                    guard.set(knob, to, &why)?;
                }
                self.voice.say(&decision.to_string());
            }
            Decision::GiveBack { mechanism, knob, thread, because, .. } => {
                let back = match thread {
                    Some(id) => guard.release_thread(*id, knob),
                    None if knob == SCHED_EXT => {
                        self.scheduler.give_back();
                        true
                    }
                    None => guard.release(knob)?,
                };
                let done = if back { "is given back" } else { "could not be given back" };
                self.voice.say(&format!("{mechanism}: {knob} {done}: {because}"));
            }
            Decision::Stop { knob, thread, .. } => {
                match thread {
                    Some(id) => guard.forget_thread(*id, knob)?,
                    None if knob == SCHED_EXT => self.scheduler.give_back(),
                    None => guard.forget(knob)?,
                }
                self.warn(decision.to_string());
            }
        }
        Ok(())
    }

    pub(super) fn warn(&mut self, text: String) {
        self.voice.say(&text);
        self.warnings.push(text);
    }

    /// Touches no more what could not be turned.
    pub(super) fn leave(&mut self, decision: &Decision, error: &GuardError) {
        self.adaptation.give_up(decision);
        if let Some(why) = self.account.give_up(decision, &error.to_string()) {
            self.voice.say(&why);
        }
        self.warn(format!("{} is left as it is: {error}", decision.knob()));
    }
}

/// What a decision to turn a thread has it be.
fn wanted(decision: &Decision) -> Option<Wanted<'_>> {
    let Decision::Set { mechanism, knob: name, thread, to: policy, because, .. } = decision else {
        return None;
    };
    Some(Wanted { thread: (*thread)?, name, policy, because: format!("{mechanism}: {because}") })
}
