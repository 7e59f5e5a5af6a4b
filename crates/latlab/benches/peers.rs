//! latlab's benchmarks and those of the field that ask the same, in turns on the same CPUs: rt-tests
//! (hackbench, svsematest, ptsematest, pmqtest, `pi_stress`, signaltest, oslat) and dbench (tbench).
//! Quoted are medians and the ratios pair by pair; single figures of a shared machine mean nothing.
//!
//! `make bench` runs it; arguments: number of pairs, and the names of the benchmarks to compare.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]
#![expect(clippy::disallowed_methods, reason = "both programs are started as a user starts them")]

use latlab_core::record::{Record, Series};
use std::process::{Child, Command, Stdio};

/// One question that two programs answer.
struct Peer {
    /// Ours; theirs.
    names: (&'static str, &'static str),
    /// What is compared, and its unit.
    quantity: (&'static str, &'static str),
    ours: fn() -> f64,
    theirs: fn() -> f64,
}

/// The CPU that both are bound to where they measure on one.
const CPU: &str = "1";

static PEERS: &[Peer] = &[
    Peer {
        names: ("hackbench", "hackbench"),
        quantity: ("10 groups, 100 loops, 100 bytes", "s"),
        ours: || seconds(mean(&latlab(&["hackbench:groups=10,loops=100", "--count", "1"]), "")),
        theirs: || after(&said("hackbench", &["-g", "10", "-l", "100", "-s", "100"]), "Time:"),
    },
    Peer {
        names: ("netbench", "tbench"),
        quantity: ("throughput, 2 clients", "MB/s"),
        ours: || figure(&latlab(&["netbench:clients=2", "--for", "5s"]), "throughput"),
        theirs: || {
            let _server = Server::start("tbench_srv", &[]);
            after(&said("tbench", &["-t", "5", "2", "127.0.0.1"]), "Throughput")
        },
    },
    Peer {
        names: ("rhealstone.semaphore", "svsematest"),
        quantity: ("System V, mean", "us"),
        ours: || micros(mean(&bound("rhealstone.semaphore", "5000"), "System V")),
        theirs: || rt_test("svsematest"),
    },
    Peer {
        names: ("mutex", "ptsematest"),
        quantity: ("hand-over, mean", "us"),
        ours: || micros(mean(&bound("mutex", "5000"), "")),
        theirs: || rt_test("ptsematest"),
    },
    Peer {
        names: ("rhealstone.message", "pmqtest"),
        quantity: ("POSIX queue, mean", "us"),
        ours: || micros(mean(&bound("rhealstone.message", "5000"), "POSIX")),
        theirs: || rt_test("pmqtest"),
    },
    Peer {
        names: ("signal", "signaltest"),
        quantity: ("round of 2 threads, mean", "us"),
        ours: || micros(mean(&bound("signal", "5000"), "")),
        theirs: || {
            let words = ["-q", "-a", CPU, "-t", "2", "-p", "90", "-l", "5000", "-m"];
            after(&said("signaltest", &words), "Avg:")
        },
    },
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let pairs = words.iter().find_map(|word| word.parse().ok()).unwrap_or(9);
    let named: Vec<&String> = words.iter().filter(|word| word.parse::<u32>().is_err()).collect();
    println!(
        "{:<22}{:<14}{:<34}{:>12}{:>12}{:>28}",
        "latlab", "peer", "quantity", "latlab", "peer", "ratio: median (quartiles)"
    );
    for peer in PEERS {
        if named.is_empty() || named.iter().any(|name| *name == peer.names.0) {
            compare(peer, pairs);
        }
    }
}

fn compare(peer: &Peer, pairs: u32) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        // The order alternates, so that a drift of the machine falls on both alike.
        if pair % 2 == 0 {
            ours.push((peer.ours)());
            theirs.push((peer.theirs)());
        } else {
            theirs.push((peer.theirs)());
            ours.push((peer.ours)());
        }
    }
    let ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(a, b)| a / b).collect();
    let [low, middle, high] = [0.25, 0.5, 0.75].map(|q| quantile(ratios.clone(), q));
    let (a, b) = (quantile(ours, 0.5), quantile(theirs, 0.5));
    let quantity = format!("{} ({})", peer.quantity.0, peer.quantity.1);
    println!(
        "{:<22}{:<14}{quantity:<34}{a:>12.3}{b:>12.3}{middle:>12.3} ({low:.3} – {high:.3})",
        peer.names.0, peer.names.1
    );
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a handful of runs"
)]
fn quantile(mut values: Vec<f64>, q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * q).round() as usize]
}

/// What a run of latlab found.
fn latlab(words: &[&str]) -> Record {
    let mut command = Command::new(env!("CARGO_BIN_EXE_latlab"));
    command.arg("run").args(words).arg("--json");
    Record::from_json(&output(&mut command)).expect("latlab prints a record")
}

/// What so many repetitions of a probe found on [`CPU`].
fn bound(probe: &str, count: &str) -> Record {
    latlab(&[probe, "--cpus", CPU, "--count", count])
}

/// The mean, in nanoseconds, of the first series whose span speaks of this.
fn mean(record: &Record, of: &str) -> f64 {
    let speaks = |series: &&Series| series.span.0.contains(of) || series.span.1.contains(of);
    let series = record.series.iter().find(speaks).expect("it was measured");
    #[expect(clippy::cast_precision_loss, reason = "a latency is far below 2^52 ns")]
    let mean = series.mean.0 as f64;
    mean
}

fn figure(record: &Record, name: &str) -> f64 {
    let figure = record.figures.iter().find(|figure| figure.name == name);
    figure.expect("it was measured").value
}

fn micros(nanos: f64) -> f64 {
    nanos / 1e3
}

fn seconds(nanos: f64) -> f64 {
    nanos / 1e9
}

/// The mean, in whole microseconds, that one of rt-tests' pairs of threads prints.
fn rt_test(program: &str) -> f64 {
    after(&said(program, &["-a", CPU, "-t", "1", "-p", "90", "-i", "200", "-l", "5000"]), "Avg")
}

/// The last number that stands behind this word.
fn after(text: &str, word: &str) -> f64 {
    let number = |(at, _): (usize, &str)| {
        let number = text[at + word.len()..].trim_start();
        let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
        number[..end].parse().ok()
    };
    let last = text.match_indices(word).filter_map(number).last();
    last.unwrap_or_else(|| panic!("no number behind {word}: {text}"))
}

/// What a program prints on either stream.
fn said(program: &str, words: &[&str]) -> String {
    output(Command::new(program).args(words))
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {complaints}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A program that works until it is dropped.
struct Server(Child);

impl Server {
    fn start(program: &str, words: &[&str]) -> Server {
        let mut command = Command::new(program);
        command.args(words).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Server(command.spawn().unwrap_or_else(|e| panic!("{program}: {e}")));
        std::thread::sleep(std::time::Duration::from_millis(300));
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
