//! Applying decisions to this machine.

use super::reporter::Reporter;
use latlab_core::record::Change;
use latlab_mechanism::Decision;
use latlab_sys::guard::{Guard, GuardError, Restored, ThreadPolicy, Unrestored};
use latlab_sys::root::Root;

/// Sets knobs as decided. Dropping it restores all of them.
pub(super) struct Applier {
    guard: Guard,
}

/// Decisions that could not be applied, and why.
pub(super) struct Unapplied<'a> {
    pub(super) decisions: &'a [Decision],
    pub(super) error: GuardError,
}

impl Applier {
    pub(super) fn new(root: Root) -> Applier {
        Applier { guard: Guard::new(root) }
    }

    /// Applies `decisions` in their order. Returns those that could not be applied.
    pub(super) fn apply<'a>(
        &mut self,
        decisions: &'a [Decision],
        reporter: &mut Reporter,
    ) -> Vec<Unapplied<'a>> {
        let mut unapplied = Vec::new();
        // Threads set one after another share one entry of the journal.
        for group in decisions.chunk_by(|one, next| sets_thread(one) && sets_thread(next)) {
            match group {
                [decision] if !sets_thread(decision) => {
                    let result = self.apply_one(decision, reporter);
                    unapplied
                        .extend(result.err().map(|error| Unapplied { decisions: group, error }));
                }
                threads => unapplied.extend(self.set_threads(threads, reporter)),
            }
        }
        unapplied
    }

    /// Sets the scheduling policies of threads.
    fn set_threads<'a>(
        &mut self,
        decisions: &'a [Decision],
        reporter: &Reporter,
    ) -> Vec<Unapplied<'a>> {
        let wanted: Vec<ThreadPolicy<'_>> = decisions.iter().filter_map(wanted_policy).collect();
        let results = match self.guard.set_threads(&wanted) {
            Ok(results) => results,
            Err(error) => return vec![Unapplied { decisions, error }],
        };
        let mut unapplied = Vec::new();
        for (one, result) in decisions.chunks(1).zip(results) {
            match result {
                Ok(()) => reporter.log(&one[0].to_string()),
                // The next observation shows that the thread has ended.
                Err(GuardError::Ended(_)) => {}
                Err(error) => unapplied.push(Unapplied { decisions: one, error }),
            }
        }
        unapplied
    }

    /// Applies a decision other than to set a thread's policy.
    fn apply_one(
        &mut self,
        decision: &Decision,
        reporter: &mut Reporter,
    ) -> Result<(), GuardError> {
        match decision {
            Decision::Set { mechanism, knob, to, because, .. } => {
                self.guard.set(knob, to, &format!("{mechanism}: {because}"))?;
                reporter.log(&decision.to_string());
            }
            Decision::Restore { mechanism, knob, thread, because, .. } => {
                self.restore_one(knob, *thread)?;
                reporter.log(&format!("{mechanism}: {knob} restored: {because}"));
            }
            Decision::Stop { knob, thread, .. } => {
                self.forget(knob, *thread)?;
                reporter.warn(decision.to_string());
            }
        }
        Ok(())
    }

    /// Restores a knob or a thread's policy.
    fn restore_one(&mut self, knob: &str, thread: Option<i32>) -> Result<(), GuardError> {
        match thread {
            Some(id) => self.guard.restore_thread(id, knob),
            None => self.guard.restore_knob(knob),
        }
    }

    /// Leaves a knob or a thread's policy as another program has set it.
    fn forget(&mut self, knob: &str, thread: Option<i32>) -> Result<(), GuardError> {
        match thread {
            Some(id) => self.guard.leave_thread_alone(id, knob),
            None => self.guard.leave_alone(knob),
        }
    }

    /// Brings the guard's journal up to date.
    pub(super) fn settle(&mut self) -> Result<(), GuardError> {
        self.guard.update_journal()
    }

    /// What [`Applier::restore`] could not restore.
    pub(super) fn unrestored(&self) -> &[Unrestored] {
        self.guard.unrestored()
    }

    /// What [`Applier::restore`] has restored.
    pub(super) fn restored(&self) -> &[Restored] {
        self.guard.restored()
    }

    /// Restores everything. Returns what had been changed.
    pub(super) fn restore(&mut self) -> Vec<Change> {
        self.guard.restore()
    }
}

fn sets_thread(decision: &Decision) -> bool {
    matches!(decision, Decision::Set { thread: Some(_), .. })
}

/// The policy that a decision gives to a thread.
fn wanted_policy(decision: &Decision) -> Option<ThreadPolicy<'_>> {
    let Decision::Set { mechanism, knob: name, thread, to: policy, because, .. } = decision else {
        return None;
    };
    Some(ThreadPolicy {
        thread: (*thread)?,
        name,
        policy,
        because: format!("{mechanism}: {because}"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::decision_log::DecisionLog;
    use super::super::log_thread::Logger;
    use super::super::mailbox::Mailbox;
    use super::*;
    use latlab_mechanism::Observation;
    use latlab_mechanism::status::Status;
    use std::fs;
    use std::sync::Arc;

    fn set(knob: &str) -> Decision {
        let [mechanism, knob, was, to] = ["suppress", knob, "60", "5"].map(str::to_owned);
        Decision::Set { mechanism, knob, thread: None, was, to, because: String::new() }
    }

    fn restore(knob: &str) -> Decision {
        let [mechanism, knob] = ["suppress", knob].map(str::to_owned);
        let because = "a task is there".to_owned();
        Decision::Restore { mechanism, knob, thread: None, because, for_good: false }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a temporary folder is not the machine")]
    fn knob_that_could_not_be_restored_is_shown_as_left_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let path = root.path("proc/sys/vm/swappiness");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "60").unwrap();
        let mut reporter = Reporter::new(Logger::disabled());
        let mailbox = Arc::new(Mailbox::default());
        let mut log = DecisionLog::new(Status::default(), Arc::clone(&mailbox), None);
        let mut applier = Applier::new(root);
        assert!(applier.apply(&[set("swappiness")], &mut reporter).is_empty());
        // A folder in its place stands for debugfs that is not mounted any more.
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let decisions = [restore("swappiness")];
        log.record(&Observation::default(), &decisions, None);
        let unapplied = applier.apply(&decisions, &mut reporter);
        let [Unapplied { error, .. }] = unapplied.as_slice() else { panic!("it is a folder") };
        log.record_failure(&decisions[0], &error.to_string());
        let left = mailbox.status().left;
        assert_eq!(left.len(), 1, "{left:?}");
        assert!(left[0].because.starts_with("swappiness can't be restored yet: "), "{left:?}");
    }
}
