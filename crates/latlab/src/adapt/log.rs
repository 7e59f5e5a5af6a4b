//! The file in which observations and decisions are logged, and deciding upon them anew.

use crate::failure::{Failure, Result, failed};
use crate::mechanism;
use latlab_core::mechanism::configuration::Configuration;
use latlab_core::mechanism::log::{Began, Entry, Replay, Short};
use latlab_core::mechanism::{Decision, Observation};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

/// A log that is to begin.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) path: PathBuf,
    pub(super) began: Began,
}

/// A file that is added to.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    path: PathBuf,
    short: Short,
}

impl Log {
    /// Adds to the file of this name that it is decided by these mechanisms from now on.
    pub(super) fn begin(Planned { path, began }: Planned) -> Result<Log> {
        let name = path.display().to_string();
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let file = file.map_err(|e| failed(&name, e))?;
        let mut log = Log { file, path, short: Short::default() };
        log.add(&Entry::Began(began)).map_err(|e| failed(&name, e))?;
        Ok(log)
    }

    pub(super) fn note(&mut self, seen: &Observation, decisions: &[Decision]) -> io::Result<()> {
        let entry = self.short.entry(seen, decisions);
        self.add(&entry)
    }

    pub(super) fn give_up(&mut self, decision: &Decision) -> io::Result<()> {
        self.add(&Entry::GaveUp(decision.clone()))
    }

    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Adds a line in one piece, so that no kill leaves half of it.
    fn add(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        self.file.write_all(&line)
    }
}

/// Decides anew upon what is in a log. How much that was, as a sentence. It is a worse answer where
/// something is decided otherwise.
pub(crate) fn replay(path: &Path) -> Result<String> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|e| failed(&name, e))?;
    let mut replay = Replay::default();
    for (number, line) in (1..).zip(BufReader::new(file).lines()) {
        let place = format!("{name}, line {number}");
        let line = line.map_err(|e| failed(&place, e))?;
        let entry: Entry = serde_json::from_str(&line)
            .map_err(|e| failed(&place, format!("this is no line of a log of latlab: {e}")))?;
        match entry {
            Entry::Began(began) => {
                replay.begin(at_work(&began).map_err(|failure| failure.about(&place))?);
            }
            entry => replay.take(entry).map_err(|why| Failure::Worse(format!("{place}: {why}")))?,
        }
    }
    let Replay { observations, decisions, .. } = replay;
    Ok(format!("{observations} observations, {decisions} decisions: the same as then\n"))
}

fn at_work(began: &Began) -> Result<latlab_core::mechanism::Adaptation> {
    let configuration = Configuration::read(&began.configuration).map_err(Failure::Failed)?;
    mechanism::adaptation(&began.mechanisms, &configuration)
}
