//! The recorder on the running kernel.
#![expect(clippy::tests_outside_test_module, reason = "a file in this folder is one test module")]

use latlab_bpf::{Recorder, Watch};
use latlab_core::cpulist::CpuList;
use latlab_core::explain::{Call, Comm, EventKind, Window};
use latlab_core::symbols::Symbols;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::cpu;
use latlab_sys::mutex::{Mutex, Protocol};
use latlab_sys::sched::{self, Policy};
use latlab_testing::{wait_at_most, wait_until_asleep};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

const SLEEPS: usize = 100;
const PERIOD: Nanos = Nanos::from_millis(1);
/// Longest time that a read waits for windows.
const LOOK: Nanos = Nanos::from_millis(20);
/// Number of sleeps of a thread that is woken before it sleeps.
const ROUNDS: usize = 20;
/// Longer than any wake-up takes.
const NEVER: Nanos = Nanos::from_secs(1000);

/// A real-time thread that sleeps repeatedly once it is told to, and ends with `SCHED_OTHER`.
struct Sleeper {
    pid: u32,
    go: mpsc::Sender<()>,
    thread: JoinHandle<Vec<Nanos>>,
}

impl Sleeper {
    /// Starts a thread that sleeps `count` times for `period` and returns the requested expiry
    /// times.
    fn new(count: usize, period: Nanos) -> Sleeper {
        let (pid_sender, pid_receiver) = mpsc::channel();
        let (go, start) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            sched::set_policy(Policy::Fifo(1)).expect("root may set any policy");
            pid_sender.send(sched::thread_id().cast_unsigned()).expect("the test receives");
            start.recv().expect("the test sends");
            let sleep = |_| {
                let moment = clock::now() + period;
                clock::sleep_until(moment);
                moment
            };
            let moments = (0..count).map(sleep).collect();
            // A window is passed on when the task is switched out again.
            clock::sleep_for(PERIOD);
            sched::set_policy(Policy::Other).expect("SCHED_OTHER is always allowed");
            moments
        });
        Sleeper { pid: pid_receiver.recv().expect("the thread sends"), go, thread }
    }

    fn sleep(self) -> Vec<Nanos> {
        self.go.send(()).expect("the thread receives");
        self.thread.join().expect("the thread ends")
    }
}

/// Returns the windows of `pid`, which has ended. All of them are in the ring buffer, between those of
/// real-time threads of other programs: reading ends when none of them has come for some reads.
fn recorded(recorder: &Recorder, pid: u32) -> Vec<Window> {
    const IN_VAIN: u32 = 5;
    let (mut windows, mut in_vain) = (Vec::new(), 0);
    while in_vain < IN_VAIN {
        let before = windows.len();
        let read = recorder.read(LOOK, &mut |window| {
            if window.task.pid == pid {
                windows.push(window);
            }
        });
        read.expect("the ring buffer can be read");
        in_vain = if windows.len() > before { 0 } else { in_vain + 1 };
    }
    windows
}

fn is_window_of(moment: Nanos, window: &Window) -> bool {
    window.due.0.abs_diff(moment.0) <= 1_000
}

