//! `latlab report`: records in, pictures out.

use crate::failure::{Failure, Result, failed};
use crate::format;
use crate::format::picture::{Chart, Source, charts};
use crate::format::{folded, html, parquet, perfetto, png, svg};
use latlab_core::record::SCHEMA;
use latlab_sys::file::write_atomically;
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

    /// The page to write
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,

    /// Also write histogram.svg, ccdf.svg, timeline.svg and scan-CALL.svg into this folder
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,

    /// Also write histogram.png, ccdf.png, timeline.png and scan-CALL.png into this folder
    #[arg(long, value_name = "DIR")]
    png: Option<PathBuf>,

    /// Also write the worst wake-ups with what made them late as a trace for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,

    /// Also write what made wake-ups late as folded stacks, for flame graphs
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,

    /// Also write series.parquet, samples.parquet, worst.parquet and figures.parquet into this
    /// folder, for DuckDB, pandas and others (docs/record.md)
    #[arg(long, value_name = "DIR")]
    parquet: Option<PathBuf>,
}

impl Report {
    /// Reads all records before anything is written.
    pub(crate) fn run(&self) -> Result<()> {
        let outputs = [Some(&self.output), self.perfetto.as_ref(), self.folded.as_ref()];
        for output in outputs.into_iter().flatten() {
            let real = output.canonicalize().ok();
            if real.is_some() && self.records.iter().any(|r| r.canonicalize().ok() == real) {
                let place = output.display().to_string();
                return Err(failed(&place, "this is a record: name another file to write"));
            }
        }
        let sources = sources(&self.records)?;
        self.check_explained(&sources)?;
        let charts = charts(&sources);
        write(&self.output, html::page(&sources, &charts).as_bytes())?;
        if let Some(folder) = &self.svg {
            pictures(folder, &charts, "svg", |chart| svg::draw(chart).into_bytes())?;
        }
        if let Some(folder) = &self.png {
            pictures(folder, &charts, "png", |chart| png::draw(&svg::draw(chart)))?;
        }
        if let Some(folder) = &self.parquet {
            tables(folder, &sources)?;
        }
        if let Some(path) = &self.perfetto {
            write(path, perfetto::trace(&sources).as_bytes())?;
        }
        if let Some(path) = &self.folded {
            write(path, folded::stacks(&sources).as_bytes())?;
        }
        Ok(())
    }

    /// Refuses what would be an empty trace.
    fn check_explained(&self, sources: &[Source]) -> Result<()> {
        let asked = self.perfetto.is_some() || self.folded.is_some();
        if !asked || sources.iter().any(|source| source.record.explained.is_some()) {
            return Ok(());
        }
        Err(Failure::Failed(
            "nothing was explained in these records: there is no trace and no stack to write"
                .to_owned(),
        ))
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

fn pictures(
    folder: &Path,
    charts: &[Chart],
    ending: &str,
    draw: impl Fn(&Chart) -> Vec<u8>,
) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|e| failed(&folder.display().to_string(), e))?;
    for chart in charts {
        let path = folder.join(format!("{}.{ending}", chart.name));
        write(&path, &draw(chart))?;
    }
    Ok(())
}

/// The files that tables are written to.
const TABLES: [&str; 4] = ["series", "samples", "worst", "figures"];

/// Writes the tables, each with the records' plans, machines and warnings.
fn tables(folder: &Path, sources: &[Source]) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|e| failed(&folder.display().to_string(), e))?;
    let about = |source: &Source| {
        let record = &source.record;
        serde_json::json!({
            "record": source.name,
            "tool": record.tool,
            "plan": record.plan,
            "machine": record.machine,
            "work": record.work,
            "changes": record.changes,
            "warnings": record.warnings,
        })
    };
    let records = sources.iter().map(about).collect::<serde_json::Value>().to_string();
    let about = [("latlab.schema", SCHEMA.to_string()), ("latlab.records", records)];
    let file = |name: &str| folder.join(format!("{name}.parquet"));
    let tables = parquet::tables(sources);
    // One of other records is not to be taken for one of these.
    for name in TABLES.iter().filter(|name| tables.iter().all(|table| table.name != **name)) {
        let _ = std::fs::remove_file(file(name));
    }
    for table in tables {
        let path = file(table.name);
        let bytes = table.file(&about).map_err(|e| failed(&path.display().to_string(), e))?;
        write(&path, &bytes)?;
    }
    Ok(())
}

/// Writes a file and says so.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let name = path.display().to_string();
    write_atomically(path, bytes).map_err(|e| failed(&name, e))?;
    format::say(&format!("wrote {name}"));
    Ok(())
}
