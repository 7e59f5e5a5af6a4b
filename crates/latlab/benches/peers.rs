//! Comparison of latlab's probes with other tools that measure the same: alternate runs on the same
//! CPUs of rt-tests (hackbench, svsematest, ptsematest, pmqtest, `pi_stress`, signaltest, oslat)
//! and dbench (tbench). It prints medians and the ratios of pairs, because single figures of a
//! shared machine are not significant.
//!
//! `make bench` runs it; arguments: number of pairs, the names of the probes to compare, and
//! `lab:PROFILE` to run both in the laboratory, where no other program disturbs them.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]
#![expect(clippy::disallowed_methods, reason = "both programs are started as a user starts them")]

use latlab_core::record::{Record, Series};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A quantity that two programs measure.
struct Peer {
    /// Names of latlab's probe and of the other program.
    names: (&'static str, &'static str),
    /// Quantity that is compared, and its unit.
    quantity: (&'static str, &'static str),
    ours: fn(&BenchTarget) -> f64,
    theirs: fn(&BenchTarget) -> f64,
}

/// Target of both programs: this machine, or the laboratory, where one pair is enough.
struct BenchTarget {
    target: Option<String>,
    /// CPU to which both are pinned if they measure on one.
    cpu: &'static str,
}

static PEERS: &[Peer] = &[
    Peer {
        names: ("hackbench", "hackbench"),
        quantity: ("10 groups, 100 loops, 100 bytes", "s"),
        ours: |on| on.latlab("hackbench:groups=10,loops=100 --warm-up 0 --count 1").max("") / 1e9,
        theirs: |on| after(&on.shell("hackbench -g 10 -f 25 -l 100 -s 100"), "Time:"),
    },
    Peer {
        names: ("hackbench", "hackbench"),
        quantity: ("the same, threads over pipes", "s"),
        ours: |on| {
            let words = "hackbench:groups=10,loops=100,tasks=threads,over=pipes";
            on.latlab(&format!("{words} --warm-up 0 --count 1")).max("") / 1e9
        },
        theirs: |on| after(&on.shell("hackbench -g 10 -f 25 -l 100 -s 100 -T -p"), "Time:"),
    },
    Peer {
        names: ("netbench", "tbench"),
        quantity: ("2 clients", "MB/s"),
        ours: |on| on.latlab("netbench:clients=2 --warm-up 1s --for 4s").figure("throughput"),
        theirs: |on| {
            let server = "tbench_srv >/dev/null 2>&1 & server=$!; sleep 0.3";
            let client = "tbench -t 4 2 127.0.0.1; kill $server";
            after(&on.shell(&format!("{server}; {client}")), "Throughput")
        },
    },
    Peer {
        names: ("rhealstone.semaphore", "svsematest"),
        quantity: ("System V, mean", "us"),
        ours: |on| on.on_one_cpu("rhealstone.semaphore").mean("System V"),
        theirs: |on| on.rt_test("svsematest"),
    },
    Peer {
        names: ("mutex", "ptsematest"),
        quantity: ("without inheritance, mean", "us"),
        ours: |on| on.on_one_cpu("mutex").mean("plain"),
        theirs: |on| on.rt_test("ptsematest"),
    },
    Peer {
        names: ("rhealstone.message", "pmqtest"),
        quantity: ("POSIX queue, mean", "us"),
        ours: |on| on.on_one_cpu("rhealstone.message").mean("POSIX"),
        theirs: |on| on.rt_test("pmqtest"),
    },
    Peer {
        names: ("signal", "signaltest"),
        quantity: ("round of 2 tasks, least", "us"),
        ours: |on| on.on_one_cpu("signal").min("round"),
        theirs: |on| {
            let cpu = on.cpu;
            let output = on.shell(&format!("signaltest -q -a {cpu} -t 2 -p 90 -l 5000 -m"));
            after(output.lines().find(|line| line.contains("T: 0")).unwrap_or(&output), "Min:")
        },
    },
    Peer {
        names: ("noise", "oslat"),
        quantity: ("gaps of 1 us and more", "/s"),
        ours: |on| {
            let words = format!("noise:threshold=1us --cpus {} --for 5s", on.cpu);
            // The loop sleeps a tenth of the time.
            on.latlab(&words).recorded() / 4.5
        },
        theirs: |on| {
            let cpu = on.cpu;
            let output = on.shell(&format!(
                "oslat -c {cpu} -f 90 -D 5s -b 1024 -q --json /tmp/oslat.json >/dev/null; \
                 cat /tmp/oslat.json; rm /tmp/oslat.json"
            ));
            gaps(&output) / 5.0
        },
    },
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let target = words.iter().find(|word| word.starts_with("lab:")).cloned();
    let cpu = if target.is_some() { "0" } else { "1" };
    let pairs = words.iter().find_map(|word| word.parse().ok());
    let pairs = pairs.unwrap_or(if target.is_some() { 1 } else { 9 });
    let is_name = |word: &&String| word.parse::<u32>().is_err() && !word.starts_with("lab:");
    let named: Vec<&String> = words.iter().filter(is_name).collect();
    println!(
        "{:<22}{:<12}{:<40}{:>10}{:>10}{:>28}",
        "latlab", "peer", "quantity", "latlab", "peer", "ratio: median (quartiles)"
    );
    let on = BenchTarget { target, cpu };
    for peer in PEERS {
        if named.is_empty() || named.iter().any(|name| *name == peer.names.0) {
            compare(peer, &on, pairs);
        }
    }
}

