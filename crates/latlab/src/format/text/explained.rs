//! Explanations as text for a terminal: shares of the causes, and time lines of the worst wake-ups.

use super::plain_table;
use crate::format::explained::{culprit_and_function, lateness, share};
use crate::format::table::fitted;
use crate::format::width::Width;
use crate::format::{grouped, printable};
use latlab_core::record::explained::Explained;
use latlab_core::record::{Charge, Record, Sample};
use latlab_core::time::Nanos;
use std::fmt::Write as _;

/// Most shares shown; the record has more.
const SHOWN: usize = 20;

/// Longest time line, in characters.
const LENGTH: usize = 40;

/// Characters beside a time line, with a short culprit.
const OTHERS: usize = 60;

/// Returns the explanation of a record; nothing if it has none.
pub(super) fn summary(record: &Record, width: Width) -> String {
    let Some(explained) = &record.explained else { return String::new() };
    let mut text = format!("\n{}\n", lateness(explained, |time| time.to_string()));
    if explained.late > 0 {
        text += &causes(explained, width);
    }
    for sample in record.worst.iter().filter(|sample| sample.unexplained.is_some()) {
        text += &time_line(sample, width);
    }
    text + &overhead(explained)
}

/// Table of the causes with their culprits, in descending order of their shares.
fn causes(explained: &Explained, width: Width) -> String {
    let header = ["cause", "late", "total", "share", "worst", "culprit"];
    let mut table = plain_table(&header);
    if let Some(culprit) = table.column_mut(header.len() - 1) {
        culprit.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    for cause in explained.causes.iter().take(SHOWN) {
        table.add_row([
            printable(&cause.cause),
            grouped(cause.count),
            cause.total.to_string(),
            share(cause.total, explained.total),
            cause.worst.to_string(),
            culprit_and_function(&cause.culprit, cause.function.as_deref()),
        ]);
    }
    let rest = explained.causes.iter().skip(SHOWN);
    let rest = rest.fold(Nanos(0), |sum, cause| sum + cause.total);
    for (name, total) in [("other causes", rest), ("unexplained", explained.unexplained)] {
        if total > Nanos(0) || name == "unexplained" {
            let [total, share] = [total.to_string(), share(total, explained.total)];
            let empty = String::new;
            table.add_row([name.to_owned(), empty(), total, share, empty(), empty()]);
        }
    }
    // A narrow terminal does not show the worst, then the number of late wake-ups.
    format!("{}\n", fitted(table, width, &[4, 1]).text)
}

/// Time line of a wake-up from the time it was due to the time it ran, with a line for each charge.
fn time_line(sample: &Sample, width: Width) -> String {
    let length = width.at_most(OTHERS + LENGTH).saturating_sub(OTHERS).max(8);
    let mut text = format!(
        "\n{} on CPU {}, {} after the start: {} late\n",
        printable(&sample.probe),
        sample.cpu,
        sample.at,
        sample.latency,
    );
    for charge in &sample.causes {
        let culprit = culprit_and_function(
            &charge.culprit,
            latlab_core::explain::names::culprit(&charge.stack),
        );
        let line = format!(
            "{:>9}{:>11}  |{}| {:<17} {culprit}",
            charge.from.to_string(),
            charge.ns.to_string(),
            bar(charge, sample.latency, length),
            printable(&charge.cause),
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if let Some(rest) = sample.unexplained.filter(|rest| *rest > Nanos(0)) {
        let _ = writeln!(text, "{:>20}  |{}| unexplained", rest.to_string(), " ".repeat(length));
    }
    text
}

/// Draws a charge on the time line, at least one character long.
fn bar(charge: &Charge, latency: Nanos, length: usize) -> String {
    let place = |Nanos(time)| {
        let place = u128::from(time) * length as u128 / u128::from(latency.0.max(1));
        usize::try_from(place).unwrap_or(length).min(length)
    };
    let begin = place(charge.from).min(place(Nanos(u64::MAX)) - 1);
    let end = place(charge.from + charge.ns).max(begin + 1);
    let rest = place(Nanos(u64::MAX)) - end;
    format!("{}{}{}", " ".repeat(begin), "#".repeat(end - begin), " ".repeat(rest))
}

/// Overhead of tracing, lost events and limitations.
fn overhead(explained: &Explained) -> String {
    let mut text = String::new();
    if !explained.cost.is_empty() {
        let runs = explained.cost.iter().fold(0u64, |sum, cost| sum.saturating_add(cost.runs));
        let ns = explained.cost.iter().fold(Nanos(0), |sum, cost| sum + cost.ns);
        let (runs, counted) = (grouped(runs), explained.counted);
        let _ = writeln!(text, "\ntracing overhead: {ns} in {runs} runs within {counted}:");
        let mut table = plain_table(&["program", "runs", "total", "each"]);
        for cost in &explained.cost {
            let each = Nanos(cost.ns.0 / cost.runs.max(1));
            let times = [cost.ns, each].map(|time| time.to_string());
            let [total, each] = times;
            table.add_row([printable(&cost.program), grouped(cost.runs), total, each]);
        }
        let _ = writeln!(text, "{}", table.trim_fmt());
    }
    if explained.lost > 0 {
        let lost = grouped(explained.lost);
        let _ = writeln!(text, "lost: {lost} late wake-ups, samples or events");
    }
    for sentence in &explained.missing {
        let _ = writeln!(text, "missing: {}", printable(sentence));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::picture::tests::sample_explained;

    #[test]
    fn summary_has_shares_time_lines_overhead_and_losses() {
        let text = summary(&sample_explained::record(), Width::UNLIMITED);
        for part in [
            "40 of 10\u{202f}000 wake-ups were later than 50 us, 10 ms in all",
            "interrupts-off     30   6 ms   60.0 %   400 us  stress-ng-vm in copy_page_range",
            "unexplained             500 us    5.0 %",
            "cyclic on CPU 1, 2 s after the start: 500 us late",
            "tracing overhead: 3 ms in 30\u{202f}000 runs within 1 s:",
            "lost: 7 late wake-ups, samples or events",
            "missing: page faults: this kernel has no event for them",
        ] {
            let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(squeezed(&text).contains(&squeezed(part)), "{part}\n{text}");
        }
    }

    #[test]
    fn bars_match_time_of_charges() {
        let charge = |from, ns| Charge {
            cause: String::new(),
            from: Nanos(from),
            ns: Nanos(ns),
            culprit: String::new(),
            stack: vec![],
        };
        let bar = |from, ns| bar(&charge(from, ns), Nanos(400), LENGTH);
        assert_eq!(bar(0, 400), "#".repeat(40));
        assert_eq!(
            bar(100, 200),
            format!("{}{}{}", " ".repeat(10), "#".repeat(20), " ".repeat(10))
        );
        assert_eq!(bar(399, 1), format!("{}#", " ".repeat(39)));
        assert_eq!(bar(400, 0), format!("{}#", " ".repeat(39)));
        assert_eq!(bar(u64::MAX, u64::MAX), format!("{}#", " ".repeat(39)));
    }

    #[test]
    fn record_without_explanations_has_no_summary_of_them() {
        let mut record = sample_explained::record();
        record.explained = None;
        assert_eq!(summary(&record, Width::UNLIMITED), "");
    }
}
