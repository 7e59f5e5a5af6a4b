//! `latlab compare`: two records side by side.

use crate::failure::{Result, failed};
use crate::format::text::plain_table;
use crate::format::{self, grouped, scan};
use latlab_core::compare::{self, Comparison, Difference, Latency, Row};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Lay two records side by side: quantiles with their ratio, and what differs between the machines
///
/// Each side is a record, or a folder of records that repeat one plan, which are merged. All CPUs
/// of a probe are taken together. A ratio of one run to one other says nothing about
/// chance: repeat both, in turns, before you believe a small one.
#[derive(Debug, clap::Args)]
pub(super) struct Compare {
    /// The first record or folder of records
    a: PathBuf,
    /// The second record or folder of records
    b: PathBuf,
    /// Print the comparison as JSON
    #[arg(long)]
    json: bool,
}

impl Compare {
    pub(super) fn run(&self) -> Result<()> {
        let (a, b) = (super::record(&self.a)?, super::record(&self.b)?);
        let both = format!("{} and {}", self.a.display(), self.b.display());
        let comparison = compare::compare(&a, &b).map_err(|e| failed(&both, e))?;
        if self.json {
            let text = serde_json::to_string_pretty(&comparison).expect("it is plain data");
            return format::put(&(text + "\n"));
        }
        format::put(&self.text(&comparison))
    }

    fn text(&self, comparison: &Comparison) -> String {
        let mut text = format!("A  {}\nB  {}\n", self.a.display(), self.b.display());
        for latency in &comparison.latencies {
            let _ = write!(text, "\n{}", of_latency(latency));
        }
        for pair in &comparison.scans {
            let call = scan::call(&pair.call);
            let _ = writeln!(text, "\nscan of {call}\n{}", table(&pair.rows));
        }
        for unmatched in &comparison.unmatched {
            let _ = writeln!(text, "\n{unmatched}");
        }
        text.push_str(&of_differences("machines", &comparison.machine));
        text.push_str(&of_differences("plans", &comparison.plan));
        text
    }
}

fn of_latency(latency: &Latency) -> String {
    let load = |load: &[String]| {
        if load.is_empty() { "no load".to_owned() } else { load.join(", ") }
    };
    let mut text = format!(
        "{}: {} → {}\n  A {} samples, {} missed, {}\n  B {} samples, {} missed, {}\n",
        latency.probe,
        latency.span.0,
        latency.span.1,
        grouped(latency.recorded.0),
        grouped(latency.missed.0),
        load(&latency.load.0),
        grouped(latency.recorded.1),
        grouped(latency.missed.1),
        load(&latency.load.1),
    );
    let _ = writeln!(text, "{}", table(&latency.rows));
    if latency.recorded.0 != latency.recorded.1 {
        text.push_str("maxima of unequal numbers of samples are not compared\n");
    }
    text
}

fn table(rows: &[Row]) -> String {
    let mut table = plain_table(&["", "A", "B", "B/A"]);
    for row in rows {
        let ratio = row.ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.3}"));
        table.add_row([row.name.clone(), row.a.to_string(), row.b.to_string(), ratio]);
    }
    table.trim_fmt()
}

fn of_differences(what: &str, differences: &[Difference]) -> String {
    if differences.is_empty() {
        return format!("\nthe {what} do not differ\n");
    }
    let mut text = format!("\nthe {what} differ in\n");
    for difference in differences {
        let _ = writeln!(
            text,
            "  {}\n    A {}\n    B {}",
            difference.field, difference.a, difference.b
        );
    }
    text
}
