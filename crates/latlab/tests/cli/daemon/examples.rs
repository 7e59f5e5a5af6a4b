//! The programs in examples/ that request device groups.

use super::{folder, in_namespaces, root};
use crate::period::library::library;
use crate::program::{Missing, not_run, run};
use std::process::Command;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// Asks with the program for valid and invalid groups. Returns what it prints, and its exit codes.
fn asked(folder: &std::path::Path, program: &str) -> String {
    let script = format!(
        "latlab adapt --mechanisms suppress,selective 2> /dev/null & begun
        {program} AUDIO,network 2>&1; echo $?; {program} nothing 2>&1; echo $?"
    );
    in_namespaces(folder, &script).stdout
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
        let printed = asked(folder.path(), &format!("{} {EXAMPLES}/groups.py", python.display()));
        let expected = "ok AUDIO,NETWORK\nok\n0\nwrong there is no device group 'nothing'";
        assert!(printed.starts_with(expected) && printed.ends_with("\n1\n"), "{printed}");
    }
}

#[test]
fn c_example_is_answered() {
    if !root() {
        return;
    }
    let folder = folder();
    library().compile("groups", folder.path());
    let printed = asked(folder.path(), "\"$folder/groups\"");
    let refused = "latlab adapt does not know one of the device groups: Invalid argument";
    assert_eq!(printed, format!("0\n{refused}\n1\n"));
}

#[test]
fn c_example_says_that_no_latlab_adapts() {
    let folder = folder();
    let program = library().compile("groups", folder.path());
    let mut apart = Command::new("unshare");
    apart.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    let script = format!("mount -t tmpfs tmpfs /run && {} AUDIO", program.display());
    let output = run(apart.arg(script));
    assert_eq!(output.code(), Some(1), "{output:?}");
    let why = "no latlab adapts this machine: start latlab adapt: No such file or directory\n";
    assert_eq!(output.stderr, why);
}
