//! The live view, on a terminal only.

use crate::program::{LATLAB, Running, latlab, lock_machine, root};
use std::process::Command;

/// Returns the output of a run on a terminal, which `script` provides.
fn on_a_terminal(words: &str) -> String {
    on_a_terminal_of(30, words)
}

/// The same on a terminal of so many rows.
fn on_a_terminal_of(rows: u32, words: &str) -> String {
    let command = format!("stty cols 100 rows {rows}; {LATLAB} {words}");
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

/// Returns the output up to the last time that the progress bar is drawn.
fn live_part(shown: &str) -> &str {
    shown.rsplit_once(" left").expect("the time left is shown").0
}

#[test]
fn terminal_shows_causes_while_measuring() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let script = "while true; do sleep 0.01; done";
    let sleeper = Running::start(Command::new("sh").arg("-c").arg(script));
    let watch = format!("explain --pid {} --for 3s", sleeper.pid());
    for words in ["explain cyclic --cpus 0 --above 10us --for 3s", &watch] {
        let shown = on_a_terminal(words);
        let meanwhile = live_part(&shown);
        for word in [CAUSES, "wake-ups were later than", "unexplained"] {
            assert!(meanwhile.contains(word), "no '{word}' in: {shown}");
        }
    }
}

#[test]
fn terminal_of_few_rows_shows_causes() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let shown = on_a_terminal_of(8, "explain cyclic --cpus 0 --above 10us --for 3s");
    let meanwhile = live_part(&shown);
    for word in [CAUSES, "CPU 0", "left"] {
        assert!(meanwhile.contains(word), "no '{word}' in: {shown}");
    }
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
