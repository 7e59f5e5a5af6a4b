//! `latlab compare`: two sets of runs side by side, and what can be said of their difference.

use crate::failure::{Failure, Result, failed};
use crate::format::{self, comparison, junit, ktap, testcase};
use latlab_core::compare::limit::{Held, Limit, Outcome};
use latlab_core::compare::{self, Comparison};
use latlab_core::study::claim::Fault;
use latlab_core::study::place;
use latlab_sys::file::write_atomically;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  latlab compare before.json after.json        one run each: figures side by side
  latlab compare before/ after/                folders of runs, taken in turns: what differs
  latlab compare 'a-*.json' 'b-*.json' --fail-if 'cyclic.p99 > baseline * 1.1'
  latlab compare before/ after/ --fail-if 'cyclic.corrected.p99.ratio.low > 1.1' --junit out.xml

Names: PROBE.FIGURE, as cyclic.p99.9, with min, mean, p50, p90, p99, p99.9, p99.99, max, recorded,
missed; cyclic.corrected.p99, corrected for missed periods; of these two, where they were judged,
.ratio, .ratio.low and .ratio.high. A probe with several latencies: timer.thread-running.p99.";

/// Say whether B is later than A: quantiles with intervals, verdicts, and what differs besides
///
/// Each side is a record, a folder of records, a pattern in quotes ('a-*.json'), or several of these
/// with commas between: runs of one plan, whose seeds may differ. With six runs of each or more,
/// taken in turns, quantiles are judged: no difference, faster or slower, with intervals from
/// resampling the runs. One run each says nothing about chance; in the laboratory it is compared
/// exactly, and other seeds are other runs. docs/compare.md says how it is done and what it can't
/// tell.
///
/// Exit: 0; 1 where a --fail-if holds; 2 where one could not be told.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Compare {
    /// The runs to compare with: a record, a folder, a pattern or a list
    a: PathBuf,
    /// The runs that are compared
    b: PathBuf,
    /// Fail where this holds of B; `baseline` is the same figure of A; may be given several times
    #[arg(long, value_name = "CLAIM")]
    fail_if: Vec<String>,
    /// Also write each --fail-if or, without any, each verdict as a test case (`JUnit` XML)
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print the same test cases as KTAP, and nothing else, on stdout
    #[arg(long, conflicts_with = "json")]
    ktap: bool,
    /// Print the comparison as JSON
    #[arg(long)]
    json: bool,
}

impl Compare {
    pub(super) fn run(&self) -> Result<()> {
        self.junit.as_deref().map_or(Ok(()), forget)?;
        let limits = self.fail_if.iter().map(|text| Limit::read(text).map_err(|e| wrong(text, &e)));
        let limits: Vec<Limit> = limits.collect::<Result<_>>()?;
        let (a, b) = (super::runs(&self.a)?, super::runs(&self.b)?);
        let both = format!("{} and {}", self.a.display(), self.b.display());
        let comparison = compare::compare(&a, &b).map_err(|e| failed(&both, e))?;
        let held = comparison.hold(&limits);
        let held = held.map_err(|(nth, fault)| wrong(&self.fail_if[nth], &fault))?;
        let cases = testcase::of(&comparison, &held);
        if let Some(path) = &self.junit {
            let xml = junit::xml(&cases);
            write_atomically(path, xml.as_bytes())
                .map_err(|e| failed(&path.display().to_string(), e))?;
        }
        let shown = if self.json {
            json(&comparison, &held)
        } else if self.ktap {
            ktap::lines(&cases)
        } else {
            let (a, b) = (self.a.display().to_string(), self.b.display().to_string());
            comparison::text(&a, &b, &comparison, &held)
        };
        format::put(&shown)?;
        verdict(&held)
    }
}

/// Removes the test cases of a comparison before, which would be read as those of one that fails.
fn forget(path: &Path) -> Result<()> {
    // What is no file, as /dev/stdout, has none.
    match path.symlink_metadata() {
        Ok(there) if there.is_file() => {
            std::fs::remove_file(path).map_err(|e| failed(&path.display().to_string(), e))
        }
        _ => Ok(()),
    }
}

/// The comparison with, for each latency, what its verdict is.
fn json(comparison: &Comparison, held: &[Held]) -> String {
    let mut value = serde_json::to_value(comparison).expect("it is plain data");
    let names = comparison.latency_names();
    if let Some(Value::Array(latencies)) = value.get_mut("latencies") {
        for ((value, latency), name) in latencies.iter_mut().zip(&comparison.latencies).zip(names) {
            value["name"] = json!(name);
            value["verdict"] = json!(latency.verdict());
            value["says"] = json!(latency.sentence());
        }
    }
    value["limits"] = json!(held);
    serde_json::to_string_pretty(&value).expect("it is plain data") + "\n"
}

/// What is over its limit decides, and then what could not be told.
fn verdict(held: &[Held]) -> Result<()> {
    let all = |outcome| {
        let some = held.iter().filter(move |one| one.outcome == outcome);
        some.map(|one| format!("{} ({})", one.limit, one.ground)).collect::<Vec<_>>()
    };
    let (over, unknown) = (all(Outcome::Over), all(Outcome::NotMeasured));
    if !over.is_empty() {
        return Err(Failure::Worse(format!("over the limit: {}", over.join("; "))));
    }
    if !unknown.is_empty() {
        return Err(Failure::Failed(format!("it can't be told: {}", unknown.join("; "))));
    }
    Ok(())
}

fn wrong(text: &str, fault: &Fault) -> Failure {
    let (_, column) = place(text, fault.at);
    Failure::Failed(format!("--fail-if '{text}', column {column}: {fault}"))
}
