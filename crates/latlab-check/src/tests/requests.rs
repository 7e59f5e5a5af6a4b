//! Tests of requests for real-time rights that the kernel refused.

use super::*;

const EPERM: i64 = -1;
const FIFO: u32 = 1;

fn fifo(priority: u32) -> Request {
    let asked = Asked::Scheduling { target: 0, policy: Some(FIFO), priority };
    let (rtprio, memlock, rights, stack) = (0, 8 << 20, Rights::default(), None);
    Request { call: "sched_setscheduler", result: EPERM, asked, rtprio, memlock, rights, stack }
}

fn lock(result: i64, size: u64) -> Request {
    Request { call: "mlockall", result, asked: Asked::Memory(Some(size)), ..fifo(0) }
}

/// The findings about a thread that is real-time only if `is_realtime`, and makes these requests first.
fn findings(requests: &[Request], is_realtime: bool) -> Vec<Finding> {
    let mut script = Script::new(None);
    for request in requests {
        script.add_of(1, EventKind::Request(request.clone()), (120, 0));
    }
    if is_realtime {
        (1..=10).for_each(|cycle| script.wait(cycle));
    }
    script.judge.report(&mut |_, stack| frames(stack), &|_| false).findings
}

/// What is missing by the first finding.
fn lacks(request: &Request) -> String {
    findings(std::slice::from_ref(request), false)[0].details.join("; ")
}

#[test]
fn refused_policy_is_found_with_what_is_missing() {
    let found = findings(&[fifo(80), fifo(80)], false);
    assert_eq!((found.len(), found[0].rule, found[0].count), (1, Rule::Refused, 2));
    let subject = "was refused SCHED_FIFO 80: sched_setscheduler failed with EPERM";
    assert_eq!((found[0].subject.as_str(), found[0].policy.as_str()), (subject, "SCHED_OTHER"));
    let missing = "missing: CAP_SYS_NICE, or a limit RLIMIT_RTPRIO of at least 80 (it is 0)";
    assert_eq!(found[0].details, [missing]);
}

#[test]
fn missing_right_is_that_which_the_kernel_asks_for() {
    let may = |rights: Rights| Request { rights, ..fifo(80) };
    let schedules = Rights { may_schedule: true, ..Rights::default() };
    let group = lacks(&may(Rights { without_budget: true, ..schedules }));
    assert!(group.contains("cpu.rt_runtime_us is 0") && !group.contains("CAP_SYS_NICE"), "{group}");
    let nested = lacks(&may(Rights { in_namespace: true, ..schedules }));
    assert!(nested.contains("CAP_SYS_NICE") && nested.contains("user namespace"), "{nested}");
    assert!(lacks(&may(schedules)).contains("seccomp"));
    let enough = lacks(&Request { rtprio: 80, ..fifo(80) });
    assert!(!enough.contains("RLIMIT_RTPRIO"), "{enough}");
    let deadline = Asked::Scheduling { target: 0, policy: Some(6), priority: 0 };
    let deadline = Request { asked: deadline, rtprio: 99, ..fifo(0) };
    assert!(lacks(&deadline).contains("CAP_SYS_NICE, which SCHED_DEADLINE needs"));
    assert!(lacks(&Request { result: -16, ..deadline }).contains("bandwidth"));
    assert!(lacks(&Request { result: -22, ..fifo(0) }).contains("1 to 99"));
}

#[test]
fn refused_lock_of_memory_counts_for_a_program_that_wants_real_time() {
    let both = findings(&[fifo(80), lock(-12, 100 << 20)], false);
    let missing =
        "missing: CAP_IPC_LOCK, or a limit RLIMIT_MEMLOCK of at least 100 MiB (it is 8192 KiB)";
    assert_eq!(both[1].details, [missing]);
    assert!(both[1].subject.starts_with("was refused locked memory: mlockall failed with ENOMEM"));
    assert_eq!(findings(&[lock(-12, 100 << 20)], true).len(), 1);
    assert_eq!(findings(&[lock(-12, 100 << 20)], false), []);
}

#[test]
fn request_that_is_granted_later_or_asks_for_nothing_real_time_is_not_found() {
    let granted = Request { result: 0, ..fifo(10) };
    assert_eq!(findings(&[fifo(80), granted], true), []);
    // Another program, such as rtkit, made the thread real-time.
    assert_eq!(findings(&[fifo(80)], true), []);
    assert_eq!(findings(&[fifo(80), lock(-12, 0), lock(0, 0)], false).len(), 1);
    let ordinary = Asked::Scheduling { target: 0, policy: Some(0), priority: 0 };
    assert_eq!(findings(&[Request { asked: ordinary, ..fifo(0) }], false), []);
    let unchanged = Asked::Scheduling { target: 0, policy: None, priority: 0 };
    assert_eq!(findings(&[Request { asked: unchanged, ..fifo(0) }], false), []);
}

#[test]
fn refused_server_has_the_real_time_threads_that_wait_for_it() {
    let mut script = Script::new(None);
    let server = Thread { tid: 9, pid: 6, prio: 120, policy: 0, comm: Comm::from("server") };
    let kind = EventKind::Request(fifo(80));
    script.judge.add(&Event { at: Nanos(1), thread: server, kind });
    for cycle in 1..=10 {
        script.wait(cycle);
        script.call("recvfrom", [5, 0, 0, 0, 0, 0], Nanos(0));
        script.sleep(script.now + 50, (120, WakeContext::Task));
        script.add(1, LEAVE);
    }
    script.wait(11);
    let report = script.judge.report(&mut |_, stack| frames(stack), &|_| false);
    let waited = "loop [7], SCHED_FIFO 50, waited for it in the longest of 10 waits";
    assert_eq!(report.findings[0].details.last().map(String::as_str), Some(waited));
}
