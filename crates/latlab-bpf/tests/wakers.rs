//! The wakers on the running kernel.
#![expect(clippy::tests_outside_test_module, reason = "a file in this folder is one test module")]

use latlab_bpf::wakers::Wakers;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::sched::{self, Policy};
use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::sync::mpsc;

/// How often a real-time thread is woken.
const TIMES: u64 = 200;
/// Long enough for it to sleep again.
const PAUSE: Nanos = Nanos::from_micros(500);

/// How many instructions the verifier of Linux 6.18 followed in each program.
const VERIFIED: [(&str, u32); 3] =
    [("sched_waking", 334), ("softirq_entry", 25), ("softirq_raise", 166)];

/// Wakes a thread of that policy again and again, as an ordinary thread. Answers with its number.
fn wake(policy: Policy) -> i32 {
    let (say, hear) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        sched::set_policy(policy).expect("root may");
        say.send(sched::thread_id()).expect("it is heard");
        while wait.recv().is_ok() {}
    });
    let task = hear.recv().expect("it says");
    for _ in 0..TIMES {
        clock::sleep_for(PAUSE);
        go.send(()).expect("it listens");
    }
    drop(go);
    thread.join().expect("it ends");
    task
}

#[test]
fn wakers_count_programs_that_wake_each_other_without_reporting_them() {
    if Wakers::check().is_err() {
        return;
    }
    let mut wakers = Wakers::load().expect("it starts");
    let ordinary = wake(Policy::Other);
    let before = wakers.violations();
    let realtime = wake(Policy::Fifo(1));
    let violations = wakers.violations().by_others - before.by_others;
    // Some machines' kernels report nothing while a task of theirs runs.
    assert!(violations > TIMES / 2, "{violations} of {TIMES}");
    let told = wakers.take();
    assert!(!told.iter().any(|wake| [ordinary, realtime].contains(&wake.task)), "{told:?}");
    assert!(wakers.as_fd().try_clone_to_owned().is_ok());
}

#[test]
fn wakers_report_no_thread_for_a_timer() {
    if Wakers::check().is_err() {
        return;
    }
    let mut wakers = Wakers::load().expect("it starts");
    let thread = std::thread::spawn(|| {
        sched::set_policy(Policy::Fifo(1)).expect("root may");
        assert!((0..TIMES).all(|_| clock::sleep_for(PAUSE)), "it slept");
        sched::thread_id()
    });
    let task = thread.join().expect("it ends");
    let told = wakers.take();
    assert!(!told.iter().any(|wake| wake.task == task), "{told:?}");
    assert_eq!(wakers.violations().by_interrupts, 0);
}

#[test]
fn wakers_programs_stay_as_easy_to_verify() {
    if Wakers::check().is_err() {
        return;
    }
    let wakers = Wakers::load().expect("it starts");
    let known = BTreeMap::from(VERIFIED);
    let cost = wakers.cost();
    assert_eq!(cost.programs.len(), known.len());
    for program in cost.programs {
        let bound = known.get(program.name.as_str()).map(|count| count * 3 / 2);
        assert!(Some(program.verified) <= bound, "{program:?}: more than {bound:?}");
    }
}
