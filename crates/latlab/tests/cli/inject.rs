//! Delays of known cause: as long as requested, at every wake-up, and none with the cause `none`.

use crate::program::{
    Missing, Output, Running, command, folder, latlab, lock_machine, not_run, pause, root, run,
};
use latlab_core::record::{Counts, Record, Series};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A cause, and its expected delay.
struct Truth {
    cause: &'static str,
    /// Cause that explanations must name.
    called: &'static str,
    /// Longest time in the laboratory from the end of the delay to the running thread, in ns. It
    /// includes 2 µs for a tick that was delayed as well.
    rest: u64,
}

const TIME: u64 = 300_000;

const TRUTHS: [Truth; 10] = [
    Truth { cause: "interrupts-off", called: "interrupts-off", rest: 7_000 },
    Truth { cause: "preemption-off", called: "non-preemptible", rest: 5_000 },
    Truth { cause: "raw-spinlock", called: "interrupts-off", rest: 7_000 },
    Truth { cause: "softirq", called: "softirq", rest: 5_000 },
    Truth { cause: "timer-callback", called: "timer-callbacks", rest: 7_000 },
    Truth { cause: "interrupt", called: "interrupt", rest: 9_000 },
    Truth { cause: "higher-priority", called: "higher-priority", rest: 7_000 },
    Truth { cause: "equal-priority", called: "equal-priority", rest: 7_000 },
    // Includes the access to the last page.
    Truth { cause: "page-fault", called: "page-fault", rest: 10_000 },
    // Includes the way back from the system call.
    Truth { cause: "mutex", called: "lock", rest: 9_000 },
];

/// Longest time that a timer of the kernel takes which expires together with the wake-up, in ns. Where
/// it expires depends on the bytes of the program, so that two samples of a record may meet one.
const TIMER: u64 = 5_000;

/// Longest latency of a wake-up without a delay, in ns: the wake-up itself and a tick.
const PROMPT: u64 = 7_000;

fn injected(cause: &str, words: &str) -> Output {
    inject(&[cause], words)
}

/// Injects these delays, one cause after the other.
fn inject(causes: &[&str], words: &str) -> Output {
    let probe = |cause: &&str| format!(" inject:cause={cause},time=300us");
    let probes: String = causes.iter().map(probe).collect();
    latlab(&format!("run{probes} --json {words}"))
}

/// Parses the records of several targets.
fn records(output: &Output) -> Vec<Record> {
    assert_eq!(output.code(), Some(0), "{output:?}");
    let mut texts: Vec<String> =
        output.stdout.split("\n}\n").map(|text| format!("{text}\n}}\n")).collect();
    texts.pop();
    texts.iter().map(|text| Record::from_json(text).expect("the output is a record")).collect()
}

/// Asserts that all 23 samples of the only series of each record are between `least` and `most`, but for two
/// that may have met a timer.
fn assert_all_between(records: &[Record], least: u64, most: u64, what: &str) {
    for record in records {
        assert_eq!(record.series.len(), 1, "{what}");
        assert_between(&record.series[0], least, most, what);
        assert_none_began_late(record, what);
    }
}

fn assert_between(series: &Series, least: u64, most: u64, what: &str) {
    assert_eq!(series.counts.recorded, 23, "{what}");
    // All but two of 23 samples.
    let common = series.quantiles.p90.0;
    let is_so = series.min.0 >= least && common < most && series.max.0 < most + TIMER;
    assert!(is_so, "{what}: {series:?}");
}

fn assert_none_began_late(record: &Record, what: &str) {
    let late = record.warnings.iter().any(|warning| warning.code == "late-delay");
    assert!(!late, "{what}: {:?}", record.warnings);
}

/// The last of these kernels has PREEMPT_RT.
const KERNELS: &str = "--count 23 --on lab:preemptible-hr --on lab:rapid-reaction --on lab:rt";

#[test]
fn delays_in_laboratory_take_the_requested_time() {
    let records = records(&inject(&TRUTHS.map(|truth| truth.cause), KERNELS));
    assert_eq!(records.len(), 3);
    for record in &records {
        assert_none_began_late(record, &record.plan.target);
        assert_eq!(record.series.len(), TRUTHS.len());
        for (Truth { cause, called, rest }, series) in TRUTHS.iter().zip(&record.series) {
            let what = format!("{cause}, called {called}, on {}", record.plan.target);
            // Softirqs are preemptible with PREEMPT_RT.
            if (*cause, record.plan.target.as_str()) == ("softirq", "lab:rt") {
                assert_between(series, 0, PROMPT, &what);
            } else {
                assert_between(series, TIME, TIME + rest, &what);
            }
        }
    }
}

#[test]
fn delays_and_their_absence_repeat_exactly() {
    let output = injected("none", KERNELS);
    assert_all_between(&records(&output), 0, PROMPT, "none");
    let words = format!("{KERNELS} --fresh");
    assert_eq!(injected("none", &words).stdout, output.stdout);
    let late = injected("timer-callback", KERNELS);
    assert_all_between(&records(&late), TIME, TIME + 7_000, "timer-callback");
    assert_eq!(injected("timer-callback", &words).stdout, late.stdout);
}

