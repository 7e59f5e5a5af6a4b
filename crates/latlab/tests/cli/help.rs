//! Help, lists, completions and the manual page of the program.

use crate::program::{
    Missing, Output, command, folder, latlab, lock_machine, not_run, root, run, with_own_journal,
};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Returns the standard output of a command that succeeds without messages.
fn stdout_of(words: &str) -> String {
    let output = latlab(words);
    assert_eq!(
        (output.code(), output.stderr.as_str()),
        (Some(0), ""),
        "latlab {words}: {output:?}"
    );
    assert!(!output.stdout.trim().is_empty(), "latlab {words}");
    output.stdout
}

/// Returns the commands that the help lists.
fn commands() -> Vec<String> {
    let help = stdout_of("--help");
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let list = list.take_while(|line| !line.is_empty());
    // The second line of a summary is indented further.
    let names = list.filter_map(|line| line.strip_prefix("  ").filter(|l| !l.starts_with(' ')));
    let names = names.filter_map(|line| line.split(' ').next().map(str::to_owned));
    names.filter(|name| name != "help").collect()
}

/// Returns the examples at the end of a help text: a `latlab` line each, without the explanation.
fn examples(help: &str) -> Vec<String> {
    let (_, examples) = help.split_once("Examples:\n").expect("the help has examples");
    let lines = examples.lines().map(|line| line.trim().split("   ").next().unwrap_or_default());
    lines.filter(|line| line.starts_with("latlab ")).map(str::to_owned).collect()
}

#[test]
fn help_without_arguments_has_three_examples() {
    let output = latlab("");
    assert_eq!((output.code(), output.stderr.as_str()), (Some(0), ""), "{output:?}");
    assert_eq!(output.stdout, stdout_of("-h"));
    assert_eq!(examples(&output.stdout).len(), 3, "{output:?}");
}

#[test]
fn commands_have_help_and_workers_are_hidden() {
    let commands = commands();
    for expected in
        ["run", "scan", "compare", "report", "doctor", "exec", "kernel", "list", "generate"]
    {
        assert!(commands.iter().any(|name| name == expected), "{expected}: {commands:?}");
    }
    let hidden = ["load-worker", "probe-worker", "scan-worker", "agent"];
    assert!(!commands.iter().any(|name| hidden.contains(&name.as_str())), "{commands:?}");
    for command in &commands {
        let help = stdout_of(&format!("{command} --help"));
        assert!(help.contains(&format!("Usage: latlab {command}")), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
}

#[test]
fn version_is_printed() {
    assert_eq!(stdout_of("--version"), concat!("latlab ", env!("CARGO_PKG_VERSION"), "\n"));
}

/// Runs an example in `folder`, for a tenth of a second.
fn run_example(example: &str, folder: &Path) -> Output {
    let words = example.strip_prefix("latlab ").expect("an example begins with latlab");
    let (verb, rest) = words.split_once(' ').unwrap_or((words, ""));
    let mut short = rest.replace("--for 60s", "").replace("--for 8h", "");
    if verb == "run" && !short.contains("--count") {
        short.push_str(" --for 100ms");
    }
    let short = short.replace("--count 1000", "--count 10");
    run(with_own_journal(folder, &format!("{verb} {short}")).current_dir(folder))
}

#[test]
fn examples_of_help_work() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let examples =
        [stdout_of("--help"), stdout_of("run --help")].map(|help| examples(&help)).concat();
    assert!(examples.len() >= 6, "{examples:?}");
    for example in examples.iter().flat_map(|line| line.split(" && ")) {
        println!("{example}");
        let output = run_example(example, folder.path());
        // Exit code 1 is a result: a severe finding, or an exceeded limit.
        assert!(matches!(output.code(), Some(0 | 1)), "{output:?}");
    }
}

#[test]
fn list_shows_and_explains_all_parts() {
    let all = stdout_of("list");
    for room in ["probes", "calls", "loads", "presets", "targets", "knobs"] {
        let (table, title) = (stdout_of(&format!("list {room}")), format!("{room}:\n"));
        assert!(all.contains(&(title + &table)), "{room}");
        for line in table.lines() {
            let name = line.split_whitespace().next().unwrap();
            let text = stdout_of(&format!("list {name}"));
            let kind = room.trim_end_matches('s');
            assert!(text.contains(&format!("{name} ({kind}): ")), "{text}");
        }
    }
    // A load may have the name of a call.
    let fork = stdout_of("list fork");
    assert!(fork.starts_with("fork (call): ") && fork.contains("\nfork (load): "), "{fork}");
    let cyclic = stdout_of("list cyclic");
    for key in ["interval=1ms", "phase=shifted", "policy=fifo", "priority=90", "slack="] {
        assert!(cyclic.contains(key), "no {key} in {cyclic}");
    }
}

#[test]
fn completions_and_manual_page_are_valid() {
    let folder = folder();
    for what in ["man", "bash", "zsh", "fish"] {
        let text = stdout_of(&format!("generate {what}"));
        fs::write(folder.path().join(what), text).unwrap();
    }
    for check in ["bash -n bash", "zsh -n zsh", "fish -n fish", "groff -K utf8 -man -ww -z man"] {
        let (program, words) = check.split_once(' ').unwrap();
        let mut command = Command::new(program);
        command.args(words.split(' ')).current_dir(folder.path());
        let Ok(output) = command.output() else {
            not_run(Missing::Required, &format!("a part of it needs {program}"));
            continue;
        };
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && complaint.is_empty(), "{check}: {complaint}");
    }
}

#[test]
fn wrong_options_point_to_the_help_of_the_command() {
    for (words, help) in [
        ("run --no-such", "(see latlab run --help)"),
        ("run --for 5", "(see latlab run --help)"),
        ("run --lod disk", "did you mean --load? (see latlab run --help)"),
        ("kernel build --no-such", "(see latlab kernel build --help)"),
        ("kernel", "latlab kernel needs a command (see latlab kernel --help)"),
        ("nothing", "(see latlab --help)"),
        ("generate", "not provided: <"),
        ("study quick --check --fresh --cold", "with: --fresh or --cold (see latlab study --help)"),
    ] {
        latlab(words).assert_refused(2, &[help]);
    }
}

#[test]
fn list_suggests_knobs_targets_and_causes() {
    for (wrong, near) in
        [("govenor", "governor"), ("natve", "native"), ("non-premptible", "non-preemptible")]
    {
        latlab(&format!("list {wrong}")).assert_refused(2, &[near]);
    }
}

#[test]
fn closed_pipe_is_no_failure() {
    let mut shell = Command::new("sh");
    let line = "{ \"$0\" generate bash; echo $? >&2; } | head -n 1";
    let output = run(shell.arg("-c").arg(line).arg(crate::program::LATLAB));
    assert_eq!(output.stderr, "0\n", "{output:?}");
}

#[test]
fn output_to_a_pipe_has_neither_bar_nor_colour() {
    let _lock = lock_machine();
    let output = run(command("run --policy other --for 100ms").env("TERM", "xterm-256color"));
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert!(!(output.stdout.clone() + &output.stderr).contains('\x1b'), "{output:?}");
    assert!(!latlab("doctor").stdout.contains('\x1b'));
}
