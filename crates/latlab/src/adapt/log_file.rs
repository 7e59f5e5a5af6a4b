//! The file of `--log`, in which observations and decisions are logged, and its replay.

use crate::failure::{Failure, Result, failed};
use crate::mechanism;
use latlab_core::mechanism::configuration::Configuration;
use latlab_core::mechanism::log::{Entry, LogHeader, Replay, Shortener};
use latlab_core::mechanism::{Adaptation, Decision, Observation};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};

/// A log file to be opened, and its first entry.
#[derive(Debug)]
pub(super) struct PlannedLog {
    pub(super) path: PathBuf,
    pub(super) began: LogHeader,
}

/// An open log file, to which entries are appended.
#[derive(Debug)]
pub(super) struct LogFile {
    file: File,
    path: PathBuf,
    short: Shortener,
}

impl LogFile {
    /// Opens or creates the file, and appends the entry that names the mechanisms.
    pub(super) fn open(PlannedLog { path, began }: PlannedLog) -> Result<LogFile> {
        let name = path.display().to_string();
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let file = file.map_err(|e| failed(&name, e))?;
        let mut log = LogFile { file, path, short: Shortener::default() };
        log.append(&Entry::Started(began)).map_err(|e| failed(&name, e))?;
        Ok(log)
    }

    pub(super) fn add_decisions(
        &mut self,
        seen: &Observation,
        decisions: &[Decision],
    ) -> io::Result<()> {
        let entry = self.short.entry(seen, decisions);
        self.append(&entry)
    }

    pub(super) fn add_failure(&mut self, decision: &Decision) -> io::Result<()> {
        self.append(&Entry::GaveUp(decision.clone()))
    }

    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Appends a line by a single write, so that a kill leaves no half line.
    fn append(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        self.file.write_all(&line)
    }
}

/// Decides again from the observations in a log. Returns their number as a sentence; fails with
/// [`Failure::Worse`] where a decision differs.
pub(crate) fn replay(path: &Path) -> Result<String> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|e| failed(&name, e))?;
    replay_lines(&name, BufReader::new(file))
}

/// The same of the lines of the log `name`.
pub(crate) fn replay_lines(name: &str, log: impl BufRead) -> Result<String> {
    let mut replay = Replay::default();
    for (number, line) in (1..).zip(log.lines()) {
        let place = format!("{name}, line {number}");
        let line = line.map_err(|e| failed(&place, e))?;
        let entry: Entry = serde_json::from_str(&line)
            .map_err(|e| failed(&place, format!("not a line of a latlab adapt log: {e}")))?;
        match entry {
            Entry::Started(began) => {
                replay.begin(adaptation(&began).map_err(|failure| failure.about(&place))?);
            }
            entry => replay.take(entry).map_err(|why| Failure::Worse(format!("{place}: {why}")))?,
        }
    }
    let Replay { observations, decisions, .. } = replay;
    Ok(format!("{observations} observations, {decisions} decisions: all decisions identical\n"))
}

/// The mechanisms that a log was written with.
fn adaptation(began: &LogHeader) -> Result<Adaptation> {
    let configuration = Configuration::read(&began.configuration).map_err(Failure::Failed)?;
    mechanism::adaptation(&began.mechanisms, &configuration)
}
