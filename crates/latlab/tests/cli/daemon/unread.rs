//! A daemon whose standard error nobody reads.

use super::{folder, in_namespaces, root};
use latlab_core::mechanism::status::Status;
use std::time::Instant;

/// The pipe is full from the start: a daemon that blocks on it sets no knob and does not end.
#[test]
fn daemon_with_full_stderr_pipe_works_and_ends() {
    if !root() {
        return;
    }
    let folder = folder();
    let script = "\
        knobs() { cat /sys/kernel/debug/sched/preempt /sys/kernel/debug/sched/features >&3; }
        exec 3>&1
        { head -c 65536 /dev/zero >&2; exec \"$program\" adapt --mechanisms suppress,selective; } \
          2>&1 > /dev/null | { sleep 30 & echo $! > \"$folder/reader\"; wait; } &
        begun; knobs; latlab exec --irq-group audio -- \"$program\" adapt status --json
        daemon=$(latlab adapt status --json | sed -n 's/.*\"process\": \\([0-9]*\\),/\\1/p' | head -1)
        kill -TERM $daemon; n=0
        while kill -0 $daemon 2> /dev/null && [ $n -lt 250 ]; do sleep 0.02; n=$((n + 1)); done
        kill -0 $daemon 2> /dev/null && echo it goes on; knobs; kill $(cat \"$folder/reader\")";
    let began = Instant::now();
    let output = in_namespaces(folder.path(), script);
    assert!(began.elapsed().as_secs() < 30, "{output:?}");
    let (knobs, rest) = output.stdout.split_once('{').expect("the status is printed");
    assert_eq!(knobs, "lazyNO_WAKEUP_PREEMPTION", "{output:?}");
    let (status, after) = rest.rsplit_once('}').expect("the status ends");
    let status: Status = serde_json::from_str(&format!("{{{status}}}")).expect("it is a status");
    assert_eq!(status.requests[0].groups, ["AUDIO"]);
    assert_eq!(after, "\nfullWAKEUP_PREEMPTION", "{output:?}");
}
