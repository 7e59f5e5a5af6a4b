//! Studies: a table or a figure of a paper as data. The cells to measure, the figures of each cell,
//! the published values, and the paper's claims.

pub mod bound;
pub mod claim;
pub mod figure;
mod file;
pub mod findings;
pub mod picture;
pub mod pieces;
pub mod quantity;

#[cfg(test)]
mod tests;

use self::bound::{Bound, BoundChange};
use self::claim::{Claim, Fault, NamedValue};
use self::figure::{FigureSource, SCAN, StudyFigure};
use self::picture::Picture;
use crate::plan::Length;
use crate::time::Nanos;
use std::collections::BTreeMap;

/// A study, as read from its file.
#[derive(Clone, Debug)]
pub struct Study {
    /// One-line summary.
    pub title: String,
    /// The paper: authors and title.
    pub paper: String,
    /// The table, figure or section that is reproduced.
    pub redoes: String,
    /// Deviations from the paper, and other remarks.
    pub about: String,
    /// Wall-clock time limit of a cell that may take longer than its plan says.
    pub limit: Option<Nanos>,
    /// How long the cells are measured.
    pub lengths: Lengths,
    /// The target to which all cells were moved, if they were.
    pub moved_to: Option<String>,
    /// Names of the axes, one for each part of the cells' labels.
    pub axes: Vec<String>,
    /// The cells, in the order of the table.
    pub cells: Vec<Cell>,
    /// The figures of each cell: the columns of the table.
    pub figures: Vec<StudyFigure>,
    /// Published values as printed, by cell and figure.
    pub published: BTreeMap<(String, String), String>,
    /// The place of these values in the paper.
    pub source: String,
    /// Claims of the paper.
    pub claims: Vec<PaperClaim>,
    /// Pictures, in the order of the report.
    pub pictures: Vec<Picture>,
}

/// One measurement: one choice on each axis.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The labels of its choices, joined by dots; claims refer to it.
    pub label: String,
    /// Byte offset of the last of these labels in the file.
    pub at: usize,
    /// How it is measured.
    pub terms: Terms,
}

impl Cell {
    /// Whether this cell measures the source of this figure.
    pub fn measures(&self, figure: &StudyFigure) -> bool {
        let has = |all: &Option<Vec<SpannedText>>, name: &str| {
            all.iter().flatten().any(|words| words.name() == name)
        };
        match &figure.of {
            FigureSource::Series { probe, .. } | FigureSource::Value { probe, .. } => {
                match probe.strip_prefix(SCAN) {
                    Some(call) => has(&self.terms.scans, call),
                    None => !self.probes_with(probe).is_empty(),
                }
            }
            FigureSource::Work { load } => has(&self.terms.loads, load),
        }
    }

    /// Returns the probes that give samples of this name, as written: probes with this name, or
    /// else the probes that have it as a component (`rhealstone` has `rhealstone.message`).
    pub fn probes_with(&self, name: &str) -> Vec<&SpannedText> {
        let those = |has: &dyn Fn(&str) -> bool| -> Vec<&SpannedText> {
            let all = self.terms.probes.iter().flatten();
            all.filter(|words| has(words.name())).collect()
        };
        let own = those(&|probe| probe == name);
        if own.is_empty() {
            return those(&|probe| {
                name.strip_prefix(probe).is_some_and(|rest| rest.starts_with('.'))
            });
        }
        own
    }
}

/// A text of the file and its byte offset, for error messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpannedText {
    /// The text.
    pub text: String,
    /// Byte offset of its beginning.
    pub at: usize,
}

impl SpannedText {
    /// The name of the part, without its keys.
    fn name(&self) -> &str {
        self.text.split(':').next().unwrap_or_default()
    }
}

/// How a cell is measured. A choice on an axis overrides earlier axes and the plan.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// The target. After a `+` it is the end of the target that earlier axes set.
    pub on: Option<SpannedText>,
    /// Probes with their keys, as on the command line.
    pub probes: Option<Vec<SpannedText>>,
    /// Calls to scan with their keys.
    pub scans: Option<Vec<SpannedText>>,
    /// Loads with their keys.
    pub loads: Option<Vec<SpannedText>>,
    /// How long each probe measures.
    pub length: Option<Length>,
    /// How long the paper measured, where that takes too long for everyday use.
    pub full: Option<Length>,
    /// Time before samples count.
    pub warm_up: Option<Nanos>,
    /// Knobs to set, as KNOB=VALUE.
    pub settings: Option<Vec<SpannedText>>,
    /// Adaptation mechanisms, separated by commas; all of them if the text is empty.
    pub adapt: Option<Option<SpannedText>>,
    /// Seed of the first repetition; the next repetition has the next seed.
    pub seed: Option<u64>,
    /// Number of repetitions with different seeds, whose samples are merged.
    pub repeat: Option<u32>,
}

/// How long the cells of a study are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// As long as the file says.
    Usual,
    /// As long as the paper measured.
    Full,
    /// As long as the user says.
    For(Nanos),
}

/// A claim of a paper.
#[derive(Clone, Debug)]
pub struct PaperClaim {
    /// The claim in words.
    pub says: String,
    /// The paper's sentence or printed value; empty if the claim is not the paper's.
    pub quote: String,
    /// The place of the claim in the paper.
    pub source: String,
    /// The claim in terms of results.
    pub claim: Claim,
    /// The same, as written.
    pub text: String,
    /// Where the limits in it come from.
    pub bound: Bound,
    /// Changes of these limits after figures had been measured, oldest first.
    pub changes: Vec<BoundChange>,
    /// Why it differs today, if known; empty otherwise.
    pub why: String,
    /// Whether it differs because current kernels no longer have its cause.
    pub gone: bool,
}

