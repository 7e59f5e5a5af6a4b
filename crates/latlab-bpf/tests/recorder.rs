//! The recorder on the running kernel.
#![expect(clippy::tests_outside_test_module, reason = "a file in this folder is one test module")]

use latlab_bpf::{Recorder, Watch};
use latlab_core::explain::{Comm, What, Window};
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::sched::{self, Policy};
use std::sync::mpsc;
use std::thread::JoinHandle;

const SLEEPS: usize = 100;
const PERIOD: Nanos = Nanos::from_millis(1);
/// How often, and for how long, one sleeps that was woken before.
const ROUNDS: usize = 20;
const SLEEP: Nanos = Nanos::from_millis(20);
const LONG: Nanos = Nanos::from_millis(15);
/// Longer than any wake-up takes.
const NEVER: Nanos = Nanos::from_secs(1000);

/// Whether the tests may watch the kernel.
fn root() -> bool {
    Recorder::check().is_ok()
}

/// A real-time thread that waits to be told to sleep, again and again, and ends as an ordinary one.
struct Sleeper {
    pid: u32,
    go: mpsc::Sender<()>,
    thread: JoinHandle<Vec<Nanos>>,
}

impl Sleeper {
    /// Sleeps `count` times for `period`. Answers with the moments that it asked for.
    fn new(count: usize, period: Nanos) -> Sleeper {
        let (say, hear) = mpsc::channel();
        let (go, wait) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            sched::set_policy(Policy::Fifo(1)).expect("root may");
            say.send(sched::thread_id().cast_unsigned()).expect("it is heard");
            wait.recv().expect("it is told");
            let sleep = |_| {
                let moment = clock::now() + period;
                clock::sleep_until(moment);
                moment
            };
            let moments = (0..count).map(sleep).collect();
            // Only one that is switched out again is handed over.
            clock::sleep_for(PERIOD);
            sched::set_policy(Policy::Other).expect("anybody may");
            moments
        });
        Sleeper { pid: hear.recv().expect("it says"), go, thread }
    }

    fn sleep(self) -> Vec<Nanos> {
        self.go.send(()).expect("it listens");
        self.thread.join().expect("it ends")
    }
}

/// What came within two seconds, or the first windows that are of `pid`.
fn recorded(recorder: &mut Recorder, pid: u32, count: usize) -> Vec<Window> {
    let mut windows = Vec::new();
    let mut take = |window: Window| {
        if window.task.pid == pid {
            windows.push(window);
        }
        windows.len()
    };
    let mut there = 0;
    for _ in 0..100 {
        let patience = Nanos::from_millis(20);
        let read = recorder.read(patience, &mut |window| there = take(window));
        read.expect("the ring can be read");
        if there >= count {
            break;
        }
    }
    windows
}

fn is_window_of(moment: Nanos, window: &Window) -> bool {
    window.due.0.abs_diff(moment.0) <= 1_000
}

#[test]
fn watched_thread_yields_a_window_for_each_wake_up() {
    if !root() {
        return;
    }
    let mut recorder = Recorder::start(&Watch::Tasks(Vec::new()), Nanos(0)).expect("it starts");
    let sleeper = Sleeper::new(SLEEPS, PERIOD);
    let pid = sleeper.pid;
    recorder.watch(pid).expect("there is room");
    let moments = sleeper.sleep();
    let windows = recorded(&mut recorder, pid, SLEEPS);
    let losses = recorder.losses();
    let mut found = 0;
    for moment in moments {
        let Some(window) = windows.iter().find(|window| is_window_of(moment, window)) else {
            continue;
        };
        found += 1;
        assert!(window.waking >= window.due && window.waking < window.switched, "{window:?}");
        let arrives = |what: &What| matches!(what, What::Switch { next, .. } if next.pid == pid);
        let mut switches = window.events.iter().filter(|event| arrives(&event.what));
        assert!(switches.any(|event| event.at == window.switched), "{window:?}");
        assert!(window.events.is_sorted_by_key(|event| event.at));
        assert!(!window.torn || losses.switches > 0, "{window:?}");
    }
    // Some machines' kernels report nothing while a task of theirs runs. They are found out.
    let hidden = usize::try_from(losses.switches).expect("they are few");
    assert!(found + hidden >= SLEEPS, "{found} of {SLEEPS}, {losses:?}");
    assert_eq!((losses.windows, losses.unreadable, losses.unwatched), (0, 0, 0));
    let costs = recorder.cost();
    let switch = costs.iter().find(|cost| cost.name == "sched_switch").expect("it is there");
    assert!(switch.runs >= SLEEPS as u64 || recorder.uncounted().is_some(), "{switch:?}");
}

