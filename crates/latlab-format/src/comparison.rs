//! Comparisons as text: verdicts first, then the figures with their confidence intervals.

use super::table::fitted;
use super::text::plain_table;
use super::width::Width;
use super::{grouped, part, scan};
use latlab_core::compare::limit::{CheckedLimit, Outcome};
use latlab_core::compare::{
    Bound, Change, Comparison, Difference, Extreme, Interval, Judged, Latency, Row, ScanPair,
    Verdict,
};
use latlab_core::time::Nanos;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Returns the whole comparison. `a` and `b` are the names of the sides.
pub fn text(
    a: &str,
    b: &str,
    comparison: &Comparison,
    held: &[CheckedLimit],
    width: Width,
) -> String {
    let mut text = side("A", a, comparison, |sides| sides.0);
    text += &side("B", b, comparison, |sides| sides.1);
    text += &limits(held);
    for (latency, name) in comparison.latencies.iter().zip(comparison.latency_names()) {
        text += &latency_text(latency, &name, width);
    }
    for pair in &comparison.scans {
        text += &scan_text(pair, width);
    }
    if !comparison.latencies.is_empty() {
        let _ = writeln!(text, "\n{}", comparison.design.words());
    }
    for unmatched in &comparison.unmatched {
        let _ = writeln!(text, "\n{unmatched}");
    }
    text + &machines_text(comparison) + &differences_text("plans", &comparison.plan)
}

/// A side with the number of its runs, and the number of runs that were not as planned.
fn side(
    letter: &str,
    name: &str,
    comparison: &Comparison,
    of: fn((usize, usize)) -> usize,
) -> String {
    let runs = of(comparison.design.runs);
    let mut text = format!("{letter}  {name} ({runs} {}", if runs == 1 { "run" } else { "runs" });
    for (counts, what) in [
        (comparison.cut_short, "ended before the plan did"),
        (comparison.lost_part, "lost a load, a measured CPU or a setting"),
        (comparison.stopped_above, "ended by --stop-above"),
    ] {
        if of(counts) > 0 {
            let _ = write!(text, "; {} {what}", of(counts));
        }
    }
    text + ")\n"
}

/// The differences between the machines of the sides, then between those of each side's runs.
fn machines_text(comparison: &Comparison) -> String {
    let (of_a, of_b) = &comparison.machine_of_runs;
    let alike = of_a.is_empty() && of_b.is_empty();
    let subject = if alike { "machines" } else { "machines of the first runs" };
    let mut text = differences_text(subject, &comparison.machine);
    for (side, differences) in [("A", of_a), ("B", of_b)] {
        if !differences.is_empty() {
            text += &differences_text(&format!("machines of the runs of {side}"), differences);
        }
    }
    text
}

