//! `latlab doctor`: lists latency hazards of this machine, by severity.

use crate::failure::{Failure, Result};
use crate::format::{self, printable};
use anstyle::{AnsiColor, Style};
use latlab_core::doctor::{Finding, Severity, diagnose};
use latlab_core::machine::Machine;
use latlab_sys::guard::Guard;
use latlab_sys::root::Root;
use serde::Serialize;
use std::io::{self, Write};

const EXAMPLES: &str = "\
Examples:
  latlab doctor
  latlab doctor --json | jq '.findings[].code'";

/// List latency hazards of this machine, the worst first
///
/// Checks the kernel's configuration and command line, CPU idle states and frequencies, interrupts,
/// other real-time tasks and your permissions, following the kernel's guide for real-time systems.
/// It measures nothing, and changes nothing except that it restores what a killed latlab left set.
///
/// Findings are fatal (no real-time guarantees), high (much longer worst-case latency), medium
/// (longer worst-case latency, or differences between runs) or info. Run it as the user who will
/// measure, because permissions are checked too. Root can read more of the machine's state.
///
/// Exit codes: 0 success; 1 a finding is fatal or high; 2 failure.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Doctor {
    /// Print the state of the machine and the findings as JSON
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Serialize)]
struct Diagnosis<'a> {
    machine: &'a Machine,
    findings: &'a [Finding],
}

impl Doctor {
    pub(crate) fn run(&self) -> Result<()> {
        let root = Root::default();
        for mended in Guard::recover(&root) {
            format::say(&mended);
        }
        let machine = latlab_sys::machine::read(&root);
        let findings = diagnose(&machine);
        if self.json {
            let diagnosis = Diagnosis { machine: &machine, findings: &findings };
            let text = serde_json::to_string_pretty(&diagnosis).expect("it is plain data");
            format::put(&(text + "\n"))?;
        } else {
            format::put_styled(&coloured(&machine, &findings))?;
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

/// Columns of the text, as many as any terminal has.
const WIDTH: usize = 80;

fn print_text(out: &mut impl Write, machine: &Machine, findings: &[Finding]) -> io::Result<()> {
    let dim = Style::new().dimmed();
    let model = printable(machine.processor.model.as_deref().unwrap_or("unknown processor"));
    let kernel = printable(&machine.kernel);
    writeln!(out, "{dim}Linux {kernel}, {model}, CPUs {}{dim:#}", machine.cpus)?;
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
    for line in wrapped(&printable(&finding.what), WIDTH - INDENT) {
        writeln!(out, "{:INDENT$}{bold}{line}{bold:#}", "")?;
    }
    for line in wrapped(&printable(&finding.why), WIDTH - INDENT) {
        writeln!(out, "{:INDENT$}{line}", "")?;
    }
    for (n, line) in
        wrapped(&printable(&finding.remedy), WIDTH - INDENT - ARROW.len()).iter().enumerate()
    {
        let arrow = if n == 0 { ARROW } else { "" };
        writeln!(out, "{:INDENT$}{arrow:width$}{line}", "", width = ARROW.len())?;
    }
    Ok(())
}

/// Columns before the text of a finding, below the name of its severity.
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

/// Counts the findings: "3 findings: 1 fatal, 2 info".
fn summary(findings: &[Finding]) -> String {
    let counts: Vec<String> = Severity::ALL
        .iter()
        .map(|severity| (severity, findings.iter().filter(|f| f.severity == *severity).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(severity, count)| format!("{count} {}", severity.word()))
        .collect();
    match findings.len() {
        0 => "No latency hazard found.".to_owned(),
        1 => format!("1 finding: {}", counts.join(", ")),
        all => format!("{all} findings: {}", counts.join(", ")),
    }
}

/// Wraps text at `width` characters. A command in backticks stays on one line, so that it can be
/// copied, unless it is longer than a line.
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

/// Splits text into words and commands. A command has the punctuation around it, and is split where
/// it is longer than a line.
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

/// The end of the first piece if a command begins in it: the first blank after the command.
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
    fn text_fits_into_width() {
        let findings = [finding(Severity::Fatal), finding(Severity::Info)];
        let mut out = anstream::StripStream::new(Vec::new());
        print_text(&mut out, &Machine::default(), &findings).unwrap();
        let text = String::from_utf8(out.into_inner()).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("\nfatal   smt\n        one two three\n"), "{text}");
        assert!(text.ends_with("\n\n2 findings: 1 fatal, 1 info\n"), "{text}");
    }

    #[test]
    fn wrapping_keeps_all_words_and_short_commands_whole() {
        assert_eq!(wrapped("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrapped("so (`echo 1 > a b`; x", 17), ["so", "(`echo 1 > a b`;", "x"]);
        assert_eq!(wrapped("`echo 1 > a b`", 8), ["`echo 1", "> a b`"]);
        assert_eq!(wrapped("`never closed", 8), ["`never", "closed"]);
        assert_eq!(wrapped("a very-long-word", 4), ["a", "very-long-word"]);
        assert!(wrapped(" ", 4).is_empty());
    }

    #[test]
    fn summary_counts_findings() {
        assert_eq!(summary(&[]), "No latency hazard found.");
        assert_eq!(summary(&[finding(Severity::High)]), "1 finding: 1 high");
    }
}
