//! Values over the labels of an axis: a row for each figure and each combination of the other axes.

use super::super::{cell_names, joined};
use latlab_core::study::Study;
use latlab_core::study::findings::Findings;
use latlab_core::study::picture::{CategoryAxis, Picture};
use latlab_core::study::quantity::Quantity;

/// A measured and a published value for each label.
pub(super) struct ValueRow {
    pub(super) name: String,
    /// Index among the figures of the picture.
    pub(super) figure: usize,
    pub(super) values: Vec<(Option<Quantity>, Option<f64>)>,
}

/// Returns a row for each figure and each combination of the other axes.
pub(super) fn rows(
    picture: &Picture,
    over: &CategoryAxis,
    study: &Study,
    findings: &Findings<'_>,
) -> Vec<ValueRow> {
    let others = |cell: usize| {
        let mut labels = study.labels(cell);
        labels.remove(over.axis);
        labels
    };
    let mut firsts: Vec<usize> = Vec::new();
    for cell in &picture.cells {
        if !firsts.iter().any(|first| others(*first) == others(*cell)) {
            firsts.push(*cell);
        }
    }
    // Rows differ only on the other axes.
    let names = cell_names(study, &firsts);
    let mut rows = Vec::new();
    for (first, name) in firsts.iter().zip(names) {
        for (nth, figure) in picture.figures.iter().enumerate() {
            let title = study.figures[*figure].title.as_str();
            let several = picture.figures.len() > 1 || firsts.len() == 1;
            let value = |label: &String| {
                let here = |cell: &&usize| {
                    others(**cell) == others(*first) && study.labels(**cell)[over.axis] == label
                };
                let cell = picture.cells.iter().find(here)?;
                Some(at(*cell, *figure, picture, study, findings))
            };
            rows.push(ValueRow {
                name: joined(&[&name, if several { title } else { "" }]),
                figure: nth,
                values: over.labels.iter().map(|label| value(label).unwrap_or_default()).collect(),
            });
        }
    }
    rows
}

/// Returns the measured and the published value of a figure in a cell, relative to the reference if
/// there is one.
fn at(
    cell: usize,
    figure: usize,
    picture: &Picture,
    study: &Study,
    findings: &Findings<'_>,
) -> (Option<Quantity>, Option<f64>) {
    let (value, text) = findings.rows[cell].values[figure];
    let kind = study.figures[figure].kind();
    let printed = text.and_then(|text| Quantity::printed(text, kind));
    let over = picture.over.as_ref();
    let Some((axis, label)) = over.and_then(|over| over.relative_to.as_ref()) else {
        return (value, printed);
    };
    let mut labels = study.labels(cell);
    labels[*axis] = label;
    let of_reference = labels.join(".");
    let reference = findings.rows.iter().find(|row| row.label == of_reference);
    let Some(reference) = reference else { return (None, None) };
    // Stacked values are relative to the sum of the reference.
    let whole = if over.is_some_and(|over| over.stacked) {
        // Without all parts the sum is unknown.
        let all = picture.figures.iter().map(|figure| reference.values[*figure].0);
        let all: Option<Vec<Quantity>> = all.collect();
        all.and_then(|all| all.into_iter().reduce(|one, other| one + other))
    } else {
        reference.values[figure].0
    };
    let ratio = value.zip(whole).map(|(value, whole)| value / whole);
    let as_ratio = text.and_then(|text| text.strip_suffix(&format!(" × {label}")));
    let printed = if let Some(text) = as_ratio {
        Quantity::printed(text, 0)
    } else {
        let its = reference.values[figure].1.and_then(|text| Quantity::printed(text, kind));
        printed.zip(its).map(|(printed, its)| printed / its)
    };
    (ratio.filter(|ratio| ratio.value.is_finite()), printed.filter(|ratio| ratio.is_finite()))
}
