//! Findings of a study: its table, and the verdict on each claim.

use super::bound::Origin;
use super::claim::{ClaimVerdict, Judgement, NamedValue};
use super::figure::StudyFigure;
use super::quantity::Quantity;
use super::{Cell, PaperClaim, Study};
use crate::record::Record;
use crate::time::Nanos;

/// The results of a study.
#[derive(Clone, Debug)]
pub struct Findings<'a> {
    /// One row for each cell, in order.
    pub rows: Vec<CellRow<'a>>,
    /// Each claim and the verdict on it.
    pub claims: Vec<(&'a PaperClaim, Judgement)>,
}

/// The results of one cell.
#[derive(Clone, Debug)]
pub struct CellRow<'a> {
    /// The cell's label.
    pub label: &'a str,
    /// Measured and published value of each figure.
    pub values: Vec<(Option<Quantity>, Option<&'a str>)>,
}

impl Study {
    /// Evaluates the records of each cell, in the order of the cells; none for a cell that could
    /// not be measured.
    pub fn findings<'a>(&'a self, measured: &[Option<Vec<Record>>]) -> Findings<'a> {
        let records = |cell: usize| measured.get(cell).and_then(Option::as_deref);
        let mut findings = self.judged(|cell, figure| figure.of(records(cell)?));
        let mut numbers = measured.iter().flatten().map(Vec::len);
        let number = numbers.next().filter(|first| *first > 1 && numbers.all(|n| n == *first));
        if let Some(number) = number {
            let nth = |nth: usize| {
                self.judged(move |cell, figure| {
                    figure.of(std::slice::from_ref(records(cell)?.get(nth)?))
                })
            };
            let each: Vec<Findings<'_>> = (0..number).map(nth).collect();
            for (claim, (_, judgement)) in findings.claims.iter_mut().enumerate() {
                let agrees = |one: &&Findings<'_>| one.claims[claim].1.agrees();
                judgement.repetitions = Some((each.iter().filter(agrees).count(), number));
            }
        }
        findings
    }

    /// Evaluates values of each cell, by its index, and figure.
    pub fn judged<'a>(
        &'a self,
        value: impl Fn(usize, &StudyFigure) -> Option<Quantity>,
    ) -> Findings<'a> {
        let row = |(nth, cell): (usize, &'a Cell)| {
            let values = self.figures.iter().map(|figure| {
                let name = (cell.label.clone(), figure.name.clone());
                (value(nth, figure), self.published.get(&name).map(String::as_str))
            });
            CellRow { label: &cell.label, values: values.collect() }
        };
        let rows = self.cells.iter().enumerate().map(row).collect();
        let results = self.known(|cell, figure| value(cell, figure).map(|value| value.value));
        let claims = self.claims.iter().map(|one| (one, one.judge(&results))).collect();
        Findings { rows, claims }
    }
}

/// Why the records of a cell can't be in one table with those of another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// Their times are not comparable.
    #[error(
        "its record is in {0} time, that of {1} in {2} time: their nanoseconds are not comparable"
    )]
    TimeDomain(&'static str, String, &'static str),
    /// One target name stands for two kernels.
    #[error("{target} was Linux {now} when it was measured, and Linux {then} when {cell} was")]
    Kernel {
        /// The target.
        target: String,
        /// The kernel release of this cell.
        now: String,
        /// That of the other cell.
        then: String,
        /// The other cell.
        cell: String,
    },
}

impl Study {
    /// Returns the cells, by index, whose records can't share a table with the records of earlier
    /// cells: another time domain, or another kernel of the same target.
    pub fn mismatches(&self, measured: &[Option<Vec<Record>>]) -> Vec<(usize, Mismatch)> {
        let mut known: Vec<(&Cell, &Record)> = Vec::new();
        let mut mismatches = Vec::new();
        for (nth, (cell, records)) in self.cells.iter().zip(measured).enumerate() {
            for record in records.iter().flatten() {
                match known.iter().find_map(|(other, before)| record.mismatch(before, other)) {
                    None => known.push((cell, record)),
                    Some(mismatch) => {
                        mismatches.push((nth, mismatch));
                        break;
                    }
                }
            }
        }
        mismatches
    }
}

impl Record {
    fn mismatch(&self, before: &Record, cell: &Cell) -> Option<Mismatch> {
        let domains = (self.machine.time_domain, before.machine.time_domain);
        if domains.0 != domains.1 {
            let (mine, other) = (domains.0.word(), domains.1.word());
            return Some(Mismatch::TimeDomain(mine, cell.label.clone(), other));
        }
        let (now, then) = (&self.machine.kernel, &before.machine.kernel);
        (self.plan.target == before.plan.target && now != then).then(|| Mismatch::Kernel {
            target: self.plan.target.clone(),
            now: now.clone(),
            then: then.clone(),
            cell: cell.label.clone(),
        })
    }
}

/// The longest latency of a table.
#[derive(Clone, Copy, Debug)]
pub struct LongestLatency<'a> {
    /// Index of its cell.
    pub cell: usize,
    /// Its figure.
    pub figure: &'a StudyFigure,
    /// The latency.
    pub latency: Nanos,
}

impl Study {
    /// Returns the longest latency of the table, scans excluded; the first of equal ones. None if
    /// no figure is the maximum of a probe's samples, or nothing was measured.
    pub fn worst(&self, findings: &Findings<'_>) -> Option<LongestLatency<'_>> {
        let mut worst: Option<LongestLatency<'_>> = None;
        for (cell, row) in findings.rows.iter().enumerate() {
            for (figure, (value, _)) in self.figures.iter().zip(&row.values) {
                let Some(value) = value.filter(|_| figure.is_worst()) else { continue };
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it is a time"
                )]
                let latency = Nanos(value.value.round() as u64);
                if worst.is_none_or(|worst| latency > worst.latency) {
                    worst = Some(LongestLatency { cell, figure, latency });
                }
            }
        }
        worst
    }
}

impl PaperClaim {
    fn judge(&self, results: &[NamedValue]) -> Judgement {
        let judgement = self.claim.judge(results);
        match judgement.verdict {
            ClaimVerdict::Differs if self.gone => {
                Judgement { verdict: ClaimVerdict::NoLongerHolds, ..judgement }
            }
            ClaimVerdict::Holds if self.bound.origin == Origin::Construction => {
                Judgement { verdict: ClaimVerdict::ByConstruction, ..judgement }
            }
            _ => judgement,
        }
    }
}

impl Judgement {
    /// Returns the verdict in words.
    pub fn word(&self) -> &'static str {
        match self.verdict {
            ClaimVerdict::Holds => "holds",
            ClaimVerdict::ByConstruction => "by construction",
            ClaimVerdict::Differs => "differs",
            ClaimVerdict::NoLongerHolds => "no longer holds",
            ClaimVerdict::NotMeasured(_) => "not measured",
        }
    }

    /// Returns the compared values, or the missing results, in words.
    pub fn ground(&self) -> String {
        if let ClaimVerdict::NotMeasured(missing) = &self.verdict {
            return format!("no value for {}", missing.join(", "));
        }
        let sides = self.compared.iter().map(|(text, value)| format!("{text} is {value}"));
        let sides = sides.collect::<Vec<_>>().join(", ");
        match self.repetitions {
            Some((agree, all)) => format!("{sides}; {agree} of {all} repetitions agree"),
            None => sides,
        }
    }

    /// Whether the results agree with the claim.
    pub fn agrees(&self) -> bool {
        matches!(self.verdict, ClaimVerdict::Holds | ClaimVerdict::ByConstruction)
    }
}
