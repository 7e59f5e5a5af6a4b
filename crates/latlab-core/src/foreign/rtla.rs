//! The histograms of `rtla timerlat hist` and `rtla osnoise hist`.
//! Source: `tools/tracing/rtla/src/timerlat_hist.c` and `osnoise_hist.c` of Linux.

use super::ForeignError;
use super::analysis;
use super::distribution::{Distribution, Origin, record};
use crate::brief;
use crate::record::Record;
use crate::time::Nanos;

/// The kinds of columns: their begin, the probe, and the span.
const KINDS: [(&str, &str, (&str, &str)); 4] = [
    ("IRQ-", "timerlat", ("timer expiry", "timer interrupt")),
    ("Thr-", "timerlat", ("timer expiry", "thread of the kernel running")),
    ("Usr-", "timerlat", ("timer expiry", "return to user space")),
    ("CPU-", "osnoise", ("start of a noise", "its end")),
];

/// Reads a histogram of rtla; none if the text is none.
pub(super) fn read(text: &str) -> Option<Result<Record, ForeignError>> {
    let first = text.lines().find(|line| line.starts_with("# RTLA "))?;
    let tool = if first.contains("osnoise") { "rtla osnoise" } else { "rtla timerlat" };
    Some(histogram(text, tool))
}

fn histogram(text: &str, tool: &'static str) -> Result<Record, ForeignError> {
    let unit = if text.contains("nanoseconds (ns)") { Nanos(1) } else { Nanos::from_micros(1) };
    let mut lines = text.lines().enumerate().map(|(nth, line)| (nth + 1, line));
    let Some(head) = lines.find(|(_, line)| line.trim_start().starts_with("Index ")) else {
        let why = "it has no line that begins with 'Index': only histograms are read";
        return Err(ForeignError::whole(tool, why));
    };
    let mut table = Table { tool, unit, columns: columns(tool, head)?, counts: None, end: 0 };
    if let Some((line, _)) = lines.clone().find(|(_, line)| line.trim_start().starts_with("Index "))
    {
        return Err(ForeignError::at(
            tool,
            line,
            "a second histogram begins here: these are two runs in one file",
        ));
    }
    for (line, row) in lines {
        match row.split_whitespace().next() {
            // The sums of all columns, or the analysis of the sample that ended the run.
            Some("ALL:" | "rtla" | "##") => break,
            Some(name) => table.add(line, name, row)?,
            None => {}
        }
    }
    let origin = Origin {
        tool: tool.to_owned(),
        duration: duration(text),
        rounded: "the start of their bucket".to_owned(),
        has_cpus: true,
        remarks: analysis::remark(text).into_iter().collect(),
        ..Origin::default()
    };
    record(tool, &origin, table.finished()?, Vec::new())
}

/// The columns that a header names.
fn columns(
    tool: &'static str,
    (line, header): (usize, &str),
) -> Result<Vec<Distribution>, ForeignError> {
    let column = |name: &str| {
        let (cpu, probe, span) = KINDS.iter().find_map(|(begin, probe, span)| {
            Some((name.strip_prefix(begin)?.parse().ok()?, *probe, *span))
        })?;
        Some(Distribution { probe, span, cpu, ..Distribution::default() })
    };
    let unknown =
        |name| ForeignError::at(tool, line, format!("'{}' is no known column", brief::text(name)));
    let names = header.split_whitespace().skip(1);
    names.map(|name| column(name).ok_or_else(|| unknown(name))).collect()
}

/// A histogram while it is read.
struct Table {
    tool: &'static str,
    /// The unit of the values.
    unit: Nanos,
    columns: Vec<Distribution>,
    /// The line with the numbers of samples, and these numbers.
    counts: Option<(usize, Vec<Option<u64>>)>,
    /// Begin of the last bucket.
    end: u64,
}

impl Table {
    fn error(&self, line: usize, why: impl Into<String>) -> ForeignError {
        ForeignError::at(self.tool, line, why)
    }