#[test]
fn watched_thread_yields_a_window_for_each_wake_up() {
    if !latlab_testing::bpf() {
        return;
    }
    let recorder =
        Recorder::start(&Watch::Tasks(Vec::new()), Nanos(0)).expect("the recorder starts");
    let sleeper = Sleeper::new(SLEEPS, PERIOD);
    let pid = sleeper.pid;
    recorder.watch(pid).expect("the thread can be watched");
    let moments = sleeper.sleep();
    let windows = recorded(&recorder, pid);
    let losses = recorder.losses();
    let mut found = 0;
    for moment in moments {
        let Some(window) = windows.iter().find(|window| is_window_of(moment, window)) else {
            continue;
        };
        found += 1;
        assert!(window.waking >= window.due && window.waking < window.switched, "{window:?}");
        let arrives =
            |what: &EventKind| matches!(what, EventKind::Switch { next, .. } if next.pid == pid);
        let mut switches = window.events.iter().filter(|event| arrives(&event.kind));
        assert!(switches.any(|event| event.at == window.switched), "{window:?}");
        assert!(window.events.is_sorted_by_key(|event| event.at));
        assert!(!window.torn || losses.switches > 0, "{window:?}");
    }
    // Some kernels do not report all switches; these are counted.
    let hidden = usize::try_from(losses.switches).expect("a small number");
    assert!(found + hidden >= SLEEPS, "{found} of {SLEEPS}, {losses:?}");
    assert_eq!((losses.windows, losses.unreadable, losses.unwatched), (0, 0, 0));
    let costs = recorder.cost();
    let switch =
        costs.iter().find(|cost| cost.name == "sched_switch").expect("the program is loaded");
    assert!(switch.runs >= SLEEPS as u64 || recorder.counting_error().is_some(), "{switch:?}");
}

/// A thread that sleeps until a moment long past is woken before it sleeps, and continues at once.
/// The latency of its next sleep must not begin with that waking, but where that sleep was to end.
#[test]
fn thread_woken_before_it_sleeps_is_not_charged_with_its_next_sleep() {
    if !latlab_testing::bpf() {
        return;
    }
    let recorder =
        Recorder::start(&Watch::Tasks(Vec::new()), Nanos(0)).expect("the recorder starts");
    let (pid_sender, pid_receiver) = mpsc::channel();
    let (go, start) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        sched::set_policy(Policy::Fifo(1)).expect("root may set any policy");
        pid_sender.send(sched::thread_id().cast_unsigned()).expect("the test receives");
        start.recv().expect("the test sends");
        let sleep = |_| {
            clock::sleep_until(clock::now() - PERIOD);
            let busy = clock::now() + Nanos::from_micros(100);
            while clock::now() < busy {}
            let moment = clock::now() + PERIOD;
            clock::sleep_until(moment);
            moment
        };
        let moments: Vec<Nanos> = (0..ROUNDS).map(sleep).collect();
        clock::sleep_for(PERIOD);
        sched::set_policy(Policy::Other).expect("SCHED_OTHER is always allowed");
        moments
    });
    let pid = pid_receiver.recv().expect("the thread sends");
    recorder.watch(pid).expect("the thread can be watched");
    go.send(()).expect("the thread receives");
    let moments = thread.join().expect("the thread ends");
    let windows = recorded(&recorder, pid);
    let wakes_itself = |window: &&Window| {
        let mut events = window.events.iter().filter(|event| event.task.pid == pid);
        // Its timer, which expired before it was started.
        events.any(
            |event| matches!(event.kind, EventKind::Timer { due, .. } if event.at - due >= PERIOD),
        )
    };
    let woken_awake = windows.iter().filter(wakes_itself).count();
    assert!(woken_awake >= ROUNDS / 2, "{woken_awake} of {ROUNDS}");
    let is_found = |moment: &&Nanos| windows.iter().any(|window| is_window_of(**moment, window));
    let found = moments.iter().filter(is_found).count();
    // Some kernels do not report all switches.
    assert!(found > ROUNDS / 2, "{found} of {ROUNDS}, {:?}", recorder.losses());
}

#[test]
fn threads_with_colliding_pids_are_counted_and_not_watched() {
    if !latlab_testing::bpf() {
        return;
    }
    let sleeper = Sleeper::new(10, PERIOD);
    let pid = sleeper.pid;
    // The other PIDs need not exist.
    let tasks = Watch::Tasks(vec![pid, pid + 4096]);
    let recorder = Recorder::start(&tasks, Nanos(0)).expect("the recorder starts");
    recorder.watch(pid + 3 * 4096).expect("a colliding PID is no error");
    recorder.watch(pid).expect("the thread is watched already");
    assert_eq!(recorder.losses().threads, 2);
    sleeper.sleep();
    assert!(!recorded(&recorder, pid).is_empty(), "{:?}", recorder.losses());
}

