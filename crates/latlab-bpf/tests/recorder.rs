//! The recorder on the running kernel.
#![expect(clippy::tests_outside_test_module, reason = "a file in this folder is one test module")]

use latlab_bpf::{Recorder, Watch};
use latlab_core::explain::{What, Window};
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::sched::{self, Policy};

const SLEEPS: usize = 100;
const PERIOD: Nanos = Nanos::from_millis(1);

/// Whether the tests may watch the kernel.
fn root() -> bool {
    Recorder::check().is_ok()
}

/// Sleeps until each of a hundred moments, and gives them.
fn sleep_often() -> Vec<Nanos> {
    sched::set_policy(Policy::Fifo(1)).expect("root may");
    let sleep = |_| {
        let moment = clock::now() + PERIOD;
        clock::sleep_until(moment);
        moment
    };
    (0..SLEEPS).map(sleep).collect()
}

fn recorded(recorder: &mut Recorder, count: usize) -> Vec<Window> {
    let mut windows = Vec::new();
    for _ in 0..100 {
        let patience = Nanos::from_millis(20);
        recorder.read(patience, &mut |window| windows.push(window)).expect("the ring can be read");
        if windows.len() >= count {
            break;
        }
    }
    windows
}

#[test]
fn every_wake_up_of_a_watched_thread_comes_with_what_happened() {
    if !root() {
        return;
    }
    let mut recorder = Recorder::start(&Watch::Tasks(Vec::new()), Nanos(0)).unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    let (go, start) = std::sync::mpsc::channel();
    let sleeper = std::thread::spawn(move || {
        send.send(sched::thread_id().cast_unsigned()).unwrap();
        start.recv().unwrap();
        let moments = sleep_often();
        // Only one that is switched out again is handed over.
        clock::sleep_for(PERIOD);
        moments
    });
    let pid = receive.recv().unwrap();
    recorder.watch(pid).unwrap();
    go.send(()).unwrap();
    let moments = sleeper.join().unwrap();
    let windows = recorded(&mut recorder, SLEEPS);
    let mut found = 0;
    for moment in moments {
        let Some(window) = windows.iter().find(|window| window.due.0.abs_diff(moment.0) <= 1_000)
        else {
            continue;
        };
        found += 1;
        assert_eq!(window.task.pid, pid);
        assert!(window.waking >= window.due && window.waking < window.switched, "{window:?}");
        let arrives = |what: &What| matches!(what, What::Switch { next, .. } if next.pid == pid);
        let mut switches = window.events.iter().filter(|event| arrives(&event.what));
        assert!(switches.any(|event| event.at == window.switched), "{window:?}");
        assert!(window.events.is_sorted_by_key(|event| event.at));
        assert!(!window.torn || recorder.losses().switches > 0, "{window:?}");
    }
    let losses = recorder.losses();
    // Some machines' kernels report nothing while a task of theirs runs. They are found out.
    assert!(found + losses.switches as usize >= SLEEPS, "{found} of {SLEEPS}, {losses:?}");
    assert_eq!((losses.windows, losses.unreadable, losses.tasks), (0, 0, 0));
}