fn compare(peer: &Peer, on: &BenchTarget, pairs: u32) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        // The order alternates, so that a drift of the machine affects both programs alike.
        if pair % 2 == 0 {
            ours.push((peer.ours)(on));
            theirs.push((peer.theirs)(on));
        } else {
            theirs.push((peer.theirs)(on));
            ours.push((peer.ours)(on));
        }
    }
    let ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(a, b)| a / b).collect();
    let [low, middle, high] = [0.25, 0.5, 0.75].map(|q| quantile(ratios.clone(), q));
    let (a, b) = (quantile(ours, 0.5), quantile(theirs, 0.5));
    let quantity = format!("{} ({})", peer.quantity.0, peer.quantity.1);
    println!(
        "{:<22}{:<12}{quantity:<40}{a:>10.3}{b:>10.3}{middle:>12.3} ({low:.3} – {high:.3})",
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

impl BenchTarget {
    fn target(&self) -> Vec<&str> {
        self.target.iter().flat_map(|target| ["--on", target]).collect()
    }

    /// Runs latlab with these arguments.
    fn latlab(&self, words: &str) -> Results {
        let mut command = Command::new(env!("CARGO_BIN_EXE_latlab"));
        command.arg("run").args(words.split(' ')).args(self.target()).arg("--json");
        Results(Record::from_json(&output(&mut command)).expect("latlab prints a record"))
    }

    /// Runs 5000 repetitions of a probe on one CPU.
    fn on_one_cpu(&self, probe: &str) -> Results {
        self.latlab(&format!("{probe} --cpus {} --count 5000", self.cpu))
    }

    /// Runs a shell command line and returns its output.
    fn shell(&self, line: &str) -> String {
        let Some(target) = &self.target else {
            return output(Command::new("sh").args(["-c", line]));
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_latlab"));
        command.args(["exec", "--on", target]);
        let is_file = |word: &&str| ["/bin", "/usr/bin"].iter().any(|at| join(at, word).exists());
        for word in line.split([' ', ';']).filter(is_file) {
            let path = ["/bin", "/usr/bin"].iter().map(|at| join(at, word)).find(|p| p.exists());
            command.arg("--with").args(path);
        }
        if line.contains("tbench") {
            command.args(["--with", "/usr/share/dbench/client.txt"]);
        }
        output(command.args(["--", "/bin/sh", "-c", line]))
    }

    /// Returns the mean, in whole microseconds, that one of rt-tests' programs prints.
    fn rt_test(&self, program: &str) -> f64 {
        let cpu = self.cpu;
        after(&self.shell(&format!("{program} -a {cpu} -t 1 -p 90 -i 200 -l 5000 -q")), "Avg")
    }
}

fn join(folder: &str, word: &str) -> PathBuf {
    Path::new(folder).join(word)
}

/// Results of latlab, in microseconds unless stated otherwise.
struct Results(Record);

#[expect(clippy::cast_precision_loss, reason = "a latency is far below 2^52 ns")]
impl Results {
    /// Returns the first series whose span contains this text.
    fn series(&self, text: &str) -> &Series {
        let matches =
            |series: &&Series| series.span.0.contains(text) || series.span.1.contains(text);
        self.0.series.iter().find(matches).expect("it was measured")
    }

    fn mean(&self, of: &str) -> f64 {
        self.series(of).mean.0 as f64 / 1e3
    }

    fn min(&self, of: &str) -> f64 {
        self.series(of).min.0 as f64 / 1e3
    }

    /// Returns the maximum in nanoseconds.
    fn max(&self, of: &str) -> f64 {
        self.series(of).max.0 as f64
    }

    fn recorded(&self) -> f64 {
        self.series("").counts.recorded as f64
    }

    fn figure(&self, name: &str) -> f64 {
        let figure = self.0.figures.iter().find(|figure| figure.name == name);
        figure.expect("it was measured").value
    }
}

/// Returns the number of gaps of 1 us and more that oslat counted: in rt-tests 2.4 a bucket is
/// named by its upper bound, and times are rounded down to whole microseconds.
fn gaps(json: &str) -> f64 {
    let json: serde_json::Value = serde_json::from_str(json).expect("oslat writes JSON");
    let buckets = json["thread"]["0"]["histogram"].as_object().expect("oslat has buckets");
    let long = buckets.iter().filter(|(at, _)| at.parse::<u32>().is_ok_and(|at| at >= 2));
    long.filter_map(|(_, count)| count.as_f64()).sum()
}

/// Returns the last number that follows this word.
fn after(text: &str, word: &str) -> f64 {
    let number = |(at, _): (usize, &str)| {
        let number = text[at + word.len()..].trim_start();
        let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
        number[..end].parse().ok()
    };
    let last = text.match_indices(word).filter_map(number).last();
    last.unwrap_or_else(|| panic!("no number after {word}: {text}"))
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
