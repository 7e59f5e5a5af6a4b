//! Interrupts of clock devices: in guests, which have them, and on this machine, which may have
//! none.

use crate::program::{Missing, command, count, latlab, not_run, run};
use std::path::Path;

#[test]
fn realfeel_under_hackbench_misses_nothing() {
    let words = "run realfeel realfeel:device=hpet --load hackbench --on lab:rt --for 500ms --json";
    let output = latlab(words);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    assert_eq!(record.series.len(), 6, "three of each device");
    for series in &record.series {
        // 256 Hz for half a second.
        assert!((128..=129).contains(&series.counts.recorded), "{series:?}");
        assert_eq!(series.counts.missed, 0, "{series:?}");
    }
    assert_eq!(count(&record, "interrupts", 0), record.series[0].counts.recorded);
    for late in record.series.iter().filter(|series| series.span.0 == "interrupt due") {
        assert!(late.min.0 > 0 && late.max.0 < 1_000_000, "{late:?}");
    }
}

#[test]
fn interrupts_faster_than_ticks_are_missed() {
    // 1024 Hz where timers fire 250 times a second.
    let output = latlab("run realfeel:1024 --on lab:standard --for 1s --json");
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let counts = record.series[0].counts;
    assert!((245..=255).contains(&counts.recorded), "{counts:?}");
    assert!((1020..=1030).contains(&(counts.recorded + counts.missed)), "{counts:?}");
    assert_eq!(count(&record, "interrupts", 0), counts.recorded);
    assert!(record.warnings.iter().any(|warning| warning.code == "coarse-timers"), "{output:?}");
}

#[test]
fn reader_is_delayed_by_task_between_it_and_the_irq_thread() {
    let words = "run realfeel:device=hpet,frequency=128,priority=80 --for 3s --json \
                 --load cpu:busy=400ms,every=1s,policy=fifo,priority=70";
    for profile in ["rt", "threadirqs"] {
        let words = format!("{words} --on lab:{profile}");
        let output = latlab(&words);
        assert_eq!(output.code(), Some(0), "{output:?}");
        let record = output.record();
        // The handler is a thread of priority 50.
        let late = record.series[0].max;
        assert!((390_000_000..=410_000_000).contains(&late.0), "{profile}: {late}");
        // The load computes for 400 ms of each second, plus its set-up.
        let busy = record.work[0].cpu_ns;
        assert!((1_200_000_000..=2_400_000_000).contains(&busy.0), "{profile}: {busy}");
        assert!(record.work[0].done > 0, "{profile}: {record:?}");
    }
}

#[test]
fn frequency_the_device_lacks_is_refused() {
    latlab("run realfeel:100").assert_refused(2, &["realfeel", "powers of two", "128"]);
    latlab("run realfeel:32").assert_refused(2, &["realfeel", "64"]);
}

#[test]
fn device_that_is_missing_is_named_with_its_remedy() {
    for (device, remedy) in [("rtc", "modprobe"), ("hpet", "CONFIG_HPET")] {
        let path = if device == "rtc" { "/dev/rtc0" } else { "/dev/hpet" };
        if Path::new(path).exists() {
            not_run(Missing::Optional, &format!("this machine has {path}"));
            continue;
        }
        let words = format!("run realfeel:device={device} --for 1s");
        latlab(&words).assert_refused(3, &["realfeel: ", path, remedy]);
    }
}

/// Runs a script in a guest and asserts its exit code and words of its message.
fn refused_in_a_guest(script: &str, code: i32, words: &[&str]) {
    let guest = "exec --on lab:rt --with /bin/chmod --with /usr/bin/setpriv -- sh -c";
    let output = run(command(guest).arg(script));
    assert_eq!(output.code(), Some(code), "{output:?}");
    for word in words {
        assert!(output.stderr.contains(word), "no '{word}' in: {output:?}");
    }
}

#[test]
fn device_in_use_and_frequency_limit_are_reported() {
    let busy = "exec 3</dev/rtc0; exec /latlab run realfeel --for 1s";
    refused_in_a_guest(busy, 2, &["/dev/rtc0", "in use", "fuser"]);
    let user = "chmod 666 /dev/rtc0; exec setpriv --reuid 1000 --clear-groups \
                /latlab run realfeel --for 1s --policy other";
    refused_in_a_guest(user, 3, &["256 Hz", "max_user_freq"]);
}

/// On one CPU, with a reader that the softirq thread wakes. The load must be able to stop.
#[test]
fn realfeel_load_is_served_while_throughput_is_measured() {
    let words = "run hackbench:groups=2,fan=5,loops=20 --count 2 --warm-up 0 --load realfeel \
                 --on lab:rt --adapt --json";
    let output = latlab(words);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let time = 2.0 * record.series[0].mean.as_secs_f64();
    let [work] = record.work.as_slice() else { panic!("{:?}", record.work) };
    assert_eq!((&*work.load, &*work.unit), ("realfeel", "interrupts"));
    let done = f64::from(u32::try_from(work.done).expect("a small number"));
    assert!(done >= 256.0 * time, "{} in {time} s", work.done);
    assert!(!record.warnings.iter().any(|warning| warning.code == "load-ended"), "{output:?}");
    let served = record.changes.iter().any(|change| change.knob == "ktimers/0");
    assert!(served, "the reader is a real-time task: {:?}", record.changes);
    latlab("run hackbench --load realfeel:100").assert_refused(2, &["powers of two", "128"]);
}
