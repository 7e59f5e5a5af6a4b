//! The wakers on the running kernel.
#![expect(clippy::tests_outside_test_module, reason = "a file in this folder is one test module")]

use latlab_bpf::wakers::Wakers;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::sched::{self, Policy};
use latlab_testing::lock_machine_for_a_moment;
use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::sync::mpsc;

/// Number of wake-ups of a thread.
const TIMES: u64 = 200;
/// Time for the thread to sleep again.
const PAUSE: Nanos = Nanos::from_micros(500);

/// Number of instructions that the verifier of Linux 6.18 processed in each program.
const VERIFIED: [(&str, u32); 3] =
    [("sched_waking", 334), ("softirq_entry", 25), ("softirq_raise", 166)];

/// Wakes a thread of that policy repeatedly from a `SCHED_OTHER` thread. Returns its PID.
fn wake(policy: Policy) -> i32 {
    let (pid_sender, pid_receiver) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        sched::set_policy(policy).expect("root may set any policy");
        pid_sender.send(sched::thread_id()).expect("the test receives");
        while wait.recv().is_ok() {}
    });
    let task = pid_receiver.recv().expect("the thread sends");
    for _ in 0..TIMES {
        clock::sleep_for(PAUSE);
        go.send(()).expect("the thread receives");
    }
    drop(go);
    thread.join().expect("the thread ends");
    task
}

#[test]
fn wakers_count_programs_that_wake_each_other_without_reporting_them() {
    if !latlab_testing::bpf() {
        return;
    }
    let mut wakers = Wakers::load().expect("the programs load");
    let ordinary = wake(Policy::Other);
    let before = wakers.violations();
    let realtime = wake(Policy::Fifo(1));
    let violations = wakers.violations().by_others - before.by_others;
    // Some kernels do not report all wake-ups.
    assert!(violations > TIMES / 2, "{violations} of {TIMES}");
    let reported = wakers.take();
    assert!(!reported.iter().any(|wake| [ordinary, realtime].contains(&wake.task)), "{reported:?}");
    assert!(wakers.as_fd().try_clone_to_owned().is_ok());
}

#[test]
fn wakers_report_no_thread_for_a_timer() {
    if !latlab_testing::bpf() {
        return;
    }
    // Real-time tasks of other tests may be woken by interrupts.
    let _lock = lock_machine_for_a_moment();
    let mut wakers = Wakers::load().expect("the programs load");
    let thread = std::thread::spawn(|| {
        sched::set_policy(Policy::Fifo(1)).expect("root may set any policy");
        assert!((0..TIMES).all(|_| clock::sleep_for(PAUSE)), "the thread slept");
        sched::thread_id()
    });
    let task = thread.join().expect("the thread ends");
    let reported = wakers.take();
    assert!(!reported.iter().any(|wake| wake.task == task), "{reported:?}");
    assert_eq!(wakers.violations().by_interrupts, 0);
}

#[test]
fn wakers_programs_stay_as_easy_to_verify() {
    if !latlab_testing::bpf() {
        return;
    }
    let wakers = Wakers::load().expect("the programs load");
    let known = BTreeMap::from(VERIFIED);
    let cost = wakers.cost();
    assert_eq!(cost.programs.len(), known.len());
    for program in cost.programs {
        let bound = known.get(program.name.as_str()).map(|count| count * 3 / 2);
        assert!(Some(program.verified) <= bound, "{program:?}: more than {bound:?}");
    }
}
