//! A host that sends faster than latlab's output is read, played by an ssh client of the test.

use crate::program::{LATLAB, folder, path_with_script, pause, run, send, wait_until};
use latlab_testing::Patience;
use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Plays a host on which a program writes all the time until it is asked to end.
const CLIENT: &str = r#"
size=$(echo "$*" | sed 's/.*head -c \([0-9]*\).*/\1/')
echo "latlab: here Linux $(uname -m) /tmp/latlab.test"
head -c "$size" >/dev/null; echo "latlab: copied"
exec 3<&0
{ grep -aqx end <&3 && : >"$0.asked"; } &
text=$(head -c 4000 /dev/zero | tr '\0' A)
yes '{"output":{"stream":"stderr","base64":"'$text'"}}' | head -n 1000 >"$0.text"
while [ ! -e "$0.asked" ]; do cat "$0.text"; done
echo '{"exited":3}'; echo "latlab: over""#;

/// Plays a host whose program writes a little more than a pipe takes, and that sends long lines then.
const LONG_LINES: &str = r#"
size=$(echo "$*" | sed 's/.*head -c \([0-9]*\).*/\1/')
echo "latlab: here Linux $(uname -m) /tmp/latlab.test"
head -c "$size" >/dev/null; echo "latlab: copied"
text=$(head -c 4000 /dev/zero | tr '\0' A)
yes '{"output":{"stream":"stderr","base64":"'$text'"}}' | head -n 25
{ printf '{"begin":{"probe":"'; head -c 4000000 /dev/zero | tr '\0' A; echo '"}}'; } >"$0.text"
while :; do cat "$0.text"; echo sent >>"$0.sent"; done"#;

#[test]
fn host_waits_until_its_long_lines_are_read() {
    let folder = folder();
    let path = path_with_script(folder.path(), "ssh", LONG_LINES);
    let mut command = Command::new(LATLAB);
    command.args(["check", "--on", "ssh:board", "--", "true"]).env("PATH", path);
    let mut latlab =
        command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut output = latlab.stderr.take().expect("it is a pipe");
    let sent = || {
        let sent = fs::read_to_string(folder.path().join("bin/ssh.sent")).unwrap_or_default();
        sent.lines().count()
    };
    let text = folder.path().join("bin/ssh.text");
    let is_whole = || fs::metadata(&text).is_ok_and(|text| text.len() > 4_000_000);
    wait_until("the host can send its lines", is_whole);
    // It sends them as fast as it can.
    pause(Duration::from_secs(2));
    let waiting = sent();
    let mut bytes = vec![0; 75_000];
    output.read_exact(&mut bytes).expect("latlab passes the output on");
    wait_until("the host sends on", || sent() > waiting);
    latlab.kill().expect("it is a child process");
    latlab.wait().expect("it is a child process");
    assert!(waiting <= 3, "{waiting} lines wait");
}

/// Starts a check, reads its output slowly, and sends it this signal after half a second. Returns its exit
/// code; none where it went on for too long.
fn exit_code(options: &str, mut signal: Option<&str>) -> Option<i32> {
    let mut patience = Patience::new(Duration::from_secs(30));
    let folder = folder();
    let path = path_with_script(folder.path(), "ssh", CLIENT);
    let mut command = Command::new(LATLAB);
    command.args(["check", "--on", "ssh:board"]).args(options.split_whitespace());
    command.args(["--", "true"]).env("PATH", path).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut latlab = command.spawn().expect("latlab starts");
    let mut output = latlab.stderr.take().expect("it is a pipe");
    let (mut bytes, began) = ([0; 4096], Instant::now());
    loop {
        if output.read(&mut bytes).expect("the pipe can be read") == 0 {
            break;
        }
        pause(Duration::from_millis(1));
        if began.elapsed() > Duration::from_millis(500)
            && let Some(signal) = signal.take()
        {
            send(signal, latlab.id());
        }
        if patience.is_over() {
            latlab.kill().expect("it is a child process");
        }
    }
    latlab.wait().expect("it is a child process").code()
}

