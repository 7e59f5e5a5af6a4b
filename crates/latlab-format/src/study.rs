//! Results of a study as text, Markdown and CSV: the measured and the published values, and
//! the claims. This file prepares what the forms have in common.

mod cells;
mod csv;
mod markdown;
mod text;

pub use self::cells::cells;
pub use self::csv::{claims, csv};
pub use self::markdown::markdown;
pub use self::markdown::page;
pub use self::text::text;

use super::grouped;
use latlab_core::plan::Length;
use latlab_core::record::Record;
use latlab_core::study::claim::{ClaimVerdict, Judgement};
use latlab_core::study::findings::Findings;
use latlab_core::study::pieces;
use latlab_core::study::quantity::Quantity;
use latlab_core::study::{Lengths, PaperClaim, Study};
use std::fmt::Write as _;

/// Returns the output of `--check` for a study without errors.
pub fn checked(name: &str, study: &Study) -> String {
    format!(
        "{name}: {} cells, {} figures, {} claims; no errors\n",
        study.cells.len(),
        study.figures.len(),
        study.claims.len()
    )
}

/// Columns of the table of results.
struct ResultColumns {
    /// Title of each figure, and whether the paper printed any of its values.
    figures: Vec<(String, bool)>,
}

impl ResultColumns {
    fn of(study: &Study, findings: &Findings<'_>) -> ResultColumns {
        let published = |nth: usize| findings.rows.iter().any(|row| row.values[nth].1.is_some());
        let figures = study.figures.iter().enumerate();
        ResultColumns {
            figures: figures.map(|(nth, one)| (one.title.clone(), published(nth))).collect(),
        }
    }

    fn header(&self) -> Vec<String> {
        let mut header = vec!["cell".to_owned()];
        for (title, published) in &self.figures {
            header.push(title.clone());
            if *published {
                header.push("published".to_owned());
            }
        }
        header
    }

    fn row(&self, label: &str, values: &[(Option<Quantity>, Option<&str>)]) -> Vec<String> {
        let mut row = vec![label.to_owned()];
        for ((value, printed), (_, published)) in values.iter().zip(&self.figures) {
            row.push(value.map_or_else(|| "–".to_owned(), shown));
            if *published {
                row.push(printed.unwrap_or("–").to_owned());
            }
        }
        row
    }
}

/// Formats a value; large and whole numbers with their digits in groups, like all counts.
pub fn shown(value: Quantity) -> String {
    let large = value.value >= 1_000.0 || value.value.fract() == 0.0;
    if value.time == 0 && large && (0.0..1e15).contains(&value.value) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is whole, not negative, and below 2^53"
        )]
        return grouped(value.value.round() as u64);
    }
    value.to_string()
}

/// Returns the reasons for the verdict on a claim, line by line.
pub fn grounds(claim: &str, why: &str, judgement: &Judgement) -> Vec<String> {
    let ground = judgement.ground();
    match judgement.verdict {
        ClaimVerdict::Differs | ClaimVerdict::NoLongerHolds => {
            let mut lines = vec![format!("{ground}; not {claim}")];
            lines.push(reason(why).to_owned());
            lines
        }
        ClaimVerdict::Holds | ClaimVerdict::ByConstruction | ClaimVerdict::NotMeasured(_) => {
            vec![ground]
        }
    }
}

/// Returns why a claim does not hold, as its study says.
fn reason(why: &str) -> &str {
    if why.is_empty() { "Not known why" } else { why }
}

/// Returns the origin of a claim's bound, and each change of it, line by line.
pub fn bounds(claim: &PaperClaim) -> Vec<String> {
    let changes = claim.changes.iter().map(ToString::to_string);
    std::iter::once(claim.bound.to_string()).chain(changes).collect()
}

/// Returns the options of `latlab study` for the target and the length of the measurements, if they
/// are not the study's own.
pub fn options(study: &Study) -> String {
    let target = study.moved_to.iter().map(|target| format!(" --on {target}"));
    let length = match study.lengths {
        Lengths::Usual => None,
        Lengths::Full => Some(" --full".to_owned()),
        Lengths::For(time) => Some(format!(" --for {}", time.exact())),
    };
    target.chain(length).collect()
}

