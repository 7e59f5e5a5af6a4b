//! Explanations as text for a terminal: shares of the causes, and time lines of the worst wake-ups.

use super::{plain_table, running};
use crate::explained::{culprit_in, lateness, notes, share};
use crate::table::fitted;
use crate::width::Width;
use crate::{grouped, printable};
use latlab_core::explain::names;
use latlab_core::explain::terms::{Term, Terms};
use latlab_core::record::explained::Explained;
use latlab_core::record::{Charge, Record, Sample};
use latlab_core::time::Nanos;
use latlab_core::verdict;
use std::fmt::Write as _;

/// Most shares shown; the record has more.
const SHOWN: usize = 20;

/// Shares below this part of the late time are summed up unless all are asked for.
const SMALL: u64 = 100;

/// Time lines that are shown unless all are asked for.
const TIME_LINES: usize = 3;

/// Segments below this part of the latency are summed up unless all are asked for.
const SHORT: u64 = 100;

/// Longest time line, in characters, and characters beside it, with a short culprit.
const LENGTH: usize = 40;
const OTHERS: usize = 60;

/// Column at which lines of stacks begin, and the longest of these lines.
const STACK: (usize, usize) = (23, 100);

/// Returns the causes of a record and the time lines of its worst wake-ups, all of them and with
/// all segments if it is `verbose`; nothing if the record has no explanation.
pub(super) fn summary(record: &Record, verbose: bool, width: Width) -> String {
    let Some(explained) = &record.explained else { return String::new() };
    let mut text = running::tables(record, verbose, width);
    // Of threads that never slept there is no wake-up to be late.
    if explained.late > 0 || explained.running.is_empty() {
        let _ = write!(text, "\n{}\n", lateness(explained, |time| time.to_string()));
    }
    if explained.late > 0 {
        text += &causes(record, explained, verbose, width);
        let all =
            if verdict::is_of_gaps(explained) { "all these gaps" } else { "all late wake-ups" };
        let _ = writeln!(text, "{all}: {}", explained.terms());
    }
    for note in notes(record, |time| time.to_string()) {
        let _ = writeln!(text, "{note}");
    }
    let shown = if verbose { usize::MAX } else { TIME_LINES };
    let worst = record.worst.iter().filter(|sample| sample.unexplained.is_some());
    worst.take(shown).for_each(|sample| text += &time_line(record, sample, verbose, width));
    text
}