/// A task of higher priority runs for 100 us of each ms. It meets the task that injects the delay
/// after that has been woken on time, while it awaits the start of the delay.
#[test]
fn delays_that_begin_late_are_counted() {
    let words = "--count 100 --load cpu:busy=100us,every=1ms,policy=fifo,priority=95 --on lab:rt";
    let output = injected("interrupts-off,interval=6300us,priority=50", words);
    let record = &records(&output)[0];
    let late = record.warnings.iter().any(|warning| warning.code == "late-delay");
    let is_missing = record.series[0].min.0 < TIME;
    assert!(is_missing && late, "{:?}, {:?}", record.series, record.warnings);
}

/// There the thread waits for the tick, as would a delay that is to begin before it.
#[test]
fn delays_before_expiry_are_refused_with_tick_timers() {
    let on_ticks = "--count 23 --on lab:standard";
    let tick = 4_000_000;
    assert_all_between(&records(&injected("none", on_ticks)), 0, tick + PROMPT, "none");
    assert_all_between(
        &records(&injected("page-fault", on_ticks)),
        TIME,
        tick + PROMPT,
        "page-fault",
    );
    for cause in ["interrupts-off", "higher-priority"] {
        let ways_out = ["inject", "ticks", "highres=off", "cause=page-fault"];
        injected(cause, on_ticks).assert_refused(3, &ways_out);
    }
}

#[test]
fn delays_are_injected_on_each_of_two_cpus() {
    let folder = folder();
    let profile = folder.path().join("two.toml");
    let text = "summary = 'two CPUs'\nkernel = { package = 'linux-image-6.12-amd64' }\ncpus = 2\n";
    fs::write(&profile, text).expect("the folder can be written");
    let on_two = |cause: &str| {
        let mut words = command(&format!("run inject:cause={cause} --count 23 --json --on"));
        run(words.arg(format!("lab:{}", profile.display())))
    };
    for cause in ["raw-spinlock", "higher-priority"] {
        let record = &records(&on_two(cause))[0];
        assert_eq!(record.series.len(), 2);
        for series in &record.series {
            // The CPUs of a guest take turns: the work of one delays the other as well.
            let is_so = series.min.0 >= TIME && series.max.0 < 2 * TIME + 100_000;
            assert!(is_so && series.counts.recorded == 23, "{cause}: {series:?}");
        }
    }
    on_two("interrupt").assert_refused(3, &["inject", "several CPUs", "cause=timer-callback"]);
    on_two("mutex").assert_refused(3, &["inject", "one mutex", "cause=timer-callback"]);
}

#[test]
fn delays_without_driver_take_at_least_the_requested_time() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    for cause in ["higher-priority", "equal-priority", "page-fault"] {
        let record = &records(&injected(cause, "--count 50"))[0];
        // On a busy machine, the task that injects the delay may be woken too late.
        let late = record.warnings.iter().any(|warning| warning.code == "late-delay");
        for series in &record.series {
            let Counts { recorded, missed, .. } = series.counts;
            assert!(recorded + missed >= 50, "{cause}: {series:?}");
            let long = if late { series.max } else { series.min };
            assert!(long.0 >= TIME, "{cause}: {series:?}");
        }
    }
}

#[test]
fn sigint_ends_inject_and_its_helper_tasks() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    for cause in ["none", "higher-priority", "page-fault"] {
        let words = format!("run inject:cause={cause},interval=1h --for 2h --json");
        let mut run = Running::start(&mut command(&words));
        run.wait_until_measuring();
        pause(Duration::from_millis(300));
        run.signal("INT");
        let output = run.finish();
        assert!(output.signal().is_none() && !output.stderr.contains("panicked"), "{output:?}");
    }
}

#[test]
fn cause_that_cannot_be_injected_is_refused() {
    let words = "run inject --for 100ms --cpus 0";
    let refused = |keys: &str, words: &[&str]| {
        latlab(&format!("run inject:{keys} --for 100ms")).assert_refused(2, words);
    };
    refused("cause=interrupts", &["cause can't be 'interrupts'", "interrupt"]);
    refused("time=0us", &["time", "1us to 9ms"]);
    refused("time=1s", &["time", "1us to 9ms"]);
    refused("time=9ms", &["interval=10 ms", "time=9 ms", "interval=19 ms or more"]);
    refused("cause=interrupt,time=1ms", &["cause=interrupt", "900 us"]);
    refused("priority=99", &["priority=99", "priority=98 or less"]);
    refused("cause=equal-priority,priority=1", &["priority=1", "priority=2 or more"]);
    refused("policy=other", &["policy=other", "policy=fifo"]);
    if Path::new("/dev/latlab").exists() {
        not_run(Missing::Optional, "a part of it: this machine has /dev/latlab");
    } else if root() {
        let words = words.replace("inject", "inject:cause=softirq");
        let ways_out = ["inject", "insmod", "lab:PROFILE", "cause=higher-priority"];
        latlab(&words).assert_refused(3, &ways_out);
    }
}