/// A thread that asks for a moment long past is woken on its way to sleep, and goes on at once. What is
/// seen of its next sleep is to be the end of that one alone.
#[test]
fn thread_woken_before_it_sleeps_is_not_charged_with_its_next_sleep() {
    if !root() {
        return;
    }
    let mut recorder = Recorder::start(&Watch::Tasks(Vec::new()), Nanos(0)).expect("it starts");
    let (say, hear) = mpsc::channel();
    let (go, wait) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        sched::set_policy(Policy::Fifo(1)).expect("root may");
        say.send(sched::thread_id().cast_unsigned()).expect("it is heard");
        wait.recv().expect("it is told");
        for _ in 0..ROUNDS {
            clock::sleep_until(clock::now() - PERIOD);
            let busy = clock::now() + Nanos::from_micros(100);
            while clock::now() < busy {}
            clock::sleep_for(SLEEP);
        }
        clock::sleep_for(PERIOD);
        sched::set_policy(Policy::Other).expect("anybody may");
    });
    let pid = hear.recv().expect("it says");
    recorder.watch(pid).expect("there is room");
    go.send(()).expect("it listens");
    thread.join().expect("it ends");
    let windows = recorded(&mut recorder, pid, usize::MAX);
    let wakes_itself = |window: &&Window| {
        let mut events = window.events.iter().filter(|event| event.task.pid == pid);
        events.any(|event| matches!(event.what, What::Waking { task, .. } if task.pid == pid))
    };
    let woken_awake = windows.iter().filter(wakes_itself).count();
    assert!(woken_awake >= ROUNDS / 2, "{woken_awake} of {ROUNDS}");
    let long = windows.iter().filter(|window| window.ran - window.due > LONG);
    let long: Vec<_> = long.map(|window| (window.due, window.ran, window.waking)).collect();
    // A host that takes the CPU away, or a kernel that reports nothing for a while, makes one or two.
    assert!(long.len() * 2 < woken_awake, "{long:?}");
}

#[test]
fn threads_with_colliding_pids_are_counted_and_not_watched() {
    if !root() {
        return;
    }
    let sleeper = Sleeper::new(10, PERIOD);
    let pid = sleeper.pid;
    // Nobody needs to have the others' numbers.
    let tasks = Watch::Tasks(vec![pid, pid + 4096]);
    let mut recorder = Recorder::start(&tasks, Nanos(0)).expect("it starts");
    recorder.watch(pid + 3 * 4096).expect("it goes on");
    recorder.watch(pid).expect("it is watched already");
    assert_eq!(recorder.losses().threads, 2);
    sleeper.sleep();
    assert!(!recorded(&mut recorder, pid, 1).is_empty(), "{:?}", recorder.losses());
}

#[test]
fn threads_watched_by_name_or_as_real_time_yield_late_windows_only() {
    if !root() {
        return;
    }
    let name = std::thread::Builder::new().name("by its name".to_owned());
    let slept = name.spawn(|| {
        for watch in [Watch::Name(Comm::from("inherited")), Watch::RealTime] {
            let mut recorder = Recorder::start(&watch, NEVER).expect("it starts");
            assert_eq!(recorder.above(), NEVER);
            let sleeper = Sleeper::new(10, PERIOD);
            let pid = sleeper.pid;
            sleeper.sleep();
            assert_eq!(recorded(&mut recorder, pid, 1).len(), 0);
        }
        for watch in [Watch::Name(Comm::from("by its name")), Watch::RealTime] {
            let mut recorder = Recorder::start(&watch, NEVER).expect("it starts");
            recorder.set_above(Nanos(0)).expect("it can be set");
            let sleeper = Sleeper::new(10, PERIOD);
            let pid = sleeper.pid;
            sleeper.sleep();
            let windows = recorded(&mut recorder, pid, 10);
            assert!(windows.len() >= 5, "{watch:?}: {}", windows.len());
        }
    });
    slept.expect("a thread starts").join().expect("it ends");
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the next number is the machine's for an instant only"
)]
fn thread_that_ends_frees_its_slot_whatever_its_policy() {
    if !root() {
        return;
    }
    for _ in 0..50 {
        let mut recorder = Recorder::start(&Watch::RealTime, Nanos(0)).expect("it starts");
        let first = Sleeper::new(3, PERIOD);
        let place = first.pid;
        first.sleep();
        assert!(!recorded(&mut recorder, place, 1).is_empty());
        let other = if place > 8192 { place - 4096 } else { place + 4096 };
        std::fs::write("/proc/sys/kernel/ns_last_pid", (other - 1).to_string()).expect("root may");
        let second = Sleeper::new(3, PERIOD);
        let pid = second.pid;
        second.sleep();
        // Somebody else may have got that number.
        if pid == other {
            assert!(!recorded(&mut recorder, pid, 1).is_empty(), "{:?}", recorder.losses());
            return;
        }
    }
    panic!("others took all the numbers");
}

#[test]
fn windows_that_come_too_fast_are_counted_as_lost() {
    if !root() {
        return;
    }
    let mut recorder = Recorder::start(&Watch::Tasks(Vec::new()), Nanos(0)).expect("it starts");
    let sleeper = Sleeper::new(10_000, Nanos::from_micros(50));
    let pid = sleeper.pid;
    recorder.watch(pid).expect("there is room");
    sleeper.sleep();
    let lost = recorder.losses().windows;
    let windows = recorded(&mut recorder, pid, usize::MAX);
    assert!(lost > 0 && !windows.is_empty(), "{lost} lost, {} came", windows.len());
}