/// Table of the causes with their culprits, in descending order of their shares. Unless it is
/// `verbose`, small shares are summed up.
fn causes(record: &Record, explained: &Explained, verbose: bool, width: Width) -> String {
    let header = ["cause", "late", "total", "share", "worst", "culprit"];
    let mut table = plain_table(&header);
    if let Some(culprit) = table.column_mut(header.len() - 1) {
        culprit.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    let least = if verbose { 0 } else { explained.total.0 / SMALL };
    let large = explained.causes.partition_point(|cause| cause.total.0 >= least);
    let (shown, rest) = explained.causes.split_at(large.min(SHOWN));
    for cause in shown {
        let (who, function) = ((&*cause.cause, &*cause.culprit), cause.function.as_deref());
        table.add_row([
            printable(&cause.cause),
            grouped(cause.count),
            cause.total.to_string(),
            share(cause.total, explained.total),
            cause.worst.to_string(),
            culprit_in(record, who, function, cause.worst),
        ]);
    }
    let rest = rest.iter().fold(Nanos(0), |sum, cause| sum + cause.total);
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

/// Time line of a wake-up from the time it was due to the time it ran, with a line for each segment
/// and the kernel's stack below it. Unless it is `verbose`, segments of the same culprit share a
/// line, and the lines that are still short are summed up.
fn time_line(record: &Record, sample: &Sample, verbose: bool, width: Width) -> String {
    let length = width.at_most(OTHERS + LENGTH).saturating_sub(OTHERS).max(8);
    let mut text = format!(
        "\n{} on {}, {} after the start: {} late\n",
        printable(&sample.probe),
        record.cpus_of(sample).in_words(),
        sample.at,
        sample.latency,
    );
    let charges = sample.causes.iter().map(|charge| (Term::of(&charge.cause), charge.ns));
    let terms = Terms::of(charges, sample.unexplained.unwrap_or_default());
    let _ = writeln!(text, "{:>20}  = {terms}", sample.latency.to_string());
    let (lines, short) = if verbose { (single(sample), Vec::new()) } else { joined(sample) };
    let mut shown: Option<&[String]> = None;
    for charges in &lines {
        text += &segment(record, sample, charges, length);
        let functions = &charges[0].stack;
        if functions.len() > 1 && shown != Some(functions) {
            text += &stack(functions, width.at_most(STACK.1));
            shown = Some(functions);
        }
    }
    let parts = [(total(&short), format!("{} shorter segments", short.len()))];
    let unexplained = sample.unexplained.map(|rest| (rest, "unexplained".to_owned()));
    for (time, what) in parts.into_iter().chain(unexplained).filter(|(time, _)| *time > Nanos(0)) {
        let _ = writeln!(text, "{:>20}  |{}| {what}", time.to_string(), " ".repeat(length));
    }
    text
}

fn single(sample: &Sample) -> Vec<Vec<&Charge>> {
    sample.causes.iter().map(|charge| vec![charge]).collect()
}

/// The lines of a sample, and the segments that are too short for one. Long neighbours of one culprit
/// are one line. Interrupts and other tasks may cut a wait into many pieces. The short pieces of a
/// culprit join its line, or get a line of their own if they are long together.
fn joined(sample: &Sample) -> (Vec<Vec<&Charge>>, Vec<&Charge>) {
    let is_long = |time: Nanos| time.0 >= sample.latency.0 / SHORT;
    let (long, pieces): (Vec<_>, Vec<_>) =
        sample.causes.iter().partition(|charge| is_long(charge.ns));
    let neighbours = long.chunk_by(|a, b| is_alike(a, b));
    let mut lines: Vec<Vec<&Charge>> = neighbours.map(<[_]>::to_vec).collect();
    let mut of_pieces: Vec<Vec<&Charge>> = Vec::new();
    for piece in pieces {
        let mut alike =
            lines.iter_mut().chain(&mut of_pieces).filter(|line| is_alike(line[0], piece));
        match alike.next() {
            Some(line) => line.push(piece),
            None => of_pieces.push(vec![piece]),
        }
    }
    let (long, short): (Vec<_>, Vec<_>) =
        of_pieces.into_iter().partition(|line| is_long(total(line)));
    lines.extend(long);
    for line in &mut lines {
        line.sort_by_key(|charge| charge.from);
    }
    lines.sort_by_key(|line| line[0].from);
    (lines, short.concat())
}

fn is_alike(a: &Charge, b: &Charge) -> bool {
    (&a.cause, &a.culprit, &a.stack) == (&b.cause, &b.culprit, &b.stack)
}

fn total(charges: &[&Charge]) -> Nanos {
    charges.iter().fold(Nanos(0), |sum, charge| sum + charge.ns)
}

/// One line of a time line of this length: segments with the same culprit.
fn segment(record: &Record, sample: &Sample, charges: &[&Charge], length: usize) -> String {
    let first = charges[0];
    let function = names::culprit(&first.stack);
    let longest = charges.iter().map(|charge| charge.ns).max().unwrap_or_default();
    let culprit = culprit_in(record, (&first.cause, &first.culprit), function, longest);
    let line = format!(
        "{:>9}{:>11}  |{}| {:<17} {culprit}",
        first.from.to_string(),
        total(charges).to_string(),
        bar(charges, sample.latency, length),
        printable(&first.cause),
    );
    format!("{}\n", line.trim_end())
}

/// The functions of a stack, each with its caller after it, in lines of at most this length.
fn stack(functions: &[String], length: usize) -> String {
    let from = STACK.0;
    let mut lines = vec![format!("{}{}", " ".repeat(from), printable(&functions[0]))];
    for function in &functions[1..] {
        let function = format!(" ← {}", printable(function));
        let line = lines.last_mut().expect("there is a line");
        if line.chars().count() + function.chars().count() <= length {
            line.push_str(&function);
        } else {
            lines.push(format!("{}{}", " ".repeat(from), function.trim_start()));
        }
    }
    lines.join("\n") + "\n"
}

/// Draws segments on a time line of this length, each at least one character long.
fn bar(charges: &[&Charge], latency: Nanos, length: usize) -> String {
    let place = |Nanos(time)| {
        let place = u128::from(time) * length as u128 / u128::from(latency.0.max(1));
        usize::try_from(place).unwrap_or(length).min(length)
    };
    let mut line = vec![' '; length];
    for charge in charges {
        let begin = place(charge.from).min(length - 1);
        let end = place(charge.from + charge.ns).max(begin + 1);
        line[begin..end].fill('#');
    }
    line.into_iter().collect()
}

/// Returns the overhead of tracing.
pub(super) fn overhead(record: &Record, width: Width) -> String {
    let explained = record.explained.as_ref().filter(|explained| !explained.cost.is_empty());
    let Some(explained) = explained else { return String::new() };
    let runs = explained.cost.iter().fold(0u64, |sum, cost| sum.saturating_add(cost.runs));
    let ns = explained.cost.iter().fold(Nanos(0), |sum, cost| sum + cost.ns);
    let (runs, counted) = (grouped(runs), explained.counted);
    let mut table = plain_table(&["program", "runs", "total", "each"]);
    for cost in &explained.cost {
        let each = Nanos(cost.ns.0 / cost.runs.max(1));
        let [total, each] = [cost.ns, each].map(|time| time.to_string());
        table.add_row([printable(&cost.program), grouped(cost.runs), total, each]);
    }
    let table = fitted(table, width, &[]).text;
    format!("\ntracing overhead: {ns} in {runs} runs within {counted}:\n{table}\n")
}

/// Returns the amount of lost data, and the missing data with the reason.
pub(super) fn limitations(record: &Record) -> String {
    let Some(explained) = &record.explained else { return String::new() };
    let lost = format!("lost: {} late wake-ups, samples or events\n", grouped(explained.lost));
    let missing = explained.missing.iter().map(|why| format!("missing: {}\n", printable(why)));
    let lines = (explained.lost > 0).then_some(lost).into_iter().chain(missing);
    let text: String = lines.collect();
    if text.is_empty() { text } else { format!("\n{text}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_testing::sample_explained;

    fn squeezed(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn assert_parts(text: &str, parts: &[&str]) {
        for part in parts {
            assert!(squeezed(text).contains(&squeezed(part)), "{part}\n{text}");
        }
    }

    #[test]
    fn summary_has_shares_and_time_lines_with_stacks() {
        let text = summary(&sample_explained::record(), false, Width::UNLIMITED);
        let parts = [
            "40 of 10\u{202f}000 wake-ups were later than 50 us, 10 ms in all",
            "interrupts-off     30   6 ms   60.0 %   400 us  stress-ng-vm in copy_page_range",
            "unexplained             500 us    5.0 %",
            "cyclic on CPU 1, 2 s after the start: 500 us late",
            "_raw_spin_unlock+0x1a ← copy_page_range+0x6f2 ← do_syscall_64+0x82",
        ];
        assert_parts(&text, &parts);
    }

    #[test]
    fn overhead_and_losses_are_named() {
        let record = sample_explained::record();
        assert_parts(
            &overhead(&record, Width::UNLIMITED),
            &["tracing overhead: 3 ms in 30\u{202f}000 runs within 1 s:"],
        );
        let parts = [
            "lost: 7 late wake-ups, samples or events",
            "missing: page faults: this kernel has no event for them",
        ];
        assert_parts(&limitations(&record), &parts);
    }

    #[test]
    fn only_worst_three_are_drawn_and_small_parts_are_summed_up() {
        let mut record = sample_explained::record();
        let late = record.worst[0].clone();
        record.worst = vec![late; 5];
        let count = |text: &str, part: &str| text.matches(part).count();
        assert_eq!(count(&summary(&record, false, Width::UNLIMITED), "after the start"), 3);
        assert_eq!(count(&summary(&record, true, Width::UNLIMITED), "after the start"), 5);
        let explained = record.explained.as_mut().expect("it is explained");
        explained.causes[2].total = Nanos::from_micros(99);
        assert_parts(&summary(&record, false, Width::UNLIMITED), &["other causes 99 us 1.0 %"]);
        assert!(!summary(&record, true, Width::UNLIMITED).contains("other causes"));
        let short = record.worst[0].causes.pop().expect("it has charges");
        let pieces = (0..2).map(|n| Charge {
            ns: Nanos(short.ns.0 / 50),
            from: short.from + Nanos(n),
            ..short.clone()
        });
        record.worst[0].causes.extend(pieces);
        assert_parts(&summary(&record, false, Width::UNLIMITED), &["2 us | | 2 shorter segments"]);
        assert!(!summary(&record, true, Width::UNLIMITED).contains("shorter"));
    }

    #[test]
    fn long_stack_is_wrapped() {
        let functions: Vec<String> = (0..12).map(|n| format!("some_function_{n}+0x10")).collect();
        let text = stack(&functions, STACK.1);
        assert!(text.lines().count() > 2, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= STACK.1), "{text}");
        assert_eq!(squeezed(&text), functions.join(" ← "));
    }

    #[test]
    fn function_without_preemption_is_where_the_cpu_was_found() {
        let mut record = sample_explained::record();
        record.machine.preempt = Some("none".to_owned());
        let explained = record.explained.as_mut().expect("it is explained");
        "non-preemptible".clone_into(&mut explained.causes[0].cause);
        let text = summary(&record, false, Width::UNLIMITED);
        assert_parts(&text, &["stress-ng-vm, found in copy_page_range", "It is not to blame"]);
    }

    #[test]
    fn handler_of_milliseconds_in_virtual_machine_is_probably_the_host() {
        let mut record = sample_explained::record();
        record.machine.hypervisor = Some("KVM".to_owned());
        let dispatch = &mut record.explained.as_mut().expect("it is explained").causes[2];
        (dispatch.worst, dispatch.total) = (Nanos::from_millis(3), Nanos::from_micros(3_290));
        let text = summary(&record, false, Width::UNLIMITED);
        let why = "dispatch: 3 ms is probably the host's (usually 10 us; hypervisor KVM; no steal \
                   time reported)";
        assert_parts(&text, &["3 ms probably the host", why]);
    }

    #[test]
    fn segments_of_one_culprit_are_one_line() {
        let mut record = sample_explained::record();
        record.worst.truncate(1);
        let causes = &mut record.worst[0].causes;
        let half = Nanos(causes[0].ns.0 / 2);
        let second = Charge { from: half, ns: half, ..causes[0].clone() };
        causes[0].ns = half;
        causes.insert(1, second);
        assert_parts(
            &summary(&record, false, Width::UNLIMITED),
            &["0 ns 350 us |############################"],
        );
        assert_parts(&summary(&record, true, Width::UNLIMITED), &["175 us 175 us |"]);
    }

    /// A sample whose first charge is this wait, cut by ticks into as many pieces as fit.
    fn cut_by_ticks(pieces: u64, tick: Nanos) -> Record {
        let mut record = sample_explained::record();
        record.worst.truncate(1);
        let sample = &mut record.worst[0];
        let charge = sample.causes[0].clone();
        let handler = Charge {
            cause: "interrupt".to_owned(),
            culprit: "timer interrupt".to_owned(),
            stack: Vec::new(),
            ns: tick,
            ..charge.clone()
        };
        let each = Nanos(sample.latency.0 / pieces);
        let nth = |n: u64| {
            let from = Nanos(n * each.0);
            let waits = Charge { from: from + tick, ns: each - tick, ..charge.clone() };
            [Charge { from, ..handler.clone() }, waits]
        };
        sample.causes = (0..pieces).flat_map(nth).collect();
        let charged = sample.causes.iter().fold(Nanos(0), |sum, charge| sum + charge.ns);
        sample.unexplained = Some(sample.latency - charged);
        record
    }

    #[test]
    fn wait_that_ticks_cut_into_short_pieces_is_one_line() {
        for pieces in [3, 50, 500] {
            let record = cut_by_ticks(pieces, Nanos(1));
            let text = summary(&record, false, Width::UNLIMITED);
            let culprit = record.worst[0].causes[1].culprit.as_str();
            assert_eq!(text.matches(culprit).count(), 1, "{pieces}: {text}");
            let line = text.lines().find(|line| line.contains(culprit)).expect("it is there");
            assert!(line.contains(&format!("|{}", "#".repeat(LENGTH - 1))), "{line}");
            assert!(
                line.contains(&(record.worst[0].latency - Nanos(pieces)).to_string()),
                "{line}"
            );
            assert_parts(&text, &[&format!("| {pieces} shorter segments")]);
        }
        // What is long together has a line of its own.
        let text = summary(&cut_by_ticks(500, Nanos(100)), false, Width::UNLIMITED);
        assert!(text.contains("timer interrupt") && !text.contains("shorter"), "{text}");
    }

    #[test]
    fn bars_match_time_of_segments() {
        let charge = |from: u64, to: u64| Charge {
            from: Nanos(from),
            ns: Nanos(to - from),
            ..sample_explained::record().worst[0].causes[0].clone()
        };
        let bars = |charges: &[&Charge]| bar(charges, Nanos(400), LENGTH);
        let bar = |from, to| bars(&[&charge(from, to)]);
        assert_eq!(bar(0, 400), "#".repeat(40));
        assert_eq!(
            bar(100, 300),
            format!("{}{}{}", " ".repeat(10), "#".repeat(20), " ".repeat(10))
        );
        assert_eq!(bar(399, 400), format!("{}#", " ".repeat(39)));
        assert_eq!(bar(400, 400), format!("{}#", " ".repeat(39)));
        assert_eq!(bar(u64::MAX, u64::MAX), format!("{}#", " ".repeat(39)));
        let both = bars(&[&charge(0, 100), &charge(300, 400)]);
        assert_eq!(both, format!("{}{}{}", "#".repeat(10), " ".repeat(20), "#".repeat(10)));
    }

    #[test]
    fn record_without_explanations_has_no_summary_of_them() {
        let mut record = sample_explained::record();
        record.explained = None;
        assert_eq!(
            summary(&record, true, Width::UNLIMITED)
                + &overhead(&record, Width::UNLIMITED)
                + &limitations(&record),
            ""
        );
    }
}
