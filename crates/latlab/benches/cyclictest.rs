//! Comparison of latlab's `cyclic` with rt-tests' `cyclictest`: alternate runs on one CPU, with the
//! same priority, interval and number of wake-ups. It prints medians and ratios, because single
//! times on a shared machine are not significant.
//!
//! `make bench` runs it; arguments: number of pairs, wake-ups per run, CPU.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]
#![expect(clippy::disallowed_methods, reason = "both programs are started as a user starts them")]

use latlab_core::record::Record;
use latlab_core::time::Nanos;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Result of one run of either program, in nanoseconds.
struct Run {
    min: f64,
    p50: f64,
    p99: f64,
    /// CPU time of the whole process per wake-up, without that of a run with one wake-up.
    cpu: f64,
}

/// Setting of both programs: number of wake-ups, CPU, and use of idle states.
#[derive(Clone, Copy)]
struct Setting {
    count: u64,
    cpu: u64,
    idle: Idle,
}

/// Use of idle states between two wake-ups.
#[derive(Clone, Copy, PartialEq)]
enum Idle {
    /// Disabled: `/dev/cpu_dma_latency` is held at 0, as cyclictest does by default.
    Disabled,
    /// Enabled. cyclictest's own main thread wakes up on the same CPU every 10 ms.
    Enabled,
    /// Enabled, with a thread besides latlab that wakes up every 10 ms on that CPU, as cyclictest's
    /// main thread does.
    EnabledWithWaker,
}

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse::<u64>().ok());
    let pairs = numbers.next().unwrap_or(12);
    let count = numbers.next().unwrap_or(3_000);
    let cpu = numbers.next().unwrap_or(0);
    let start_up = Setting { count: 1, cpu, idle: Idle::Disabled };
    let ours = median((0..9).map(|_| timed(&mut latlab_command(start_up)).1));
    let theirs = median((0..9).map(|_| timed(&mut cyclictest_command(start_up)).1));
    println!(
        "CPU time of a run with one wake-up: latlab {:.2} ms, cyclictest {:.2} ms\n",
        ours / 1e6,
        theirs / 1e6
    );
    for idle in [Idle::Disabled, Idle::Enabled, Idle::EnabledWithWaker] {
        compare(pairs, Setting { count, cpu, idle }, (ours, theirs));
    }
}

fn compare(pairs: u64, setting: Setting, start_up: (f64, f64)) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        // The order alternates, so that a drift of the machine affects both programs alike.
        if pair % 2 == 0 {
            ours.push(latlab(setting, start_up.0));
            theirs.push(cyclictest(setting, start_up.1));
        } else {
            theirs.push(cyclictest(setting, start_up.1));
            ours.push(latlab(setting, start_up.0));
        }
    }
    let Setting { count, cpu, idle } = setting;
    let idle = match idle {
        Idle::Disabled => "cpu_dma_latency held at 0",
        Idle::Enabled => "idle states enabled",
        Idle::EnabledWithWaker => {
            "idle states enabled, with a thread besides latlab that wakes up every 10 ms"
        }
    };
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
    let micros = |runs: &[Run]| median(runs.iter().map(&of)) / 1e3;
    let (a, b) = (micros(ours), micros(theirs));
    let [low, median, high] = [0.25, 0.5, 0.75].map(|q| quantile(&mut ratios, q));
    println!("{name:<14}{a:>10.2}{b:>12.2}{median:>12.3} ({low:.3} – {high:.3})");
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    quantile(&mut values.collect::<Vec<_>>(), 0.5)
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

fn latlab_command(setting: Setting) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_latlab"));
    command.args(["run", "cyclic:interval=1ms,priority=90", "--warm-up", "0", "--json"]);
    command.args(["--count", &setting.count.to_string(), "--cpus", &setting.cpu.to_string()]);
    if setting.idle == Idle::Disabled {
        command.args(["--set", "cpu_dma_latency=0"]);
    }
    command
}

fn latlab(setting: Setting, start_up: f64) -> Run {
    let _waker = (setting.idle == Idle::EnabledWithWaker).then(|| Waker::start(setting.cpu));
    let (text, time) = timed(&mut latlab_command(setting));
    let record = Record::from_json(&text).expect("latlab prints a record");
    let series = &record.series[0];
    #[expect(clippy::cast_precision_loss, reason = "a latency is far below 2^52 ns")]
    let [min, p50, p99] =
        [series.min, series.quantiles.p50, series.quantiles.p99].map(|time| time.0 as f64);
    Run { min, p50, p99, cpu: (time - start_up) / per(setting.count) }
}

/// A thread that wakes up every 10 ms on a CPU until this is dropped.
struct Waker(Arc<AtomicBool>);

impl Waker {
    fn start(cpu: u64) -> Waker {
        let running = Arc::new(AtomicBool::new(true));
        let is_running = Arc::clone(&running);
        std::thread::spawn(move || {
            let cpu = u32::try_from(cpu).expect("a CPU's number is small");
            latlab_sys::cpu::pin(&[cpu].into_iter().collect()).expect("the CPU exists");
            while is_running.load(Relaxed) {
                latlab_sys::clock::sleep_for(Nanos::from_millis(10));
            }
        });
        Waker(running)
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        self.0.store(false, Relaxed);
    }
}

/// Returns the command of cyclictest with the same setting.
fn cyclictest_command(setting: Setting) -> Command {
    let mut command = Command::new("cyclictest");
    command.args(["-q", "-m", "-p", "90", "-i", "1000", "-t", "1"]);
    command.args(["-l", &setting.count.to_string(), "-a", &setting.cpu.to_string()]);
    if setting.idle != Idle::Disabled {
        command.arg("--laptop");
    }
    command
}

/// Runs cyclictest twice: its histogram in nanoseconds costs more CPU time than the measurement, so
/// the CPU time is taken from a run without it.
fn cyclictest(setting: Setting, start_up: f64) -> Run {
    let (_, time) = timed(&mut cyclictest_command(setting));
    // Its histogram drops samples above its limit of one millisecond.
    let (text, _) =
        timed(cyclictest_command(setting).args(["-N", "-h", "1000000", "--json=/dev/stdout"]));
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
    Run {
        min: samples[0].0,
        p50: at(0.5),
        p99: at(0.99),
        cpu: (time - start_up) / per(setting.count),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count of wake-ups")]
fn per(count: u64) -> f64 {
    count as f64
}

/// Returns the output of a program and its CPU time, from the kernel's account of ended children.
fn timed(command: &mut Command) -> (String, f64) {
    let before = latlab_sys::usage::of_children();
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let time = latlab_sys::usage::of_children() - before;
    (String::from_utf8_lossy(&output.stdout).into_owned(), per(time.0))
}
