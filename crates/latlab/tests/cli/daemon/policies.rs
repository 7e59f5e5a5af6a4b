//! Detection of policy changes by the daemon, and its cost for system calls.

use super::guest::in_a_guest_with;
use crate::program::Output;

/// Returns the ratio of the time of 200 000 system calls with the daemon to that without, after the
/// command `before`. Asserts that a task has its knobs 5 ms after it got FIFO 5: it sleeps, and no
/// task of that policy is woken or forked, so that the scheduler's tracepoints do not report it.
fn slowdown(before: &str) -> (f64, Output) {
    let output = in_a_guest_with(
        "--with /bin/dd --with /bin/mount --with /usr/bin/chrt",
        &format!(
            "{before}; calls() {{ dd if=/dev/zero of=/dev/null bs=1 count=100000 2>&1; }}
            calls; /latlab adapt --mechanisms suppress,mode & daemon=$!; sleep 0.7; calls
            /bin/sleep 60 & other=$!; chrt -f -p 5 $other; /bin/sleep 0.005
            case \"$(cat /sys/kernel/debug/sched/features)\" in
            *NO_WAKEUP_PREEMPTION*) echo late;; *) echo heard;; esac; kill $other
            kill -TERM $daemon; wait $daemon; echo $?"
        ),
    );
    let times: Vec<f64> = output.stdout.lines().filter_map(time).collect();
    assert!(output.stdout.ends_with("\nheard\n0\n"), "{output:?}");
    assert_eq!(times.len(), 2, "{output:?}");
    (times[1] / times[0], output)
}

/// Returns the seconds that `dd` prints.
fn time(line: &str) -> Option<f64> {
    let (_, time) = line.split_once("copied, ")?;
    time.split(' ').next()?.parse().ok()
}

/// While a tracepoint of system calls is enabled, all calls take the slow path of the kernel. That
/// is the fallback for kernels without kprobes, and where kprobes are disabled.
#[test]
fn system_calls_are_not_slowed_unless_kernel_lacks_probes() {
    let slow = "which slows all system calls down: ";
    let (ratio, output) = slowdown(":");
    assert!(ratio < 1.03, "{ratio}: {output:?}");
    assert!(!output.stderr.contains(slow), "{output:?}");
    for (before, why) in [
        ("mount -t tmpfs none /sys/bus/event_source/devices", "this kernel has no probes for perf"),
        (
            "echo 0 > /proc/sys/kernel/ftrace_enabled",
            "kprobes report nothing: kernel.ftrace_enabled",
        ),
    ] {
        let (ratio, output) = slowdown(before);
        assert!(output.stderr.contains(&format!("{slow}{why}")), "{output:?}");
        assert!(
            ratio > 1.08,
            "system calls must be slower, or the first ratio proves nothing: {ratio}: {output:?}"
        );
    }
}
