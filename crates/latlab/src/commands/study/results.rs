//! What a study leaves to look at: its table, its pictures and its report.

use super::Found;
use super::kept::name;
use crate::failure::{Result, failed};
use crate::format::html::study::{About, page};
use crate::format::picture::Source as Named;
use crate::format::picture::study::pictures;
use crate::format::study::{csv, markdown};
use crate::format::{self, png, signature, svg};
use crate::study::Source;
use latlab_core::record::Record;
use latlab_core::study::findings::Findings;
use latlab_sys::file::write_atomically;
use std::path::Path;

/// All that came of a study.
pub(super) struct Results<'a> {
    pub(super) source: &'a Source,
    pub(super) findings: &'a Findings<'a>,
    pub(super) records: &'a [Found],
}

impl Results<'_> {
    /// Writes the table, in two forms, the pictures and the report, with the record that says why the
    /// worst was late if that was found out.
    pub(super) fn write(&self, out: &Path, as_png: bool, why: Option<Record>) -> Result<()> {
        let (study, findings, records) = (&self.source.study, self.findings, self.records);
        let write = |name: &str, bytes: &[u8]| {
            let path = out.join(name);
            write_atomically(&path, bytes).map_err(|e| failed(&path.display().to_string(), e))
        };
        // Where a file of the user's lies is of no interest to whoever reads of the study.
        let name = Path::new(&self.source.name).file_name().unwrap_or_default().to_string_lossy();
        write("table.md", markdown(&name, study, findings, records).as_bytes())?;
        write("table.csv", csv(study, findings).as_bytes())?;
        let pictures = pictures(study, findings, records);
        let names: Vec<&str> = pictures.iter().map(|picture| picture.name.as_str()).collect();
        forget_others(out, &names, as_png)?;
        for picture in &pictures {
            let svg = signature::svg(&svg::draw(&picture.chart));
            write(&format!("{}.svg", picture.name), svg.as_bytes())?;
            if as_png {
                write(&format!("{}.png", picture.name), &signature::png(&png::draw(&svg)))?;
            }
        }
        let sources = self.named();
        let (name, sources, pictures) = (name.as_ref(), sources.as_slice(), pictures.as_slice());
        let why = why.map(|record| Named::of_run("worst".to_owned(), record));
        let why = why.as_ref();
        let about = About { name, study, findings, records, sources, pictures, why };
        write("report.html", page(&about).as_bytes())
    }

    /// The records with their names.
    fn named(&self) -> Vec<Named> {
        let cells = self.source.study.cells.iter().zip(self.records);
        let named = cells.flat_map(|(cell, records)| {
            let records = records.iter().flatten().enumerate();
            records.map(|(nth, record)| Named::of_run(name(&cell.label, nth + 1), record.clone()))
        });
        named.collect()
    }
}

/// Removes the pictures that a study has drawn into this folder before and that are not drawn now:
/// they would look as if they were of these records.
fn forget_others(out: &Path, names: &[&str], as_png: bool) -> Result<()> {
    let unreadable = |e| failed(&out.display().to_string(), e);
    for entry in std::fs::read_dir(out).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let kind = path.extension().unwrap_or_default();
        let is_picture = path.is_file() && (kind == "svg" || kind == "png");
        let name = path.file_stem().unwrap_or_default();
        let is_drawn = names.iter().any(|one| name == *one) && (kind == "svg" || as_png);
        if !is_picture || is_drawn {
            continue;
        }
        let place = path.display().to_string();
        if signature::is_ours(&path).map_err(|e| failed(&place, e))? {
            std::fs::remove_file(&path).map_err(|e| failed(&place, e))?;
            format::say(&format!("{place} was of a study before this one: it is removed"));
        }
    }
    Ok(())
}
