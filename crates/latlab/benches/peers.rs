//! latlab's benchmarks and those of the field that ask the same, in turns on the same CPUs: rt-tests
//! (hackbench, svsematest, ptsematest, pmqtest, `pi_stress`, signaltest, oslat) and dbench (tbench).
//! Quoted are medians and the ratios pair by pair; single figures of a shared machine mean nothing.
//!
//! `make bench` runs it; arguments: number of pairs, the names of the benchmarks to compare, and
//! `lab:PROFILE` to have both in the laboratory, where no other program disturbs them.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]
#![expect(clippy::disallowed_methods, reason = "both programs are started as a user starts them")]

use latlab_core::record::{Record, Series};
use std::path::{Path, PathBuf};
use std::process::Command;

/// One question that two programs answer.
struct Peer {
    /// Ours; theirs.
    names: (&'static str, &'static str),
    /// What is compared, and its unit.
    quantity: (&'static str, &'static str),
    ours: fn(&Place) -> f64,
    theirs: fn(&Place) -> f64,
}

/// Where both run: on this machine, or in the laboratory, where one pair is enough.
struct Place {
    target: Option<String>,
    /// The CPU that both are bound to where they measure on one.
    cpu: &'static str,
}

static PEERS: &[Peer] = &[
    Peer {
        names: ("hackbench", "hackbench"),
        quantity: ("10 groups, 100 loops, 100 bytes", "s"),
        ours: |on| on.latlab("hackbench:groups=10,loops=100 --warm-up 0 --count 1").max("") / 1e9,
        theirs: |on| after(&on.said("hackbench -g 10 -f 25 -l 100 -s 100"), "Time:"),
    },
    Peer {
        names: ("hackbench", "hackbench"),
        quantity: ("the same, threads over pipes", "s"),
        ours: |on| {
            let words = "hackbench:groups=10,loops=100,tasks=threads,over=pipes";
            on.latlab(&format!("{words} --warm-up 0 --count 1")).max("") / 1e9
        },
        theirs: |on| after(&on.said("hackbench -g 10 -f 25 -l 100 -s 100 -T -p"), "Time:"),
    },
    Peer {
        names: ("netbench", "tbench"),
        quantity: ("2 clients", "MB/s"),
        ours: |on| on.latlab("netbench:clients=2 --warm-up 1s --for 4s").figure("throughput"),
        theirs: |on| {
            let server = "tbench_srv >/dev/null 2>&1 & server=$!; sleep 0.3";
            let client = "tbench -t 4 2 127.0.0.1; kill $server";
            after(&on.said(&format!("{server}; {client}")), "Throughput")
        },
    },
    Peer {
        names: ("rhealstone.semaphore", "svsematest"),
        quantity: ("System V, mean", "us"),
        ours: |on| on.bound("rhealstone.semaphore").mean("System V"),
        theirs: |on| on.rt_test("svsematest"),
    },
    Peer {
        names: ("mutex", "ptsematest"),
        quantity: ("without inheritance, mean", "us"),
        ours: |on| on.bound("mutex").mean("plain"),
        theirs: |on| on.rt_test("ptsematest"),
    },
    Peer {
        names: ("rhealstone.message", "pmqtest"),
        quantity: ("POSIX queue, mean", "us"),
        ours: |on| on.bound("rhealstone.message").mean("POSIX"),
        theirs: |on| on.rt_test("pmqtest"),
    },
    Peer {
        names: ("signal", "signaltest"),
        quantity: ("round of 2 tasks, least", "us"),
        ours: |on| on.bound("signal").min("round"),
        theirs: |on| {
            let cpu = on.cpu;
            let said = on.said(&format!("signaltest -q -a {cpu} -t 2 -p 90 -l 5000 -m"));
            after(said.lines().find(|line| line.contains("T: 0")).unwrap_or(&said), "Min:")
        },
    },
    Peer {
        names: ("noise", "oslat"),
        quantity: ("gaps of 1 us and more", "/s"),
        ours: |on| {
            let words = format!("noise:threshold=1us --cpus {} --for 5s", on.cpu);
            // It rests a tenth of the time.
            on.latlab(&words).recorded() / 4.5
        },
        theirs: |on| {
            let cpu = on.cpu;
            let said = on.said(&format!(
                "oslat -c {cpu} -f 90 -D 5s -b 1024 -q --json /tmp/oslat.json >/dev/null; \
                 cat /tmp/oslat.json; rm /tmp/oslat.json"
            ));
            gaps(&said) / 5.0
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
    let place = Place { target, cpu };
    for peer in PEERS {
        if named.is_empty() || named.iter().any(|name| *name == peer.names.0) {
            compare(peer, &place, pairs);
        }
    }
}

fn compare(peer: &Peer, place: &Place, pairs: u32) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        // The order alternates, so that a drift of the machine falls on both alike.
        if pair % 2 == 0 {
            ours.push((peer.ours)(place));
            theirs.push((peer.theirs)(place));
        } else {
            theirs.push((peer.theirs)(place));
            ours.push((peer.ours)(place));
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

impl Place {
    fn target(&self) -> Vec<&str> {
        self.target.iter().flat_map(|target| ["--on", target]).collect()
    }

    /// What a run of latlab with these words found.
    fn latlab(&self, words: &str) -> Found {
        let mut command = Command::new(env!("CARGO_BIN_EXE_latlab"));
        command.arg("run").args(words.split(' ')).args(self.target()).arg("--json");
        Found(Record::from_json(&output(&mut command)).expect("latlab prints a record"))
    }

    /// What a few thousand repetitions of a probe found on one CPU.
    fn bound(&self, probe: &str) -> Found {
        self.latlab(&format!("{probe} --cpus {} --count 5000", self.cpu))
    }

    /// What a line of shell prints.
    fn said(&self, line: &str) -> String {
        let Some(target) = &self.target else {
            return output(Command::new("sh").args(["-c", line]));
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_latlab"));
        command.args(["exec", "--on", target]);
        let is_file = |word: &&str| ["/bin", "/usr/bin"].iter().any(|at| there(at, word).exists());
        for word in line.split([' ', ';']).filter(is_file) {
            let path = ["/bin", "/usr/bin"].iter().map(|at| there(at, word)).find(|p| p.exists());
            command.arg("--with").args(path);
        }
        if line.contains("tbench") {
            command.args(["--with", "/usr/share/dbench/client.txt"]);
        }
        output(command.args(["--", "/bin/sh", "-c", line]))
    }

    /// The mean, in whole microseconds, that one of rt-tests' pairs of threads prints.
    fn rt_test(&self, program: &str) -> f64 {
        let cpu = self.cpu;
        after(&self.said(&format!("{program} -a {cpu} -t 1 -p 90 -i 200 -l 5000 -q")), "Avg")
    }
}

fn there(folder: &str, word: &str) -> PathBuf {
    Path::new(folder).join(word)
}

/// What latlab found; times in microseconds.
struct Found(Record);

#[expect(clippy::cast_precision_loss, reason = "a latency is far below 2^52 ns")]
impl Found {
    /// The first series whose span speaks of this.
    fn series(&self, of: &str) -> &Series {
        let speaks = |series: &&Series| series.span.0.contains(of) || series.span.1.contains(of);
        self.0.series.iter().find(speaks).expect("it was measured")
    }

    fn mean(&self, of: &str) -> f64 {
        self.series(of).mean.0 as f64 / 1e3
    }

    fn min(&self, of: &str) -> f64 {
        self.series(of).min.0 as f64 / 1e3
    }

    /// In nanoseconds.
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

/// How many loops of 1 us and more oslat has: in rt-tests 2.4 a bucket bears the time where it ends,
/// and whole microseconds are rounded down.
fn gaps(json: &str) -> f64 {
    let json: serde_json::Value = serde_json::from_str(json).expect("oslat writes JSON");
    let buckets = json["thread"]["0"]["histogram"].as_object().expect("oslat has buckets");
    let long = buckets.iter().filter(|(at, _)| at.parse::<u32>().is_ok_and(|at| at >= 2));
    long.filter_map(|(_, count)| count.as_f64()).sum()
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

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {complaints}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
