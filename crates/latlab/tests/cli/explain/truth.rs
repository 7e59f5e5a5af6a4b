//! Known causes, produced by the probe `inject`: explanations must name them.

use super::{charged, explained};
use crate::program::{
    Missing, Output, Running, assert_once_in_three, command, field, latlab, lock_machine, not_run,
    root, wait_until,
};
use std::fs;

/// A cause of `inject`, and its expected explanation.
struct Truth {
    cause: &'static str,
    called: &'static str,
    /// Part of the culprit's name, which is known on a machine with one CPU.
    who: &'static str,
    function: Option<&'static str>,
}

const TRUTHS: [Truth; 10] = [
    Truth {
        cause: "interrupts-off",
        called: "interrupts-off",
        who: "second-task",
        function: Some("latlab_interrupts_off [latlab]"),
    },
    Truth {
        cause: "preemption-off",
        called: "non-preemptible",
        who: "second-task",
        function: Some("latlab_preemption_off [latlab]"),
    },
    Truth {
        cause: "raw-spinlock",
        called: "interrupts-off",
        who: "second-task",
        function: Some("latlab_raw_spinlock [latlab]"),
    },
    Truth {
        cause: "timer-callback",
        called: "timer-callbacks",
        who: "",
        function: Some("latlab_timer_callback [latlab]"),
    },
    Truth { cause: "softirq", called: "softirq", who: "TASKLET", function: None },
    Truth { cause: "interrupt", called: "interrupt", who: "(latlab)", function: None },
    Truth {
        cause: "higher-priority",
        called: "higher-priority",
        who: "second-task",
        function: None,
    },
    Truth { cause: "equal-priority", called: "equal-priority", who: "second-task", function: None },
    Truth { cause: "page-fault", called: "page-fault", who: "inject/0", function: None },
    Truth {
        cause: "mutex",
        called: "lock",
        who: "mutex latlab_mutex [latlab] held by second-task",
        function: Some("latlab_hold_mutex [latlab]"),
    },
];

const COUNT: u64 = 23;
const TIME: u64 = 300_000;

/// Explains wake-ups that are later than two thirds of the time, in microseconds, for which each of these
/// causes delays them.
fn inject(causes: &[&str], time: u64, words: &str) -> Output {
    let probe = |cause: &&str| format!(" inject:cause={cause},time={time}us");
    let probes: String = causes.iter().map(probe).collect();
    latlab(&format!("explain{probes} --above {}us --json {words}", time * 2 / 3))
}

/// Explains all causes and the cause `none` on this kernel in one guest. Causes in `promptly` delay
/// nothing there. Causes in `partly` are found by a stack taken at the waking: taking it costs some
/// of the time, and it is useless where the interrupt came in a thunk, which the kernel cannot
/// unwind. Or they begin when the thread runs, after a slow wake-up.
fn on_kernel(profile: &str, promptly: &[&str], partly: &[&str]) {
    let causes: Vec<&str> = ["none"].into_iter().chain(TRUTHS.map(|truth| truth.cause)).collect();
    let words = format!("--count {COUNT} --on lab:{profile} --traced");
    let output = inject(&causes, TIME / 1000, &words);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let explained = explained(&record);
    let late = (TRUTHS.len() - promptly.len()) as u64 * COUNT;
    assert_eq!((explained.wake_ups, explained.late), (causes.len() as u64 * COUNT, late));
    assert!(explained.unexplained.0 * 1000 <= explained.total.0, "{explained:?}");
    // An event is lost if it comes while another of its tracepoint is recorded; a message says so.
    let messages = usize::from(explained.lost > 0);
    assert!(explained.lost <= 3 && explained.missing.len() == messages, "{explained:?}");
    for truth in TRUTHS {
        let share = explained.causes.iter().find(|share| {
            let function = share.function.as_deref();
            share.cause == truth.called
                && share.culprit.contains(truth.who)
                && function == truth.function
        });
        if promptly.contains(&truth.cause) {
            assert!(share.is_none_or(|share| share.worst.0 < TIME / 10), "{share:?}");
            continue;
        }
        let share = share.unwrap_or_else(|| panic!("no {}: {explained:?}", truth.cause));
        if partly.contains(&truth.cause) {
            assert!(share.count * 2 > COUNT, "{}: {share:?}", truth.cause);
            let shares = explained.causes.iter();
            let shares =
                shares.filter(|one| (&one.cause, &one.culprit) == (&share.cause, &share.culprit));
            let total: u64 = shares.map(|one| one.total.0).sum();
            assert!(total * 10 >= COUNT * TIME * 9, "{}: {explained:?}", truth.cause);
            continue;
        }
        let expected = COUNT * TIME * 95 / 100..COUNT * (TIME + 5_000);
        assert!(expected.contains(&share.total.0), "{}: {share:?}", truth.cause);
        assert_eq!(share.count, COUNT, "{}: {share:?}", truth.cause);
    }
}

