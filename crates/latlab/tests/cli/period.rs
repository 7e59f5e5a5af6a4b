//! The library for periods that hold: its examples in C, Rust and Python, and `latlab watch`.

pub(crate) mod library;
mod watch;

use self::library::{library, tree};
use crate::program::{Output, command, folder, latlab, root, run};
use std::path::Path;
use std::process::Command;

/// Asserts that an example ran all of its cycles, and returns what it printed.
fn assert_ran(cycles: u64, output: &Output) {
    assert_eq!((output.code(), output.stderr.as_str()), (Some(0), ""), "{output:?}");
    let printed = &output.stdout;
    assert!(printed.starts_with(&format!("{cycles} cycles, ")), "{printed}");
    assert!(printed.ends_with(" ns late\n"), "{printed}");
}

/// Asserts that a static program repeats its cycles in a guest without an overrun, twice the same.
fn assert_runs_in_guest(program: &Path) {
    let run_it = || {
        let mut guest = command("exec --on lab:rt --");
        run(guest.arg(program).arg("200"))
    };
    let (first, second) = (run_it(), run_it());
    assert_eq!(first.code(), Some(0), "{first:?}");
    assert!(first.stdout.starts_with("200 cycles, 0 overruns, 0 missed, "), "{first:?}");
    assert_eq!(first.stdout, second.stdout);
}

#[test]
fn examples_in_c_run_here_and_in_a_guest() {
    if !root() {
        return;
    }
    let folder = folder();
    for name in ["control", "callback"] {
        let program = library().compile(name, folder.path());
        assert_ran(50, &run(Command::new(&program).arg("50")));
        assert_runs_in_guest(&program);
    }
}

#[test]
fn example_in_c_runs_with_the_shared_library() {
    if !root() {
        return;
    }
    let folder = folder();
    let library = library();
    let program = library.compile_shared("control", folder.path());
    let output = run(Command::new(program).arg("50").env("LD_LIBRARY_PATH", library.folder()));
    assert_ran(50, &output);
}

#[test]
fn example_in_rust_runs_here_and_in_a_guest() {
    if !root() {
        return;
    }
    let program = library().rust_example();
    assert_ran(50, &run(Command::new(&program).arg("50")));
    assert_runs_in_guest(&program);
}

#[test]
fn example_in_python_runs_with_the_library_of_the_wheel() {
    if !root() {
        return;
    }
    let folder = folder();
    library().python_package(folder.path());
    let mut python = Command::new("python3");
    python.arg("-B").arg(tree().join("examples/control.py")).arg("20");
    assert_ran(20, &run(python.env("PYTHONPATH", folder.path())));
}

/// What a loop does between two periods, as `latlab check` sees it: nothing that breaks a rule.
#[test]
fn loop_of_the_library_is_real_time() {
    if !root() {
        return;
    }
    let folder = folder();
    let program = library().compile("control", folder.path());
    let words = "check --on lab:rt --fail-on \
                 fault,allocation,file-io,sleep,drift,wall-clock,not-locked,overrun --";
    let output = run(command(words).arg(program).arg("200"));
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert!(output.stdout.starts_with("real-time: "), "{output:?}");
}

#[test]
fn program_without_rights_says_what_it_needs() {
    if !root() {
        return;
    }
    let folder = folder();
    let program = library().compile("control", folder.path());
    let mut as_nobody = Command::new("setpriv");
    as_nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    let output = run(&mut as_nobody);
    assert_eq!(output.code(), Some(1), "{output:?}");
    let words = "raise RLIMIT_MEMLOCK|CAP_SYS_NICE";
    assert!(words.split('|').any(|word| output.stderr.contains(word)), "{output:?}");
    assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
}

#[test]
fn record_of_a_loop_is_shown_as_other_records_are() {
    if !root() {
        return;
    }
    let folder = folder();
    let program = library().compile("control", folder.path());
    let started = library::start(&program);
    let record = folder.path().join("loop.json");
    let page = folder.path().join("loop.html");
    let watched = format!("watch {} --once -o {}", started.pid(), record.display());
    assert_eq!(latlab(&watched).code(), Some(0));
    let shown = latlab(&format!("report {} -o {}", record.display(), page.display()));
    assert_eq!(shown.code(), Some(0), "{shown:?}");
    let page = std::fs::read_to_string(page).expect("the page was written");
    assert!(page.contains("control") && page.contains("the cycle was due"), "{page}");
}