/// The comparison as JSON, with the verdict of each latency.
pub fn json(comparison: &Comparison, held: &[CheckedLimit]) -> String {
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

fn limits(held: &[CheckedLimit]) -> String {
    let mut text = String::new();
    for one in held {
        let word = match one.outcome {
            Outcome::Within => "within the limit",
            Outcome::Over => "over the limit",
            Outcome::NotMeasured => "cannot evaluate",
        };
        let _ = write!(text, "\n{word:<17} {}\n{:<17} {}\n", one.limit, "", one.ground);
    }
    text
}

fn latency_text(latency: &Latency, name: &str, width: Width) -> String {
    let load = |load: &[String]| {
        if load.is_empty() { "no load".to_owned() } else { load.join(", ") }
    };
    let mut text =
        format!("\n{name}: {} → {}\n{}\n\n", latency.span.0, latency.span.1, verdict(latency));
    let sides = [
        ("A", latency.recorded.0, latency.missed.0, &latency.load.0),
        ("B", latency.recorded.1, latency.missed.1, &latency.load.1),
    ];
    for (side, recorded, missed, loads) in sides {
        let (recorded, missed) = (grouped(recorded), grouped(missed));
        let _ = writeln!(text, "  {side} {recorded} samples, {missed} missed, {}", load(loads));
    }
    let _ = writeln!(text, "{}", table(&latency.rows, width));
    let _ = writeln!(text, "max: {}", latency.worst.words());
    for (side, bound) in [("A", &latency.worst.a), ("B", &latency.worst.b)] {
        if let Some(periods) = bound.once_in() {
            let (max, periods) = (bound.max, grouped(periods));
            let _ = writeln!(
                text,
                "  {side}: 95 % upper bound on P(latency > {max}): 1 in {periods} periods"
            );
        }
        text += &extrapolation(side, bound);
    }
    text
}

fn verdict(latency: &Latency) -> String {
    match latency.verdict() {
        Verdict::Faster | Verdict::Slower => format!("B is {}", latency.sentence()),
        Verdict::Same | Verdict::Mixed | Verdict::Inconclusive => {
            format!("B against A: {}", latency.sentence())
        }
    }
}

/// The latencies expected of more samples than were taken, or why there are none.
fn extrapolation(side: &str, bound: &Bound) -> String {
    let mut text = String::new();
    for Extreme { cause, level, refused } in &bound.beyond {
        let of = cause.as_ref().map(|cause| format!(" of {cause}")).unwrap_or_default();
        if let Some(level) = level {
            let _ = writeln!(
                text,
                "  {side}: 1 in {} samples{of} is expected above {} ({} to {}), from {} samples above {}",
                grouped(level.once_in),
                level.latency,
                level.low,
                level.high,
                grouped(level.exceedances),
                level.threshold
            );
        }
        if let Some(why) = refused {
            let _ = writeln!(text, "  {side}: no tail extrapolation{of}: {why}");
        }
    }
    text
}

fn scan_text(pair: &ScanPair, width: Width) -> String {
    format!("\nscan of {}\n{}\n", scan::call(&pair.call), table(&pair.rows, width))
}

/// The figures, with intervals and verdicts where there are any.
fn table(rows: &[Row], width: Width) -> String {
    let judged = rows.iter().any(|row| row.judged.is_some());
    let intervals =
        rows.iter().any(|row| row.judged.as_ref().is_some_and(|judged| judged.ratio.is_some()));
    let mut header = vec!["", "A", "B", "B/A"];
    if intervals {
        header = vec!["", "A", "95 %", "B", "95 %", "B/A", "95 %"];
    }
    if judged {
        header.push("");
    }
    let mut table = plain_table(&header);
    for row in rows {
        let ratio = row.ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.3}"));
        let (a, b) = (value(row.a, row.none_above.0), value(row.b, row.none_above.1));
        let mut cells = vec![row.name.clone(), a, b, ratio];
        if intervals {
            let interval = |pick: fn(&Judged) -> Option<String>| {
                row.judged.as_ref().and_then(pick).unwrap_or_default()
            };
            cells.insert(2, interval(|judged| judged.a.map(times)));
            cells.insert(4, interval(|judged| judged.b.map(times)));
            cells.push(interval(|judged| {
                judged.ratio.map(|i| format!("{:.3} – {:.3}", i.low, i.high))
            }));
        }
        if judged {
            cells.push(row.judged.as_ref().map(verdict_cell).unwrap_or_default());
        }
        table.add_row(cells);
    }
    // A narrow terminal does not show the intervals of A and B, whose ratio has one of its own.
    fitted(table, width, if intervals { &[2, 4] } else { &[] }).text
}

/// A figure, or the detection limit below which one may have been missed.
fn value(time: Nanos, none_above: Option<Nanos>) -> String {
    none_above.map_or_else(|| time.to_string(), |limit| format!("below {limit}"))
}

/// The verdict on a figure. An interval without 1 is not enough for a difference: the cell says how
/// probable one is by chance.
fn verdict_cell(judged: &Judged) -> String {
    let word = judged.verdict.word();
    let without_one = judged.ratio.is_some_and(|ratio| ratio.low > 1.0 || ratio.high < 1.0);
    match judged.p.filter(|_| without_one && judged.verdict == Verdict::Same) {
        Some(p) => format!("{word}: by chance with p = {p:.2}"),
        None => word.to_owned(),
    }
}

fn times(interval: Interval<Nanos>) -> String {
    format!("{} – {}", interval.low, interval.high)
}

