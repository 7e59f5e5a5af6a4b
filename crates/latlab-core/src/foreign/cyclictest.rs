//! Text of cyclictest: the histogram of `-h` and `-H`, each sample (`-v`), and the lines of each thread.
//! Source: `src/cyclictest/cyclictest.c` of rt-tests, `print_hist` and `print_stat`.

use super::ForeignError;
use super::command_line::CommandLine;
use super::distribution::{Distribution, Origin, WAKE_UP, figure, record};
use crate::record::{Figure, Record};
use crate::time::Nanos;
use std::collections::BTreeMap;

const TOOL: &str = "cyclictest";

/// Reads a text of cyclictest; none if it is none.
pub(super) fn read(text: &str) -> Option<Result<Record, ForeignError>> {
    let is_of_histogram =
        |line: &str| line.starts_with("# Histogram") || line.starts_with("# Min Latencies:");
    if text.lines().any(is_of_histogram) {
        return Some(histogram(text));
    }
    let threads: BTreeMap<u32, Thread> = text.lines().filter_map(Thread::read).collect();
    // Other texts have three numbers on a line, too.
    let marks = ["cyclictest", "/dev/cpu_dma_latency", "Thread 0 Interval:", "Max CPUs ="];
    let is_verbose = !threads.is_empty() || marks.iter().any(|mark| text.contains(mark));
    let unit = unit(text, &command_line(text));
    let samples = if is_verbose { samples(text, unit) } else { BTreeMap::new() };
    let any = !threads.is_empty() || !samples.is_empty();
    any.then(|| threads_and_samples(text, unit, &threads, samples))
}

/// The unit of the values. Lines of threads are wider with nanoseconds.
fn unit(text: &str, options: &CommandLine) -> Nanos {
    let is_wide = |line: &str| {
        let value = line.split_once("Act:").and_then(|(_, rest)| rest.split_once(" Avg:"));
        line.contains("T:") && value.is_some_and(|(value, _)| value.len() == 8)
    };
    let is_fine = options.is_in_nanoseconds() || text.lines().any(is_wide);
    if is_fine { Nanos(1) } else { Nanos::from_micros(1) }
}

/// What values are rounded down to. A text without options and without lines of threads does not say its unit.
fn rounded(text: &str, options: &CommandLine, unit: Nanos) -> String {
    if options.len() > 0 || text.lines().any(|line| Thread::read(line).is_some()) {
        return unit.to_string();
    }
    format!("{unit}, if cyclictest ran without -N, with which they are nanoseconds")
}

/// The command line, where the text contains it, as a shell's line or as a comment.
fn command_line(text: &str) -> CommandLine {
    let after = |line: &str| Some(line.split_once("cyclictest")?.1.to_owned());
    text.lines()
        .filter_map(after)
        .map(|words| CommandLine::of(&words))
        .max_by_key(CommandLine::len)
        .unwrap_or_default()
}

/// The version, where the text names it: `cyclictest V2.80`.
fn tool(text: &str) -> String {
    let version = text.split_whitespace().zip(text.split_whitespace().skip(1));
    let version =
        version.filter(|(name, _)| *name == TOOL).find_map(|(_, next)| next.strip_prefix('V'));
    version.map_or_else(|| TOOL.to_owned(), |version| format!("{TOOL} {version}"))
}

/// A line of the histogram's end with a number for each thread.
fn totals<'a>(text: &'a str, name: &str) -> Option<(usize, &'a str)> {
    let mut lines = text.lines().enumerate();
    lines.find_map(|(nth, line)| {
        Some((nth + 1, line.strip_prefix("# ")?.strip_prefix(name)?.strip_prefix(':')?))
    })
}

fn numbers(line: usize, text: &str) -> Result<Vec<u64>, ForeignError> {
    let number = |word: &str| {
        word.parse().map_err(|_| {
            ForeignError::at(TOOL, line, format!("'{}' is no number", crate::brief::text(word)))
        })
    };
    text.split_whitespace().map(number).collect()
}

