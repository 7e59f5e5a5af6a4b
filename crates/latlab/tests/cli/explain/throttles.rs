//! What takes a CPU from real-time tasks is named by the kernel it runs on, and can be switched off.

use super::{charged, explained};
use crate::program::{Output, command, latlab, run};
use latlab_core::record::Record;
use latlab_core::time::Nanos;

/// SCHED_OTHER tasks starve beside a real-time task that computes almost all the time. The limit was 1 ms until
/// khugepaged kept the CPU for 2.3 ms, which is no throttling.
const STARVING: &str = "explain cyclic:priority=90 --traced --above 10ms --for 3s --load \
                        cpu:policy=fifo,priority=50,busy=1900ms,every=2s --load cpu";

fn starving(guest: &str, more: &str) -> Output {
    let output = latlab(&format!("{STARVING} --on {guest} {more}"));
    assert_eq!(output.code(), Some(0), "{output:?}");
    output
}

#[test]
fn fair_server_is_named_with_its_own_remedy() {
    fair_server_is_named_on("lab:v6.12");
}

#[test]
fn fair_server_is_named_on_the_newest_kernel_with_preempt_rt() {
    fair_server_is_named_on("lab:v7.3-rt");
}

/// The fair server has 50 ms of each second.
fn fair_server_is_named_on(guest: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder can be created");
    let file = folder.path().join("why.json");
    let output = starving(guest, &format!("--out {}", file.display()));
    let verdict = output.stdout.lines().next().unwrap_or_default();
    assert!(
        verdict.contains("the fair server (SCHED_DEADLINE server of SCHED_OTHER tasks)"),
        "{output:?}"
    );
    assert!(verdict.contains("--set fair_server=0"), "{output:?}");
    assert!(!output.stdout.contains("rt_runtime_us"), "{output:?}");
    let text = std::fs::read_to_string(file).expect("the record is written");
    let record = Record::from_json(&text).expect("it is a record");
    let explained = explained(&record);
    let throttled = charged(explained, &["throttled"]);
    assert!(throttled.0 * 100 >= explained.total.0 * 90, "{explained:?}");
    assert!(record.worst[0].latency >= Nanos::from_millis(40), "{:?}", record.worst[0]);
}

#[test]
fn real_time_task_does_not_wait_without_the_fair_server() {
    let record = starving("lab:v6.12", "--set fair_server=0 --json").record();
    let worst = record.series.iter().map(|series| series.max).max();
    // 50 us, until khugepaged came within the three seconds and kept the CPU for 2.3 ms; throttling takes 50 ms.
    assert!(worst.is_some_and(|worst| worst < Nanos::from_millis(10)), "{worst:?}");
    let [change] = &record.changes[..] else { panic!("{:?}", record.changes) };
    assert_eq!([&*change.knob, &*change.old, &*change.new], ["fair_server", "50000000", "0"]);
    assert!(change.restored, "{change:?}");
}

#[test]
fn fair_server_is_restored_after_a_run_and_after_a_kill() {
    let script = "files=/sys/kernel/debug/sched/fair_server/cpu*/runtime; cat $files
        /latlab run cyclic --for 100ms --set fair_server=0 --json > /dev/null; echo $?; cat $files
        /latlab run cyclic --for 1000s --set fair_server=0 2> /dev/null & run=$!
        until [ \"$(cat $files)\" = 0 ]; do sleep 0.02; done
        kill -KILL $run; wait $run; cat $files; /latlab adapt --restore; cat $files";
    let tools = "--with /bin/sleep --with /bin/cat --with /bin/sh";
    let output = run(command(&format!("exec --on lab:v6.12 {tools} -- sh -c")).arg(script));
    let lines: Vec<&str> = output.stdout.lines().collect();
    let [before, code, after, killed, said, recovered] = lines[..] else { panic!("{output:?}") };
    assert_eq!([before, code, after, killed], ["50000000", "0", "50000000", "0"], "{output:?}");
    assert!(said.contains("fair_server") && recovered == "50000000", "{output:?}");
}
