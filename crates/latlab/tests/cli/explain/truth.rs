//! Causes that are known, since the probe `inject` brings them about: explanations must name them.

use super::{charged, explained};
use crate::program::{Missing, Running, Said, command, latlab, machine, not_run, pause, root};
use latlab_core::record::explained::Explained;
use std::fs;
use std::time::Duration;

/// A cause of `inject`, and what must be said of it.
struct Truth {
    cause: &'static str,
    called: &'static str,
    /// What the culprit's name contains: on a machine with one CPU it is known.
    who: &'static str,
    function: Option<&'static str>,
}

const TRUTHS: [Truth; 9] = [
    Truth {
        cause: "interrupts-off",
        called: "interrupts-off",
        who: "partner",
        function: Some("latlab_interrupts_off [latlab]"),
    },
    Truth {
        cause: "preemption-off",
        called: "non-preemptable",
        who: "partner",
        function: Some("latlab_preemption_off [latlab]"),
    },
    Truth {
        cause: "raw-spinlock",
        called: "interrupts-off",
        who: "partner",
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
    Truth { cause: "higher-priority", called: "higher-priority", who: "partner", function: None },
    Truth { cause: "equal-priority", called: "equal-priority", who: "partner", function: None },
    Truth { cause: "page-fault", called: "page-fault", who: "inject/0", function: None },
];

const COUNT: u64 = 23;
const TIME: u64 = 300_000;

fn inject(causes: &[&str], words: &str) -> Said {
    let probe = |cause: &&str| format!(" inject:cause={cause},time=300us");
    let probes: String = causes.iter().map(probe).collect();
    latlab(&format!("explain{probes} --above 200us --json {words}"))
}

/// Explains all causes on this kernel in one guest, and one that is none; those in `promptly` make
/// nobody late there. What is in `partly` is known by a stack that is taken when the task is woken:
/// that takes some of the time, and is of no use where the interrupt came upon a thunk, through
/// which the kernel can't see.
fn on_kernel(profile: &str, promptly: &[&str], partly: &[&str]) {
    let causes: Vec<&str> = ["none"].into_iter().chain(TRUTHS.map(|truth| truth.cause)).collect();
    let said = inject(&causes, &format!("--count {COUNT} --on lab:{profile} --traced"));
    assert_eq!(said.code(), Some(0), "{said:?}");
    let record = said.record();
    let explained = explained(&record);
    let late = (TRUTHS.len() - promptly.len()) as u64 * COUNT;
    assert_eq!((explained.wake_ups, explained.late), (causes.len() as u64 * COUNT, late));
    assert!(explained.unexplained.0 * 1000 <= explained.total.0, "{explained:?}");
    // An event is lost where it comes while another of its kind is noted, and that is said.
    let said = usize::from(explained.lost > 0);
    assert!(explained.lost <= 3 && explained.missing.len() == said, "{explained:?}");
    for truth in TRUTHS {
        let share = explained.causes.iter().find(|share| {
            let function = share.function.as_deref();
            share.cause == truth.called
                && share.who.contains(truth.who)
                && function == truth.function
        });
        if promptly.contains(&truth.cause) {
            assert!(share.is_none_or(|share| share.worst.0 < TIME / 10), "{share:?}");
            continue;
        }
        let share = share.unwrap_or_else(|| panic!("no {}: {explained:?}", truth.cause));
        if partly.contains(&truth.cause) {
            assert!(share.count * 2 > COUNT, "{}: {share:?}", truth.cause);
            let of_it = explained.causes.iter();
            let of_it = of_it.filter(|one| (&one.cause, &one.who) == (&share.cause, &share.who));
            let total: u64 = of_it.map(|one| one.total.0).sum();
            assert!(total * 10 >= COUNT * TIME * 9, "{}: {explained:?}", truth.cause);
            continue;
        }
        let right = COUNT * TIME * 95 / 100..COUNT * (TIME + 5_000);
        assert!(right.contains(&share.total.0), "{}: {share:?}", truth.cause);
        assert_eq!(share.count, COUNT, "{}: {share:?}", truth.cause);
    }
}

#[test]
fn causes_are_named_on_preemptible_kernel() {
    on_kernel("preemptible-hr", &[], &[]);
}

/// It goes on with its work until it is done, so that only a stack that is taken when the task is
/// woken tells who keeps it waiting.
#[test]
fn causes_are_named_without_preemption() {
    on_kernel("rapid-reaction", &[], &["preemption-off"]);
}

/// Softirqs can be preempted there.
#[test]
fn causes_are_named_on_preempt_rt() {
    on_kernel("rt", &["softirq"], &[]);
}

#[test]
fn cause_none_delays_nothing() {
    let said = inject(&["none"], &format!("--count {COUNT} --on lab:rt --traced"));
    assert_eq!(said.code(), Some(0), "{said:?}");
    let record = said.record();
    let explained = explained(&record);
    assert_eq!((explained.wake_ups, explained.late, explained.total.0), (COUNT, 0, 0));
    assert!(explained.causes.is_empty() && explained.stacks.is_empty(), "{explained:?}");
}

/// What other work and the host add is no matter here, nor that they take part of a delay. A host
/// that is busy may make nearly every thread of a run late before the cause does: of three runs one
/// has to be right.
#[test]
fn causes_without_driver_are_named_on_this_machine() {
    if !root() {
        return;
    }
    let _alone = machine();
    for cause in ["higher-priority", "equal-priority", "page-fault"] {
        let mut wrong = vec![];
        while let Some(explained) = misnamed(cause) {
            wrong.push(explained);
            assert!(wrong.len() < 3, "{cause}: {wrong:?}");
        }
    }
}

/// The explanation of a run on this machine where it does not name what this cause did.
fn misnamed(cause: &str) -> Option<Explained> {
    const COUNT: u64 = 50;
    let said = inject(&[cause], &format!("--count {COUNT}"));
    assert_eq!(said.code(), Some(0), "{said:?}");
    let record = said.record();
    let explained = explained(&record);
    let wake_ups = COUNT * record.plan.cpus.len() as u64;
    let shares = explained.causes.iter().filter(|share| share.cause == cause);
    let count: u64 = shares.map(|share| share.count).sum();
    let right = explained.late * 10 >= wake_ups * 9
        && count * 10 >= explained.late * 8
        && charged(explained, &[cause]).0 * 10 >= explained.late * TIME * 6
        && explained.unexplained.0 * 20 <= explained.total.0;
    (!right).then(|| explained.clone())
}

/// The kernel lets ordinary tasks have a twentieth of a CPU that real-time tasks would take whole
/// (sched-rt-group.rst; the deadline server of Linux 6.12): a real-time task waits for those.
#[test]
fn task_delayed_by_real_time_throttling_is_reported_as_throttled() {
    let share = fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us");
    if !root() {
        return;
    }
    if share.is_ok_and(|share| share.trim() == "-1") {
        not_run(Missing::Required, "it needs kernel.sched_rt_runtime_us other than -1");
        return;
    }
    let _alone = machine();
    let online = fs::read_to_string("/sys/devices/system/cpu/online").expect("sysfs is mounted");
    let last = online.trim().rsplit([',', '-']).next().expect("there is a CPU");
    let mut hog = command(&format!("exec --fifo 50 --cpus {last} -- sh -c"));
    let hog = Running::start(hog.arg("while :; do :; done"));
    pause(Duration::from_millis(300));
    let load = "--load cpu:on=probe";
    let said = latlab(&format!("explain --cpus {last} {load} --above 5ms --for 3s --json"));
    drop(hog);
    assert_eq!(said.code(), Some(0), "{said:?}");
    let record = said.record();
    let explained = explained(&record);
    assert!(explained.late > 0, "{explained:?}");
    let throttled = charged(explained, &["throttled"]).0;
    assert!(throttled * 2 > explained.total.0, "{explained:?}");
}
