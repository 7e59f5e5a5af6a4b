//! Stalls: every period that passed is recorded or counted as missed.

use crate::measuring::{measuring_threads, wait_until_sampled};
use crate::program::{Running, command, field, latlab, lock_machine, pause, root, wait_until};
use latlab_core::histogram::Bucket;
use latlab_core::record::Series;
use latlab_core::time::Nanos;
use std::time::{Duration, Instant};

/// The run lasts longer than it takes to stop it on a busy machine.
#[test]
fn periods_missed_while_stopped_are_counted() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let words = "run cyclic:interval=1ms,policy=fifo --for 5s --warm-up 0 --cpus 0 --json";
    let run = Running::start(&mut command(words));
    wait_until_sampled(run.pid());
    run.signal("STOP");
    let is_stopped = |task| field(task, "State").is_some_and(|state| state.starts_with('T'));
    wait_until("it is stopped", || measuring_threads(run.pid()).into_iter().any(is_stopped));
    let began = Instant::now();
    pause(Duration::from_millis(500));
    let stopped = began.elapsed();
    run.signal("CONT");
    let output = run.finish();
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let series = &record.series[0];
    assert_missed(series, u64::try_from(stopped.as_millis()).expect("a small number"));
    assert_eq!(record.worst[0].latency, series.max);
    let shown = series.timeline.points().map(|(_, worst)| worst).max();
    assert_eq!(shown, Some(series.max));
}

/// Asserts that a run of 5000 periods of 1 ms has missed those in which it was stopped, for this number
/// of milliseconds at least. A machine that stalls makes it miss others, each of which is part of a
/// latency as well.
fn assert_missed(series: &Series, stopped: u64) {
    let in_periods = |time: Nanos| time.0 / 1_000_000;
    let counts = series.counts;
    // The stop may begin and end within a period.
    assert!(counts.missed + 2 >= stopped, "{counts:?}, stopped for {stopped} ms");
    assert!(in_periods(series.max) + 1 >= stopped, "{}, stopped for {stopped} ms", series.max);
    let histogram = series.histogram().expect("the record has a histogram");
    assert_eq!(histogram.count(), counts.recorded);
    let sum = |of: fn(&Bucket) -> Nanos| {
        histogram.buckets().map(|bucket| bucket.count * in_periods(of(&bucket))).sum::<u64>()
    };
    let missed = sum(|bucket| bucket.from)..=sum(|bucket| bucket.to);
    assert!(missed.contains(&counts.missed), "{counts:?} are not {missed:?}");
    // The last wake-up may miss periods after the end.
    let periods = 5_000..=5_000 + in_periods(series.max);
    assert!(periods.contains(&(counts.recorded + counts.missed)), "{counts:?}");
    assert!(series.quantiles.p99 < Nanos::from_millis(100), "{:?}", series.quantiles);
    assert!(series.corrected.p99 > Nanos::from_millis(400), "{:?}", series.corrected);
    let last = histogram.buckets().last().expect("samples were recorded");
    assert!(last.from <= series.max && series.max < last.to, "{last:?}: {}", series.max);
}

#[test]
fn count_of_periods_is_reached_on_every_cpu_by_every_probe() {
    let _lock = lock_machine();
    let probes = ["cyclic", "nanosleep:1ms", "timer:source=posix", "timer:source=fd"];
    for probe in probes {
        let output =
            latlab(&format!("run {probe} --policy other --count 50 --warm-up 20ms --json"));
        assert_eq!(output.code(), Some(0), "{probe}: {output:?}");
        let record = output.record();
        let cpus = record.plan.cpus.len();
        assert_eq!(record.series.len() % cpus, 0, "{probe}");
        for series in &record.series {
            let counts = series.counts;
            assert!(counts.recorded + counts.missed >= 50, "{probe}: {counts:?}");
        }
    }
}
