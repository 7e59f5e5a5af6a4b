//! Requests for device groups, and the status of the daemon.

use super::{folder, in_namespaces, latlab, root};
use crate::program::LATLAB;
use latlab_mechanism::status::Status;
use std::fs;

const DAEMON: &str = "\
printf 'allow = \"audio\"\\n' > \"$folder/adapt.toml\"
\"$program\" adapt --mechanisms suppress,selective --config \"$folder/adapt.toml\" 2> /dev/null &
daemon=$!; begun\n";

#[test]
fn request_stands_until_its_program_ends() {
    if !root() {
        return;
    }
    let folder = folder();
    let script = "\
        latlab exec --irq-group audio,Network -- sh -c \
          'echo $$; \"$0\" adapt status --json > \"$1/asked.json\"' \"$program\" \"$folder\"
        latlab adapt status --json > \"$folder/after.json\"
        latlab exec --irq-group audoi -- echo done; echo $?
        latlab adapt status; kill $daemon; wait $daemon; ls /run/latlab";
    let output = in_namespaces(folder.path(), &format!("{DAEMON}{script}"));
    let status = |name: &str| -> Status {
        let text = fs::read_to_string(folder.path().join(name)).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    };
    let asked = status("asked.json");
    assert_eq!(asked.requests[0].groups, ["AUDIO", "NETWORK"]);
    let (process, rest) = output.stdout.split_once('\n').unwrap();
    assert_eq!(
        asked.requests[0].process.to_string(),
        process,
        "latlab became the program: {output:?}"
    );
    assert!(status("after.json").requests.is_empty(), "the program has ended");
    let changes: Vec<_> =
        asked.changes.iter().map(|one| (&*one.knob, &*one.was, &*one.to)).collect();
    assert_eq!(changes, [("preempt", "full", "lazy"), ("wakeup_preemption", "1", "0")]);
    assert!(asked.cpu.0 > 0 && asked.at > asked.began);
    assert!(rest.starts_with("2\nlatlab "), "{output:?}");
    assert!(rest.contains("\npreempt            full  lazy  "), "{output:?}");
    assert!(
        rest.contains("; 1 request refused\noverhead: ") && rest.ends_with(" of a CPU\n"),
        "{output:?}"
    );
    let why = "latlab: there is no device group 'audoi': did you mean AUDIO?\n";
    assert_eq!(output.stderr, why, "{output:?}");
}

#[test]
fn requests_are_for_root_and_members_of_the_group() {
    if !root() {
        return;
    }
    let folder = folder();
    fs::copy(LATLAB, folder.path().join("latlab")).unwrap();
    let script = "\
        user='setpriv --reuid=65534 --regid=65534'; cd /
        $user --clear-groups \"$folder/latlab\" exec --irq-group audio -- echo done; echo $?
        $user --clear-groups \"$folder/latlab\" adapt status; echo $?
        $user --groups 29 \"$folder/latlab\" exec --irq-group audio -- echo done; echo $?";
    let output = in_namespaces(folder.path(), &format!("{DAEMON}{script}"));
    assert_eq!(output.stdout, "3\n3\ndone\n0\n", "{output:?}");
    let why = "latlab: the latlab that adapts this machine refuses: only root and members of the \
               group audio may ask\n";
    assert_eq!(output.stderr, why.repeat(2), "{output:?}");
}

#[test]
fn request_without_selective_is_refused() {
    if !root() {
        return;
    }
    let folder = folder();
    let script = "latlab adapt --mechanisms suppress 2> /dev/null & begun
        latlab exec --irq-group audio -- echo done; echo $?";
    let output = in_namespaces(folder.path(), script);
    assert_eq!(output.stdout, "3\n", "{output:?}");
    assert!(output.stderr.contains("selective is not among --mechanisms"), "{output:?}");
}

#[test]
fn status_watch_redraws_each_second_on_a_terminal_only() {
    if !root() {
        return;
    }
    latlab("adapt status --watch").assert_refused(2, &["--watch needs a terminal"]);
    let folder = folder();
    // Ctrl-C once it has drawn four times, however long a busy machine needs; a shell that waited for
    // latlab would be killed by it. Measured by the time since the machine was started, which nobody
    // can set.
    let script = r#"
        cd "$folder"; touch seen
        centiseconds() { cut -d ' ' -f 1 /proc/uptime | tr -d .; }
        began=$(centiseconds)
        { until [ "$(tr '\033' '\n' < seen | grep -c '^\[Hlatlab ')" -ge 4 ]; do sleep 0.05; done
          printf '\003'; } |
            script --quiet --flush --return --command "exec $program adapt status --watch" seen > ended
        echo "$? after $(( $(centiseconds) - began ))"; cat seen >&2"#;
    let output = in_namespaces(folder.path(), &format!("{DAEMON}{script}"));
    let (code, centiseconds) = output.stdout.trim().split_once(" after ").expect("it printed both");
    assert_eq!(code, "0", "{output:?}");
    // At once and after 1, 2 and 3 s.
    assert!(centiseconds.parse::<u64>().expect("a number") >= 300, "{output:?}");
}
