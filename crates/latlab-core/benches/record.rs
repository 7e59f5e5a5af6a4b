//! Cost of recording samples, reading them back and merging histograms.

use divan::{Bencher, black_box};
use latlab_core::atomic_histogram::AtomicHistogram;
use latlab_core::histogram::Histogram;
use latlab_core::random::Random;
use latlab_core::time::Nanos;

fn main() {
    divan::main();
}

/// Latencies of 3 to 35 µs, as on a desktop machine.
fn latencies() -> Vec<Nanos> {
    Random::new(1).map(|n| Nanos(3_000 + n % 32_000)).take(10_000).collect()
}

#[divan::bench]
fn record_ten_thousand_samples(bencher: Bencher<'_, '_>) {
    let (histogram, latencies) = (AtomicHistogram::new(), latencies());
    bencher.counter(latencies.len()).bench_local(|| {
        for latency in &latencies {
            histogram.record(black_box(*latency));
        }
    });
}

#[divan::bench]
fn read_back(bencher: Bencher<'_, '_>) {
    let histogram = full();
    bencher.bench_local(|| black_box(&histogram).histogram());
}

#[divan::bench]
fn quantiles(bencher: Bencher<'_, '_>) {
    let histogram = full().histogram();
    bencher.bench_local(|| black_box(&histogram).quantiles());
}

#[divan::bench]
fn merge(bencher: Bencher<'_, '_>) {
    let (mut sum, histogram) = (Histogram::new(), full().histogram());
    bencher.bench_local(|| sum.add(black_box(&histogram)));
}

fn full() -> AtomicHistogram {
    let histogram = AtomicHistogram::new();
    for latency in latencies() {
        histogram.record(latency);
    }
    histogram
}
