//! Text of cyclictest: the histogram of `-h` and `-H`, each sample (`-v`), and the lines of each thread.
//! Source: `src/cyclictest/cyclictest.c` of rt-tests, `print_hist` and `print_stat`.

use super::ForeignError;
use super::command_line::CommandLine;
use super::distribution::{Distribution, Origin, WAKE_UP, record};
use crate::record::{Figure, Record};
use crate::time::Nanos;
use std::collections::BTreeMap;

const TOOL: &str = "cyclictest";

/// Reads a text of cyclictest; none if it is none.
pub(super) fn read(text: &str) -> Option<Result<Record, ForeignError>> {
    if text
        .lines()
        .any(|line| line.starts_with("# Histogram") || line.starts_with("# Min Latencies:"))
    {
        return Some(histogram(text));
    }
    let threads: BTreeMap<u32, Thread> = text.lines().filter_map(Thread::read).collect();
    let samples = samples(text);
    (!threads.is_empty() || !samples.is_empty())
        .then(|| Ok(threads_and_samples(text, &threads, samples)))
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
    let line_of = |name: &str| -> Result<Vec<u64>, ForeignError> {
        let (line, rest) = totals(text, name).ok_or_else(|| {
            ForeignError::whole(
                TOOL,
                format!("it ends before its line '# {name}:': the file is cut short"),
            )
        })?;
        numbers(line, rest)
    };
    let (min, max) = (line_of("Min Latencies")?, line_of("Max Latencies")?);
    let threads = min.len();
    if threads == 0 || max.len() < threads {
        return Err(ForeignError::whole(
            TOOL,
            "its minimum and its maximum are not those of the same threads",
        ));
    }
    let options = command_line(text);
    let unit = if options.is_in_nanoseconds() { Nanos(1) } else { Nanos::from_micros(1) };
    let rows = rows(text, threads)?;
    check_total(text, &rows, threads)?;
    let overflows = match totals(text, "Histogram Overflows") {
        Some((line, rest)) => numbers(line, rest)?,
        None => Vec::new(),
    };
    let last = rows.last_key_value().map_or(0, |(index, _)| index + 1);
    let limit = Nanos(options.range().unwrap_or(last).max(last).saturating_mul(unit.0));
    let duration = options.duration();
    let distribution = |thread: usize| {
        let interval = options.interval(thread as u64);
        let counts = rows
            .iter()
            .map(|(index, counts)| (Nanos(index.saturating_mul(unit.0)), counts[thread]));
        Distribution {
            probe: "cyclic",
            span: WAKE_UP,
            cpu: u32::try_from(thread).unwrap_or(u32::MAX),
            buckets: counts.filter(|(_, count)| *count > 0).collect(),
            beyond: (limit, overflows.get(thread).copied().unwrap_or(0)),
            min: Some(Nanos(min[thread].saturating_mul(unit.0))),
            max: Some(Nanos(max[thread].saturating_mul(unit.0))),
            interval,
            periods: duration
                .zip(interval)
                .map(|(duration, interval)| duration.0 / interval.0.max(1)),
            schedule: options.schedule(),
        }
    };
    let distributions: Vec<Distribution> = (0..threads).map(distribution).collect();
    let origin = Origin {
        tool: tool(text),
        duration,
        resolution: unit,
        remarks: overflow_cycles(text, options.interval(0)).into_iter().collect(),
        ..Origin::default()
    };
    Ok(record(&origin, &distributions))
}

/// The counts of each bucket, by its index. With `-H` a last column has their sum.
fn rows(text: &str, threads: usize) -> Result<BTreeMap<u64, Vec<u64>>, ForeignError> {
    let mut rows = BTreeMap::new();
    for (line, row) in text.lines().enumerate().map(|(nth, row)| (nth + 1, row.trim())) {
        if !row.starts_with(|c: char| c.is_ascii_digit()) {
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
    if median == 0 || near * 2 < distances.len() {
        return None;
    }
    let time = interval.map_or(String::new(), |interval| {
        format!(", {}", Nanos(median.saturating_mul(interval.0)))
    });
    Some(format!(
        "{near} of {} samples above the range came {median} cycles{time} (to a fifth) after the one before: something \
         happens at that pace",
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
fn samples(text: &str) -> BTreeMap<u32, BTreeMap<Nanos, u64>> {
    let mut all: BTreeMap<u32, BTreeMap<Nanos, u64>> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(':').map(str::trim).collect();
        let [thread, cycle, latency] = fields[..] else { continue };
        let (Ok(thread), Ok(_), Ok(latency)) =
            (thread.parse(), cycle.parse::<u64>(), latency.parse::<u64>())
        else {
            continue;
        };
        *all.entry(thread).or_default().entry(Nanos(latency.saturating_mul(1_000))).or_default() +=
            1;
    }
    all
}

/// The record of a text without a histogram: figures of each thread and, with `-v`, the distribution.
fn threads_and_samples(
    text: &str,
    threads: &BTreeMap<u32, Thread>,
    samples: BTreeMap<u32, BTreeMap<Nanos, u64>>,
) -> Record {
    let options = command_line(text);
    let distribution = |(thread, buckets): (u32, BTreeMap<Nanos, u64>)| {
        let known = threads.get(&thread);
        Distribution {
            probe: "cyclic",
            span: WAKE_UP,
            cpu: thread,
            min: buckets.keys().next().copied(),
            max: buckets.keys().next_back().copied(),
            buckets,
            interval: known.map(|known| Nanos::from_micros(known.interval)),
            schedule: options.schedule().or_else(|| known.map(Thread::schedule)),
            ..Distribution::default()
        }
    };
    let distributions: Vec<Distribution> = samples.into_iter().map(distribution).collect();
    let origin =
        Origin { tool: tool(text), resolution: Nanos::from_micros(1), ..Origin::default() };
    let mut record = record(&origin, &distributions);
    if distributions.is_empty() {
        record.figures = threads.iter().flat_map(|(thread, of)| of.figures(*thread)).collect();
        record.plan.cpus = threads.keys().copied().collect();
    }
    record
}

impl Thread {
    fn schedule(&self) -> (String, u32) {
        let priority = u32::try_from(self.priority).unwrap_or(0);
        (if priority > 0 { "fifo" } else { "other" }.to_owned(), priority)
    }

    fn figures(&self, thread: u32) -> Vec<Figure> {
        #[expect(clippy::cast_precision_loss, reason = "it is shown with some digits")]
        let figure = |(name, value, unit): (&str, u64, &str)| Figure {
            probe: "cyclic".to_owned(),
            name: format!("thread {thread}: {name}"),
            value: value as f64,
            unit: unit.to_owned(),
            load: Vec::new(),
            profile: None,
        };
        let nanos = |micros: u64| micros.saturating_mul(1_000);
        let all = [
            ("min", nanos(self.min), "ns"),
            ("mean", nanos(self.average), "ns"),
            ("max", nanos(self.max), "ns"),
            ("cycles", self.cycles, ""),
        ];
        all.into_iter().map(figure).collect()
    }
}