    /// Adds a line, whose first word is its name.
    fn add(&mut self, line: usize, name: &str, row: &str) -> Result<(), ForeignError> {
        let values: Vec<Option<u64>> = row
            .split_whitespace()
            .skip(1)
            .map(|word| match word {
                "-" => Ok(None),
                number => number.parse().map(Some).map_err(|_| {
                    self.error(line, format!("'{}' is no number", brief::text(number)))
                }),
            })
            .collect::<Result<_, _>>()?;
        if values.len() != self.columns.len() {
            let (values, columns) = (values.len(), self.columns.len());
            return Err(self.error(line, format!("it has {values} values for {columns} columns")));
        }
        let unit = self.unit.0;
        let time = |value: u64| Nanos(value.saturating_mul(unit));
        let bucket = name.parse::<u64>();
        let name = name.trim_end_matches(':');
        let mut is_twice = false;
        for (column, value) in self.columns.iter_mut().zip(&values) {
            match (name, &bucket) {
                ("over", _) => column.beyond.1 = value.unwrap_or(0),
                ("min", _) => column.min = value.map(time),
                ("max", _) => column.max = value.map(time),
                (_, Ok(bucket)) => {
                    is_twice |= column.buckets.insert(time(*bucket), value.unwrap_or(0)).is_some();
                }
                _ => {}
            }
        }
        if is_twice {
            return Err(self.error(line, format!("the bucket {name} is there twice")));
        }
        match (name, bucket) {
            ("count", _) => self.counts = Some((line, values)),
            (_, Ok(bucket)) => self.end = self.end.max(bucket),
            ("over" | "min" | "avg" | "max", _) => {}
            _ => return Err(self.error(line, format!("'{}' is no bucket", brief::text(name)))),
        }
        Ok(())
    }

    /// The columns. Fails where lines are missing.
    fn finished(mut self) -> Result<Vec<Distribution>, ForeignError> {
        let Some((line, counts)) = self.counts.take() else {
            let why = "it ends before its line 'count:': the file is cut short";
            return Err(ForeignError::whole(self.tool, why));
        };
        let width = width(&self.columns);
        // The width of the last bucket is not known, and at least one unit.
        let limit = Nanos(self.end.saturating_add(1).saturating_mul(self.unit.0));
        for (column, count) in self.columns.iter_mut().zip(counts) {
            column.buckets.retain(|_, count| *count > 0);
            column.beyond.0 = limit;
            column.width = width;
            let all = column.recorded();
            if count.is_some_and(|count| count != all) {
                let cpu = column.cpu;
                let why =
                    format!("CPU {cpu} has {all} samples: lines of the histogram are missing");
                return Err(ForeignError::at(self.tool, line, why));
            }
        }
        Ok(self.columns)
    }
}

/// The greatest width that the buckets can have: the greatest common divisor of their begins.
fn width(columns: &[Distribution]) -> Nanos {
    let divisor = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let begins = columns.iter().flat_map(|one| one.buckets.keys());
    Nanos(begins.fold(0, |width, begin| divisor(width, begin.0)))
}

/// `# Duration:   0 00:00:02`: days, hours, minutes and seconds.
fn duration(text: &str) -> Option<Nanos> {
    let line = text.lines().find_map(|line| line.strip_prefix("# Duration:"))?;
    let (days, clock) = line.trim().split_once(' ')?;
    let fields: Vec<u64> = clock.trim().split(':').map_while(|word| word.parse().ok()).collect();
    let [hours, minutes, seconds] = fields[..] else { return None };
    let days: u64 = days.parse().ok()?;
    let seconds = [(days, 86_400), (hours, 3_600), (minutes, 60), (seconds, 1)];
    let seconds =
        seconds.iter().try_fold(0_u64, |sum, (n, each)| sum.checked_add(n.checked_mul(*each)?))?;
    (seconds < u64::from(u32::MAX)).then(|| Nanos::from_secs(seconds))
}
