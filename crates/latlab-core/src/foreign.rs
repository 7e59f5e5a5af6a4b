//! Results of other tools, read as records: cyclictest's histogram and text, the JSON of rt-tests, rtla's histograms
//! and analyses, and jitterdebugger's JSON. What a file does not say stays unknown, and a warning of the record says
//! so.

mod analysis;
mod command_line;
mod cyclictest;
mod distribution;
mod json;
mod rtla;
#[cfg(test)]
mod tests;

use crate::record::Record;
use std::borrow::Cow;

/// Why a result of another tool can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is a result of {tool}, but {}{why}", line.map_or(String::new(), |line| format!("line {line}: ")))]
pub struct ForeignError {
    /// The tool.
    pub tool: &'static str,
    /// The line, from 1, where it is known.
    pub line: Option<usize>,
    /// What is wrong, as a clause.
    pub why: String,
}

impl ForeignError {
    fn at(tool: &'static str, line: usize, why: impl Into<String>) -> ForeignError {
        ForeignError { tool, line: Some(line), why: why.into() }
    }

    fn whole(tool: &'static str, why: impl Into<String>) -> ForeignError {
        ForeignError { tool, line: None, why: why.into() }
    }
}

/// The tools whose results [`read`] recognizes, in words.
pub const TOOLS: &str =
    "cyclictest, other rt-tests (JSON), rtla (histograms, analyses) or jitterdebugger";

/// Reads the result of another tool, which is recognized by its content; none if it is none. The record has the
/// distributions as series, and a warning for what the file leaves unknown.
pub fn read(text: &str) -> Option<Result<Record, ForeignError>> {
    let text = &*mended(text);
    json::read(text)
        .or_else(|| rtla::read(text))
        .or_else(|| analysis::read(text))
        .or_else(|| cyclictest::read(text))
}

/// The text as the tool wrote it, where a mail quotes it or has turned blanks into others.
fn mended(text: &str) -> Cow<'_, str> {
    let quoted = |line: &str| {
        line.strip_prefix('>').map(|rest| rest.strip_prefix(' ').unwrap_or(rest).to_owned())
    };
    let marks = ["# Histogram", "# Min Latencies", "# RTLA", "T:", "## CPU", "{"];
    let is_quoted =
        text.lines().filter_map(quoted).any(|line| marks.iter().any(|mark| line.starts_with(mark)));
    if !is_quoted && !text.contains(['\u{a0}', '\r', '\u{feff}']) {
        return Cow::Borrowed(text);
    }
    let plain = text.replace('\u{a0}', " ").replace('\u{feff}', "");
    // Terminals go back to the begin of a line to write it again: the last text counts.
    let last =
        |line: &str| line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default().to_owned();
    let lines = plain.lines().map(last);
    let lines = lines.filter_map(|line| if is_quoted { quoted(&line) } else { Some(line) });
    Cow::Owned(lines.map(|line| line + "\n").collect())
}
