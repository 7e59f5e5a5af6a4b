//! Real-time tasks as the daemon sees them: their number, their wakers, and the cost of watching.

use super::guest::in_a_guest_with;
use crate::program::{Output, folder, latlab};
use latlab_core::time::Nanos;
use latlab_mechanism::Mode;
use latlab_mechanism::status::Status;
use latlab_mechanism::violations::Violations;
use std::path::Path;
use std::process::Command;

/// Runs a script in a guest with a PREEMPT_RT kernel while a daemon with these mechanisms runs.
/// `tasks` is `tests/adapt/tasks.c`, `status` prints the status of the daemon.
fn with_daemon(mechanisms: &str, script: &str) -> Output {
    let folder = folder();
    let program = folder.path().join("tasks");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/adapt/tasks.c");
    let compiled = Command::new("cc")
        .args(["-static", "-O1", "-Wall", "-Werror", "-o"])
        .args([&program, &source])
        .status();
    assert!(compiled.expect("cc starts").success());
    let tasks = program.display();
    let script = format!(
        "status() {{ /latlab adapt status --json; echo ,; }}; tasks() {{ {tasks} \"$@\"; }}
        /latlab adapt --mechanisms {mechanisms} & daemon=$!
        until /latlab adapt status > /dev/null 2>&1; do sleep 0.02; done
        {script}
        kill -TERM $daemon; wait $daemon"
    );
    in_a_guest_with(&format!("--with {tasks}"), &script)
}

/// Parses the statuses that were printed.
fn statuses(output: &Output) -> Vec<Status> {
    let text = output.stdout.trim_end().trim_end_matches(',');
    serde_json::from_str(&format!("[{text}]")).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

#[test]
fn task_count_and_mode_are_right_after_a_thousand_short_tasks() {
    let output = with_daemon(
        "suppress,mode",
        "status; tasks come 1000 > /done; sleep 1.5; status
        /latlab exec --fifo 50 -- /bin/sleep 1000 & left=$!
        tasks come 1000 > /done; sleep 0.5; status; kill $left; sleep 1.5; status",
    );
    let all: Vec<_> = statuses(&output).iter().map(|one| (one.realtime_tasks, one.mode)).collect();
    let (none, one) = ((Some(0), Some(Mode::Throughput)), (Some(1), Some(Mode::Latency)));
    assert_eq!(all, [none, none, one, none], "{output:?}");
    // A task that ended before it was counted is not seen.
    let turned = output.stderr.matches("preempt goes from full to lazy").count();
    assert!((2..=3).contains(&turned), "knobs must not flap: {output:?}");
}

/// A reader of FIFO 80 is woken by `ktimers/0` 128 times a second.
const READER: &str = "/latlab run realfeel:device=rtc,frequency=128,priority=80 --for 2s \
                      --warm-up 0 > /dev/null 2>&1 & reader=$!; sleep 1; status; sleep 0.5; \
                      status; /latlab adapt status > /dev/null; wait $reader";

/// What was counted at two moments.
fn violations(mechanisms: &str) -> [(Nanos, Violations); 2] {
    let output = with_daemon(mechanisms, READER);
    let shown = statuses(&output);
    [&shown[0], &shown[1]]
        .map(|status| (status.at, status.violations.clone().expect("violations are counted")))
}

#[test]
fn waker_violates_rule_until_raised_to_priority_of_task() {
    // `transparent` raises threads to FIFO 50, and no higher.
    let [(begin, first), (end, second)] = violations("transparent");
    let more = second.by_interrupts - first.by_interrupts;
    let expected = 128 * (end - begin).0 / 1_000_000_000;
    // Before 28 November 2026: 60 to 70 in half a second and the time of a command, and 100 before that.
    assert!(first.by_interrupts > 0 && more.abs_diff(expected) <= 3, "{first:?}, {second:?}");
    let last = second.last_by_interrupt.expect("there was a violation").to_string();
    assert!(last.starts_with("ktimers/0 (") && last.contains(" woke realfeel/0 ("), "{last}");

    let [(_, first), (_, second)] = violations("transparent,inherit");
    assert!((1..=10).contains(&first.by_interrupts), "within ten wake-ups: {first:?}");
    assert_eq!((first.by_interrupts, first.by_others), (second.by_interrupts, second.by_others));
}

#[test]
fn bpf_programs_cost_is_known_after_a_second() {
    let output = with_daemon("transparent", &format!("status; {READER}"));
    let shown = statuses(&output);
    assert_eq!(shown[0].programs, None, "{output:?}");
    let programs = shown[2].programs.expect("runs were counted");
    assert!((1_000_000_000..1_200_000_000).contains(&programs.counted.0), "{programs:?}");
    assert!(programs.share() > 0.0 && programs.share() < 0.05, "{programs:?}");
}

/// 100 samples without warm-up, while a load takes half of the CPU.
#[test]
fn interrupt_thread_is_found_within_ten_wake_ups() {
    let words = "run realfeel:device=hpet,frequency=128,priority=80 --count 100 --warm-up 0 \
                 --load cpu:busy=5ms,every=10ms,policy=fifo,priority=70 --json --on lab:rt";
    let p90 = |more: &str| latlab(&format!("{words}{more}")).record().series[0].quantiles.p90;
    let (without, adapted) = (p90(""), p90(" --adapt"));
    assert!(without > Nanos::from_millis(1), "{without}");
    assert!(adapted <= Nanos::from_micros(100), "more than ten samples were late: {adapted}");
}

#[test]
fn inherited_priority_is_restored_after_fifty_short_tasks() {
    let script = "before=$(policies); tasks wait 50; sleep 0.5\n\
                  [ \"$(policies)\" = \"$before\" ] && echo the same || policies";
    let output = with_daemon("transparent,inherit", script);
    assert_eq!(output.stdout, "done\nthe same\n", "{output:?}");
    let raises = output.stderr.matches("inherit: ktimers/0 goes from fifo 1 to fifo 80").count();
    let restores = output.stderr.matches("inherit: ktimers/0 restored").count();
    assert!(raises > 0 && raises == restores, "{raises} and {restores}: {output:?}");
}
