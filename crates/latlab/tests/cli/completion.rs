//! Completions, driven through real shells on a pseudo terminal.

use crate::program::{LATLAB, Missing, Running, folder, latlab, not_run};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// Lines as they are typed, `\t` for the tab key, and as they are then.
const LINES: &[(&str, &str)] = &[
    ("latlab ru\t", "latlab run"),
    ("latlab load-w\t", "latlab load-w"),
    ("latlab run cycl\t", "latlab run cyclic"),
    ("latlab run cyclic:pol\td\t", "latlab run cyclic:policy=deadline"),
    ("latlab run --load hackb\t", "latlab run --load hackbench"),
    ("latlab run --load hackbench:gr\t4,f\t2", "latlab run --load hackbench:groups=4,fan=2"),
    ("latlab run --on la\trapid\t", "latlab run --on lab:rapid-reaction"),
    ("latlab run --on=vm:rapid\t", "latlab run --on=vm:rapid-reaction"),
    ("latlab run --set timer_m\t0", "latlab run --set timer_migration=0"),
    ("latlab run --policy dead\t", "latlab run --policy deadline"),
    ("latlab scan popu\t", "latlab scan populate"),
    ("latlab study qui\t", "latlab study quick"),
    ("latlab adapt --mechanisms mode,sup\t", "latlab adapt --mechanisms mode,suppress"),
    ("latlab list non-pree\t", "latlab list non-preemptible"),
    ("latlab ab -- run --load hackb\t", "latlab ab -- run --load hackbench"),
    ("latlab report a\t", "latlab report a file.json"),
];

/// Types the lines into a shell whose start-up file reads the completions. Each becomes the
/// arguments of echo.
fn assert_completes(shell: &str, start_up: &str, script: &str) {
    if Command::new(shell).arg("--version").output().is_err() {
        not_run(Missing::Required, &format!("it needs {shell}"));
        return;
    }
    let folder = folder();
    let home = folder.path();
    let start_up = home.join(start_up);
    fs::create_dir_all(start_up.parent().expect("it lies in the folder"))
        .expect("the folder is the test's own");
    fs::create_dir(home.join("bin")).expect("the folder is the test's own");
    symlink(LATLAB, home.join("bin/latlab")).expect("the folder is the test's own");
    // Names in the folder do not matter where no file is meant.
    fs::create_dir(home.join("quick")).expect("the folder is the test's own");
    fs::write(home.join("a file.json"), "").expect("the folder is the test's own");
    fs::write(home.join("completions"), latlab(&format!("generate {shell}")).stdout)
        .expect("the folder is the test's own");
    fs::write(start_up, script).expect("the folder is the test's own");
    // Control-A moves to the beginning of the line.
    let typed = LINES.iter().map(|(typed, _)| format!("{typed}\u{1}echo \n"));
    fs::write(home.join("typed"), typed.collect::<String>() + "exit\n")
        .expect("the folder is the test's own");
    let output = on_a_terminal(shell, home);
    let shown: Vec<&str> = output
        .lines()
        .filter_map(|line| line.trim_end().rsplit('\r').next())
        .map(str::trim_end)
        .collect();
    for (typed, line) in LINES {
        assert!(shown.contains(line), "{shell} makes no '{line}' of {typed:?}: {output}");
    }
}

fn on_a_terminal(shell: &str, home: &Path) -> String {
    let start = if shell == "bash" { "bash --noprofile --rcfile bashrc -i" } else { shell };
    let mut command = Command::new("sh");
    let script = "exec script --quiet --return --command \"stty cols 200; $1\" /dev/null < typed";
    command.args(["-c", script, "sh", start]).current_dir(home);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", home.join("bin").display())).env("TERM", "xterm");
    for variable in ["HOME", "ZDOTDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
        command.env(variable, home);
    }
    let output = Running::start(&mut command).finish();
    assert_eq!(output.code(), Some(0), "{output:?}");
    output.stdout
}

#[test]
fn bash_completes_command_lines() {
    assert_completes("bash", "bashrc", "source completions\n");
}

#[test]
fn zsh_completes_command_lines() {
    let script = "bindkey -e; autoload -Uz compinit; compinit -u -D; source ./completions\n";
    assert_completes("zsh", ".zshrc", script);
}

#[test]
fn fish_completes_command_lines() {
    assert_completes("fish", "fish/config.fish", "source completions\n");
}
