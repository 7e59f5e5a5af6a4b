//! The live view: on a terminal, and nowhere else.

use crate::program::{LATLAB, Running, latlab, machine};
use std::process::Command;

/// What a run shows on a terminal; `script` gives it one.
fn on_a_terminal(words: &str) -> String {
    let command = format!("stty cols 100 rows 30; {LATLAB} {words}");
    let said = Running::start(
        Command::new("script")
            .args(["--quiet", "--return", "--command", &command, "/dev/null"])
            .env("TERM", "xterm"),
    )
    .finish();
    assert_eq!(said.code(), Some(0), "{said:?}");
    said.stdout
}

#[test]
fn a_terminal_gets_a_line_for_each_cpu_and_the_time_left() {
    let _alone = machine();
    let shown = on_a_terminal("run cyclic --policy other --cpus 0 --for 1s");
    for word in ["now", "missed", "CPU 0", "left", "\u{1b}["] {
        assert!(shown.contains(word), "no '{word}' in: {shown}");
    }
}

#[test]
fn a_pipe_gets_none_of_it() {
    let _alone = machine();
    let said = latlab("run cyclic --policy other --cpus 0 --for 300ms");
    assert!(!said.stderr.contains("left") && !said.stderr.contains('\u{1b}'), "{said:?}");
    assert!(!said.stdout.contains('\u{1b}'), "{said:?}");
}
