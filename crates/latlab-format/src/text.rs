//! Results as text for a terminal: tables and a small histogram.

mod explained;
mod paths;
mod running;
mod scans;

use super::table::fitted;
use super::width::Width;
use super::{
    at_least, command, configuration, decimal, grouped, lower_bound, printable, series_name,
};
use comfy_table::{CellAlignment, Table};
use latlab_core::histogram::{Histogram, Quantiles};
use latlab_core::record::{Change, Record, Series};
use latlab_core::time::Nanos;
use latlab_core::verdict::{self, Next};
use std::fmt::Write as _;

/// Returns the line above the summary of one of several targets: `lab:rt (Linux 6.12.117-rt)`.
pub fn heading(record: &Record) -> String {
    format!("{} (Linux {})\n", record.plan.target, record.machine.kernel)
}

/// Returns the summary that is shown after a run: the answer first, then the evidence. Of an
/// explained record it has the causes; the distributions and the work of the loads only if it is
/// `verbose`.
pub fn summary(record: &Record, verbose: bool, width: Width) -> String {
    let is_explained = record.explained.is_some();
    let mut text = answer(record);
    text += &explained::summary(record, verbose, width);
    if !is_explained || verbose {
        text += &measured(record, verbose, width);
    }
    if verbose {
        text += &explained::overhead(record, width);
    }
    text += &explained::limitations(record);
    text += &proofs(record);
    for change in record.changes.iter().filter(|change| !change.restored) {
        text += &unrestored(change);
        text.push('\n');
    }
    text
}

/// Returns a line on a change that was not restored.
pub fn unrestored(change: &Change) -> String {
    let Change { knob, old, unrestored, .. } = change;
    let why = unrestored.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    printable(&format!("not restored: {knob}, which was {old}{why}"))
}

/// The verdict on the record, and what to do next.
fn answer(record: &Record) -> String {
    if record.explained.is_some() {
        let running = verdict::running(record);
        let of_gaps = record.explained.as_ref().is_some_and(verdict::is_of_gaps);
        let subject = if running.is_empty() || of_gaps { "" } else { "late wake-ups: " };
        let causes = verdict::leading_causes(record).into_iter();
        let causes = causes.map(|line| format!("{subject}{line}"));
        return running.into_iter().chain(causes).map(|line| printable(&line) + "\n").collect();
    }
    let Some(worst) = verdict::worst(record) else { return String::new() };
    let next = match verdict::next(record) {
        Next::Explain => format!("To explain it: {}\n", command::explain(record)),
        Next::Doctor => "To find settings that increase latency: latlab doctor\n".to_owned(),
        Next::Compare => {
            "To see what changes it: measure it under another load or on another kernel, then \
             latlab compare\n"
                .to_owned()
        }
        Next::Nothing => String::new(),
    };
    printable(&worst) + "\n" + &next + "\n"
}

/// The effects of tried remedies, and how to keep the helpful ones.
fn proofs(record: &Record) -> String {
    let Some(proofs) = &record.proofs else { return String::new() };
    let lines = proofs.sentences(|time| time.to_string()).into_iter();
    let lines: String = lines.map(|line| printable(&line) + "\n").collect();
    if lines.is_empty() {
        lines
    } else {
        format!("\nremedies, measured with and without:\n{lines}")
    }
}

/// Distributions, figures, paths, and the work of the loads.
fn measured(record: &Record, verbose: bool, width: Width) -> String {
    let mut text = series(record, width);
    for (title, histogram) in merged(record) {
        let _ = write!(text, "\n{title} (length of bars: logarithmic)\n");
        text += &bars(&histogram, width);
    }
    text += &scans::summary(record, width);
    text += &figures(record, width);
    text += &paths::summary(record, verbose);
    for work in &record.work {
        let Nanos(cpu) = work.cpu_ns;
        let _ = writeln!(
            text,
            "load {}: {} {} in {} of CPU time",
            work.load,
            grouped(work.done),
            work.unit,
            Nanos(cpu)
        );
    }
    text
}

/// Values that are not distributions, a line each.
fn figures(record: &Record, width: Width) -> String {
    if record.figures.is_empty() {
        return String::new();
    }
    let mut table = plain_table(&["figure", "value", "unit"]);
    for figure in &record.figures {
        let name = format!("{}: {}", figure.probe, figure.name);
        table.add_row([name, decimal(figure.value), figure.unit.clone()]);
    }
    format!("\n{}\n", fitted(table, width, &[]).text)
}

/// Columns of the table of series.
const SERIES: [&str; 11] =
    ["probe", "CPU", "recorded", "missed", "min", "mean", "p50", "p99", "p99.9", "p99.99", "max"];

/// Columns that a narrow terminal does not show, the least important first: p99.99, mean, min,
/// p99.9, recorded, p50.
const OPTIONAL: [usize; 6] = [9, 5, 4, 8, 2, 6];

/// The table of series, and the names of the columns that it lacks.
fn series(record: &Record, width: Width) -> String {
    let table = fitted(series_table(record), width, &OPTIONAL);
    let left_out: Vec<&str> = table.left_out.iter().map(|index| SERIES[*index]).collect();
    if left_out.is_empty() {
        return table.text + "\n";
    }
    format!("{}\n(left out at this width: {})\n", table.text, left_out.join(", "))
}

