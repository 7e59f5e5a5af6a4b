//! Messages to the user, and warnings for the record of a run.

use super::log_thread::Logger;

/// Logs messages, and keeps warnings for the record of a run.
#[derive(Debug)]
pub(super) struct Reporter {
    logger: Logger,
    warnings: Vec<String>,
}

impl Reporter {
    pub(super) fn new(logger: Logger) -> Reporter {
        Reporter { logger, warnings: Vec::new() }
    }

    /// The logger, for another thread.
    pub(super) fn logger(&self) -> &Logger {
        &self.logger
    }

    pub(super) fn log(&self, message: &str) {
        self.logger.log(message);
    }

    /// Logs `message` and keeps it for the record, once.
    pub(super) fn warn(&mut self, message: String) {
        self.logger.log(&message);
        if !self.warnings.contains(&message) {
            self.warnings.push(message);
        }
    }

    /// Returns all warnings since the last call.
    pub(super) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}
