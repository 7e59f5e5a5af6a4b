//! IRQ threads in guests: their priorities follow those of the real-time tasks that wait for
//! them.

use crate::program::{LATLAB, Output, command, latlab, root, run};
use latlab_core::record::{Record, Series};
use latlab_core::time::Nanos;
use std::process::Command;

const RT: &str = "lab:rt";
const THREADIRQS: &str = "lab:threadirqs";

/// Runs a script in a guest, in which `/latlab` is this program. `policies` prints the scheduling
/// of threads whose names begin with its argument, `count` the numbers of `SCHED_FIFO` and
/// `SCHED_OTHER` IRQ threads.
fn in_a_guest(target: &str, script: &str) -> Output {
    let tools = ["sleep", "cat", "cut", "ls", "sh"].map(|tool| format!("--with /bin/{tool}"));
    let tools = format!("{} --with /usr/bin/chrt", tools.join(" "));
    let mut command = command(&format!("exec --on {target} {tools} -- sh -c"));
    let functions = "policies() { for t in /proc/[0-9]*; do read -r n < $t/comm; \
                     case $n in $1*) echo \"$n $(cut -d' ' -f40,41 $t/stat)\";; esac; done; }\n\
                     count() { f=0; o=0; for t in /proc/[0-9]*; do read -r n < $t/comm; \
                     case $n in irq/*) case $(cut -d' ' -f41 $t/stat) in \
                     1) f=$((f+1));; 0) o=$((o+1));; esac;; esac; done; echo $f and $o; }\n";
    run(command.arg(format!("{functions}{script}")))
}

/// A task that prints the counts 5 ms after it became FIFO 5.
const REAL_TIME_TASK: &str = "/latlab exec --fifo 5 -- /bin/sh -c '/bin/sleep 0.005; f=0; o=0; \
    for t in /proc/[0-9]*; do read -r n < $t/comm; case $n in irq/*) \
    case $(cut -d\" \" -f41 $t/stat) in 1) f=$((f+1));; 0) o=$((o+1));; esac;; esac; done; \
    echo $f and $o; /bin/sleep 0.2'\n";

#[test]
fn irq_threads_are_lowered_until_5_ms_into_a_real_time_task() {
    for target in [RT, THREADIRQS] {
        let output = in_a_guest(
            target,
            &format!(
                "count\n/latlab adapt & daemon=$!; sleep 0.5; count\n\
                 {REAL_TIME_TASK} count; sleep 1.2; count\n\
                 kill -TERM $daemon; wait $daemon; echo $?; count; ls /run/latlab"
            ),
        );
        let lines: Vec<&str> = output.stdout.lines().collect();
        let all: u32 = lines[0].strip_suffix(" and 0").and_then(|n| n.parse().ok()).unwrap_or(0);
        assert!(all >= 4, "{output:?}");
        let (original, lowered) = (format!("{all} and 0"), format!("0 and {all}"));
        assert_eq!(
            lines,
            [&original, &lowered, &original, &original, &lowered, "0", &original],
            "{output:?}"
        );
        let is_restored =
            |line: &&str| line.contains(": irq/") && line.contains(" restored: there ");
        assert_eq!(output.stderr.lines().filter(is_restored).count(), all as usize, "{output:?}");
    }
}

#[test]
fn irq_threads_of_killed_daemon_are_restored_by_next_command() {
    let output = in_a_guest(
        RT,
        "count\n/latlab adapt & daemon=$!; sleep 0.5; kill -KILL $daemon; wait $daemon; count\n\
         /latlab doctor > /dev/null; count; ls /run/latlab",
    );
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{output:?}");
    assert!(lines[0] == lines[2] && lines[1].starts_with("0 and "), "{output:?}");
    assert!(output.stderr.contains("is fifo 50 again, no longer other"), "{output:?}");
}

#[test]
fn irq_thread_changed_by_somebody_else_is_left_alone() {
    let output = in_a_guest(
        RT,
        "for t in /proc/[0-9]*; do read -r n < $t/comm; case $n in irq/9-*) id=${t#/proc/};; esac; done\n\
         /latlab adapt & daemon=$!; sleep 0.5; policies irq/9\n\
         chrt -r -p 33 $id; sleep 0.5; /latlab exec --fifo 5 -- /bin/sleep 0.3; policies irq/9\n\
         kill -TERM $daemon; wait $daemon; policies irq/9",
    );
    assert_eq!(output.stdout, "irq/9-acpi 0 0\nirq/9-acpi 33 2\nirq/9-acpi 33 2\n", "{output:?}");
    let message =
        "irq/9-acpi is left alone from now on: another program changed it from other to rr 33";
    assert!(output.stderr.contains(message), "{output:?}");
}

#[test]
fn mechanism_that_cannot_work_is_refused_before_anything_starts() {
    let output = latlab("adapt --mechanisms inherit,suppress");
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("name transparent as well"), "{output:?}");
    let why = "only where drivers request it: boot it with threadirqs";
    let output = in_a_guest("lab:preemptible-hr", "/latlab adapt --dry-run; echo $?");
    assert!(output.stdout.ends_with("\n0\n") && output.stdout.contains(why), "{output:?}");
    assert!(output.stdout.contains("irq/9-acpi (/proc/"), "{output:?}");
}