fn histogram(text: &str) -> Result<Record, ForeignError> {
    for mark in ["# Min Latencies:", "# Histogram Overflows:"] {
        let again = text.lines().enumerate().filter(|(_, line)| line.starts_with(mark)).nth(1);
        if let Some((line, _)) = again {
            let why = format!("'{mark}' is there twice: these are two runs in one file");
            return Err(ForeignError::at(TOOL, line + 1, why));
        }
    }
    let (min, max, overflows) = (
        line_of(text, "Min Latencies")?,
        line_of(text, "Max Latencies")?,
        line_of(text, "Histogram Overflows")?,
    );
    let threads = min.len();
    if threads == 0 || max.len() < threads || overflows.len() < threads {
        let why = "its last lines have different numbers of threads: the file is cut short";
        return Err(ForeignError::whole(TOOL, why));
    }
    let options = command_line(text);
    let unit = unit(text, &options);
    let rows = rows(text, threads)?;
    check_total(text, &rows, threads)?;
    let last = rows.last_key_value().map_or(0, |(index, _)| index.saturating_add(1));
    let time = |value: u64| Nanos(value.saturating_mul(unit.0));
    let limit = time(options.range().unwrap_or(last).max(last));
    let distribution = |thread: usize| {
        let counts = rows.iter().map(|(index, counts)| (time(*index), counts[thread]));
        Distribution {
            probe: "cyclic",
            span: WAKE_UP,
            cpu: u32::try_from(thread).unwrap_or(u32::MAX),
            buckets: counts.filter(|(_, count)| *count > 0).collect(),
            width: unit,
            beyond: (limit, overflows[thread]),
            min: Some(time(min[thread])),
            max: Some(time(max[thread])),
            interval: options.interval(thread as u64),
            periods: options.periods(thread as u64),
            schedule: options.schedule(),
        }
    };
    let distributions: Vec<Distribution> = (0..threads).map(distribution).collect();
    let origin = Origin {
        tool: tool(text),
        duration: options.duration(),
        rounded: rounded(text, &options, unit),
        remarks: overflow_cycles(text, options.interval(0)).into_iter().collect(),
        ..Origin::default()
    };
    record(TOOL, &origin, distributions, Vec::new())
}

/// The numbers of a line at the end, one for each thread.
fn line_of(text: &str, name: &str) -> Result<Vec<u64>, ForeignError> {
    let (line, rest) = totals(text, name).ok_or_else(|| {
        let why = format!("it ends before its line '# {name}:': the file is cut short");
        ForeignError::whole(TOOL, why)
    })?;
    numbers(line, rest)
}

/// The counts of each bucket, by its index: the lines after the title. With `-H` a last column has their sum.
fn rows(text: &str, threads: usize) -> Result<BTreeMap<u64, Vec<u64>>, ForeignError> {
    let mut rows = BTreeMap::new();
    let title =
        text.lines().position(|line| line.starts_with("# Histogram") && !line.contains(':'));
    let lines = text.lines().enumerate().skip(title.map_or(0, |line| line + 1));
    for (line, row) in lines.map(|(nth, row)| (nth + 1, row.trim())) {
        if !row.starts_with(|c: char| c.is_ascii_digit()) {
            if row.starts_with("# Min") {
                break;
            }
            continue;
        }
        let mut counts = numbers(line, row)?;
        let index = counts.remove(0);
        if counts.len() != threads && counts.len() != threads + 1 {
            let why = format!(
                "it has {} counts, and its last lines have {threads} threads",
                counts.len()
            );
            return Err(ForeignError::at(TOOL, line, why));
        }
        let all = counts[..threads].iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
        if counts.get(threads).is_some_and(|sum| *sum != all) {
            return Err(ForeignError::at(
                TOOL,
                line,
                "its last count is not the sum of the others",
            ));
        }
        if rows.insert(index, counts).is_some() {
            let why = format!("the bucket {index} is there twice: these are two runs in one file");
            return Err(ForeignError::at(TOOL, line, why));
        }
    }
    Ok(rows)
}

/// Fails where lines are missing: older versions print the number of samples in the buckets of each thread.
fn check_total(
    text: &str,
    rows: &BTreeMap<u64, Vec<u64>>,
    threads: usize,
) -> Result<(), ForeignError> {
    let Some((line, rest)) = totals(text, "Total") else { return Ok(()) };
    for (thread, total) in numbers(line, rest)?.into_iter().take(threads).enumerate() {
        let all = rows.values().fold(0_u64, |sum, counts| sum.saturating_add(counts[thread]));
        if all != total {
            let why = format!(
                "thread {thread} has {total} samples, and its buckets have {all}: lines are missing"
            );
            return Err(ForeignError::at(TOOL, line, why));
        }
    }
    Ok(())
}

/// A sentence about overflows that repeat at a steady pace, by the cycles at which they happened. `# Thread N:` lists
/// them, up to a number.
fn overflow_cycles(text: &str, interval: Option<Nanos>) -> Option<String> {
    /// Fewer distances are no pace.
    const FEWEST: usize = 20;
    let lists = text.lines().filter_map(|line| line.strip_prefix("# Thread ")?.split_once(": "));
    let cycles = lists.map(|(_, list)| {
        list.split_whitespace().map_while(|word| word.parse().ok()).collect::<Vec<u64>>()
    });
    let mut distances: Vec<u64> = cycles
        .flat_map(|one| one.windows(2).map(|two| two[1].saturating_sub(two[0])).collect::<Vec<_>>())
        .collect();
    if distances.len() < FEWEST {
        return None;
    }
    distances.sort_unstable();
    let median = distances[distances.len() / 2];
    let is_near = |one: &&u64| one.abs_diff(median) * 5 <= median;
    let near = distances.iter().filter(is_near).count();
    if median < 2 || near * 2 < distances.len() {
        return None;
    }
    let time = interval.map_or(String::new(), |interval| {
        format!(", {}", Nanos(median.saturating_mul(interval.0)))
    });
    Some(format!(
        "{near} of {} distances between samples above the range are {median} cycles{time}, to a fifth: something happens \
         at that pace",
        distances.len()
    ))
}

