//! Reading and writing of records as JSON.

use super::explained::Explained;
use super::{Record, SCHEMA, Sample, Series, WarningCode};
use crate::brief;
use serde::Deserialize;

/// Why a text is not a valid record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It ends too early.
    #[error("the record is cut short at line {line}, column {column}: was its disk full?")]
    CutShort {
        /// Line of the end.
        line: usize,
        /// Column of the end.
        column: usize,
    },
    /// It is something else.
    #[error("this is not a latlab record: {0}")]
    Foreign(String),
    /// It has the form of a record, but is inconsistent.
    #[error("the record is damaged: {part}: {why}")]
    Damaged {
        /// The series, scan or sample, and its CPU.
        part: String,
        /// The inconsistency.
        why: String,
    },
    /// An older latlab wrote it.
    #[error(
        "the record has schema {0}, written by a latlab before its first release; this latlab \
         reads schema {SCHEMA} only: measure again"
    )]
    TooOld(u64),
    /// A newer latlab wrote it.
    #[error("the record has schema {0}, this latlab reads schema {SCHEMA}: use a newer latlab")]
    TooNew(u64),
}

/// The most steps of correcting the distributions of a record for missed periods, to check them: a fraction of
/// a second.
const MOST_STEPS: u64 = 100_000_000;

/// The largest number of series in a record. A run of ten probes on 512 CPUs has half as many.
const MOST_SERIES: usize = 10_000;

/// The part of a record that is read first.
#[derive(Deserialize)]
struct Version {
    schema: Option<u64>,
}

/// Why no schema can be read from a text. The text is parsed again as a whole: parsing as
/// [`Version`] skips values, and reports another error if the text ends within one.
fn not_a_record(text: &str) -> RecordError {
    match serde_json::from_str::<serde_json::Value>(text) {
        Err(e) if e.is_eof() && text.trim_start().starts_with('{') => {
            RecordError::CutShort { line: e.line(), column: e.column() }
        }
        Err(e) => foreign(&e),
        Ok(_) => RecordError::Foreign("it has no schema".to_owned()),
    }
}

/// The error may repeat a value of the text; its place stays.
fn foreign(error: &serde_json::Error) -> RecordError {
    let (text, place) =
        (error.to_string(), format!(" at line {} column {}", error.line(), error.column()));
    let what = text.strip_suffix(&place).unwrap_or(&text);
    RecordError::Foreign(format!("{}{place}", brief::text(what)))
}

impl Record {
    /// Reads a record, and checks that it is complete and consistent.
    pub fn from_json(text: &str) -> Result<Record, RecordError> {
        let version: Version = serde_json::from_str(text).map_err(|_| not_a_record(text))?;
        match version.schema.ok_or_else(|| not_a_record(text))? {
            older if older < u64::from(SCHEMA) => return Err(RecordError::TooOld(older)),
            newer if newer > u64::from(SCHEMA) => return Err(RecordError::TooNew(newer)),
            _ => {}
        }
        let record: Record = serde_json::from_str(text).map_err(|e| foreign(&e))?;
        record.check()?;
        Ok(record)
    }

    /// Checks that the parts of a record from elsewhere are complete and consistent.
    pub fn check(&self) -> Result<(), RecordError> {
        match self.flaw() {
            Some((part, why)) => Err(RecordError::Damaged { part, why }),
            None => Ok(()),
        }
    }

    /// Returns the record as indented JSON with a final newline.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a record is plain data");
        text.push('\n');
        text
    }

    /// Returns the first inconsistent part and its inconsistency, if there is one.
    fn flaw(&self) -> Option<(String, String)> {
        let part = |kind: &str, n: usize, name: &str, cpu: u32| {
            format!("{kind} {n} ({} on CPU {cpu})", brief::text(name))
        };
        if self.series.len() > MOST_SERIES {
            let why = format!("it has {} series, more than {MOST_SERIES}", self.series.len());
            return Some(("series".to_owned(), why));
        }
        let mut steps_left = MOST_STEPS;
        let of_series = self.series.iter().enumerate().find_map(|(n, series)| {
            Some((part("series", n, &series.probe, series.cpu), series.flaw(&mut steps_left)?))
        });
        let of_scans = || {
            self.scans.iter().enumerate().find_map(|(n, scan)| {
                Some((part("scan", n, &scan.call.name, scan.cpu), scan.flaw()?.to_owned()))
            })
        };
        let of_samples = || {
            self.worst.iter().enumerate().find_map(|(n, sample)| {
                let flaw = sample.flaw().or_else(|| self.misfit(sample));
                Some((part("worst", n, &sample.probe, sample.cpu), flaw?.to_owned()))
            })
        };
        let of_explained = || {
            let why = self.explained.as_ref().and_then(Explained::flaw)?;
            Some(("explained".to_owned(), why.to_owned()))
        };
        of_series.or_else(of_scans).or_else(of_samples).or_else(of_explained)
    }

    /// Returns why a sample can't be one of the series of its probe and CPU, if it can't.
    fn misfit(&self, sample: &Sample) -> Option<&'static str> {
        // What explains a sample has clocks of its own.
        if sample.unexplained.is_some() || !sample.causes.is_empty() || sample.path.is_some() {
            return None;
        }
        let is_origin = |one: &&Series| (&one.probe, one.cpu) == (&sample.probe, sample.cpu);
        let origins: Vec<&Series> = self.series.iter().filter(is_origin).collect();
        let max = origins.iter().map(|one| one.max).max()?;
        if sample.latency > max {
            return Some("it is above the maximum of its series");
        }
        // The explanations of a run that has not ended may be newer than its time lines.
        let is_unfinished = self.warnings.iter().any(|one| one.code == WarningCode::Unfinished);
        let ends = origins.iter().map(|one| one.timeline.end() + one.timeline.width());
        let is_late = ends.max().is_some_and(|end| sample.at > end);
        (is_late && !is_unfinished).then_some("it is after the end of its series")
    }
}
