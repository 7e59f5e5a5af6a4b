//! The account of what was observed and decided: for who asks, and for the log.

use super::board::Board;
use super::canaries::Ran;
use super::log::{Log, Planned};
use crate::failure::Result;
use latlab_core::mechanism::status::Status;
use latlab_core::mechanism::watchdog::Watchdog;
use latlab_core::mechanism::{Decision, Mode, Observation, Request};
use latlab_core::time::Nanos;
use std::sync::Arc;

/// What is kept of what was observed and decided.
#[derive(Debug, Default)]
pub(super) struct Account {
    board: Arc<Board>,
    status: Status,
    /// What processes asked for when that could be read last.
    requests: Vec<Request>,
    /// Whether something is so that is not on the board.
    news: bool,
    planned: Option<Planned>,
    log: Option<Log>,
    ran: Arc<Ran>,
    watchdog: Watchdog,
}

impl Account {
    /// One that begins like this, for who looks at the board.
    pub(super) fn of(
        status: Status,
        board: Arc<Board>,
        planned: Option<Planned>,
        ran: Arc<Ran>,
    ) -> Account {
        Account { board, status, news: true, planned, ran, ..Account::default() }
    }

    /// Begins the log, if there is to be one, now that no other latlab can be writing to it.
    pub(super) fn begin_log(&mut self) -> Result<()> {
        self.log = self.planned.take().map(Log::begin).transpose()?;
        Ok(())
    }

    /// From now on the calling thread is the one that decides.
    pub(super) fn decide_here(&self) {
        self.board.decide_here();
    }

    /// What processes ask for.
    pub(super) fn requests(&mut self) -> Vec<Request> {
        if let Some(requests) = self.board.requests() {
            self.requests = requests;
        }
        self.requests.clone()
    }

    /// On which CPUs ordinary tasks starve; empty where nobody watches.
    pub(super) fn starved(&mut self, at: Nanos) -> Vec<u32> {
        self.watchdog.look(at, &self.ran.list())
    }

    /// Notes that this was seen, and decided upon it. An error of the log, as a sentence.
    pub(super) fn note(
        &mut self,
        seen: &Observation,
        decisions: &[Decision],
        mode: Option<&(Mode, String)>,
    ) -> Option<String> {
        for decision in decisions {
            self.status.note(seen.at, decision);
        }
        let (mode, why) = mode.cloned().unzip();
        let now = (mode, why, seen.tasks());
        let Status { mode, mode_because, realtime_tasks, .. } = &mut self.status;
        self.news |= !decisions.is_empty()
            || (&now.0, &now.1, &now.2) != (mode, mode_because, realtime_tasks);
        if self.news {
            (*mode, *mode_because, *realtime_tasks) = now;
            self.news = !self.board.publish(&self.status);
        }
        self.keep(|log| log.note(seen, decisions))
    }

    /// Notes that what was decided could not be done. An error of the log, as a sentence.
    pub(super) fn give_up(&mut self, decision: &Decision, why: &str) -> Option<String> {
        self.status.leave(decision, why);
        self.news = !self.board.publish(&self.status);
        self.keep(|log| log.give_up(decision))
    }

    /// A log that can't be written is not tried again.
    fn keep(&mut self, write: impl FnOnce(&mut Log) -> std::io::Result<()>) -> Option<String> {
        let log = self.log.as_mut()?;
        let error = write(log).err()?;
        let name = self.log.take()?.name();
        Some(format!("{name} ends here: {error}"))
    }
}