/// Kernel threads are not visible in a container.
#[test]
fn selective_without_irq_threads_does_not_start() {
    if !root() {
        return;
    }
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount", "--mount-proc", LATLAB]);
    command.args(["adapt", "--dry-run", "--mechanisms", "selective"]);
    let output = run(&mut command);
    assert_eq!((output.code(), output.stdout.as_str()), (Some(3), ""), "{output:?}");
    assert!(output.stderr.starts_with("latlab: selective: "), "{output:?}");
}

fn late(record: &Record) -> Nanos {
    let is_it = |series: &&Series| series.span.0 == "interrupt due";
    record.series.iter().find(is_it).expect("realfeel measures this span").max
}

/// Figure 9 of Seo et al. 2009: a task with a priority between that of the IRQ thread and
/// that of the task that waits for the interrupt.
const INVERSION: &str = "run realfeel:device=hpet,frequency=128,priority=80 \
    --load cpu:busy=400ms,every=1s,policy=fifo,priority=70 --for 3s --warm-up 1s --json --on";

#[test]
fn irq_thread_inherits_priority_of_the_task_that_waits_for_it() {
    for target in [RT, THREADIRQS] {
        let without = late(&latlab(&format!("{INVERSION} {target}")).record());
        assert!(without > Nanos::from_millis(350), "{target}: {without}");
        let words = format!("{INVERSION} {target} --adapt");
        let record = latlab(&words).record();
        assert!(late(&record) <= Nanos::from_micros(100), "{target}: {}", late(&record));
        let raised = |set: &str| {
            let is_it = |knob: &str| knob.starts_with("irq/") && knob.contains("-hpet");
            record.changes.iter().any(|change| is_it(&change.knob) && change.new == set)
        };
        assert!(raised("fifo 80"), "{:?}", record.changes);
        assert!(record.changes.iter().all(|change| change.restored), "{:?}", record.changes);
    }
}

/// A load takes the CPU half of the time, in intervals of 5 ms. At most one in a hundred samples
/// may be late, which is two intervals.
#[test]
fn irq_thread_is_raised_as_soon_as_it_wakes_a_task() {
    for target in [RT, THREADIRQS] {
        let words = "run realfeel:device=hpet,frequency=512,priority=80 \
                     --load cpu:busy=5ms,every=10ms,policy=fifo,priority=70 \
                     --for 1s --warm-up 0 --adapt --json --on";
        let record = latlab(&format!("{words} {target}")).record();
        let p99 = record.series[0].quantiles.p99;
        assert!(p99 <= Nanos::from_micros(100), "{target}: {p99}");
    }
}

/// The IRQ thread wakes the task 128 times a second for two seconds.
#[test]
fn wake_up_is_logged_once_however_often_it_comes() {
    let output = in_a_guest(
        RT,
        "/latlab adapt --log /log 2> /dev/null & daemon=$!; sleep 1
        /latlab run realfeel:device=rtc,frequency=128,priority=80 --for 2s > /dev/null
        kill $daemon; wait $daemon; echo $?; cat /log",
    );
    assert!(output.stdout.starts_with("0\n"), "{output:?}");
    let entries = output.stdout.lines().filter(|line| line.contains("\"wakes\":[{")).count();
    assert!((1..=5).contains(&entries), "{entries}: {output:?}");
}

#[test]
fn irq_threads_that_no_known_task_needs_are_demoted() {
    let words = "run realfeel:device=hpet,frequency=128,priority=80 --for 7s --json --on lab:rt \
                 --adapt=transparent,demote";
    let changes = latlab(words).record().changes;
    let of_device = |name: &str| changes.iter().find(|one| one.knob.contains(name));
    assert_eq!(of_device("-hpet"), None, "realfeel needs it");
    let other = of_device("-rtc").expect("nothing needs it");
    assert_eq!((other.old.as_str(), other.new.as_str()), ("fifo 50", "other"));
    assert!(changes.len() >= 4 && changes.iter().all(|one| one.restored), "{changes:?}");
}

#[test]
fn timer_thread_inherits_priority_of_the_task_it_wakes() {
    let words = "run realfeel:device=rtc,frequency=128,priority=80 \
                 --load cpu:busy=400ms,every=1s,policy=fifo,priority=70 \
                 --for 3s --warm-up 1s --json --on lab:rt";
    let without = late(&latlab(words).record());
    assert!(without > Nanos::from_millis(350), "{without}");
    let record = latlab(&format!("{words} --adapt")).record();
    assert!(late(&record) <= Nanos::from_micros(100), "{}", late(&record));
    let raised = |set: &str| {
        record.changes.iter().any(|change| change.knob == "ktimers/0" && change.new == set)
    };
    assert!(raised("fifo 80"), "{:?}", record.changes);
    assert!(record.changes.iter().all(|change| change.restored), "{:?}", record.changes);
}
