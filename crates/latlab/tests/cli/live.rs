//! The live view, on a terminal only.

use crate::program::{LATLAB, Running, folder, latlab, lock_machine, root, send, wait_until};
use std::fs;
use std::process::Command;

/// Returns the output of a run on a terminal, which `script` provides.
fn on_a_terminal(words: &str) -> String {
    let command = format!("stty cols 100 rows 30; {LATLAB} {words}");
    let output = Running::start(
        Command::new("script")
            .args(["--quiet", "--return", "--command", &command, "/dev/null"])
            .env("TERM", "xterm"),
    )
    .finish();
    assert_eq!(output.code(), Some(0), "{output:?}");
    output.stdout
}

#[test]
fn terminal_shows_line_per_cpu_and_time_left() {
    let _lock = lock_machine();
    let shown = on_a_terminal("run cyclic --policy other --cpus 0 --for 1s");
    for word in ["now", "missed", "CPU 0", "left", "\u{1b}["] {
        assert!(shown.contains(word), "no '{word}' in: {shown}");
    }
}

#[test]
fn pipe_gets_no_live_view() {
    let _lock = lock_machine();
    let output = latlab("run cyclic --policy other --cpus 0 --for 300ms");
    assert!(!output.stderr.contains("left") && !output.stderr.contains('\u{1b}'), "{output:?}");
    assert!(!output.stdout.contains('\u{1b}'), "{output:?}");
}

/// Header of the table of causes in the live view.
const CAUSES: &str = "cause                 late     total     worst  culprit";

/// Asserts that a long run on a terminal of so many rows shows all of `expected` before it ends, which
/// it does when it has.
fn assert_shown_meanwhile(rows: u32, words: &str, expected: &[&str]) {
    let folder = folder();
    let (shown, pid) = (folder.path().join("shown"), folder.path().join("pid"));
    // The shell becomes latlab.
    let command = format!(
        "stty cols 100 rows {rows}; echo $$ >{}; exec {LATLAB} {words} --for 10min",
        pid.display()
    );
    let mut script = Command::new("script");
    script.args(["--quiet", "--flush", "--return", "--command", &command]).arg(&shown);
    let mut running = Running::start(script.env("TERM", "xterm"));
    wait_until(&format!("latlab {words} shows {expected:?}"), || {
        let shown = String::from_utf8_lossy(&fs::read(&shown).unwrap_or_default()).into_owned();
        assert!(!running.has_ended(), "{shown}");
        expected.iter().all(|word| shown.contains(word))
    });
    let pid = fs::read_to_string(pid).expect("the shell has written it");
    send("INT", pid.trim().parse().expect("it is a number"));
    let output = running.finish();
    assert_eq!(output.code(), Some(4), "{output:?}");
}

#[test]
fn terminal_shows_causes_while_measuring() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let script = "while true; do sleep 0.01; done";
    let sleeper = Running::start(Command::new("sh").arg("-c").arg(script));
    let watch = format!("explain --pid {}", sleeper.pid());
    for words in ["explain cyclic --cpus 0 --above 10us", &watch] {
        let expected = [CAUSES, "wake-ups were later than", "unexplained"];
        assert_shown_meanwhile(30, words, &expected);
    }
}

#[test]
fn terminal_of_few_rows_shows_causes() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    assert_shown_meanwhile(8, "explain cyclic --cpus 0 --above 10us", &[CAUSES, "CPU 0", "left"]);
}

#[test]
fn pipe_gets_causes_at_the_end_only() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let output = latlab("explain cyclic --cpus 0 --above 1us --for 2s");
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert_eq!(output.stdout.matches("wake-ups were later than").count(), 1, "{output:?}");
    assert!(!output.stderr.contains("later than") && !output.stdout.contains(CAUSES), "{output:?}");
}
