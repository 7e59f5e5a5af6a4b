//! `latlab report`: records in, pictures out.

use crate::failure::{Result, failed};
use crate::format::output::{Contents, Outputs};
use crate::format::picture::{Source, charts};
use std::path::{Path, PathBuf};

/// Show records as pictures, in one page that needs no network
///
/// The page holds the histogram of each series, the share of samples above each latency, and the
/// worst latency over time, with the numbers, the machine and the plan below; of each call that
/// was scanned, how late a task is over the moment of the interrupt. Several records are laid over
/// each other:
///
///     latlab report before.json after.json -o report.html
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Report {
    /// The records to show, as `latlab run --out` wrote them; the repetitions in a folder, of a
    /// pattern in quotes ('a-*.json') or of a list with commas are merged, and may differ in their
    /// seeds
    #[arg(required = true, value_name = "RECORD")]
    records: Vec<PathBuf>,

    #[command(flatten)]
    outputs: Outputs,
}

impl Report {
    /// Reads all records before anything is written.
    pub(crate) fn run(&self) -> Result<()> {
        self.outputs.check_paths(&self.records)?;
        let sources = sources(&self.records)?;
        self.outputs.check_explained(&sources)?;
        let charts = charts(&sources);
        self.outputs.write(&Contents { sources: &sources, charts: &charts })
    }
}

/// The records, which must all be in the same kind of time.
fn sources(paths: &[PathBuf]) -> Result<Vec<Source>> {
    let mut sources: Vec<Source> = Vec::new();
    for path in paths {
        let place = path.display().to_string();
        let runs = super::runs(path)?;
        let record = super::merged(&runs).ok_or_else(|| failed(&place, "there is no record"))?;
        let measured = record.series.iter().any(|series| series.counts.recorded > 0)
            || record.scans.iter().any(|scan| !scan.points.is_empty())
            || record.explained.is_some();
        if !measured {
            let nothing = "no series has a sample and no scan a point: there is nothing to draw";
            return Err(failed(&place, nothing));
        }
        if let Some(first) = sources.first() {
            first
                .record
                .same_time(&record)
                .map_err(|e| failed(&format!("{} and {place}", paths[0].display()), e))?;
        }
        let name = name(path, paths);
        let runs = if path.is_file() { Vec::new() } else { runs };
        sources.push(Source { name, record, runs });
    }
    Ok(sources)
}

/// The name of a file without its folder and ending, where that is enough to know it by.
fn name(path: &Path, all: &[PathBuf]) -> String {
    let alike = all.iter().filter(|p| p.file_stem() == path.file_stem());
    match path.file_stem() {
        Some(stem) if alike.count() == 1 => stem.to_string_lossy().into_owned(),
        _ => path.display().to_string(),
    }
}
