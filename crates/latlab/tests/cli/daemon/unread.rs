//! A daemon whose standard error nobody reads.

use super::{folder, in_namespaces, root};
use latlab_mechanism::status::Status;

/// The pipe is full from the start: a daemon that blocks on it sets no knob and does not end. It stays
/// full for longer than a busy machine needs for the rest.
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
          2>&1 > /dev/null | { sleep 600 & echo $! > \"$folder/reader\"; wait; } &
        begun; knobs; latlab exec --irq-group audio -- \"$program\" adapt status --json
        daemon=$(latlab adapt status --json | sed -n 's/.*\"process\": \\([0-9]*\\),/\\1/p' | head -1)
        reader=$(cat \"$folder/reader\"); kill -TERM $daemon
        while kill -0 $daemon 2> /dev/null && kill -0 $reader 2> /dev/null; do sleep 0.02; done
        knobs; kill $reader && echo ' unread'";
    let output = in_namespaces(folder.path(), script);
    let (knobs, rest) = output.stdout.split_once('{').expect("the status is printed");
    assert_eq!(knobs, "lazyNO_WAKEUP_PREEMPTION", "{output:?}");
    let (status, after) = rest.rsplit_once('}').expect("the status ends");
    let status: Status = serde_json::from_str(&format!("{{{status}}}")).expect("it is a status");
    assert_eq!(status.requests[0].groups, ["AUDIO"]);
    assert_eq!(after, "\nfullWAKEUP_PREEMPTION unread\n", "{output:?}");
}
