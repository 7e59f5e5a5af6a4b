//! Studies: a table or a figure of a paper as data. Which cells are to be measured, which figures are
//! taken of each, what the paper printed, and what it claimed.

pub mod claim;
pub mod figure;
mod file;
pub mod findings;
pub mod picture;
pub mod pieces;
pub mod quantity;

#[cfg(test)]
mod tests;

use self::claim::{Claim, Fault, Known};
use self::figure::{Figure, Of, SCAN};
use self::picture::Picture;
use crate::plan::Length;
use crate::time::Nanos;
use std::collections::BTreeMap;

/// A study, as its file says it.
#[derive(Clone, Debug)]
pub struct Study {
    /// One line on what it is about.
    pub title: String,
    /// The paper, by its authors and its title.
    pub paper: String,
    /// Which table, figure or section of it is redone.
    pub redoes: String,
    /// What is not as in the paper, and what else a reader must know.
    pub about: String,
    /// After which time on the wall a cell is given up, where it may take longer than its plan says.
    pub limit: Option<Nanos>,
    /// How long each cell is measured, where the user said so and not the file.
    pub lasting: Option<Nanos>,
    /// What the columns of the cells' labels are called: one for each axis.
    pub axes: Vec<String>,
    /// What is measured, in the order of the table.
    pub cells: Vec<Cell>,
    /// What is taken of each cell.
    pub figures: Vec<Figure>,
    /// What the paper printed, by cell and figure, in its words.
    pub published: BTreeMap<(String, String), String>,
    /// Where in the paper that stands.
    pub source: String,
    /// What the paper claims.
    pub claims: Vec<PaperClaim>,
    /// What is drawn of it, in the order of the report.
    pub pictures: Vec<Picture>,
}

/// One measurement: a choice from each axis.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The labels of its choices with dots between, under which claims know it.
    pub label: String,
    /// The first byte of the last of these labels in the file.
    pub at: usize,
    /// What is measured and where.
    pub terms: Terms,
}

impl Cell {
    /// Whether it measures what this figure is taken of.
    pub fn measures(&self, figure: &Figure) -> bool {
        let has = |all: &Option<Vec<Words>>, name: &str| {
            all.iter().flatten().any(|words| words.name() == name)
        };
        match &figure.of {
            Of::Series { probe, .. } | Of::Figure { probe, .. } => match probe.strip_prefix(SCAN) {
                Some(call) => has(&self.terms.scans, call),
                None => !self.probes_with(probe).is_empty(),
            },
            Of::Work { load } => has(&self.terms.loads, load),
        }
    }

    /// The probes that have samples of this name, as they were written: those of the name itself,
    /// or else those that it is a component of, as `rhealstone` has `rhealstone.message`.
    pub fn probes_with(&self, name: &str) -> Vec<&Words> {
        let those = |has: &dyn Fn(&str) -> bool| -> Vec<&Words> {
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

/// Something a user wrote, and at which byte of the file, so that errors can say where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// The text.
    pub text: String,
    /// Its first byte.
    pub at: usize,
}

impl Words {
    /// The part that they name, without its keys.
    fn name(&self) -> &str {
        self.text.split(':').next().unwrap_or_default()
    }
}

/// How a cell is measured; of the plan and each axis, the last that says a thing has it.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// The target.
    pub on: Option<Words>,
    /// Probes with their keys, as on the command line.
    pub probes: Option<Vec<Words>>,
    /// Calls to scan with their keys.
    pub scans: Option<Vec<Words>>,
    /// Loads with their keys.
    pub loads: Option<Vec<Words>>,
    /// How long each probe measures.
    pub length: Option<Length>,
    /// Time before samples count.
    pub warm_up: Option<Nanos>,
    /// Knobs to turn, as KNOB=VALUE.
    pub settings: Option<Vec<Words>>,
    /// Mechanisms that adapt the machine meanwhile, with commas between; all where it is empty.
    pub adapt: Option<Option<Words>>,
    /// The seed of the first repetition; each other has the next.
    pub seed: Option<u64>,
    /// How many repetitions, with different seeds, whose samples are taken together.
    pub repeat: Option<u32>,
}

/// Something that a paper claims.
#[derive(Clone, Debug)]
pub struct PaperClaim {
    /// It in words.
    pub says: String,
    /// Where in the paper.
    pub source: String,
    /// It in terms of results.
    pub claim: Claim,
    /// The same, as it is written.
    pub text: String,
    /// Why it is not so today, where that is known.
    pub why: String,
    /// Whether that is because kernels of today have no more what it came from.
    pub gone: bool,
}

impl Study {
    /// Reads a study, and makes sure that all it names is there.
    pub fn read(text: &str) -> Result<Study, Fault> {
        file::study(text)
    }

