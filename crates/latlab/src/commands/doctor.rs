//! `latlab doctor`: what on this machine spoils latency, by severity.

use crate::failure::{Failure, Result};
use crate::format;
use anstyle::{AnsiColor, Style};
use latlab_core::doctor::{Finding, Severity, diagnose};
use latlab_core::machine::Machine;
use latlab_sys::guard::Guard;
use latlab_sys::root::Root;
use serde::Serialize;
use std::io::{self, Write};

/// Say what on this machine spoils latency, the worst first
///
/// Reads how the kernel was built and booted, how CPUs sleep and change their speed, what
/// interrupts them, who else runs with real-time priority and what you are permitted, and judges
/// it as the kernel's guide for real-time systems does. Nothing is changed, and nothing is
/// measured: a clean bill here is where measuring begins.
///
/// Findings are fatal (real-time does not work at all), high (the worst case gets much worse),
/// medium (it can get worse, or differ between runs) or info (good to know). Run it as the user
/// who will measure: permissions are judged too, and root sees more.
///
/// Exit: 0, or 1 when something fatal or high was found.
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// Print one JSON object, the machine's state and the findings, and nothing else
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Diagnosis<'a> {
    machine: &'a Machine,
    findings: &'a [Finding],
}

impl Doctor {
    pub(crate) fn run(&self) -> Result<()> {
        let root = Root::default();
        for mended in Guard::mend(&root) {
            format::say(&mended);
        }
        let machine = latlab_sys::machine::read(&root);
        let findings = diagnose(&machine);
        if self.json {
            let diagnosis = Diagnosis { machine: &machine, findings: &findings };
            let text = serde_json::to_string_pretty(&diagnosis).expect("it is plain data");
            format::put(&(text + "\n"))?;
        } else {
            format::put(&coloured(&machine, &findings))?;
        }
        match findings.iter().filter(|finding| finding.severity.is_severe()).count() {
            0 => Ok(()),
            1 => Err(Failure::Worse("1 severe finding".to_owned())),
            severe => Err(Failure::Worse(format!("{severe} severe findings"))),
        }
    }
}

/// The text, with colours where stdout is a terminal that has them.
fn coloured(machine: &Machine, findings: &[Finding]) -> String {
    let mut text = Vec::new();
    let choice = anstream::AutoStream::choice(&io::stdout());
    let mut out = anstream::AutoStream::new(&mut text, choice);
    print_text(&mut out, machine, findings).expect("writing to memory does not fail");
    String::from_utf8_lossy(&text).into_owned()
}

/// How wide the text is: a line that is longer is hard to read, and a terminal may have no more.
const WIDTH: usize = 80;

fn print_text(out: &mut impl Write, machine: &Machine, findings: &[Finding]) -> io::Result<()> {
    let dim = Style::new().dimmed();
    let model = machine.processor.model.as_deref().unwrap_or("unknown processor");
    writeln!(out, "{dim}Linux {}, {model}, CPUs {}{dim:#}", machine.kernel, machine.cpus)?;
    for finding in findings {
        print_finding(out, finding)?;
    }
    writeln!(out, "\n{}", summary(findings))
}

fn print_finding(out: &mut impl Write, finding: &Finding) -> io::Result<()> {
    let (colour, bold, dim) =
        (colour(finding.severity), Style::new().bold(), Style::new().dimmed());
    let (word, code) = (finding.severity.word(), &finding.code);
    writeln!(out, "\n{colour}{word:<6}{colour:#}  {dim}{code}{dim:#}")?;
    for line in wrapped(&finding.what, WIDTH - INDENT) {
        writeln!(out, "{:INDENT$}{bold}{line}{bold:#}", "")?;
    }
    for line in wrapped(&finding.why, WIDTH - INDENT) {
        writeln!(out, "{:INDENT$}{line}", "")?;
    }
    for (n, line) in wrapped(&finding.remedy, WIDTH - INDENT - ARROW.len()).iter().enumerate() {
        let arrow = if n == 0 { ARROW } else { "" };
        writeln!(out, "{:INDENT$}{arrow:width$}{line}", "", width = ARROW.len())?;
    }
    Ok(())
}