#[test]
fn forgotten_thread_leaves_its_slot_to_another() {
    if !latlab_testing::bpf() {
        return;
    }
    let sleeper = Sleeper::new(10, PERIOD);
    let pid = sleeper.pid;
    // The other PID need not exist.
    let ended = pid + 4096;
    let tasks = Watch::Tasks(vec![ended]);
    let recorder = Recorder::start(&tasks, Nanos(0)).expect("the recorder starts");
    recorder.forget(pid).expect("a thread that is not watched is no error");
    recorder.watch(pid).expect("a colliding PID is no error");
    recorder.forget(ended).expect("it is watched");
    recorder.watch(pid).expect("the slot is free");
    assert_eq!(recorder.losses().threads, 1);
    sleeper.sleep();
    assert!(!recorded(&recorder, pid).is_empty(), "{:?}", recorder.losses());
}

#[test]
fn threads_watched_by_name_or_as_real_time_yield_late_windows_only() {
    if !latlab_testing::bpf() {
        return;
    }
    let name = std::thread::Builder::new().name("by its name".to_owned());
    let slept = name.spawn(|| {
        for watch in [Watch::Name(Comm::from("inherited")), Watch::RealTime] {
            let recorder = Recorder::start(&watch, NEVER).expect("the recorder starts");
            assert_eq!(recorder.threshold(), NEVER);
            let sleeper = Sleeper::new(10, PERIOD);
            let pid = sleeper.pid;
            sleeper.sleep();
            assert_eq!(recorded(&recorder, pid).len(), 0);
        }
        for watch in [Watch::Name(Comm::from("by its name")), Watch::RealTime] {
            let recorder = Recorder::start(&watch, NEVER).expect("the recorder starts");
            recorder.set_threshold(Nanos(0)).expect("the threshold can be set");
            let sleeper = Sleeper::new(10, PERIOD);
            let pid = sleeper.pid;
            sleeper.sleep();
            let windows = recorded(&recorder, pid);
            assert!(windows.len() >= 5, "{watch:?}: {}", windows.len());
        }
    });
    slept.expect("a thread can be started").join().expect("the thread ends");
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the setting of the next PID lasts for an instant only"
)]
fn thread_that_ends_frees_its_slot_whatever_its_policy() {
    if !latlab_testing::bpf() {
        return;
    }
    for _ in 0..50 {
        let recorder = Recorder::start(&Watch::RealTime, Nanos(0)).expect("the recorder starts");
        let first = Sleeper::new(3, PERIOD);
        let first_pid = first.pid;
        first.sleep();
        assert!(!recorded(&recorder, first_pid).is_empty());
        let other = if first_pid > 8192 { first_pid - 4096 } else { first_pid + 4096 };
        std::fs::write("/proc/sys/kernel/ns_last_pid", (other - 1).to_string())
            .expect("root may set it");
        let second = Sleeper::new(3, PERIOD);
        let pid = second.pid;
        second.sleep();
        // Another process may have got that PID.
        if pid == other {
            assert!(!recorded(&recorder, pid).is_empty(), "{:?}", recorder.losses());
            return;
        }
    }
    panic!("other processes took all the PIDs");
}

/// A thread that begins to measure must not wait until another is done with waiting.
#[test]
fn thread_is_watched_while_another_waits_for_windows() {
    if !latlab_testing::bpf() {
        return;
    }
    let recorder =
        Recorder::start(&Watch::Tasks(Vec::new()), Nanos(0)).expect("the recorder starts");
    let sleeper = Sleeper::new(10, PERIOD);
    let (sender, id) = mpsc::channel();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            sender.send(sched::thread_id()).expect("the test receives");
            recorder.read(Nanos::from_secs(60), &mut |_| ())
        });
        wait_until_asleep(id.recv().expect("the thread sends"));
        recorder.watch(sleeper.pid).expect("the thread can be watched");
        assert!(!reader.is_finished(), "the thread was watched after the wait only");
        // A window ends the wait.
        sleeper.sleep();
    });
}

