//! The page for users of other tools: it lists all their options, and what it names of latlab exists.

use crate::program::{Missing, Output, command, latlab, not_run, run};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A row of a table: the section, the other tool's options, and what they are in latlab.
struct Row {
    section: String,
    theirs: Vec<String>,
    ours: Vec<String>,
}

fn rows() -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/coming-from.md");
    let page = fs::read_to_string(path).expect("the page exists");
    let (mut rows, mut section) = (Vec::new(), "");
    for line in page.lines() {
        section = line.strip_prefix("## ").unwrap_or(section);
        if let Some((theirs, ours)) = line.strip_prefix("| ").and_then(|row| row.split_once(" | "))
        {
            let [theirs, ours] = [theirs, ours].map(code);
            rows.push(Row { section: section.to_owned(), theirs, ours });
        }
    }
    assert!(rows.len() > 150, "{}", rows.len());
    rows
}

/// The words in backticks.
fn code(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The words of a command, of which one in quotation marks may contain blanks.
fn words(command: &str) -> Vec<String> {
    let parts = command.split('\'').enumerate();
    let words = parts.flat_map(|(nth, part)| match nth % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

fn run_words(words: &[String]) -> Output {
    run(command("").args(words))
}

/// Asserts that latlab knows this: options, a part with its keys, or a command. A measurement is
/// asked for on a target that does not exist, which is noticed after the rest was understood.
fn assert_known(text: &str) {
    let words = words(text);
    let command = if words[0] == "latlab" { words[1].as_str() } else { "run" };
    let rest = if words[0] == "latlab" { &words[2..] } else { &words[..] };
    match command {
        "run" | "explain" if !rest.iter().any(|word| word == "--help") => {
            let nowhere = ["--on", "nowhere"].map(str::to_owned);
            let output = run_words(&[&[command.to_owned()], rest, &nowhere].concat());
            assert!(output.stderr.contains("there is no target 'nowhere'"), "{text}: {output:?}");
        }
        "list" | "--version" => assert_eq!(run_words(&words[1..]).code(), Some(0), "{text}"),
        _ => {
            let help = latlab(&format!("{command} --help"));
            assert_eq!(help.code(), Some(0), "{text}");
            let options = rest.iter().filter(|word| word.starts_with("--"));
            let known = options.clone().all(|option| help.stdout.contains(option.as_str()));
            assert!(known, "{text}: {help:?}");
        }
    }
}

#[test]
fn everything_that_the_page_names_exists() {
    let all: BTreeSet<String> = rows().into_iter().flat_map(|row| row.ours).collect();
    assert!(all.len() > 100, "{all:?}");
    for text in all.iter().filter(|text| !text.starts_with('/') && *text != "cset") {
        assert_known(text);
    }
}

/// The options that a help text lists: the first word of a line, and long ones that follow it.
fn options(help: &str) -> BTreeSet<String> {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let options = lines.flat_map(|line| {
        let head: String = line.chars().take(30).collect();
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        let words = head.split(|c| !is_part(c)).map(str::to_owned).enumerate();
        let words = words.filter(|(nth, word)| *nth == 0 || word.starts_with("--"));
        words.map(|(_, word)| word).collect::<Vec<_>>()
    });
    options.collect()
}

/// Asserts that the section lists each option in the help of this command, if it is installed.
fn assert_lists_options(section: &str, missing: Missing, words: &[&str]) {
    let Ok(output) = Command::new(words[0]).args(&words[1..]).arg("--help").output() else {
        not_run(missing, &format!("the options of {} need it installed", words[0]));
        return;
    };
    let help = [output.stdout, output.stderr].concat();
    let options = options(&String::from_utf8_lossy(&help));
    assert!(options.len() > 5, "{words:?}: {options:?}");
    let rows = rows().into_iter().filter(|row| row.section.starts_with(section));
    let listed: BTreeSet<String> = rows.flat_map(|row| row.theirs).collect();
    let left_out: Vec<_> = options.difference(&listed).collect();
    assert!(left_out.is_empty(), "{words:?}: {left_out:?}");
}

#[test]
fn page_lists_the_options_of_rt_tests() {
    for tool in ["cyclictest", "oslat", "hackbench", "hwlatdetect"] {
        assert_lists_options(tool, Missing::Required, &[tool]);
    }
}

#[test]
fn page_lists_the_options_of_rtla() {
    for (tracer, mode) in
        [("timerlat", "top"), ("timerlat", "hist"), ("osnoise", "top"), ("osnoise", "hist")]
    {
        let section = format!("rtla {tracer}");
        assert_lists_options(&section, Missing::Optional, &["rtla", tracer, mode]);
    }
}