/// Below the severity's word, so that the words stand out.
const INDENT: usize = 8;
const ARROW: &str = "-> ";

fn colour(severity: Severity) -> Style {
    let colour = match severity {
        Severity::Fatal | Severity::High => AnsiColor::Red,
        Severity::Medium => AnsiColor::Yellow,
        Severity::Info => AnsiColor::Cyan,
    };
    let style = colour.on_default();
    if severity == Severity::Fatal { style.bold().invert() } else { style.bold() }
}

/// "3 findings: 1 fatal, 2 info".
fn summary(findings: &[Finding]) -> String {
    let counts: Vec<String> = Severity::ALL
        .iter()
        .map(|severity| (severity, findings.iter().filter(|f| f.severity == *severity).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(severity, count)| format!("{count} {}", severity.word()))
        .collect();
    match findings.len() {
        0 => "Nothing found that spoils latency.".to_owned(),
        1 => format!("1 finding: {}", counts.join(", ")),
        all => format!("{all} findings: {}", counts.join(", ")),
    }
}

/// Lines of at most `width` characters. What stands between backticks is a command: it is kept
/// on one line, so that it can be copied, unless it is longer than one.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces(text, width) {
        match lines.last_mut() {
            Some(line) if length(line) + 1 + length(piece) <= width => {
                line.push(' ');
                line.push_str(piece);
            }
            _ => lines.push(piece.to_owned()),
        }
    }
    lines
}

/// Words and, as long as they fit, commands with the punctuation around them.
fn pieces(text: &str, width: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = command_end(rest)
            .filter(|end| length(&rest[..*end]) <= width)
            .or_else(|| rest.find(' '))
            .unwrap_or(rest.len());
        pieces.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    pieces
}

/// Where the first word ends, if a command begins in it: at the first blank after the command.
fn command_end(text: &str) -> Option<usize> {
    let start = text.find(['`', ' ']).filter(|start| text[*start..].starts_with('`'))?;
    let close = start + 1 + text[start + 1..].find('`')?;
    Some(text[close..].find(' ').map_or(text.len(), |blank| close + blank))
}

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(severity: Severity) -> Finding {
        Finding {
            code: "smt".to_owned(),
            severity,
            what: "one two three".to_owned(),
            why: "Because of the words ".to_owned() + &"that go on ".repeat(20),
            remedy: "echo off > /sys/devices/system/cpu/smt/control ".repeat(3),
        }
    }

    #[test]
    fn text_is_no_wider_than_it_should_be() {
        let findings = [finding(Severity::Fatal), finding(Severity::Info)];
        let mut out = anstream::StripStream::new(Vec::new());
        print_text(&mut out, &Machine::default(), &findings).unwrap();
        let text = String::from_utf8(out.into_inner()).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("\nfatal   smt\n        one two three\n"), "{text}");
        assert!(text.ends_with("\n\n2 findings: 1 fatal, 1 info\n"), "{text}");
    }

    #[test]
    fn words_are_wrapped_and_never_lost() {
        assert_eq!(wrapped("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrapped("so (`echo 1 > a b`; x", 17), ["so", "(`echo 1 > a b`;", "x"]);
        assert_eq!(wrapped("`echo 1 > a b`", 8), ["`echo 1", "> a b`"]);
        assert_eq!(wrapped("`never closed", 8), ["`never", "closed"]);
        assert_eq!(wrapped("a very-long-word", 4), ["a", "very-long-word"]);
        assert!(wrapped(" ", 4).is_empty());
    }

    #[test]
    fn the_last_line_counts() {
        assert_eq!(summary(&[]), "Nothing found that spoils latency.");
        assert_eq!(summary(&[finding(Severity::High)]), "1 finding: 1 high");
    }
}