#[test]
fn windows_that_come_too_fast_are_counted_as_lost() {
    if !latlab_testing::bpf() {
        return;
    }
    let recorder =
        Recorder::start(&Watch::Tasks(Vec::new()), Nanos(0)).expect("the recorder starts");
    let sleeper = Sleeper::new(10_000, Nanos::from_micros(50));
    let pid = sleeper.pid;
    recorder.watch(pid).expect("the thread can be watched");
    sleeper.sleep();
    let lost = recorder.losses().windows;
    let windows = recorded(&recorder, pid);
    assert!(lost > 0 && !windows.is_empty(), "{lost} lost, {} received", windows.len());
}

/// A thread inherits the priority of another one, and loses it before it is switched out again. A
/// real-time thread of another program may have the slot of the other one, whose PID is another in the
/// next round.
#[test]
fn thread_is_not_watched_as_real_time_for_an_inherited_priority() {
    if !latlab_testing::bpf() {
        return;
    }
    let recorder = Recorder::start(&Watch::RealTime, Nanos(0)).expect("the recorder starts");
    for _ in 0..3 {
        let (owner, waiter) = inherit();
        let mut seen = Vec::new();
        for _ in 0..100 {
            let read = recorder.read(LOOK, &mut |window| seen.push(window.task.pid));
            read.expect("the ring buffer can be read");
            if seen.contains(&waiter) {
                break;
            }
        }
        assert!(!seen.contains(&owner), "{seen:?}");
        if seen.contains(&waiter) {
            return;
        }
    }
    panic!("no wake-up was recorded: {:?}", recorder.losses());
}

/// Has a thread inherit the priority of another, and returns the IDs of both.
fn inherit() -> (u32, u32) {
    let mutex = Mutex::new(Protocol::Inherit).expect("the kernel has priority inheritance");
    let lock = || mutex.lock_until(clock::wall_clock() + NEVER).expect("it gets free");
    let own_id = || sched::thread_id().cast_unsigned();
    let (sender, locked) = mpsc::channel();
    std::thread::scope(|scope| {
        let owner = scope.spawn(|| {
            let held = lock();
            sender.send(()).expect("the test receives");
            (0..20).for_each(|_| assert!(clock::sleep_for(PERIOD)));
            drop(held);
            own_id()
        });
        locked.recv().expect("the owner sends");
        let waiter = scope.spawn(|| {
            sched::set_policy(Policy::Fifo(1)).expect("root may set any policy");
            drop(lock());
            clock::sleep_for(PERIOD);
            own_id()
        });
        (owner.join().expect("it ends"), waiter.join().expect("it ends"))
    })
}

#[test]
fn thread_that_is_preempted_in_user_mode_was_runnable() {
    if !latlab_testing::bpf() {
        return;
    }
    let recorder =
        Recorder::start(&Watch::Tasks(Vec::new()), Nanos(0)).expect("the recorder starts");
    let cpus = cpu::allowed().expect("the CPUs are known");
    let first = CpuList::from_iter(cpus.iter().next());
    // Both begin together and end together, however late the test runs.
    let (begin, has_ended) = (Barrier::new(3), AtomicBool::new(false));
    let set_up = |priority, id: mpsc::Sender<u32>| {
        cpu::pin(&first).expect("the thread may run there");
        sched::set_policy(Policy::Fifo(priority)).expect("root may set any policy");
        id.send(sched::thread_id().cast_unsigned()).expect("the test receives");
        begin.wait();
    };
    let (set_up, has_ended) = (&set_up, &has_ended);
    let (pid, urgent) = std::thread::scope(|scope| {
        let (sender, busy) = mpsc::channel();
        scope.spawn(move || {
            set_up(1, sender);
            for _ in 0..20 {
                clock::sleep_for(PERIOD);
                clock::spin_until(clock::now() + PERIOD + PERIOD + PERIOD);
            }
            has_ended.store(true, Ordering::Relaxed);
        });
        let (sender, urgent) = mpsc::channel();
        scope.spawn(move || {
            set_up(2, sender);
            while !has_ended.load(Ordering::Relaxed) {
                clock::sleep_for(PERIOD);
            }
        });
        let [busy, urgent] = [busy, urgent].map(|id| id.recv().expect("the thread sends"));
        let watched = recorder.watch(busy);
        begin.wait();
        watched.expect("the thread can be watched");
        (busy, urgent)
    });
    let windows = recorded(&recorder, pid);
    let switches = windows.iter().flat_map(|window| &window.events).filter_map(|event| {
        let EventKind::Switch { next, preempted } = event.kind else { return None };
        (event.task.pid == pid && next.pid == urgent).then_some(preempted)
    });
    // Now and then both sleep at the same time.
    let (preempted, slept): (Vec<bool>, Vec<bool>) = switches.partition(|preempted| *preempted);
    assert!(preempted.len() > slept.len(), "{} preempted, {} slept", preempted.len(), slept.len());
}

