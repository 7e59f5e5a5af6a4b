//! `latlab report`: shows records as an HTML page and in other formats.

use crate::failure::{Failure, Result, failed};
use crate::format;
use crate::format::picture::{Chart, Source, charts};
use crate::format::{folded, html, parquet, perfetto, png, svg};
use latlab_core::record::SCHEMA;
use latlab_sys::file::write_atomically;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  latlab report idle.json                      write report.html
  latlab report before.json after.json -o both.html --svg charts/
  latlab report late.json --perfetto late.perfetto-trace";

/// Show records as an HTML page with charts, and in other formats
///
/// The page works offline. It shows the histogram of each series, the share of samples above each
/// latency (CCDF) and the worst latency over time; for each scanned call, the latency over the
/// offset of the interrupt; below them the values, the machine and the plan. Several records are
/// drawn into the same charts.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Report {
    /// Records, as written by `latlab run --out`. Repetitions of a run, given as a folder, a
    /// pattern in quotes ('a-*.json') or a list with commas, are merged; their seeds may differ
    #[arg(required = true, value_name = "RECORD")]
    records: Vec<PathBuf>,

    /// Write the page to this file
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,

    /// Also write the charts to this folder, as histogram.svg, ccdf.svg, timeline.svg and
    /// scan-CALL.svg
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,

    /// Also write the charts to this folder, as histogram.png, ccdf.png, timeline.png and
    /// scan-CALL.png
    #[arg(long, value_name = "DIR")]
    png: Option<PathBuf>,

    /// Also write a trace of the worst wake-ups and their causes for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,

    /// Also write the causes of late wake-ups as folded stacks, for flame graphs
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,

    /// Also write series.parquet, samples.parquet, worst.parquet and figures.parquet to this
    /// folder, for DuckDB, pandas and others (docs/record.md)
    #[arg(long, value_name = "DIR")]
    parquet: Option<PathBuf>,
}

impl Report {
    /// Reads all records before it writes anything.
    pub(crate) fn run(&self) -> Result<()> {
        let outputs = [Some(&self.output), self.perfetto.as_ref(), self.folded.as_ref()];
        for output in outputs.into_iter().flatten() {
            let real = output.canonicalize().ok();
            if real.is_some() && self.records.iter().any(|r| r.canonicalize().ok() == real) {
                let place = output.display().to_string();
                return Err(failed(&place, "this is a record of the input: write to another file"));
            }
        }
        let sources = sources(&self.records)?;
        self.check_explained(&sources)?;
        let charts = charts(&sources);
        write(&self.output, html::page(&sources, &charts).as_bytes())?;
        if let Some(folder) = &self.svg {
            write_charts(folder, &charts, "svg", |chart| svg::draw(chart).into_bytes())?;
        }
        if let Some(folder) = &self.png {
            write_charts(folder, &charts, "png", |chart| png::draw(&svg::draw(chart)))?;
        }
        if let Some(folder) = &self.parquet {
            write_tables(folder, &sources)?;
        }
        if let Some(path) = &self.perfetto {
            write(path, perfetto::trace(&sources).as_bytes())?;
        }
        if let Some(path) = &self.folded {
            write(path, folded::stacks(&sources).as_bytes())?;
        }
        Ok(())
    }

    /// Refuses to write an empty trace.
    fn check_explained(&self, sources: &[Source]) -> Result<()> {
        let required = self.perfetto.is_some() || self.folded.is_some();
        if !required || sources.iter().any(|source| source.record.explained.is_some()) {
            return Ok(());
        }
        Err(Failure::Failed(
            "these records explain no wake-ups, so that there is no trace to write: measure with \
             latlab explain"
                .to_owned(),
        ))
    }
}

/// Reads the records, which must all be of the same time domain.
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
            let why = "no series has a sample and no scan has a point: there is nothing to draw";
            return Err(failed(&place, why));
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

/// The name of a file without folder and extension, or its path where that name is not unique.
fn name(path: &Path, all: &[PathBuf]) -> String {
    let same_stem = all.iter().filter(|p| p.file_stem() == path.file_stem());
    match path.file_stem() {
        Some(stem) if same_stem.count() == 1 => stem.to_string_lossy().into_owned(),
        _ => path.display().to_string(),
    }
}

/// Writes each chart to a file of its name.
fn write_charts(
    folder: &Path,
    charts: &[Chart],
    extension: &str,
    draw: impl Fn(&Chart) -> Vec<u8>,
) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|e| failed(&folder.display().to_string(), e))?;
    for chart in charts {
        let path = folder.join(format!("{}.{extension}", chart.name));
        write(&path, &draw(chart))?;
    }
    Ok(())
}

/// The names of all tables that can be written.
const TABLES: [&str; 4] = ["series", "samples", "worst", "figures"];

/// Writes the tables, each with the records' plans, machines and warnings.
fn write_tables(folder: &Path, sources: &[Source]) -> Result<()> {
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
    // A table of other records must not be taken for one of these.
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
