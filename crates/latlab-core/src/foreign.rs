//! Results of other tools, read as records: cyclictest's histogram and text, the JSON of rt-tests, rtla's histograms
//! and analyses,
//! and jitterdebugger's JSON. What a file does not say stays unknown, and a warning of the record says so.

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

/// The text as the tool wrote it, where a mail has quoted it or has turned blanks into others.
fn mended(text: &str) -> Cow<'_, str> {
    let is_quoted = |line: &str| line.starts_with('>') || line.trim().is_empty();
    let quoted = text.lines().next().is_some_and(|line| line.starts_with('>'))
        && text.lines().all(is_quoted);
    if !quoted && !text.contains(['\u{a0}', '\r', '\u{feff}']) {
        return Cow::Borrowed(text);
    }
    let plain = text.replace('\u{a0}', " ").replace('\u{feff}', "");
    let line = |line: &str| {
        if quoted { line.trim_start_matches(['>', ' ']).to_owned() } else { line.to_owned() }
    };
    // Terminals go back to the begin of a line to write it again: the last text counts.
    let last =
        |line: &str| line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default().to_owned();
    Cow::Owned(plain.lines().map(|one| line(&last(one)) + "\n").collect())
}
