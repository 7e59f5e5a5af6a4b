//! What a study has found: its table, and what became of each claim.

use super::claim::{Judgement, Known, Verdict};
use super::figure::Figure;
use super::quantity::Quantity;
use super::{Cell, PaperClaim, Study};
use crate::record::Record;
use crate::time::Nanos;

/// The result of a study.
#[derive(Clone, Debug)]
pub struct Findings<'a> {
    /// One row for each cell, in order.
    pub rows: Vec<Row<'a>>,
    /// Each claim and what became of it.
    pub claims: Vec<(&'a PaperClaim, Judgement)>,
}

/// What was found in one cell.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// The cell's label.
    pub label: &'a str,
    /// One for each figure: what was measured, and what the paper printed.
    pub values: Vec<(Option<Quantity>, Option<&'a str>)>,
}

impl Study {
    /// What follows from the records of each cell, in the order of the cells; none where a cell
    /// could not be measured.
    pub fn findings<'a>(&'a self, measured: &[Option<Vec<Record>>]) -> Findings<'a> {
        let value = |cell: usize, figure: &Figure| {
            let records = measured.get(cell).and_then(Option::as_ref);
            records.and_then(|records| figure.of(records))
        };
        let row = |(nth, cell): (usize, &'a Cell)| {
            let values = self.figures.iter().map(|figure| {
                let name = (cell.label.clone(), figure.name.clone());
                (value(nth, figure), self.published.get(&name).map(String::as_str))
            });
            Row { label: &cell.label, values: values.collect() }
        };
        let rows = self.cells.iter().enumerate().map(row).collect();
        let results = self.known(|cell, figure| value(cell, figure).map(|value| value.value));
        let claims = self.claims.iter().map(|one| (one, one.judge(&results))).collect();
        Findings { rows, claims }
    }
}

/// Why the records of a cell can't stand in one table with those of another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stranger {
    /// Nanoseconds of one are not nanoseconds of the other.
    #[error(
        "its record is in {0} time, that of {1} in {2} time: their nanoseconds are not the same thing"
    )]
    TimeDomain(&'static str, String, &'static str),
    /// What has one name is not one thing.
    #[error("{target} was Linux {now} when it was measured, and Linux {then} when {cell} was")]
    Kernel {
        /// The name.
        target: String,
        /// The release of the kernel that this cell was measured on.
        now: String,
        /// That of the other cell.
        then: String,
        /// Which one that is.
        cell: String,
    },
}

impl Study {
    /// Which cells, by number, have records that can't stand in one table with those of the cells
    /// before them: in another time, or of another kernel under the same name.
    pub fn strangers(&self, measured: &[Option<Vec<Record>>]) -> Vec<(usize, Stranger)> {
        let mut known: Vec<(&Cell, &Record)> = Vec::new();
        let mut strangers = Vec::new();
        for (nth, (cell, records)) in self.cells.iter().zip(measured).enumerate() {
            for record in records.iter().flatten() {
                match known.iter().find_map(|(other, before)| record.stranger_to(before, other)) {
                    None => known.push((cell, record)),
                    Some(stranger) => {
                        strangers.push((nth, stranger));
                        break;
                    }
                }
            }
        }
        strangers
    }
}

impl Record {
    fn stranger_to(&self, before: &Record, cell: &Cell) -> Option<Stranger> {
        let domains = (self.machine.time_domain, before.machine.time_domain);
        if domains.0 != domains.1 {
            let (mine, other) = (domains.0.word(), domains.1.word());
            return Some(Stranger::TimeDomain(mine, cell.label.clone(), other));
        }
        let (now, then) = (&self.machine.kernel, &before.machine.kernel);
        (self.plan.target == before.plan.target && now != then).then(|| Stranger::Kernel {
            target: self.plan.target.clone(),
            now: now.clone(),
            then: then.clone(),
            cell: cell.label.clone(),
        })
    }
}

/// The longest latency of a table.
#[derive(Clone, Copy, Debug)]
pub struct Worst<'a> {
    /// Which cell it was measured in, from 0.
    pub cell: usize,
    /// The figure that it is.
    pub figure: &'a Figure,
    /// How long it is.
    pub latency: Nanos,
}

impl Study {
    /// The longest latency of the table, but for those of scans; the first of several that are as
    /// long. None where no figure of a probe's samples takes their maximum, or nothing was measured.
    pub fn worst(&self, findings: &Findings<'_>) -> Option<Worst<'_>> {
        let mut worst: Option<Worst<'_>> = None;
        for (cell, row) in findings.rows.iter().enumerate() {
            for (figure, (value, _)) in self.figures.iter().zip(&row.values) {
                let Some(value) = value.filter(|_| figure.is_worst()) else { continue };
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it was a time"
                )]
                let latency = Nanos(value.value.round() as u64);
                if worst.is_none_or(|worst| latency > worst.latency) {
                    worst = Some(Worst { cell, figure, latency });
                }
            }
        }
        worst
    }
}

impl PaperClaim {
    fn judge(&self, results: &[Known]) -> Judgement {
        let judgement = self.claim.judge(results);
        match judgement.verdict {
            Verdict::Differs if self.gone => Judgement { verdict: Verdict::NoMore, ..judgement },
            _ => judgement,
        }
    }
}

impl Judgement {
    /// What became of the claim, in a word or two.
    pub fn word(&self) -> &'static str {
        match self.verdict {
            Verdict::Holds => "holds",
            Verdict::Differs => "differs",
            Verdict::NoMore => "holds no more",
            Verdict::NotMeasured(_) => "not measured",
        }
    }

    /// What was compared, or what is missing, in words.
    pub fn ground(&self) -> String {
        if let Verdict::NotMeasured(missing) = &self.verdict {
            return format!("without {}", missing.join(", "));
        }
        let sides = self.compared.iter().map(|(text, value)| format!("{text} is {value}"));
        sides.collect::<Vec<_>>().join(", ")
    }
}