fn differences_text(subject: &str, differences: &[Difference]) -> String {
    if differences.is_empty() {
        return format!("\nthe {subject} do not differ\n");
    }
    let mut text = format!("\nthe {subject} differ in\n");
    for Change { path, a, b } in differences.iter().flat_map(|one| one.changes(&part)) {
        let _ = writeln!(text, "  {path}: {a} → {b}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::tests::source;
    use latlab_core::compare::compare;
    use latlab_core::record::Warning;
    use latlab_core::record::WarningCode::{
        self, CpuOffline, Interrupted, PageFaults, StoppedAbove,
    };
    use latlab_testing::sample_scan;

    /// A scan without a section is known up to its detection limit only.
    #[test]
    fn section_that_was_not_found_is_below_the_detection_limit() {
        let run = |profile: &str| {
            let mut record = source("run", 1).record;
            let mut scans = sample_scan::scans().into_iter();
            record.scans.extend(scans.find(|scan| scan.profile.as_deref() == Some(profile)));
            record
        };
        let (found, none) = (run("standard"), run("rt"));
        let limit = none.scans[0].detection_limit();
        let compared = compare(&[found], &[none]).unwrap();
        let text = scan_text(&compared.scans[0], Width::UNLIMITED);
        let row = text.lines().find(|line| line.starts_with("longest section")).unwrap();
        assert!(row.contains(&format!("  below {limit}  ")), "{row}");
        assert_eq!(row.matches("below").count(), 1, "the other side has a section: {row}");
        assert!(row.trim_end().ends_with('–'), "there is no ratio: {row}");
    }

    #[test]
    fn runs_that_are_not_whole_are_counted_in_the_line_of_their_side() {
        let run = |code: WarningCode, at: u64| {
            let mut record = source("run", 1).record;
            record.started = Nanos::from_secs(at);
            record.warnings = vec![Warning::new(code, "a reason")];
            record
        };
        let b =
            [(CpuOffline, 2), (StoppedAbove, 3), (Interrupted, 4)].map(|(code, at)| run(code, at));
        let compared = compare(&[run(PageFaults, 1)], &b).unwrap();
        let shown = text("a", "b", &compared, &[], Width::UNLIMITED);
        let lines: Vec<&str> = shown.lines().take(2).collect();
        let counts = "1 ended before the plan did; 1 lost a load, a measured CPU or a setting; 1 ended by \
                      --stop-above";
        assert_eq!(lines, ["A  a (1 run)", format!("B  b (3 runs; {counts})").as_str()]);
        let value: Value = serde_json::from_str(&json(&compared, &[])).unwrap();
        assert_eq!(value["lost_part"], json!([0, 1]));
        assert_eq!(value["stopped_above"], json!([0, 1]));
    }

    #[test]
    fn differences_of_plans_have_the_units_of_their_parts() {
        let run = |interval: u64, busy: u64, size: u64| {
            let mut record = source("run", 1).record;
            record.plan.probes[0].params.insert("interval".to_owned(), json!(interval));
            let part = |name: &str, params: Value| json!({ "name": name, "params": params });
            let loads = json!([
                part("cpu", json!({ "busy": busy })),
                part("disk", json!({ "size": size }))
            ]);
            record.plan.loads = serde_json::from_value(loads).unwrap();
            record
        };
        let (a, b) = (run(1_000_000, 30_000, 4 << 20), run(200_000, 1_000_000, 1 << 20));
        let text = differences_text("plans", &compare(&[a], &[b]).unwrap().plan);
        for line in [
            "probes cyclic interval: 1ms → 200us",
            "loads cpu busy: 30us → 1ms",
            "loads disk size: 4MiB → 1MiB",
        ] {
            assert!(text.contains(&format!("  {line}\n")), "no '{line}' in {text}");
        }
    }

    /// The machines of all runs are alike, or the machine of B's last run was changed.
    #[test]
    fn machines_do_not_differ_where_no_run_has_another() {
        let run = |at: u64, governor: &str| {
            let mut record = source("run", 1).record;
            record.started = Nanos::from_secs(at);
            record.machine.governor = Some(governor.to_owned());
            record
        };
        let machines = |last: &str| {
            let b = [run(2, "performance"), run(3, last)];
            let compared = compare(&[run(1, "performance")], &b).unwrap();
            machines_text(&compared)
        };
        assert_eq!(machines("performance"), "\nthe machines do not differ\n");
        assert_eq!(
            machines("powersave"),
            "\nthe machines of the first runs do not differ\n\nthe machines of the runs of B differ in\n  \
             governor: performance → powersave\n"
        );
    }
}
