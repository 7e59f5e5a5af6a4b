//! Sample record with explanations for tests.

use crate::sample;
use latlab_core::path::{DisabledSection, IDLE, Off, Path, Spent, Step};
use latlab_core::record::explained::{Cost, Explained, Share, Stack};
use latlab_core::record::{Charge, Record, Sample};
use latlab_core::time::Nanos;

/// Returns a record with forty late wake-ups, two of them in detail.
pub fn record() -> Record {
    let mut record = sample::record(1);
    record.worst = vec![late(1, 500), late(0, 250)];
    record.explained = Some(explained());
    record
}

/// Returns a late wake-up of which a tenth is unexplained.
fn late(cpu: u32, micros: u64) -> Sample {
    let charge = |cause: &str, from, length, who: &str, stack: &[&str]| Charge {
        cause: cause.to_owned(),
        from: Nanos::from_micros(from),
        ns: Nanos::from_micros(length),
        culprit: who.to_owned(),
        stack: stack.iter().map(|name| (*name).to_owned()).collect(),
    };
    let tenth = micros / 10;
    let stack = ["_raw_spin_unlock+0x1a", "copy_page_range+0x6f2", "do_syscall_64+0x82"];
    Sample {
        probe: "cyclic".to_owned(),
        cpu,
        at: Nanos::from_secs(2),
        latency: Nanos::from_micros(micros),
        index: None,
        causes: vec![
            charge("interrupts-off", 0, 7 * tenth, "stress-ng-vm (pid 123)", &stack),
            charge("interrupt", 7 * tenth, tenth, "interrupt 24 (virtio0-input)", &[]),
            charge("dispatch", 9 * tenth, tenth, "", &[]),
        ],
        unexplained: Some(Nanos::from_micros(tenth)),
        path: None,
    }
}

/// Returns a path: 2 ms of idle time, then a handler that wakes a task, with 4 us of instructions.
pub fn path() -> Path {
    let step = |function: &str, instructions, depth| Step {
        function: function.to_owned(),
        instructions,
        depth,
    };
    let spent =
        |function: &str, instructions| Spent { function: function.to_owned(), instructions };
    Path {
        idle: Nanos::from_millis(2),
        unseen: Nanos(0),
        steps: vec![
            step(IDLE, 2_000_000, 0),
            step("timer_handler", 1_000, 1),
            step("wake_up", 2_000, 2),
            step("timer_handler", 500, 1),
            step("copy_page_range", 500, 1),
        ],
        functions: vec![
            spent("wake_up", 2_000),
            spent("timer_handler", 1_500),
            spent("copy_page_range", 500),
        ],
        held: vec![DisabledSection {
            what: Off::Interrupts,
            function: "timer_handler".to_owned(),
            from: Nanos::from_millis(2),
            ns: Nanos(3_000),
        }],
    }
}

fn explained() -> Explained {
    let share = |cause: &str, who: &str, function: Option<&str>, micros: u64, worst: u64| Share {
        cause: cause.to_owned(),
        culprit: who.to_owned(),
        function: function.map(str::to_owned),
        count: 30,
        total: Nanos::from_micros(micros),
        worst: Nanos::from_micros(worst),
    };
    let stack =
        |stack: &str, micros| Stack { stack: stack.to_owned(), ns: Nanos::from_micros(micros) };
    Explained {
        wake_ups: 10_000,
        late: 40,
        total: Nanos::from_millis(10),
        unexplained: Nanos::from_micros(500),
        above: Nanos::from_micros(50),
        causes: vec![
            share("interrupts-off", "stress-ng-vm", Some("copy_page_range"), 6_000, 400),
            share("softirq", "NET_RX", None, 3_000, 300),
            share("dispatch", "", None, 500, 60),
        ],
        stacks: vec![
            stack("interrupts-off;stress-ng-vm;do_syscall_64;copy_page_range", 4_000),
            stack("softirq;NET_RX", 3_000),
            stack("interrupts-off;stress-ng-vm;do_syscall_64;unmap_vmas", 2_000),
            stack("dispatch", 500),
        ],
        cost: vec![Cost {
            program: "sched_switch".to_owned(),
            runs: 30_000,
            ns: Nanos::from_millis(3),
        }],
        counted: Nanos::from_secs(1),
        lost: 7,
        missing: vec!["page faults: this kernel has no event for them".to_owned()],
        history: None,
        running: Vec::new(),
    }
}
