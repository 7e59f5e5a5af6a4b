//! The results of a study in its folder: table, pictures and report.

#[cfg(test)]
mod tests;

use super::CellRecords;
use super::folder::record_name;
use crate::study::StudyFile;
use latlab_core::record::Record;
use latlab_core::study::findings::Findings;
use latlab_format::html::study::{StudyPage, page};
use latlab_format::picture::NamedRecord;
use latlab_format::picture::study::pictures;
use latlab_format::study::{claims, csv, markdown};
use latlab_format::{self as format, signature, svg};
use latlab_part::failure::{Context as _, Result, failed};
use latlab_sys::file::write_atomically;
use std::path::Path;

/// The records of a study and the findings from them.
pub(super) struct Results<'a> {
    pub(super) file: &'a StudyFile,
    pub(super) findings: &'a Findings<'a>,
    pub(super) records: &'a [CellRecords],
}

impl Results<'_> {
    /// Writes the table as Markdown and CSV, the pictures as SVG, and the report,
    /// which includes the explanation of the longest latency if there is one.
    pub(super) fn write(&self, out: &Path, worst: Option<Record>) -> Result<()> {
        let (study, findings, records) = (&self.file.study, self.findings, self.records);
        let write = |name: &str, bytes: &[u8]| {
            let path = out.join(name);
            write_atomically(&path, bytes).at(&path)
        };
        // The reader of the report has no use for the path of the user's file.
        let name = Path::new(&self.file.name).file_name().unwrap_or_default().to_string_lossy();
        write("table.md", markdown(&name, study, findings, records).as_bytes())?;
        write("table.csv", csv(study, findings).as_bytes())?;
        if !findings.claims.is_empty() {
            write("claims.csv", claims(findings).as_bytes())?;
        }
        let pictures = pictures(study, findings, records);
        let names: Vec<&str> = pictures.iter().map(|picture| picture.name.as_str()).collect();
        remove_stale(out, &names)?;
        for picture in &pictures {
            let svg = signature::svg(&svg::draw(&picture.chart));
            write(&format!("{}.svg", picture.name), svg.as_bytes())?;
        }
        let sources = self.sources();
        let (name, sources, pictures) = (name.as_ref(), sources.as_slice(), pictures.as_slice());
        let worst = worst.map(|record| NamedRecord::from_run("worst".to_owned(), record));
        let why = worst.as_ref();
        let about = StudyPage { name, study, findings, records, sources, pictures, why };
        write("report.html", page(&about).as_bytes())
    }

    /// The records with their names.
    fn sources(&self) -> Vec<NamedRecord> {
        let cells = self.file.study.cells.iter().zip(self.records);
        let sources = cells.flat_map(|(cell, records)| {
            records.iter().flatten().enumerate().map(|(nth, record)| {
                NamedRecord::from_run(record_name(&cell.label, nth + 1), record.clone())
            })
        });
        sources.collect()
    }
}

/// Removes pictures that an earlier study has drawn into this folder and that are not drawn now:
/// they would be taken for pictures of these records.
fn remove_stale(out: &Path, names: &[&str]) -> Result<()> {
    let unreadable = |e| failed(&out.display().to_string(), e);
    for entry in std::fs::read_dir(out).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_picture = path.is_file() && path.extension().is_some_and(|kind| kind == "svg");
        let name = path.file_stem().unwrap_or_default();
        let is_drawn = names.iter().any(|one| name == *one);
        if !is_picture || is_drawn {
            continue;
        }
        let place = path.display().to_string();
        if signature::is_ours(&path).context(&place)? {
            std::fs::remove_file(&path).context(&place)?;
            format::say(&format!("{place} was drawn by an earlier study: removed"));
        }
    }
    Ok(())
}
