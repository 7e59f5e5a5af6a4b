//! What a study has found: its table, and what became of each claim.

use super::claim::{Judgement, Known, Verdict};
use super::quantity::Quantity;
use super::{PaperClaim, Study};
use crate::record::Record;

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
