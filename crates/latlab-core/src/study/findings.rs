//! What a study has found: its table, and what became of each claim.

use super::claim::{Judgement, Known, Verdict};
use super::figure::Figure;
use super::quantity::Quantity;
use super::{PaperClaim, Study};
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
    pub fn findings(&self, measured: &[Option<Vec<Record>>]) -> Findings<'_> {
        let mut results = self.results();
        let mut rows = Vec::new();
        let mut result = results.iter_mut();
        for (nth, cell) in self.cells.iter().enumerate() {
            let records = measured.get(nth).and_then(Option::as_ref);
            let mut values = Vec::new();
            for (figure, result) in self.figures.iter().zip(result.by_ref()) {
                let value = records.and_then(|records| figure.of(records));
                result.value = value.map(|value| value.value);
                let name = (cell.label.clone(), figure.name.clone());
                values.push((value, self.published.get(&name).map(String::as_str)));
            }
            rows.push(Row { label: &cell.label, values });
        }
        let claims = self.claims.iter().map(|one| (one, one.judge(&results))).collect();
        Findings { rows, claims }
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
