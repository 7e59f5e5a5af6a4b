//! Traces of other tools: the real ftrace of this machine, and files that are none.

use super::explained;
use crate::program::{latlab, lock_machine, root};
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

/// A hog of priority 90 delays `motor` by 3 ms.
fn scene() -> String {
    let mut text = "# tracer: nop\n".to_owned();
    let mut line = |task: &str, at: u32, event: &str| {
        let _ = writeln!(text, "  {task}  [000] d..2.  1.{at:06}: {event}");
    };
    let (idle, motor, hog) = (("swapper/0", 0, 120), ("motor", 7, 39), ("hog", 8, 9));
    let switch = |prev: (&str, u32, i16), state: &str, next: (&str, u32, i16)| {
        format!(
            "sched_switch: prev_comm={} prev_pid={} prev_prio={} prev_state={state} ==> next_comm={} next_pid={} \
             next_prio={}",
            prev.0, prev.1, prev.2, next.0, next.1, next.2
        )
    };
    line("<idle>-0", 0, &switch(idle, "R", motor));
    line("motor-7", 20, &switch(motor, "S", hog));
    line("hog-8", 105, "sched_waking: comm=motor pid=7 prio=39 target_cpu=000");
    line("hog-8", 3_105, &switch(hog, "S", motor));
    text
}

#[test]
fn task_that_had_the_cpu_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (path, kept) = (folder.path().join("trace.txt"), folder.path().join("kept.json"));
    fs::write(&path, scene()).unwrap();
    let (path, kept) = (path.display(), kept.display());
    let output = latlab(&format!("explain {path} --comm motor --above 1ms --out {kept}"));
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert!(output.stdout.starts_with("100 % tasks of higher priority (hog)"), "{output:?}");
    assert!(
        output.stdout.contains("1 of 1 wake-ups were later than 1 ms, 3 ms in all"),
        "{output:?}"
    );
    for limit in [
        "no irq_handler, irq_vectors (or ipi), softirq events",
        "no stacks",
        "rounded down to 1 us",
    ] {
        assert!(output.stdout.contains(limit), "{limit}: {output:?}");
    }
    assert!(output.stderr.contains("its events reach level 1 of 4"), "{output:?}");
    let page = folder.path().join("report.html");
    let shown = latlab(&format!("report {kept} -o {}", page.display()));
    assert_eq!(shown.code(), Some(0), "{shown:?}");
    assert!(fs::read_to_string(page).unwrap().contains("higher-priority"));
}

#[test]
fn ordinary_tasks_do_not_count_where_a_real_time_task_was_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.txt");
    let ordinary = scene().replace("prio=39", "prio=120").replace("prio=9 ", "prio=120 ");
    let prompt = scene().replace("003105", "000106").replace(" 1.0", " 2.0");
    fs::write(&path, ordinary + &prompt).unwrap();
    let output = latlab(&format!("explain {} --above 1ms", path.display()));
    assert!(output.stdout.contains("none of 1 wake-ups was later than 1 ms"), "{output:?}");
}

#[test]
fn file_that_can_not_be_explained_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let trace = put("trace.txt", scene().as_bytes());
    let histogram = put("h.hist", b"# Histogram\n000005 000010\n# Min Latencies: 00005\n# Avg Latencies: 00005\n# Max Latencies: 00005\n# Histogram Overflows: 00000\n");
    let cases = [
        (format!("{trace} --comm nobody"), "tasks that wake up in it are motor"),
        (format!("{trace} --for 3s"), "--for is for measurements"),
        (format!("{trace} --prove"), "--prove does not apply to a trace"),
        (format!("{trace} cyclic"), "give one trace and no probe"),
        (put("binary", b"\x7fELF\0\0"), "neither text, nor a file of trace-cmd"),
        (put("empty.txt", b""), "it has no event"),
        (put("cut.dat", b"\x17\x08\x44tracing6\0"), "trace-cmd can't read it"),
        (histogram, "show it with latlab report"),
        ("nosuch.txt".to_owned(), "nosuch.txt: No such file"),
    ];
    for (arguments, why) in cases {
        latlab(&format!("explain {arguments}")).assert_refused(2, &[why]);
    }
}

#[test]
fn trace_of_this_kernel_is_read_with_every_event() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.txt");
    // An instance of its own, so that nobody else's tracing is changed.
    let instance = "/sys/kernel/tracing/instances/latlab-test";
    let script = format!(
        "set -e; mkdir -p {instance}; trap 'cd /; rmdir {instance}' EXIT; cd {instance}; echo mono > trace_clock; \
         for event in sched/sched_switch sched/sched_waking sched/sched_wakeup irq irq_vectors timer/hrtimer_start \
         timer/hrtimer_expire_entry timer/hrtimer_expire_exit; do echo 1 > events/$event/enable; done; \
         chrt -f 60 sh -c 'for n in 1 2 3 4 5 6 7 8 9 10; do sleep 0.01; done'; echo 0 > tracing_on; cat trace > {}",
        path.display()
    );
    let traced = Command::new("sh").args(["-c", &script]).status().unwrap();
    assert!(traced.success());
    let output = latlab(&format!("explain {} --rt --json", path.display()));
    let record = output.record();
    let explained = explained(&record);
    assert!(explained.wake_ups >= 10, "{explained:?}");
    let is_timer = |name: &str| ["timer-callbacks", "interrupt"].contains(&name);
    let has_timer = explained.causes.iter().any(|share| is_timer(&share.cause));
    assert!(has_timer && output.stderr.contains("its events reach level 3"), "{output:?}");
}