fn series_table(record: &Record) -> Table {
    let mut table = plain_table(&SERIES);
    for series in &record.series {
        let name = series_name(record, series);
        let shown = |time: Nanos| time.to_string();
        let tail = |of: Quantiles| [of.p50, of.p99, of.p99_9, of.p99_99];
        let mut cells = vec![name, series.cpus().to_string()];
        cells.extend([grouped(series.counts.recorded), grouped(series.counts.missed)]);
        cells.extend([shown(series.min), lower_bound(series, series.mean, shown)]);
        cells.extend(tail(series.quantiles).map(|time| at_least(series, time, shown)));
        cells.push(shown(series.max));
        table.add_row(cells);
        if series.counts.missed > 0 {
            let mut cells = vec!["  corrected".to_owned()];
            cells.resize(6, String::new());
            cells.extend(tail(series.corrected).map(|time| lower_bound(series, time, shown)));
            table.add_row(cells);
        }
    }
    table
}

/// Returns a table without borders, which programs can parse. The first column is left-aligned.
pub fn plain_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(header);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
        if column.index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Returns the distributions over all CPUs, one for each latency and its conditions, without those of
/// scans.
fn merged(record: &Record) -> Vec<(String, Histogram)> {
    let mut all: Vec<(&Series, Histogram)> = Vec::new();
    for series in record.series.iter().filter(|series| !series.is_of_scan()) {
        let Ok(histogram) = series.histogram() else {
            continue;
        };
        match all.iter_mut().find(|(first, _)| first.same_conditions(series)) {
            Some((_, sum)) => sum.add(&histogram),
            None => all.push((series, histogram)),
        }
    }
    all.retain(|(_, histogram)| histogram.count() > 0);
    let title = |series: &Series| {
        let (from, to) = &series.span;
        format!("{}{}: {from} → {to}", series.probe, configuration(record, series))
    };
    all.into_iter().map(|(series, histogram)| (title(series), histogram)).collect()
}

/// Draws bars over a logarithmic axis, with logarithmic lengths so that one late wake-up in a
/// million is visible.
fn bars(histogram: &Histogram, width: Width) -> String {
    /// Columns before a bar.
    const BEFORE: usize = 36;
    let longest = width.at_most(BEFORE + 40).saturating_sub(BEFORE).max(1);
    let steps = steps(histogram);
    let highest = steps.iter().map(|(_, _, count)| *count).max().unwrap_or(1);
    let mut text = String::new();
    for (from, to, count) in steps {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a bar has at most 40 characters"
        )]
        let length = if count == 0 {
            0
        } else {
            let share = (count as f64).ln() / (highest.max(2) as f64).ln();
            1 + ((longest - 1) as f64 * share) as usize
        };
        let _ = writeln!(text, "{from:>9} – {to:<9}{:>14} {}", grouped(count), "#".repeat(length));
    }
    text
}

/// Counts samples between 1, 2, 5, 10, … ns, without empty ends.
fn steps(histogram: &Histogram) -> Vec<(Nanos, Nanos, u64)> {
    let edges: Vec<u64> =
        (0..14).flat_map(|power| [1, 2, 5].map(|n| n * 10u64.pow(power))).collect();
    let mut counts = vec![0; edges.len()];
    for bucket in histogram.buckets() {
        let index = edges.partition_point(|edge| *edge <= bucket.from.0).saturating_sub(1);
        counts[index] += bucket.count;
    }
    let first = counts.iter().position(|count| *count > 0).unwrap_or(0);
    let last = counts.iter().rposition(|count| *count > 0).unwrap_or(0);
    (first..=last).map(|n| (Nanos(edges[n]), Nanos(edges[n + 1]), counts[n])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::tests::source;

    #[test]
    fn change_that_was_not_restored_is_not_said_to_be_in_force() {
        let [knob, old, new] = ["governor", "ondemand", "performance"].map(str::to_owned);
        let unrestored = Some("another program has changed /sys/x".to_owned());
        let change = Change { knob, old, new, reason: String::new(), restored: false, unrestored };
        assert_eq!(
            super::unrestored(&change),
            "not restored: governor, which was ondemand: another program has changed /sys/x"
        );
    }

    #[test]
    fn histograms_of_different_configurations_are_not_pooled() {
        let mut record = source("run", 1).record;
        let counts = |record: &Record| -> Vec<(String, u64)> {
            merged(record).into_iter().map(|(title, all)| (title, all.count())).collect()
        };
        let recorded: Vec<u64> = record.series.iter().map(|one| one.counts.recorded).collect();
        let title = |what: &str| format!("cyclic{what}: timer expiry → thread running");
        assert_eq!(counts(&record), [(title(""), recorded.iter().sum())]);
        record.series[2].interval = Some(Nanos::from_micros(200));
        let pooled = (title(", every 1 ms"), recorded[0] + recorded[1]);
        assert_eq!(counts(&record), [pooled, (title(", every 200 us"), recorded[2])]);
    }

    #[test]
    fn bars_show_one_late_sample_in_many() {
        let mut histogram = Histogram::new();
        for _ in 0..100_000 {
            histogram.record(Nanos(7_000));
        }
        histogram.record(Nanos(3_000_000));
        let text = bars(&histogram, Width::UNLIMITED);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 9, "{text}");
        assert!(lines[0].contains("5 us – 10 us") && lines[0].contains("100\u{202f}000"), "{text}");
        assert!(lines[8].ends_with("1 #"), "{text}");
        let narrow = bars(&histogram, Width::columns(60));
        assert_eq!(narrow.lines().map(|line| line.chars().count()).max(), Some(60), "{narrow}");
    }
}
