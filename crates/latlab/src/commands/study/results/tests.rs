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
use latlab_format::study::{csv, page};
use latlab_format::{signature, svg};
use latlab_sys::file::write_atomically;
use std::collections::{BTreeMap, HashMap};
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
        files.extend(drawn(&folder, study, &findings));
        index.add(name, study, &findings);
        page_of_pictures.add(name, &folder, study, &findings);
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

/// The page with the claims of all studies, by paper.
#[derive(Default)]
struct ClaimsIndex {
    rows: BTreeMap<String, String>,
    verdicts: BTreeMap<&'static str, usize>,
}

impl ClaimsIndex {
    fn add(&mut self, name: &str, study: &Study, findings: &Findings<'_>) {
        for (claim, judgement) in &findings.claims {
            let verdict = judgement.word();
            let sentence = if claim.quote.is_empty() { "–" } else { &claim.quote };
            let source = &claim.source;
            let rows = self.rows.entry(study.paper.clone()).or_default();
            let link = format!("[{name}]({name}/table.md)");
            let says = &claim.says;
            let ground = judgement.ground();
            let row = format!("{sentence} | {source} | {link} | {says} | {verdict} | {ground}");
            let _ = writeln!(rows, "| {row} |");
            *self.verdicts.entry(verdict).or_default() += 1;
        }
    }

    fn page(&self) -> String {
        let mut page =
            "# Claims of the papers\n\nEach sentence that a claim judges, in the paper's \
                        words (– for a claim of our own), the study that measures it, and what \
                        came out, with the compared figures. The tables have the bounds and where \
                        they come from, and why claims differ. Claims are listed under the paper \
                        of their study: those on tables 6 and 7 of Rapid Reaction Linux are judged \
                        by heursch-rhealstone.\n\n| verdict | claims |\n\
                        | --- | --- |\n"
                .to_owned();
        for (verdict, number) in &self.verdicts {
            let _ = writeln!(page, "| {verdict} | {number} |");
        }
        for (paper, rows) in &self.rows {
            let _ = writeln!(page, "\n## {paper}\n");
            page += "| sentence | source | study | claim | verdict | measured |\n";
            page += "| --- | --- | --- | --- | --- | --- |\n";
            page += rows;
        }
        page
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
    let end = page.find("\n\n| cell").expect("it has a table") + 1;
    &page[begin..end]
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
