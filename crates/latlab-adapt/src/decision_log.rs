//! The record of what was observed and decided: the status for the control thread, and the file of
//! `--log`.

use super::log_file::{LogFile, PlannedLog};
use super::mailbox::Mailbox;
use latlab_mechanism::status::Status;
use latlab_mechanism::{Decision, Mode, Observation};
use latlab_part::failure::Result;
use std::io;
use std::sync::Arc;

/// Records decisions.
#[derive(Debug, Default)]
pub(super) struct DecisionLog {
    mailbox: Arc<Mailbox>,
    status: Status,
    /// Whether `status` differs from the status in the mailbox.
    unpublished: bool,
    planned: Option<PlannedLog>,
    file: Option<LogFile>,
}

impl DecisionLog {
    /// A log that begins with `status`, publishes it in `mailbox`, and writes the planned file.
    pub(super) fn new(
        status: Status,
        mailbox: Arc<Mailbox>,
        planned: Option<PlannedLog>,
    ) -> DecisionLog {
        DecisionLog { mailbox, status, unpublished: true, planned, file: None }
    }

    /// Opens the planned file, if there is one. To be called once no other latlab can write to it.
    pub(super) fn open_file(&mut self) -> Result<()> {
        self.file = self.planned.take().map(LogFile::open).transpose()?;
        Ok(())
    }

    /// From now on, changed requests wake the calling thread.
    pub(super) fn decide_in_this_thread(&self) {
        self.mailbox.decide_in_this_thread();
    }

    /// Records an observation and the decisions that follow from it. Returns an error of the file
    /// as a sentence.
    pub(super) fn record(
        &mut self,
        seen: &Observation,
        decisions: &[Decision],
        mode: Option<&(Mode, String)>,
    ) -> Option<String> {
        for decision in decisions {
            self.status.note(seen.at, decision);
        }
        let circumstances_changed = self.update_circumstances(seen, mode);
        self.unpublished |= circumstances_changed || !decisions.is_empty();
        if self.unpublished {
            self.publish();
        }
        self.write(|file| file.add_decisions(seen, decisions))
    }

    /// Records that a decision could not be applied. Returns an error of the file as a sentence.
    pub(super) fn record_failure(&mut self, decision: &Decision, why: &str) -> Option<String> {
        self.status.fail(decision, why);
        self.publish();
        self.write(|file| file.add_failure(decision))
    }

    /// Notes the mode and the number of real-time tasks. Whether one of them has changed.
    fn update_circumstances(&mut self, seen: &Observation, mode: Option<&(Mode, String)>) -> bool {
        let (mode, because) = mode.cloned().unzip();
        let now = (mode, because, seen.tasks());
        let Status { mode, mode_because, realtime_tasks, .. } = &mut self.status;
        let before = (*mode, mode_because.take(), *realtime_tasks);
        let changed = now != before;
        (*mode, *mode_because, *realtime_tasks) = now;
        changed
    }

    fn publish(&mut self) {
        self.unpublished = !self.mailbox.try_put_status(&self.status);
    }

    /// Writes to the file, and closes it after an error.
    fn write(&mut self, write: impl FnOnce(&mut LogFile) -> io::Result<()>) -> Option<String> {
        let error = write(self.file.as_mut()?).err()?;
        let name = self.file.take()?.name();
        Some(format!("logging to {name} stopped: {error}"))
    }
}
