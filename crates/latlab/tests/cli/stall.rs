//! Stalls: every period that passed is recorded or counted as missed.

use crate::program::{Running, assert_once_in_three, command, latlab, lock_machine, pause, root};
use latlab_core::time::Nanos;
use std::time::{Duration, Instant};

#[test]
fn periods_missed_while_stopped_are_counted() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    assert_once_in_three(stop_and_continue);
}

/// Stops a run for half a second. An error if the machine stopped it for another half: one did for
/// 551 ms, beside busy guests. Before, the first run had to be right.
fn stop_and_continue() -> Result<(), String> {
    let words = "run cyclic:interval=1ms,policy=fifo --for 3s --cpus 0 --json";
    let mut run = Running::start(&mut command(words));
    run.wait_until_measuring();
    pause(Duration::from_millis(900));
    let stopped = Instant::now();
    run.signal("STOP");
    pause(Duration::from_millis(500));
    run.signal("CONT");
    // On a busy machine the process may be stopped for longer.
    let stopped = stopped.elapsed().as_millis();
    let output = run.finish();
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let series = &record.series[0];
    let counts = series.counts;
    let plausible = 400..=stopped + 500;
    // The last wake-up may be late as well, and miss periods after the end.
    let periods = counts.recorded + counts.missed;
    if !plausible.contains(&counts.missed.into()) || !(3_000..3_100).contains(&periods) {
        return Err(format!("{counts:?}, stopped for {stopped} ms"));
    }
    assert!(series.quantiles.p99 < Nanos::from_millis(100), "{:?}", series.quantiles);
    assert!(series.corrected.p99 > Nanos::from_millis(400), "{:?}", series.corrected);
    assert!(series.max >= Nanos::from_millis(400));
    let histogram = series.histogram().expect("the record has a histogram");
    assert_eq!(histogram.count(), counts.recorded);
    let last = histogram.buckets().last().expect("samples were recorded");
    assert!(last.from <= series.max && series.max < last.to, "{last:?}: {}", series.max);
    assert_eq!(record.worst[0].latency, series.max);
    let shown = series.timeline.points().map(|(_, worst)| worst).max();
    assert_eq!(shown, Some(series.max));
    Ok(())
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
