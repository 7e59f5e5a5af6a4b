//! What took the CPU from threads that were to run, as tables for a terminal.

use super::plain_table;
use crate::explained::culprit_and_function;
use crate::table::fitted;
use crate::width::Width;
use crate::{decimal, printable};
use latlab_core::record::Record;
use latlab_core::record::running::{RunningThread, Taken};
use latlab_core::time::Nanos;
use latlab_core::verdict::percent;
use std::fmt::Write as _;

/// Most threads that are shown unless all are asked for.
const THREADS: usize = 3;

/// Sources with less than one part in `SMALL` of the taken time are summed up, unless all are asked
/// for.
const SMALL: u64 = 100;

/// Returns a table for each thread with the sources that took its CPU. Unless it is `verbose`, only
/// for the first three threads.
pub(super) fn tables(record: &Record, verbose: bool, width: Width) -> String {
    let all = record.explained.iter().flat_map(|explained| &explained.running);
    let shown = if verbose { usize::MAX } else { THREADS };
    all.take(shown).map(|thread| table(thread, verbose, width)).collect()
}

fn table(thread: &RunningThread, verbose: bool, width: Width) -> String {
    let awake = thread.awake();
    let header = ["CPU", "source", "a second", "total", "share", "longest", "culprit"];
    let mut table = plain_table(&header);
    for index in [1, header.len() - 1] {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
    }
    for taken in rows(thread, verbose) {
        table.add_row(cells(&taken, awake));
    }
    let (name, pid) = (printable(&thread.name), thread.pid);
    let mut text =
        format!("\nwhat took the CPU from {name} (thread {pid}), which ran for {}", thread.ran);
    let _ = write!(text, " of {awake}");
    if thread.sleeps > 0 {
        let _ = write!(text, " and slept for {}", thread.slept);
    }
    let _ = writeln!(text, ":\n{}", fitted(table, width, &[5, 2]).text);
    if thread.faults > 0 {
        let _ = writeln!(text, "{} page faults, whose time counts as its own", thread.faults);
    }
    text
}

/// The sources by CPU, and unless they are all to be shown, the sum of the small ones of each CPU.
fn rows(thread: &RunningThread, verbose: bool) -> Vec<Taken> {
    let least = if verbose { 0 } else { thread.lost().0 / SMALL };
    let mut rows: Vec<Taken> = Vec::new();
    for on_cpu in thread.taken.chunk_by(|a, b| a.cpu == b.cpu) {
        let large = on_cpu.partition_point(|taken| taken.total.0 >= least);
        let (shown, rest) = on_cpu.split_at(large);
        rows.extend(shown.iter().cloned());
        rows.extend(rest.iter().cloned().reduce(|sum, taken| Taken {
            cause: "other sources".to_owned(),
            culprit: String::new(),
            function: None,
            count: sum.count.saturating_add(taken.count),
            total: sum.total + taken.total,
            longest: sum.longest.max(taken.longest),
            ..sum
        }));
    }
    rows
}

fn cells(taken: &Taken, awake: Nanos) -> Vec<String> {
    #[expect(clippy::cast_precision_loss, reason = "a rate has few digits")]
    let rate = taken.count as f64 / awake.as_secs_f64().max(1e-9);
    vec![
        taken.cpu.to_string(),
        printable(&taken.cause),
        decimal(rate),
        taken.total.to_string(),
        percent(taken.total, awake),
        taken.longest.to_string(),
        culprit_and_function(&taken.cause, &taken.culprit, taken.function.as_deref()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_testing::sample_explained;

    fn taken(cpu: u32, cause: &str, count: u64, total: u64) -> Taken {
        let (cause, total) = (cause.to_owned(), Nanos::from_micros(total));
        Taken { cpu, cause, count, total, longest: total, ..Taken::default() }
    }

    /// A thread that ran for 1 s and lost 10 ms on two CPUs.
    fn record() -> Record {
        let all = [("interrupt", 250, 9_000), ("softirq", 7, 60), ("dispatch", 3, 40)];
        let mut taken: Vec<Taken> = all.map(|(cause, count, us)| taken(1, cause, count, us)).into();
        taken.push(self::taken(2, "host", 1, 900));
        let mut record = sample_explained::record();
        let explained = record.explained.as_mut().expect("it is explained");
        let ran = Nanos::from_millis(990);
        explained.running.push(RunningThread { ran, taken, ..RunningThread::default() });
        record
    }

    #[test]
    fn small_sources_of_a_cpu_are_summed_up_unless_all_are_asked_for() {
        let rows = |verbose| {
            let text = tables(&record(), verbose, Width::UNLIMITED);
            let words = text
                .lines()
                .skip(3)
                .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
            words.collect::<Vec<_>>()
        };
        let expected = [
            "1 interrupt 250 9 ms 0.90 % 9 ms",
            "1 other sources 10 100 us 0.010 % 60 us",
            "2 host 1 900 us 0.090 % 900 us",
        ];
        assert_eq!(rows(false), expected);
        assert_eq!(rows(true).len(), 4);
    }
}
