//! Tests of which wait is taken for that of the cycle.

use super::*;

impl Script {
    /// A system call on a device; `takes` is its sleep, 0 for none.
    fn on_device(&mut self, call: &'static str, descriptor: u64, takes: u64) {
        let file = Some(File { kind: FileKind::Device, name: "spidev".to_owned(), peer: None });
        let (arguments, time) = ([descriptor, 0, 0, 0, 0, 0], Nanos(0));
        let locks = Locks { future: true, any: true };
        self.add(
            1,
            EventKind::Enter {
                call,
                arguments,
                time,
                file,
                lock: Lock::default(),
                locks,
                stack: Some(1),
            },
        );
        if takes > 0 {
            self.sleep(self.now + takes, (120, WakeContext::Interrupt));
        }
        self.add(1, LEAVE);
    }

    fn map_memory(&mut self) {
        self.call("mmap", [0; 6], Nanos(0));
        self.add(1, LEAVE);
    }
}

const SLEEP: &str = "a time (clock_nanosleep)";
const FILE: &str = "a file (read)";

fn rules(thread: &ThreadReport) -> Vec<(Rule, u64)> {
    thread.breaches.iter().map(|breach| (breach.rule, breach.count)).collect()
}

#[test]
fn calls_at_the_start_do_not_hide_the_loop() {
    for takes in [0, 5] {
        let mut script = Script::new(None);
        (0..40).for_each(|_| script.on_device("read", 5, takes));
        let thread = script.cycles(|script, _| script.map_memory());
        assert_eq!((thread.cycle.waits_for.as_str(), thread.cycle.count), (SLEEP, 100));
        assert_eq!(rules(&thread), [(Rule::Allocation, 100)]);
    }
}

#[test]
fn many_calls_of_a_device_in_each_cycle_make_no_cycle() {
    let act = |script: &mut Script, _| (0..18).for_each(|_| script.on_device("ioctl", 5, 0));
    let thread = Script::new(None).cycles(act);
    assert_eq!((thread.cycle.waits_for.as_str(), thread.cycle.count), (SLEEP, 100));
    assert_eq!(thread.breaches, []);
}

#[test]
fn sleep_in_a_device_is_that_of_a_cycle_if_timers_are_rare() {
    let mut script = Script::new(None);
    (1..4).for_each(|cycle| script.wait(cycle));
    for _ in 0..100 {
        script.on_device("read", 5, 50);
        script.map_memory();
    }
    let report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
    let thread = &report.threads[0];
    assert_eq!((thread.cycle.waits_for.as_str(), thread.cycle.count), (FILE, 99));
    assert_eq!(rules(thread), [(Rule::Allocation, 99)]);
}

#[test]
fn files_of_the_start_make_room_for_those_of_the_loop() {
    let mut script = Script::new(None);
    for descriptor in 5..9 {
        (0..40).for_each(|_| script.on_device("ioctl", descriptor, 5));
    }
    for _ in 0..500 {
        script.on_device("ioctl", 10, 5);
        script.on_device("read", 11, 900);
    }
    let report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
    let cycle = &report.threads[0].cycle;
    assert!(cycle.waits_for == FILE && cycle.count > 300, "{cycle:?}");
}

#[test]
fn timer_that_is_read_after_epoll_makes_no_cycle() {
    let mut script = Script::new(None);
    for _ in 0..100 {
        script.call("epoll_wait", [3, 0, 0, 0, 0, 0], Nanos(0));
        script.sleep(script.now + 900, (120, WakeContext::Interrupt));
        script.add(1, LEAVE);
        let file = Some(File { kind: FileKind::Timer(1), name: "timerfd".to_owned(), peer: None });
        let (arguments, locks) = ([4, 0, 0, 0, 0, 0], Locks { future: true, any: true });
        let time = Nanos(0);
        script.add(
            1,
            EventKind::Enter {
                call: "read",
                arguments,
                time,
                file,
                lock: Lock::default(),
                locks,
                stack: None,
            },
        );
        script.add(1, LEAVE);
    }
    let report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
    let thread = &report.threads[0];
    assert_eq!(thread.cycle.waits_for, "one of several files (poll)");
    assert_eq!(thread.breaches, []);
}

#[test]
fn reads_of_ever_new_files_do_not_hide_the_loop() {
    let read_new = |script: &mut Script, cycle| script.on_device("read", 10 + cycle, 5);
    let thread = Script::new(None).cycles(read_new);
    assert_eq!((thread.cycle.waits_for.as_str(), thread.cycle.count), (SLEEP, 100));
    assert_eq!(rules(&thread), [(Rule::Sleep, 100)]);
}
