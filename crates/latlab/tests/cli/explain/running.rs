//! What takes the CPU from threads that do not sleep: of busy loops in the laboratory, where the truth is
//! known, and of a program on this machine.

use super::explained;
use crate::program::{Running, command, latlab, lock_machine, root, run};
use latlab_core::record::Record;
use latlab_core::record::running::RunningThread;
use latlab_core::time::Nanos;
use std::process::Command;

/// The time that these causes took from a thread.
fn taken(thread: &RunningThread, causes: &[&str]) -> Nanos {
    let taken = thread.taken.iter().filter(|taken| causes.contains(&&*taken.cause));
    taken.fold(Nanos(0), |sum, taken| sum + taken.total)
}

/// The part of the time in which a thread was to run, in percent.
fn percent(thread: &RunningThread, time: Nanos) -> u64 {
    time.0 * 100 / thread.awake().0
}

fn noise(words: &str) -> Record {
    let output =
        latlab(&format!("explain noise --traced --on lab:preemptible-hr --for 2s --json {words}"));
    assert_eq!(output.code(), Some(0), "{output:?}");
    output.record()
}

#[test]
fn gaps_of_a_busy_loop_have_sources() {
    let record = noise("");
    let explained = explained(&record);
    assert!(explained.late >= 10, "{explained:?}");
    assert!(explained.unexplained.0 * 100 <= explained.total.0, "{explained:?}");
    let [thread] = &explained.running[..] else { panic!("{:?}", explained.running) };
    assert_eq!((&*thread.name, thread.gaps), ("noise", explained.wake_ups));
    // The loop runs for 900 ms of each second.
    assert!(
        thread.awake() > Nanos::from_millis(1_790) && thread.awake() < Nanos::from_millis(1_810)
    );
    let ticks = &thread.taken[0];
    assert_eq!((&*ticks.cause, &*ticks.culprit), ("interrupt", "timer interrupt"));
    // 250 Hz, and the timers of latlab itself.
    assert!((448..=470).contains(&ticks.count), "{ticks:?}");
    assert_eq!(taken(thread, &["no event"]), Nanos(0), "{thread:?}");
}

/// A task of higher priority runs 100 times a second. Without the fair server: while it lets a SCHED_OTHER task
/// run, the load misses its times, and the loop may be woken late, which its clock does not see.
#[test]
fn disturber_of_a_busy_loop_is_named_with_its_time_and_a_remedy_for_loops() {
    let load = "--load cpu:policy=fifo,priority=95,busy=300us,every=10ms";
    let record = noise(&format!("--set fair_server=0 {load}"));
    let explained = explained(&record);
    assert!(explained.unexplained.0 * 100 <= explained.total.0, "{explained:?}");
    let thread = &explained.running[0];
    let load = thread.taken.iter().find(|one| one.culprit == "load:cpu").expect("it is named");
    assert_eq!(load.cause, "higher-priority");
    assert!((178..=182).contains(&load.count), "{load:?}");
    // By events, and by the clock of the loop.
    let figure = record.figures.iter().find(|one| one.name.starts_with("share lost"));
    let lost = figure.expect("the probe tells it").value;
    let share = 100.0 * thread.lost().as_secs_f64() / thread.awake().as_secs_f64();
    assert!((share - lost).abs() <= lost / 50.0, "{share} % {lost} %: {thread:?}");
    let verdict = latlab_core::verdict::leading_causes(&record).join("\n");
    assert!(verdict.contains("tasks of higher priority (load:cpu)"), "{verdict}");
    assert!(!verdict.contains("period") && !verdict.contains("probably the host"), "{verdict}");
}

/// What `latlab explain --pid` says in a guest about a shell that computes at this policy, beside another
/// such shell at SCHED_OTHER. latlab itself runs at priority 60.
fn busy_shell(policy: &str, words: &str) -> String {
    let script = format!(
        "sh -c 'while :; do :; done' &
        /latlab exec {policy} -- sh -c 'while :; do :; done' & busy=$!
        exec /latlab exec --fifo 60 -- /latlab explain --pid $busy --for 3s {words}"
    );
    let output = run(command("exec --on lab:v6.12 --with /bin/sh -- sh -c").arg(script));
    assert_eq!(output.code(), Some(0), "{output:?}");
    output.stdout
}

#[test]
fn real_time_thread_that_never_sleeps_is_throttled_and_starves_others() {
    let text = busy_shell("--fifo 50", "");
    let first = text.lines().next().unwrap_or_default();
    assert!(first.starts_with("sh (thread ") && first.contains("real-time priority 50"), "{text}");
    assert!(first.contains("never slept in 2."), "{text}");
    assert!(first.contains("% by the fair server"), "{text}");
    assert!(text.contains("--set fair_server=0"), "{text}");
    assert!(text.contains("no SCHED_OTHER task and no kernel thread of lower priority"), "{text}");
    assert!(text.contains("CPU  source"), "{text}");
    assert!(!text.contains("no wake-up"), "{text}");
}

#[test]
fn thread_beside_another_that_computes_has_half_of_the_cpu() {
    let text = busy_shell("--other", "--json");
    let record = Record::from_json(&text).expect("it is a record");
    let [thread] = &explained(&record).running[..] else { panic!("{text}") };
    assert_eq!((thread.sleeps, thread.priority), (0, None));
    let others = percent(thread, taken(thread, &["equal-priority"]));
    assert!((40..=60).contains(&others), "{thread:?}");
    assert!(thread.starved.is_empty() && taken(thread, &["throttled"]) == Nanos(0), "{thread:?}");
}

/// On this machine, whatever else runs here.
#[test]
fn program_that_computes_is_explained_and_one_that_sleeps_only_on_request() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let busy = Running::start(Command::new("sh").arg("-c").arg("while :; do :; done"));
    let watch = |words: &str| {
        let output = latlab(&format!("explain --pid {} --json {words}", busy.pid()));
        assert_eq!(output.code(), Some(0), "{output:?}");
        output.record()
    };
    let record = watch("--for 2s");
    let [thread] = &explained(&record).running[..] else { panic!("{record:?}") };
    assert_eq!((&*thread.name, thread.pid, thread.sleeps), ("sh", busy.pid(), 0));
    assert!(thread.ran > Nanos(0) && thread.span() <= Nanos::from_secs(20), "{thread:?}");
    let script = "while :; do sleep 0.01; done";
    let sleeper = Running::start(Command::new("sh").arg("-c").arg(script));
    let words = |more: &str| format!("explain --pid {} --for 2s --json {more}", sleeper.pid());
    assert!(explained(&latlab(&words("")).record()).running.is_empty());
    let record = latlab(&words("--running")).record();
    let [thread] = &explained(&record).running[..] else { panic!("{record:?}") };
    assert!(thread.sleeps > 0 && thread.slept > Nanos(0), "{thread:?}");
}

#[test]
fn running_is_refused_without_tasks_to_watch() {
    latlab("explain --running cyclic --for 1s").assert_refused(2, &["--pid", "--comm", "--rt"]);
    latlab("explain --running scan procfs").assert_refused(2, &["--pid", "--comm", "--rt"]);
}