/// Returns length and repetitions of the measurements as a sentence, if they are the same for all
/// cells with a probe.
pub fn lengths(all: &[Option<Vec<Record>>]) -> Option<String> {
    let has_probe = |cell: &&Vec<Record>| cell.iter().any(|record| !record.plan.probes.is_empty());
    let mut cells =
        all.iter().flatten().filter(has_probe).map(|cell| (cell[0].plan.length, cell.len()));
    let (length, times) = cells.next()?;
    if !cells.all(|cell| cell == (length, times)) {
        return None;
    }
    let mut text = match length {
        Length::For(time) => format!("Each cell was measured for {time}"),
        Length::Count(1) => "Each cell has one sample of each probe".to_owned(),
        Length::Count(count) => {
            format!("Each cell has {} samples of each probe", grouped(count))
        }
    };
    let number = pieces::number(length, pieces::LONGEST);
    if number > 1 {
        let _ = write!(text, ", in {number} pieces");
    }
    if times > 1 {
        let _ = write!(text, ", {times} times with different seeds");
    }
    Some(text + ".")
}

/// Returns the kernels of the records as a sentence, each once.
pub fn kernels(all: &[Option<Vec<Record>>]) -> String {
    let mut kernels: Vec<String> = Vec::new();
    for record in all.iter().flatten().flatten() {
        let kernel = format!("{} (Linux {})", record.plan.target, record.machine.kernel);
        if !kernels.contains(&kernel) {
            kernels.push(kernel);
        }
    }
    if kernels.is_empty() {
        return "Nothing was measured.".to_owned();
    }
    format!("Measured on {}.", kernels.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::tests::source;
    use crate::width::Width;
    use latlab_core::time::Nanos;

    #[test]
    fn lengths_are_given_only_if_the_same_for_all_cells() {
        let mut record = source("", 1).record;
        let mut cell = |length, times: usize| {
            record.plan.length = length;
            Some(vec![record.clone(); times])
        };
        let [short, long] = [1, 3_600].map(|seconds| Length::For(Nanos::from_secs(seconds)));
        let (once, count) = (cell(short, 1), cell(Length::Count(1_000), 3));
        let said = |cells: &[_]| lengths(cells).unwrap_or_default();
        assert_eq!(said(&[once.clone(), None, once.clone()]), "Each cell was measured for 1 s.");
        assert_eq!(
            said(std::slice::from_ref(&count)),
            "Each cell has 1\u{202f}000 samples of each probe, 3 times with different seeds."
        );
        let single = cell(Length::Count(1), 1);
        assert_eq!(said(&[single]), "Each cell has one sample of each probe.");
        assert_eq!(said(&[cell(long, 1)]), "Each cell was measured for 1 h, in 12 pieces.");
        assert_eq!(said(&[once, count]), "");
        assert_eq!(said(&[None]), "");
    }

    #[test]
    fn study_without_claims_has_no_claims_section() {
        const STUDY: &str = r#"
            title = "T"
            paper = "P"
            redoes = "figure 1"
            plan = { probes = ["cyclic"], on = "native", for = "1s" }
            axis = [{ name = "host", each = [{ label = "a" }] }]
            figure = [{ name = "worst", probe = "cyclic", take = "max" }]
        "#;
        let study = |claim: &str| Study::read(&format!("{STUDY}{claim}")).unwrap();
        let said = |study: &Study| {
            let findings = study.findings(&[None]);
            text(study, &findings, &[None], Width::UNLIMITED)
                + &markdown("t", study, &findings, &[None])
        };
        let none = said(&study(""));
        assert!(none.contains("worst") && !none.contains("claim"), "{none}");
        let one = said(&study(
            r#"claim = [{ says = "S", claim = "a.worst < 1ms", bound = "paper: 1 ms" }]"#,
        ));
        assert!(one.contains("Claims of the paper:") && one.contains("## Claims"), "{one}");
    }

    #[test]
    fn count_has_grouped_digits_and_ratio_four_digits() {
        assert_eq!(shown(Quantity::number(12_345.0)), "12\u{202f}345");
        assert_eq!(shown(Quantity::number(1_725.5)), "1\u{202f}726");
        assert_eq!(shown(Quantity::number(3.714_159)), "3.714");
        assert_eq!(shown(Quantity { value: 1_500.0, time: 1 }), "1.5 us");
    }
}
