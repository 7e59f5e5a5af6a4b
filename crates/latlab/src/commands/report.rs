//! `latlab report`: shows records as an HTML page and in other formats.

use super::LONGEST;
use latlab_check as check;
use latlab_format::html;
use latlab_format::output::Contents;
use latlab_format::outputs::Outputs;
use latlab_format::picture::{NamedRecord, charts};
use latlab_part::failure::{Context as _, Failure, Result, failed};
use latlab_sys::file::{read_at_most, write_atomically};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  latlab report idle.json                      write report.html
  latlab report before.json after.json -o both.html --svg charts/
  latlab report late.json --perfetto late.perfetto-trace
  latlab report cyclictest.hist --out kept.json   of another tool, kept as a record
  latlab report check.json -o check.html       from latlab check --json";

/// Show records as an HTML page with charts, or in other formats
///
/// The page works offline. For each series it shows the histogram, the share of samples above each
/// latency (CCDF) and the worst latency over time; for each scanned call, the latency over the
/// offset of the interrupt. Tables below the charts have the values, the machine and the plan.
/// Several records share the same charts.
///
/// Results of other tools are read too, wherever a record is: the histogram (-h), the text and the JSON of
/// cyclictest, the JSON of oslat and of jitterdebugger, and the histograms of rtla timerlat and osnoise. What the
/// file does not say is printed: docs/files.md.
///
/// The output of latlab check --json is shown as a page of its own: the verdict, the longest cycle
/// of each thread with its parts, the causes of overruns, and the breaches with their stacks.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Report {
    /// Records, as written by `latlab run --out`, or results of other tools. Repetitions of a run, given as a folder, a
    /// pattern in quotes ('a-*.json') or a list with commas, are merged; their seeds may differ
    #[arg(required = true, value_name = "RECORD")]
    records: Vec<PathBuf>,

    #[command(flatten)]
    outputs: Outputs,
}

impl Report {
    /// Reads all records before it writes anything.
    pub(crate) fn run(&self) -> Result<()> {
        let files = self.records.iter().map(|path| super::run_files(path));
        self.outputs.check_paths(&files.collect::<Result<Vec<_>>>()?.concat())?;
        if let Some(checks) = checks(&self.records)? {
            return self.write_checks(&checks);
        }
        let sources = sources(&self.records)?;
        self.outputs.check_explained(&sources)?;
        let charts = charts(&sources);
        self.outputs.write(&Contents { sources: &sources, charts: &charts })
    }

    fn write_checks(&self, checks: &[(String, check::Report)]) -> Result<()> {
        let path = self.outputs.page_only().ok_or_else(|| {
            Failure::failed("a check is shown as a page only: give -o and no other format")
        })?;
        let page = html::check::page(checks);
        write_atomically(path, page.as_bytes()).at(path)
    }
}

/// Reads the reports of checks; none if the first file is not one. A pipe is left to be read as a
/// record: it can be read only once.
fn checks(paths: &[PathBuf]) -> Result<Option<Vec<(String, check::Report)>>> {
    let read = |path: &PathBuf| -> Option<check::Report> {
        if !path.is_file() {
            return None;
        }
        serde_json::from_slice(&read_at_most(path, LONGEST).ok()?).ok()
    };
    if paths.first().and_then(read).is_none() {
        return Ok(None);
    }
    let report = |path: &PathBuf| {
        let place = path.display().to_string();
        let report = read(path).ok_or_else(|| {
            failed(&place, "this is no report of latlab check, as the first file is one")
        });
        Ok((name(path, paths), report?))
    };
    paths.iter().map(report).collect::<Result<_>>().map(Some)
}

/// Reads the records, which must all be of the same time domain.
fn sources(paths: &[PathBuf]) -> Result<Vec<NamedRecord>> {
    let mut sources: Vec<NamedRecord> = Vec::new();
    for path in paths {
        let place = path.display().to_string();
        let runs = super::runs(path)?;
        let record = super::merged(&runs).ok_or_else(|| failed(&place, "there is no record"))?;
        let measured = record.series.iter().any(|series| series.counts.recorded > 0)
            || record.scans.iter().any(|scan| !scan.points.is_empty())
            || !record.figures.is_empty()
            || record.explained.is_some();
        if !measured {
            let why =
                "it has no sample, no figure and no point of a scan: there is nothing to show";
            return Err(failed(&place, why));
        }
        if let Some(first) = sources.first() {
            first
                .record
                .same_time(&record)
                .context(&format!("{} and {place}", paths[0].display()))?;
        }
        let name = name(path, paths);
        let runs = if path.is_file() { Vec::new() } else { runs };
        sources.push(NamedRecord { name, record, runs });
    }
    Ok(sources)
}

/// The short name of an argument, or the argument itself where that name is not unique.
fn name(path: &Path, all: &[PathBuf]) -> String {
    let name = short_name(path);
    let is_unique = all.iter().filter(|other| short_name(other) == name).count() == 1;
    if is_unique { name } else { path.display().to_string() }
}

/// The name of a folder, of a file without folder and extension, or the whole list or pattern.
fn short_name(path: &Path) -> String {
    let name = match path {
        folder if folder.is_dir() => folder.file_name(),
        file if file.exists() => file.file_stem(),
        _ => None,
    };
    name.map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_folders_files_and_whole_lists() {
        let root = tempfile::tempdir().unwrap();
        let place = |name: &str| root.path().join(name);
        for folder in ["6.1", "6.6", "other", "other/6.1"] {
            std::fs::create_dir(place(folder)).unwrap();
        }
        for file in ["idle.json", "busy.1.json", "other/idle.json"] {
            write_atomically(&place(file), b"{}").unwrap();
        }
        let names = |all: &[&str]| -> Vec<String> {
            let all: Vec<PathBuf> = all.iter().map(|name| place(name)).collect();
            let root = format!("{}/", root.path().display());
            all.iter().map(|path| name(path, &all).replace(&root, "")).collect()
        };
        assert_eq!(names(&["6.1/", "6.6", "busy.1.json"]), ["6.1", "6.6", "busy.1"]);
        let same = ["6.1/", "other/6.1", "idle.json", "other/idle.json"];
        assert_eq!(names(&same), same);
        let several = ["idle.json,busy.1.json", "6.1/*.json"];
        assert_eq!(names(&several), several);
    }
}
