//! The width of the output: on a terminal nothing is wider, in a pipe nothing is cut.

use crate::program::{LATLAB, Running, folder, latlab, lock_machine, root};
use std::path::Path;
use std::process::Command;

/// Returns what a command shows on a terminal of so many columns, without the live view of a
/// measurement.
fn on_a_terminal(columns: usize, words: &str, folder: &Path) -> String {
    let measures = ["run ", "scan ", "explain "].iter().any(|verb| words.starts_with(verb));
    let quiet = if measures && words.contains("--for") { "2>/dev/null" } else { "" };
    let command = format!("stty cols {columns} rows 40; {LATLAB} {words} {quiet}");
    let mut script = Command::new("script");
    script.args(["--quiet", "--command", &command, "/dev/null"]).current_dir(folder);
    Running::start(script.env("TERM", "xterm")).finish().stdout
}

/// Removes escape sequences: ESC, `[`, parameters, a letter.
fn plain(text: &str) -> String {
    let mut pieces = text.split('\u{1b}');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|c: char| c.is_ascii_alphabetic()).map_or(piece.len(), |at| at + 1);
        plain.push_str(&piece[end..]);
    }
    plain
}

/// Asserts that no line is wider than the terminal. A carriage return begins a line anew.
fn assert_fits(columns: usize, words: &str, shown: &str) {
    let shown = plain(shown);
    assert!(!shown.trim().is_empty(), "latlab {words}: {shown}");
    for line in shown.lines().flat_map(|line| line.split('\r')) {
        let length = line.chars().count();
        assert!(length <= columns, "latlab {words}: {length} of {columns} columns: {line}");
    }
}

/// Commands that print tables, lists and sentences, and change nothing.
const COMMANDS: &[&str] = &[
    "run cyclic --policy other --for 300ms --load cpu --out one.json",
    "run rhealstone.preemption cyclic noise --for 300ms",
    "run cyclic --no-such-option",
    "compare a b",
    "compare a.json b.json",
    "doctor",
    "list",
    "list cyclic",
    "list quick",
    "list rt",
    "kernel list",
    "study quick --list-cells",
    "scan stat --for 1s --points 20",
    "--help",
    "run -h",
    "explain --help",
    "ab --help",
];

/// Makes the records that the commands compare.
fn measure(folder: &Path) {
    let words = "run cyclic --policy other --for 300ms --json";
    for name in ["a.json", "b.json"] {
        std::fs::write(folder.join(name), latlab(words).stdout)
            .expect("the folder is the test's own");
    }
    for side in ["a", "b"] {
        std::fs::create_dir(folder.join(side)).expect("the folder is the test's own");
        for run in 0..6 {
            let words = format!("{words} --seed {run}");
            let path = folder.join(side).join(format!("{run}.json"));
            std::fs::write(path, latlab(&words).stdout).expect("the folder is the test's own");
        }
    }
}

#[test]
fn terminal_of_60_80_or_140_columns_has_no_wider_line() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    measure(folder.path());
    for columns in [60, 80, 140] {
        for words in COMMANDS {
            assert_fits(columns, words, &on_a_terminal(columns, words, folder.path()));
        }
    }
}

#[test]
fn terminal_of_60_or_80_columns_has_no_wider_explanation() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    for columns in [60, 80] {
        let words = "explain cyclic --above 5us --for 1s --load hackbench";
        assert_fits(columns, words, &on_a_terminal(columns, words, folder.path()));
    }
}

#[test]
fn pipe_gets_whole_tables_and_plain_digits() {
    let _lock = lock_machine();
    let output = latlab("run cyclic:interval=100us --policy other --for 1s --cpus 0");
    let mut lines = output.stdout.lines().skip_while(|line| !line.starts_with("probe"));
    let header = lines.next().unwrap_or_default();
    let columns: Vec<&str> = header.split_whitespace().collect();
    assert_eq!(columns.len(), 11, "{output:?}");
    let row = lines.next().unwrap_or_default();
    // A busy machine records few periods, and misses the others; before, 1000 had to be recorded.
    let mut counts = row.split_whitespace().skip(2).take(2).filter_map(|n| n.parse::<u64>().ok());
    assert!(counts.any(|count| count >= 1_000), "{output:?}");
    assert!(!(output.stdout.clone() + &output.stderr).contains('\u{202f}'), "{output:?}");
}

#[test]
fn csv_has_a_row_for_each_series() {
    let _lock = lock_machine();
    let output = latlab("run cyclic nanosleep --policy other --count 20 --cpus 0 --csv");
    assert_eq!(output.code(), Some(0), "{output:?}");
    let lines: Vec<&str> = output.stdout.lines().collect();
    let [header, cyclic, nanosleep] = lines[..] else { panic!("{output:?}") };
    assert!(header.starts_with("target,kernel,probe,span_from,span_to,cpus,policy,"), "{header}");
    assert!(cyclic.starts_with("native,") && cyclic.contains(",cyclic,"), "{cyclic}");
    assert!(nanosleep.contains(",nanosleep,"), "{nanosleep}");
    let fields = |line: &str| line.split(',').count();
    assert_eq!(fields(header), fields(cyclic));
}

#[test]
fn dumb_terminal_has_no_escape_sequence() {
    let _lock = lock_machine();
    for words in ["doctor", "run cyclic --policy other --cpus 0 --for 300ms"] {
        let shown = on_a_terminal_with("CI=true TERM=dumb", words);
        assert!(!shown.contains('\u{1b}'), "{words}: {shown}");
        assert_fits(80, words, &shown);
    }
}

#[test]
fn terminal_with_no_color_has_no_colour() {
    let _lock = lock_machine();
    for words in ["doctor", "run cyclic --policy other --cpus 0 --for 300ms"] {
        let shown = on_a_terminal_with("NO_COLOR=1", words);
        // Sequences that set a colour end with m.
        let end = |sequence: &str| sequence.chars().find(char::is_ascii_alphabetic);
        let colours = shown.split('\u{1b}').skip(1).filter(|sequence| end(sequence) == Some('m'));
        assert_eq!(colours.count(), 0, "{words}: {shown}");
    }
}

/// Returns what a command shows on a terminal of 80 columns, with an environment variable.
fn on_a_terminal_with(variable: &str, words: &str) -> String {
    let command = format!("stty cols 80 rows 40; {variable} {LATLAB} {words}");
    let mut script = Command::new("script");
    script.args(["--quiet", "--command", &command, "/dev/null"]).env("TERM", "xterm");
    Running::start(&mut script).finish().stdout
}
