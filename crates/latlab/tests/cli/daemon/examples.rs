//! The programs in examples/ that request device groups.

use super::{folder, in_namespaces, root};
use crate::program::{Missing, not_run};
use std::process::Command;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// Asserts what a program prints that requests valid and invalid groups.
fn assert_answered(folder: &std::path::Path, program: &str) {
    let script = format!(
        "latlab adapt --mechanisms suppress,selective 2> /dev/null & begun
        {program} AUDIO,network; echo $?; {program} nothing; echo $?"
    );
    let output = in_namespaces(folder, &script);
    let expected = "ok AUDIO,NETWORK\nok\n0\nwrong there is no device group 'nothing'";
    assert!(output.stdout.starts_with(expected) && output.stdout.ends_with("\n1\n"), "{output:?}");
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

#[test]
fn python_example_is_answered() {
    let Some(python) = std::env::var_os("PATH").and_then(|folders| {
        let mut folders = std::env::split_paths(&folders).map(|folder| folder.join("python3"));
        folders.find(|python| succeeds(Command::new(python).arg("--version")))
    }) else {
        not_run(Missing::Required, "it needs python3");
        return;
    };
    if root() {
        let folder = folder();
        assert_answered(folder.path(), &format!("{} {EXAMPLES}/groups.py", python.display()));
    }
}

#[test]
fn c_example_is_answered() {
    let folder = folder();
    let program = folder.path().join("groups");
    let mut compile = Command::new("cc");
    compile.args(["-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
    let compiled = compile.arg(format!("{EXAMPLES}/groups.c")).output().expect("cc starts");
    assert!(compiled.status.success(), "{compiled:?}");
    if root() {
        assert_answered(folder.path(), "\"$folder/groups\"");
    }
}