#[test]
fn request_to_end_and_limit_are_obeyed_while_a_host_writes_all_the_time() {
    assert_eq!(exit_code("", Some("INT")), Some(3));
    assert_eq!(exit_code("", Some("TERM")), Some(3));
    assert_eq!(exit_code("--limit 1s", None), Some(2));
}

#[test]
fn host_that_writes_other_lines_for_ever_is_refused() {
    let here = "echo \"latlab: here Linux $(uname -m) /tmp/latlab.test\"";
    for (begin, said) in [(":", "no connection to board"), (here, "could not be copied to board")] {
        let folder = folder();
        let client = format!("{begin}; cat >/dev/null & exec yes welcome");
        let path = path_with_script(folder.path(), "ssh", &client);
        let mut command = Command::new(LATLAB);
        command.args(["run", "--on", "ssh:board"]).env("PATH", path);
        run(&mut command).assert_refused(2, &[said, "it wrote 10000 lines"]);
    }
}

#[test]
fn output_of_a_checked_program_has_lines_and_no_escape_sequences() {
    let folder = folder();
    let client = r#"
size=$(echo "$*" | sed 's/.*head -c \([0-9]*\).*/\1/')
echo "latlab: here Linux $(uname -m) /tmp/latlab.test"
head -c "$size" >/dev/null; echo "latlab: copied"
for part in '\303' '\244 \033[2J\n' 'two\n'; do
  echo '{"output":{"stream":"stderr","base64":"'$(printf "$part" | base64)'"}}'
done
echo '{"exited":3}'; echo "latlab: over""#;
    let path = path_with_script(folder.path(), "ssh", client);
    let mut command = Command::new(LATLAB);
    command.args(["check", "--on", "ssh:board", "--", "true"]).env("PATH", path);
    let output = run(&mut command);
    assert_eq!((output.code(), output.stderr.as_str()), (Some(3), "ä  [2J\ntwo\n"), "{output:?}");
}

/// Plays a host that sends a record so far for the other host, and one that is gone.
const FORGER: &str = r#"
case "$*" in *" b exec "*) exit 1;; esac
size=$(echo "$*" | sed 's/.*head -c \([0-9]*\).*/\1/')
echo "latlab: here Linux $(uname -m) /tmp/latlab.test"
head -c "$size" >/dev/null; echo "latlab: copied"
read -r task
plan=$(echo "$task" | sed 's/^{"plan"://; s/}$//; s/ssh:a/ssh:b/')
head='"schema":2,"tool":"forged","started":0,"runs":1'
rest='"machine":{},"series":[],"figures":[],"worst":[],"work":[],"changes":[],"warnings":[]'
echo "{\"so_far\":{$head,\"plan\":$plan,$rest}}"
cat >/dev/null"#;

/// The host keeps a record that nobody has received.
#[test]
fn record_that_is_refused_is_named_with_its_folder() {
    let folder = folder();
    let path = path_with_script(folder.path(), "ssh", FORGER);
    let mut command = Command::new(LATLAB);
    command.args(["run", "--on", "ssh:a"]).env("PATH", path);
    let fetch = "ssh a 'cat /tmp/latlab.test/record.json && rm -r /tmp/latlab.test' >record.json";
    run(&mut command).assert_refused(2, &["has another plan", fetch]);
}

#[test]
fn record_in_the_name_of_another_host_is_refused() {
    let folder = folder();
    let path = path_with_script(folder.path(), "ssh", FORGER);
    let mut command = Command::new(LATLAB);
    let words = "run --on ssh:a --on ssh:b --out records";
    command.args(words.split_whitespace()).current_dir(folder.path()).env("PATH", path);
    let output = run(&mut command);
    let said = "a: the target sent an invalid message: the record has another plan";
    assert!(output.code() == Some(2) && output.stderr.contains(said), "{output:?}");
    assert!(!folder.path().join("records/ssh-b.json").exists(), "{output:?}");
}
