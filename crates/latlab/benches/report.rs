//! Benchmark of `latlab report` on a record of 10⁸ samples: reading, checking, drawing, writing.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]
#![expect(clippy::disallowed_methods, reason = "the program is started as a user starts it")]

use latlab_core::atomic_histogram::AtomicHistogram;
use latlab_core::random::Random;
use latlab_core::time::Nanos;
use latlab_testing::sample;
use std::process::Command;
use std::time::Instant;

const SAMPLES: usize = 100_000_000;

fn main() {
    let folder = tempfile::tempdir().expect("a folder for temporary files can be made");
    let path = folder.path().join("record.json");
    let mut record = sample::record(1);
    for (series, seed) in record.series.iter_mut().zip(0..) {
        let histogram = AtomicHistogram::new();
        for number in Random::new(seed).take(SAMPLES / 3 + 1) {
            // A heavy tail: each further leading zero doubles the latency.
            histogram.record(Nanos((3_000 + number % 3_000) << number.leading_zeros()));
        }
        series.counts.recorded = histogram.recorded();
        series.set_histogram(&histogram.histogram());
    }
    let samples: u64 = record.series.iter().map(|series| series.counts.recorded).sum();
    std::fs::write(&path, record.to_json()).expect("the folder can be written to");
    let mut seconds: Vec<f64> = (0..9).map(|_| report(folder.path())).collect();
    seconds.sort_by(f64::total_cmp);
    let (least, median, most) = (seconds[0], seconds[4], seconds[8]);
    println!("latlab report of {samples} samples: median {median:.3} s ({least:.3} – {most:.3})");
}

fn report(folder: &std::path::Path) -> f64 {
    let begin = Instant::now();
    let status = Command::new(env!("CARGO_BIN_EXE_latlab"))
        .current_dir(folder)
        .args(["report", "record.json", "--svg", "."])
        .stderr(std::process::Stdio::null())
        .status()
        .expect("latlab can be started");
    assert!(status.success());
    begin.elapsed().as_secs_f64()
}