impl Study {
    /// Parses a study, and checks that all names in it refer to something.
    pub fn read(text: &str) -> Result<Study, Fault> {
        file::study(text)
    }

    /// Returns the labels of a cell: one for each axis.
    pub fn labels(&self, cell: usize) -> Vec<&str> {
        self.cells[cell].label.split('.').collect()
    }

    /// Sets the length of all cells, overriding the file. Fails if it is more than a week, or if a
    /// cell scans calls: a scan ends by itself.
    pub fn set_length(&mut self, time: Nanos) -> Result<(), String> {
        pieces::check_length(time)?;
        self.refuse_scans()?;
        self.cells.iter_mut().for_each(|cell| cell.terms.length = Some(Length::For(time)));
        // Each piece gets the file's time limit plus 50 times its own length.
        let piece = time.min(pieces::LONGEST);
        self.limit = self.limit.map(|limit| limit + Nanos(piece.0.saturating_mul(50)));
        self.lengths = Lengths::For(time);
        Ok(())
    }

    fn refuse_scans(&self) -> Result<(), String> {
        let scans = |cell: &&Cell| cell.terms.scans.as_ref().is_some_and(|scans| !scans.is_empty());
        if let Some(cell) = self.cells.iter().find(scans) {
            let label = &cell.label;
            return Err(format!(
                "the cell {label} scans calls, and the length of a scan can't be set"
            ));
        }
        Ok(())
    }

    /// Sets the length of each cell to the paper's. Fails if the file gives none, or if a cell
    /// scans calls.
    pub fn set_full_length(&mut self) -> Result<(), String> {
        self.refuse_scans()?;
        if self.cells.iter().all(|cell| cell.terms.full.is_none()) {
            return Err("the study gives no full length".to_owned());
        }
        let limit = self.limit;
        for cell in &mut self.cells {
            let Some(full) = cell.terms.full else { continue };
            let needed = match (full, cell.terms.length) {
                (Length::For(time), _) => {
                    limit.map(|limit| limit + Nanos(time.min(pieces::LONGEST).0.saturating_mul(50)))
                }
                (Length::Count(many), Some(Length::Count(usual))) => {
                    let times = many.div_ceil(usual.max(1));
                    limit.map(|limit| Nanos(limit.0.saturating_mul(times)))
                }
                (Length::Count(_), _) => limit,
            };
            self.limit = self.limit.max(needed);
            cell.terms.length = Some(full);
        }
        self.lengths = Lengths::Full;
        Ok(())
    }

    /// Returns all results that claims may refer to, with their dimension and without values.
    pub fn results(&self) -> Vec<NamedValue> {
        self.known(|_, _| None)
    }

    /// Returns the same with values, by the index of the cell and the figure.
    fn known(&self, value: impl Fn(usize, &StudyFigure) -> Option<f64>) -> Vec<NamedValue> {
        let mut known = Vec::new();
        for (nth, cell) in self.cells.iter().enumerate() {
            for figure in self.figures.iter().filter(|figure| self.can_have(cell, figure)) {
                let name = format!("{}.{}", cell.label, figure.name);
                known.push(NamedValue { name, time: figure.kind(), value: value(nth, figure) });
            }
        }
        known
    }

    /// Whether this cell can have a value of this figure. If no cell measures its source, that is
    /// another error ([`Study::unmeasured`]), and every cell is accepted.
    fn can_have(&self, cell: &Cell, figure: &StudyFigure) -> bool {
        cell.measures(figure) || !self.cells.iter().any(|cell| cell.measures(figure))
    }

    /// Returns an error for the first figure whose source no cell measures. Call it after the parts
    /// of all cells have been checked, since those may be misspelt as well.
    pub fn unmeasured(&self) -> Option<Fault> {
        let none = |figure: &&StudyFigure| !self.cells.iter().any(|cell| cell.measures(figure));
        let figure = self.figures.iter().find(none)?;
        Some(Fault { at: figure.at, why: format!("no cell measures {}", figure.of.words()) })
    }
}

impl Terms {
    /// Returns these terms, overridden by `other`.
    #[must_use]
    fn overridden_by(&self, other: &Terms) -> Terms {
        Terms {
            on: target(self.on.as_ref(), other.on.as_ref()),
            probes: other.probes.clone().or_else(|| self.probes.clone()),
            scans: other.scans.clone().or_else(|| self.scans.clone()),
            loads: other.loads.clone().or_else(|| self.loads.clone()),
            length: other.length.or(self.length),
            full: other.full.or(self.full),
            warm_up: other.warm_up.or(self.warm_up),
            settings: other.settings.clone().or_else(|| self.settings.clone()),
            adapt: other.adapt.clone().or_else(|| self.adapt.clone()),
            seed: other.seed.or(self.seed),
            repeat: other.repeat.or(self.repeat),
        }
    }
}

/// Returns the target that a choice sets: its own, or the target of earlier axes with the text
/// after `+` appended.
fn target(before: Option<&SpannedText>, set: Option<&SpannedText>) -> Option<SpannedText> {
    let appended = set.and_then(|set| set.text.strip_prefix('+')).zip(before);
    let Some((end, before)) = appended else { return set.or(before).cloned() };
    Some(SpannedText { text: format!("{}{end}", before.text), at: before.at })
}

/// Returns line and column, both from 1, of a byte offset in a text.
pub fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}
