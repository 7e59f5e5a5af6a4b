//! `latlab compare`: compares two sets of runs.

use super::reserved::Reserved;
use super::worse;
use latlab_core::compare::limit::{CheckedLimit, Limit, Outcome};
use latlab_core::compare::{self, Comparison};
use latlab_core::study::claim::Fault;
use latlab_core::study::place;
use latlab_format::testcase::{self, TestCase};
use latlab_format::width::Width;
use latlab_format::{self as format, comparison, junit, ktap};
use latlab_part::failure::{Context as _, Failure, Result};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  latlab compare before.json after.json        one run each: values side by side, no verdict
  latlab compare before/ after/                folders of runs that were measured alternately
  latlab compare 'a-*.json' 'b-*.json' --fail-if 'cyclic.p99 > baseline * 1.1'
  latlab compare before/ after/ --fail-if 'cyclic.corrected.p99.ratio.low > 1.1' --junit out.xml

Names in limits: PROBE.METRIC, as cyclic.p99.9. Metrics: min, mean, p50, p90, p99, p99.9, p99.99,
max, recorded, missed. cyclic.corrected.p99 is corrected for missed periods. Where quantiles are
tested, .ratio, .ratio.low and .ratio.high are their ratio to A and its confidence interval. A probe
with several latencies has their names: timer.thread-running.p99.";

/// Compare two sets of runs, A and B: quantiles with confidence intervals, and a verdict
///
/// A and B are each a record, a folder of records, a pattern in quotes ('a-*.json'), or several of
/// these separated by commas. All runs of a side have the same plan; seeds may differ. With at
/// least six interleaved runs per side (ABBA), or four of each with different seeds or one after the
/// other, each quantile gets a verdict (faster, slower, no difference) with bootstrap confidence
/// intervals. Single runs are inconclusive, except in the laboratory, where a run repeats exactly.
/// docs/compare.md describes the method and its limits.
///
/// Exit codes: 0 success; 1 a --fail-if holds; 2 failure, or a --fail-if can't be evaluated.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Compare {
    /// The runs of A, the baseline: a record, a folder, a pattern or a list
    a: PathBuf,
    /// The runs of B, which are compared with the baseline
    b: PathBuf,
    /// Exit with 1 if this holds for B; `baseline` is the same metric of A; may be given several
    /// times
    #[arg(long, value_name = "LIMIT")]
    fail_if: Vec<String>,
    /// Also write a JUnit XML file with a test case for each --fail-if or, without one, each
    /// verdict
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print only these test cases, as KTAP, on stdout
    #[arg(long, conflicts_with = "json")]
    ktap: bool,
    /// Print the comparison as JSON
    #[arg(long)]
    json: bool,
}

impl Compare {
    pub(super) fn run(&self) -> Result<()> {
        let junit = self.junit.as_deref().map(Reserved::begin_test_cases).transpose()?;
        let limits =
            self.fail_if.iter().map(|text| Limit::read(text).map_err(|e| invalid_claim(text, &e)));
        let limits: Vec<Limit> = limits.collect::<Result<_>>()?;
        let (a, b) = (super::runs(&self.a)?, super::runs(&self.b)?);
        let both = format!("{} and {}", self.a.display(), self.b.display());
        let comparison = compare::compare(&a, &b).context(&both)?;
        let held = comparison.check_limits(&limits);
        let held = held.map_err(|(nth, fault)| invalid_claim(&self.fail_if[nth], &fault))?;
        let cases = testcase::cases(&comparison, &held);
        let write = |file: Reserved| file.write(&junit::xml("compare", &cases));
        let written = junit.map_or(Ok(()), write);
        let shown = self.show(&comparison, &held, &cases);
        worse(check_limits(&held), worse(written, shown))
    }

    fn show(
        &self,
        comparison: &Comparison,
        held: &[CheckedLimit],
        cases: &[TestCase],
    ) -> Result<()> {
        if self.json {
            return format::put(&comparison::json(comparison, held));
        }
        if self.ktap {
            return format::put(&ktap::lines(cases));
        }
        let (a, b) = (self.a.display().to_string(), self.b.display().to_string());
        format::show(&comparison::text(&a, &b, comparison, held, Width::of_stdout()))
    }
}

/// Fails where a limit is exceeded or, failing that, where one could not be evaluated.
fn check_limits(held: &[CheckedLimit]) -> Result<()> {
    let limits = |outcome| {
        let limits = held.iter().filter(move |one| one.outcome == outcome);
        limits.map(|one| format!("{} ({})", one.limit, one.ground)).collect::<Vec<_>>()
    };
    let (over, unknown) = (limits(Outcome::Over), limits(Outcome::NotMeasured));
    if !over.is_empty() {
        return Err(Failure::worse(format!("over the limit: {}", over.join("; "))));
    }
    if !unknown.is_empty() {
        return Err(Failure::failed(format!("cannot evaluate {}", unknown.join("; "))));
    }
    Ok(())
}

fn invalid_claim(text: &str, fault: &Fault) -> Failure {
    let (_, column) = place(text, fault.at);
    Failure::failed(format!("--fail-if '{text}', column {column}: {fault}"))
}