    /// The labels of a cell: one for each axis.
    pub fn labels(&self, cell: usize) -> Vec<&str> {
        self.cells[cell].label.split('.').collect()
    }

    /// Has each cell measured for this long, whatever the file says. Refuses, with the reason, more
    /// than a week, and a study of calls that are scanned: a scan ends when it knows enough.
    pub fn last(&mut self, time: Nanos) -> Result<(), String> {
        pieces::not_too_long(time)?;
        let scans = |cell: &&Cell| cell.terms.scans.as_ref().is_some_and(|scans| !scans.is_empty());
        if let Some(cell) = self.cells.iter().find(scans) {
            let label = &cell.label;
            return Err(format!("the cell {label} scans calls: a scan ends when it knows enough"));
        }
        self.cells.iter_mut().for_each(|cell| cell.terms.length = Some(Length::For(time)));
        // A piece has the time that the file gives a cell, and 50 times its own length.
        let piece = time.min(pieces::LONGEST);
        self.limit = self.limit.map(|limit| limit + Nanos(piece.0.saturating_mul(50)));
        self.lasting = Some(time);
        Ok(())
    }

    /// Every result that claims may name, with its kind and no value.
    pub fn results(&self) -> Vec<Known> {
        self.known(|_, _| None)
    }

    /// The same with the values that cells, by number, have of figures.
    fn known(&self, value: impl Fn(usize, &Figure) -> Option<f64>) -> Vec<Known> {
        let mut known = Vec::new();
        for (nth, cell) in self.cells.iter().enumerate() {
            for figure in self.figures.iter().filter(|figure| self.can_have(cell, figure)) {
                let name = format!("{}.{}", cell.label, figure.name);
                known.push(Known { name, time: figure.kind(), value: value(nth, figure) });
            }
        }
        known
    }

    /// Whether this cell can have a value of this figure. Where no cell measures what it is taken of,
    /// that is another fault ([`Study::unmeasured`]), and any could have.
    fn can_have(&self, cell: &Cell, figure: &Figure) -> bool {
        cell.measures(figure) || !self.cells.iter().any(|cell| cell.measures(figure))
    }

    /// The first figure that is taken of what no cell measures. What a study names may be misspelt:
    /// to be asked once it is known that there is all that the cells name.
    pub fn unmeasured(&self) -> Option<Fault> {
        let none = |figure: &&Figure| !self.cells.iter().any(|cell| cell.measures(figure));
        let figure = self.figures.iter().find(none)?;
        Some(Fault { at: figure.at, why: format!("no cell has {}", figure.of.words()) })
    }
}

impl Terms {
    /// These terms, but where `other` says something.
    #[must_use]
    fn but(&self, other: &Terms) -> Terms {
        Terms {
            on: other.on.clone().or_else(|| self.on.clone()),
            probes: other.probes.clone().or_else(|| self.probes.clone()),
            scans: other.scans.clone().or_else(|| self.scans.clone()),
            loads: other.loads.clone().or_else(|| self.loads.clone()),
            length: other.length.or(self.length),
            warm_up: other.warm_up.or(self.warm_up),
            settings: other.settings.clone().or_else(|| self.settings.clone()),
            adapt: other.adapt.clone().or_else(|| self.adapt.clone()),
            seed: other.seed.or(self.seed),
            repeat: other.repeat.or(self.repeat),
        }
    }
}

/// The line and the column, both from 1, of a byte of a text.
pub fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}