/// The last line of a thread: `T: 0 (  437) P:48 I:1000 C: 540000 Min: 4 Act: 5 Avg: 18 Max: 217`.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    priority: u64,
    interval: u64,
    cycles: u64,
    min: u64,
    average: u64,
    max: u64,
}

impl Thread {
    fn read(line: &str) -> Option<(u32, Thread)> {
        let at = line.find("T:")?;
        let (number, rest) = line[at + 2..].trim_start().split_once('(')?;
        let field = |name: &str| -> Option<u64> {
            let rest = rest.split_once(name)?.1.trim_start();
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        field("Act:")?;
        let thread = Thread {
            priority: field("P:")?,
            interval: field("I:")?,
            cycles: field(" C:")?,
            min: field("Min:")?,
            average: field("Avg:")?,
            max: field("Max:")?,
        };
        Some((number.trim().parse().ok()?, thread))
    }
}

/// Each sample of `-v`: thread, cycle and latency.
fn samples(text: &str, unit: Nanos) -> BTreeMap<u32, BTreeMap<Nanos, u64>> {
    let mut all: BTreeMap<u32, BTreeMap<Nanos, u64>> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(':').map(str::trim).collect();
        let [thread, cycle, latency] = fields[..] else { continue };
        let parsed = (thread.parse(), cycle.parse::<u64>(), latency.parse::<u64>());
        let (Ok(thread), Ok(_), Ok(latency)) = parsed else { continue };
        let latency = Nanos(latency.saturating_mul(unit.0));
        *all.entry(thread).or_default().entry(latency).or_default() += 1;
    }
    all
}

/// The record of a text without a histogram: figures of each thread and, with `-v`, the distribution.
fn threads_and_samples(
    text: &str,
    unit: Nanos,
    threads: &BTreeMap<u32, Thread>,
    samples: BTreeMap<u32, BTreeMap<Nanos, u64>>,
) -> Result<Record, ForeignError> {
    let options = command_line(text);
    let distribution = |(thread, buckets): (u32, BTreeMap<Nanos, u64>)| {
        let known = threads.get(&thread);
        Distribution {
            probe: "cyclic",
            span: WAKE_UP,
            cpu: thread,
            width: unit,
            min: buckets.keys().next().copied(),
            max: buckets.keys().next_back().copied(),
            buckets,
            interval: known.and_then(Thread::interval),
            schedule: options.schedule().or_else(|| known.map(Thread::schedule)),
            ..Distribution::default()
        }
    };
    let distributions: Vec<Distribution> = samples.into_iter().map(distribution).collect();
    let figures = if distributions.is_empty() {
        threads.iter().flat_map(|(thread, of)| of.figures(*thread, unit)).collect()
    } else {
        Vec::new()
    };
    let rounded = rounded(text, &options, unit);
    let origin = Origin { tool: tool(text), rounded, ..Origin::default() };
    record(TOOL, &origin, distributions, figures)
}

impl Thread {
    fn schedule(&self) -> (String, u32) {
        let priority = u32::try_from(self.priority).unwrap_or(0);
        (if priority > 0 { "fifo" } else { "other" }.to_owned(), priority)
    }

    fn interval(&self) -> Option<Nanos> {
        self.interval.checked_mul(1_000).filter(|interval| *interval > 0).map(Nanos)
    }

    /// Its values; of a thread that had no cycle there are none.
    fn figures(&self, thread: u32, unit: Nanos) -> Vec<Figure> {
        #[expect(clippy::cast_precision_loss, reason = "it is shown with some digits")]
        let figure = |(name, value, unit): (&str, u64, &str)| {
            figure("cyclic", format!("thread {thread}: {name}"), value as f64, unit)
        };
        let nanos = |value: u64| value.saturating_mul(unit.0);
        let all = [
            ("cycles", self.cycles, ""),
            ("min", nanos(self.min), "ns"),
            ("mean", nanos(self.average), "ns"),
            ("max", nanos(self.max), "ns"),
        ];
        all.into_iter().take(if self.cycles == 0 { 1 } else { 4 }).map(figure).collect()
    }
}