#[test]
fn causes_are_named_on_preemptible_kernel() {
    on_kernel("preemptible-hr", &[], &[]);
}

/// Kernel code runs to its next scheduling point, so that only a stack taken at the waking shows
/// what delays the task.
#[test]
fn causes_are_named_without_preemption() {
    on_kernel("rapid-reaction", &[], &["preemption-off", "mutex"]);
}

/// Softirqs are preemptible there.
#[test]
fn causes_are_named_on_preempt_rt() {
    on_kernel("rt", &["softirq"], &[]);
}

#[test]
fn cause_none_delays_nothing() {
    let words = format!("--count {COUNT} --on lab:rt --traced");
    let output = inject(&["none"], TIME / 1000, &words);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let explained = explained(&record);
    assert_eq!((explained.wake_ups, explained.late, explained.total.0), (COUNT, 0, 0));
    assert!(explained.causes.is_empty() && explained.stacks.is_empty(), "{explained:?}");
}

/// Other tasks and the host may add to a delay or take part of it. A busy host may delay nearly
/// every thread of a run before the cause does.
#[test]
fn causes_without_driver_are_named_on_this_machine() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    for cause in ["higher-priority", "equal-priority", "page-fault"] {
        assert_once_in_three(|| explain_here(cause));
    }
}

/// Explains a run with this cause on this machine. Returns the explanation if it is wrong.
fn explain_here(cause: &str) -> Result<(), String> {
    const COUNT: u64 = 50;
    // The longer, the less other delays matter. The kernel populates all the pages of the probe in a
    // millisecond at the fastest.
    const TIME: u64 = 900_000;
    let output = inject(&[cause], TIME / 1000, &format!("--count {COUNT}"));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let explained = explained(&record);
    let wake_ups = COUNT * record.plan.cpus.len() as u64;
    let shares = explained.causes.iter().filter(|share| share.cause == cause);
    let count: u64 = shares.map(|share| share.count).sum();
    let right = explained.late * 10 >= wake_ups * 9
        && count * 10 >= explained.late * 8
        && charged(explained, &[cause]).0 * 10 >= explained.late * TIME * 6
        && explained.unexplained.0 * 20 <= explained.total.0;
    if right { Ok(()) } else { Err(format!("{cause}: {explained:?}")) }
}

/// The kernel reserves a twentieth of each CPU for ordinary tasks (sched-rt-group.rst; the deadline
/// server since Linux 6.12). A real-time task waits for them when others use up the real-time
/// budget.
#[test]
fn task_delayed_by_real_time_throttling_is_reported_as_throttled() {
    let budget = fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us");
    if !root() {
        return;
    }
    if budget.is_ok_and(|budget| budget.trim() == "-1") {
        not_run(Missing::Required, "it needs kernel.sched_rt_runtime_us other than -1");
        return;
    }
    let _lock = lock_machine();
    let online = fs::read_to_string("/sys/devices/system/cpu/online").expect("sysfs is mounted");
    let last = online.trim().rsplit([',', '-']).next().expect("there is a CPU");
    let mut hog = command(&format!("exec --fifo 50 --cpus {last} -- sh -c"));
    let hog = Running::start(hog.arg("while :; do :; done"));
    let is_shell = |name: String| name == "sh";
    wait_until("the shell has the policy", || field(hog.pid(), "Name").is_some_and(is_shell));
    let load = "--load cpu:on=probe";
    // A wake-up of which the kernel did not report all context switches stays unexplained: beside busy
    // guests two of three wake-ups of a run.
    assert_once_in_three(|| {
        let output = latlab(&format!("explain --cpus {last} {load} --above 5ms --for 3s --json"));
        assert_eq!(output.code(), Some(0), "{output:?}");
        let record = output.record();
        let explained = explained(&record);
        let throttled = charged(explained, &["throttled"]).0;
        let right = explained.late > 0 && throttled * 2 > explained.total.0;
        if right { Ok(()) } else { Err(format!("{explained:?}")) }
    });
    drop(hog);
}
