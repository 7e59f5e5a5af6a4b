//! docs/results/ judges the claims of today's studies by the figures that were measured.
//!
//! `UPDATE_EXPECT=1` writes the tables and the pictures of single values anew, without measuring:
//! figures that were not measured have no value, and claims about them are not measured.

mod pictures;

use self::pictures::PicturesPage;
use crate::study;
use latlab_core::study::Study;
use latlab_core::study::figure::StudyFigure;
use latlab_core::study::findings::Findings;
use latlab_core::study::picture::PictureKind;
use latlab_core::study::quantity::Quantity;
use latlab_format::picture::study::pictures;
use latlab_format::study::{claims, csv, page};
use latlab_format::{signature, svg};
use latlab_sys::file::write_atomically;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn published_tables_judge_todays_claims_by_their_own_figures() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut index = ClaimsIndex::default();
    let mut page_of_pictures = PicturesPage::default();
    let mut files = Vec::new();
    for (name, study) in &study::shipped() {
        let folder = results.join(name);
        if !folder.exists() {
            continue; // Its results were not published.
        }
        let read = |file: &str| fs::read_to_string(folder.join(file)).expect("it was published");
        let values = values(&read("table.csv"));
        let findings = study.judged(|cell, figure| value(&values, study, cell, figure));
        let old = read("table.md");
        files.push((folder.join("table.md"), page(study, &findings, measured_part(&old))));
        files.push((folder.join("table.csv"), csv(study, &findings)));
        if !findings.claims.is_empty() {
            files.push((folder.join("claims.csv"), claims(&findings)));
        }
        files.extend(drawn(&folder, study, &findings));
        index.add(name, &findings);
        page_of_pictures.add(name, &folder, study);
    }
    files.push((results.join("claims.md"), index.page()));
    files.push((results.join("pictures.md"), page_of_pictures.text()));
    for (path, text) in files {
        if update {
            write_atomically(&path, text.as_bytes()).expect("it can be written");
        }
        let published = fs::read_to_string(&path).unwrap_or_default();
        assert!(published == text, "{}: make it anew: UPDATE_EXPECT=1", path.display());
    }
}

const VERDICTS: [&str; 5] =
    ["holds", "differs", "no longer holds", "by construction", "not measured"];

/// The page that counts the verdicts of each study.
#[derive(Default)]
struct ClaimsIndex {
    rows: String,
    totals: [usize; VERDICTS.len()],
}

impl ClaimsIndex {
    fn add(&mut self, name: &str, findings: &Findings<'_>) {
        let number = |verdict: &str| {
            findings.claims.iter().filter(|(_, judgement)| judgement.word() == verdict).count()
        };
        let numbers = VERDICTS.map(number);
        let row = numbers.map(|number| number.to_string()).join(" | ");
        let link = format!("[{name}]({name}/table.md)");
        let _ = writeln!(self.rows, "| {link} | {row} |");
        for (total, number) in self.totals.iter_mut().zip(numbers) {
            *total += number;
        }
    }

    fn page(&self) -> String {
        let totals = self.totals.map(|number| number.to_string()).join(" | ");
        format!(
            "# Claims of the papers\n\nEach study's page has its claims with their verdicts, \
             and links to claims.csv with the paper's sentence, the source, the bound and the \
             compared values.\n\n\
             | study | {} |\n| --- |{}\n{}| all | {totals} |\n",
            VERDICTS.join(" | "),
            " ---: |".repeat(VERDICTS.len()),
            self.rows
        )
    }
}

/// Returns the measured values of a table by cell and figure.
fn values(csv: &str) -> HashMap<(String, String), f64> {
    let measured = csv.lines().skip(1).filter_map(|line| {
        let mut parts = line.split(',');
        let (cell, figure) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        Some(((cell, figure), parts.next()?.parse().ok()?))
    });
    measured.collect()
}

fn value(
    values: &HashMap<(String, String), f64>,
    study: &Study,
    cell: usize,
    figure: &StudyFigure,
) -> Option<Quantity> {
    let name = (study.cells[cell].label.clone(), figure.name.clone());
    values.get(&name).map(|value| Quantity { value: *value, time: figure.kind() })
}

/// Returns the lines of a page on kernels, lengths and sources.
fn measured_part(page: &str) -> &str {
    let begin = page.find("\nMeasured on").expect("it says on what") + 1;
    let lines = page[begin..].find("\n\n").expect("it has a table") + 1;
    &page[begin..begin + lines]
}

/// Returns the pictures that show single values.
fn drawn(folder: &Path, study: &Study, findings: &Findings<'_>) -> Vec<(PathBuf, String)> {
    let single = |name: &str| {
        let picture = study.pictures.iter().find(|picture| picture.name == name);
        picture.is_some_and(|one| matches!(one.kind, PictureKind::Bars | PictureKind::Curves))
    };
    let none = vec![None; study.cells.len()];
    let pictures = pictures(study, findings, &none).into_iter();
    let drawn = pictures.filter(|picture| single(&picture.name)).map(|picture| {
        let path = folder.join(format!("{}.svg", picture.name));
        (path, signature::svg(&svg::draw(&picture.chart)))
    });
    drawn.collect()
}
