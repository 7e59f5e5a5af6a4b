//! latlab's `cyclic` and rt-tests' `cyclictest`, in turns on one CPU: the same priority, interval
//! and number of wake-ups. Quoted are medians and ratios; single times on a shared machine mean
//! nothing.
//!
//! `make bench` runs it; arguments: number of pairs, wake-ups a run, CPU.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]
#![expect(clippy::disallowed_methods, reason = "both programs are started as a user starts them")]

use latlab_core::record::Record;
use std::process::Command;

/// What one run of either program gave, in nanoseconds.
struct Run {
    min: f64,
    p50: f64,
    p99: f64,
    /// CPU time of the whole process, by wake-up.
    cpu: f64,
}

/// The same for both programs: how often a run wakes, where, and whether the CPUs may sleep.
#[derive(Clone, Copy)]
struct Setting {
    count: u64,
    cpu: u64,
    /// Whether `/dev/cpu_dma_latency` is held at 0, as cyclictest does unless told otherwise.
    awake: bool,
}

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse::<u64>().ok());
    let pairs = numbers.next().unwrap_or(15);
    let count = numbers.next().unwrap_or(5_000);
    let cpu = numbers.next().unwrap_or(0);
    for awake in [true, false] {
        compare(pairs, Setting { count, cpu, awake });
    }
}

fn compare(pairs: u64, setting: Setting) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        // The order alternates, so that a drift of the machine falls on both alike.
        if pair % 2 == 0 {
            ours.push(latlab(setting));
            theirs.push(cyclictest(setting));
        } else {
            theirs.push(cyclictest(setting));
            ours.push(latlab(setting));
        }
    }
    let Setting { count, cpu, awake } = setting;
    let idle = if awake { "cpu_dma_latency held at 0" } else { "idle states as they are" };
    println!("{pairs} pairs of {count} wake-ups every 1 ms, FIFO 90, CPU {cpu}, {idle}; µs");
    println!("{:<14}{:>10}{:>12}{:>28}", "", "latlab", "cyclictest", "ratio: median (quartiles)");
    line("min", &ours, &theirs, |run| run.min);
    line("p50", &ours, &theirs, |run| run.p50);
    line("p99", &ours, &theirs, |run| run.p99);
    line("CPU / wake-up", &ours, &theirs, |run| run.cpu);
    println!();
}

fn line(name: &str, ours: &[Run], theirs: &[Run], of: impl Fn(&Run) -> f64) {
    let mut ratios: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| of(a) / of(b)).collect();
    let micros = |runs: &[Run]| quantile(&mut runs.iter().map(&of).collect::<Vec<_>>(), 0.5) / 1e3;
    let (a, b) = (micros(ours), micros(theirs));
    let [low, median, high] = [0.25, 0.5, 0.75].map(|q| quantile(&mut ratios, q));
    println!("{name:<14}{a:>10.2}{b:>12.2}{median:>12.3} ({low:.3} – {high:.3})");
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a handful of runs"
)]
fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * q).round() as usize]
}

fn latlab(setting: Setting) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_latlab"));
    command.args(["run", "cyclic:interval=1ms,priority=90", "--warm-up", "0", "--json"]);
    command.args(["--count", &setting.count.to_string(), "--cpus", &setting.cpu.to_string()]);
    if setting.awake {
        command.args(["--set", "cpu_dma_latency=0"]);
    }
    let (text, time) = timed(&mut command);
    let record = Record::from_json(&text).expect("latlab prints a record");
    let series = &record.series[0];
    #[expect(clippy::cast_precision_loss, reason = "a latency is far below 2^52 ns")]
    let [min, p50, p99] =
        [series.min, series.quantiles.p50, series.quantiles.p99].map(|time| time.0 as f64);
    Run { min, p50, p99, cpu: time / per(setting.count) }
}

/// cyclictest, told to do the same.
fn command(setting: Setting) -> Command {
    let mut command = Command::new("cyclictest");
    command.args(["-q", "-m", "-p", "90", "-i", "1000", "-t", "1"]);
    command.args(["-l", &setting.count.to_string(), "-a", &setting.cpu.to_string()]);
    if !setting.awake {
        command.arg("--laptop");
    }
    command
}

/// Two runs: the histogram in nanoseconds costs cyclictest more than all it measures, so its CPU
/// time is taken without.
fn cyclictest(setting: Setting) -> Run {
    let (_, time) = timed(&mut command(setting));
    // Up to one millisecond: its histogram drops what is above.
    let (text, _) = timed(command(setting).args(["-N", "-h", "1000000", "--json=/dev/stdout"]));
    let from = text.find('{').expect("cyclictest prints JSON");
    let json: serde_json::Value = serde_json::Deserializer::from_str(&text[from..])
        .into_iter()
        .next()
        .and_then(Result::ok)
        .expect("cyclictest prints JSON");
    let thread = &json["thread"]["0"];
    let mut samples: Vec<(f64, u64)> = thread["histogram"]
        .as_object()
        .expect("a histogram was asked for")
        .iter()
        .map(|(time, n)| (time.parse().unwrap_or(0.0), n.as_u64().unwrap_or(0)))
        .collect();
    samples.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = |share: f64| {
        let mut left = share * per(setting.count);
        let place = samples.iter().find(|(_, n)| {
            left -= per(*n);
            left <= 0.0
        });
        place.map_or(1e6, |(time, _)| *time)
    };
    Run { min: samples[0].0, p50: at(0.5), p99: at(0.99), cpu: time / per(setting.count) }
}

#[expect(clippy::cast_precision_loss, reason = "a count of wake-ups")]
fn per(count: u64) -> f64 {
    count as f64
}

/// What a program prints, and the CPU time it took, from the kernel's account of ended children.
fn timed(command: &mut Command) -> (String, f64) {
    let before = latlab_sys::usage::of_children();
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let time = latlab_sys::usage::of_children() - before;
    (String::from_utf8_lossy(&output.stdout).into_owned(), per(time.0))
}