/// Memory that is returned at once, so that each drop ends a mapping.
const MAPPED: usize = 64 << 20;

/// While one thread of this process runs on the sleeper's CPU, another one ends mappings on the other
/// CPU, which has to make the first forget them (TLB shootdown).
#[test]
fn function_call_names_the_thread_and_the_cpu_that_asked_for_it() {
    if !latlab_testing::bpf() {
        return;
    }
    let cpus = cpu::allowed().expect("the CPUs are known");
    let [first, second] = [cpus.iter().next(), cpus.iter().nth(1)];
    let (Some(first), Some(second)) = (first, second) else {
        latlab_testing::not_run(latlab_testing::Missing::Optional, "it needs two CPUs");
        return;
    };
    let on = |cpu| cpu::pin(&CpuList::from_iter([cpu])).expect("the thread may run there");
    let symbols = std::fs::read_to_string("/proc/kallsyms").expect("there are symbols");
    let symbols = Symbols::parse(&symbols).expect("the test runs as root");
    let is_shootdown = |call: &Call| {
        symbols.find(call.function).is_some_and(|symbol| symbol.function == "flush_tlb_func")
    };
    let recorder =
        Recorder::start(&Watch::Tasks(Vec::new()), Nanos(0)).expect("the recorder starts");
    on(first);
    let (ends, mut calls) = (AtomicBool::new(false), Vec::new());
    std::thread::scope(|scope| {
        let end = End(&ends);
        let goes_on = || !ends.load(Ordering::Relaxed);
        // On a busy machine, ordinary threads would hardly run at the same time.
        let urgent = || sched::set_nice(-20).expect("root may set it");
        scope.spawn(move || {
            urgent();
            on(first);
            while goes_on() {
                std::hint::spin_loop();
            }
        });
        let (sender, thread) = mpsc::channel();
        scope.spawn(move || {
            urgent();
            on(second);
            sender.send(sched::thread_id().cast_unsigned()).expect("the test receives");
            while goes_on() {
                let mut memory = Vec::with_capacity(MAPPED);
                memory.push(1_u8);
                drop(std::hint::black_box(memory));
            }
        });
        let thread = thread.recv().expect("the thread sends");
        wait_at_most(Duration::from_mins(5), "a TLB shootdown comes before a wake-up", || {
            let sleeper = Sleeper::new(SLEEPS, PERIOD);
            let pid = sleeper.pid;
            recorder.watch(pid).expect("the thread can be watched");
            sleeper.sleep();
            let events = recorded(&recorder, pid).into_iter().flat_map(|window| window.events);
            calls.extend(events.filter_map(|event| match event.kind {
                EventKind::Called(call) if call.sender.pid == thread => Some(call),
                _ => None,
            }));
            calls.iter().any(is_shootdown)
        });
        drop(end);
    });
    assert!(calls.iter().all(|call| call.cpu == second), "{calls:?}");
}

/// Ends the threads of a test when this is dropped, also where the test fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
