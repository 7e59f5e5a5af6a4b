//! The file of `--log`, in which observations and decisions are logged, and its replay.

use crate::mechanism;
use latlab_core::size::Bytes;
use latlab_mechanism::configuration::Configuration;
use latlab_mechanism::log::{Entry, LogHeader, Replay, Shortener};
use latlab_mechanism::{Adaptation, Decision, Observation};
use latlab_part::failure::{Context as _, Failure, Result};
use latlab_sys::file;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
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
    /// Opens or creates the file, and appends the entry that names the mechanisms. Fails where it is
    /// no regular file: it may be in a folder of another user.
    pub(super) fn open(PlannedLog { path, began }: PlannedLog) -> Result<LogFile> {
        let name = path.display().to_string();
        let file = file::append_to(&path).context(&name)?;
        let mut log = LogFile { file, path, short: Shortener::default() };
        log.append(&Entry::Started(began)).context(&name)?;
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

/// Maximum length of a line in bytes, far more than the observation of a hundred thousand tasks has.
const LONGEST_LINE: u64 = 16 << 20;

/// Decides again from the observations in a log. Returns their number as a sentence; fails with
/// [`Failure::worse`] where a decision differs.
pub fn replay(path: &Path) -> Result<String> {
    let name = path.display().to_string();
    let file = File::open(path).context(&name)?;
    replay_lines(&name, BufReader::new(file))
}

/// The same of the lines of the log `name`.
pub fn replay_lines(name: &str, mut log: impl BufRead) -> Result<String> {
    let mut replay = Replay::default();
    for number in 1.. {
        let place = format!("{name}, line {number}");
        let Some(entry) = next_entry(&mut log).context(&place)? else { break };
        match entry {
            Entry::Started(began) => {
                replay.begin(adaptation(&began).map_err(|failure| failure.about(&place))?);
            }
            entry => replay.take(entry).map_err(|why| Failure::worse(format!("{place}: {why}")))?,
        }
    }
    let Replay { observations, decisions, .. } = replay;
    Ok(format!("{observations} observations, {decisions} decisions: all decisions identical\n"))
}

/// The entry of the next line; none at the end of the log.
fn next_entry(log: &mut impl BufRead) -> io::Result<Option<Entry>> {
    let mut line = Vec::new();
    log.take(LONGEST_LINE + 1).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    let wrong = |why: String| io::Error::other(format!("not a line of a latlab adapt log: {why}"));
    if line.len() as u64 > LONGEST_LINE {
        return Err(wrong(format!("it is longer than {}", Bytes(LONGEST_LINE))));
    }
    serde_json::from_slice(&line).map(Some).map_err(|e| wrong(e.to_string()))
}

/// The mechanisms that a log was written with.
fn adaptation(began: &LogHeader) -> Result<Adaptation> {
    let configuration = Configuration::read(&began.configuration).map_err(Failure::failed)?;
    mechanism::adaptation(&began.mechanisms, &configuration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_is_not_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (victim, path) = (folder.path().join("victim"), folder.path().join("log"));
        File::create(&victim).unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        let (mechanisms, configuration) = (Vec::new(), String::new());
        let began = LogHeader { latlab: "1".to_owned(), mechanisms, configuration };
        let failure = LogFile::open(PlannedLog { path, began }).unwrap_err().to_string();
        assert!(failure.contains("/log: it is no regular file"), "{failure}");
        assert_eq!(std::fs::read(&victim).unwrap(), b"");
    }

    #[test]
    fn replay_refuses_a_line_without_an_end() {
        let endless = BufReader::new(io::repeat(b'x'));
        let why = "zero, line 1: not a line of a latlab adapt log: it is longer than 16MiB";
        assert_eq!(replay_lines("zero", endless), Err(Failure::failed(why)));
    }

    #[test]
    fn replay_needs_no_end_of_the_last_line() {
        let began = r#"{"began":{"latlab":"1","mechanisms":["suppress"],"configuration":""}}"#;
        let replayed = replay_lines("log", began.as_bytes()).unwrap();
        assert!(replayed.starts_with("0 observations"), "{replayed}");
    }
}
