//! Sample record for tests, with known numbers in a real histogram.

use latlab_core::atomic_histogram::AtomicHistogram;
use latlab_core::machine::Machine;
use latlab_core::plan::{Length, Part, Plan};
use latlab_core::record::{
    Change, Charge, Counts, Figure, Record, SCHEMA, Sample, Schedule, Series, WarmUp, Warning,
    WarningCode, Work,
};
use latlab_core::time::Nanos;
use latlab_core::timeline::Timeline;

/// Number of periods of each series, a millisecond each.
pub const PERIODS: u64 = 20_000;
/// The CPU that stalled, and the duration of the stall.
pub const STALLED: (u32, Nanos) = (1, Nanos(2_000_000_000));

/// Returns 20 s of `cyclic` on three CPUs; CPU 1 stalls for 2 s and misses 1999 periods. Every
/// latency except the stall is multiplied by `times`.
pub fn record(times: u64) -> Record {
    let interval = Nanos::from_millis(1);
    Record {
        schema: SCHEMA,
        tool: "latlab 0.1.0".to_owned(),
        started: Nanos::from_secs(1_795_172_640),
        runs: 1,
        plan: plan(),
        fingerprint: None,
        machine: machine(),
        series: (0..3).map(|cpu| series(cpu, times, interval)).collect(),
        scans: vec![],
        figures: vec![Figure {
            probe: "hackbench".to_owned(),
            name: "run time".to_owned(),
            value: 1.25,
            unit: "s".to_owned(),
            load: vec![],
            profile: None,
        }],
        worst: vec![Sample {
            probe: "cyclic".to_owned(),
            cpu: STALLED.0,
            at: Nanos::from_secs(11),
            latency: STALLED.1,
            index: None,
            causes: vec![Charge {
                cause: "irq".to_owned(),
                from: Nanos(0),
                ns: Nanos::from_millis(1_900),
                culprit: "nvme0q1".to_owned(),
                stack: vec![],
            }],
            unexplained: Some(Nanos::from_millis(100)),
            path: None,
        }],
        explained: None,
        proofs: None,
        work: vec![Work {
            load: "disk".to_owned(),
            unit: "MiB written".to_owned(),
            done: 12_345,
            cpu_ns: Nanos::from_millis(8_250),
        }],
        changes: vec![Change {
            knob: "governor".to_owned(),
            old: "powersave".to_owned(),
            new: "performance".to_owned(),
            reason: "a rising clock shows as latency".to_owned(),
            restored: true,
            unrestored: None,
        }],
        warnings: vec![Warning::new(
            WarningCode::Throttled,
            "Real-time tasks were throttled: 5 % of each second is reserved for others.",
        )],
    }
}

fn plan() -> Plan {
    let params = [("interval", 1_000_000), ("priority", 90)];
    Plan {
        probes: vec![Part {
            name: "cyclic".to_owned(),
            params: params.map(|(key, value)| (key.to_owned(), value.into())).into_iter().collect(),
        }],
        warm_up: Nanos::from_millis(100),
        seed: 7,
        ..Plan::bare("native", (0..3).collect(), Length::Count(PERIODS))
    }
}

fn machine() -> Machine {
    Machine {
        kernel: "6.12.0-rt".to_owned(),
        cmdline: "root=/dev/vda quiet note=<b>&bold</b>".to_owned(),
        preempt: Some("rt".to_owned()),
        hz: Some(250),
        cpus: (0..3).collect(),
        clock_read_ns: 21,
        ..Machine::default()
    }
}

fn series(cpu: u32, times: u64, interval: Nanos) -> Series {
    let (tally, mut timeline) = (AtomicHistogram::new(), Timeline::new());
    let mut chance = u64::from(cpu) + 1;
    let mut period = 0;
    while period < PERIODS {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let stalls = cpu == STALLED.0 && period == 9_000;
        let latency =
            if stalls { STALLED.1 } else { usual(chance, times * (2_000 + 900 * u64::from(cpu))) };
        tally.record(latency);
        timeline.record(Nanos(period * interval.0) + latency, latency);
        let missed = latency.0 / interval.0;
        tally.miss(missed.saturating_sub(1));
        period += missed.max(1);
    }
    let mut series = Series {
        probe: "cyclic".to_owned(),
        span: ("timer expiry".to_owned(), "thread running".to_owned()),
        cpu,
        load: vec!["disk".to_owned()],
        schedule: Schedule { policy: "fifo".to_owned(), priority: 90, slack: Nanos(0) },
        interval: Some(interval),
        counts: Counts {
            recorded: tally.recorded(),
            missed: tally.missed(),
            below_zero: tally.below_zero(),
        },
        first: Some(Nanos::from_micros(47)),
        warm_up: Some(WarmUp {
            recorded: 100,
            missed: 0,
            max: Nanos::from_micros(61),
            sum: 500_000,
        }),
        timeline,
        // `set_histogram` below sets the fields that follow from the histogram.
        ..Series::default()
    };
    series.set_histogram(&tally.histogram());
    series
}

/// Returns a latency with a heavy tail: one in 2ⁿ is about 1.4ⁿ times as long as usual.
fn usual(chance: u64, base: u64) -> Nanos {
    let spread = base + (chance >> 40) % base;
    let tail = ((chance >> 8) & 0xf_ffff | 1 << 20).trailing_zeros();
    (0..tail).fold(Nanos(spread), |n, _| Nanos(n.0 + n.0 * 2 / 5))
}
