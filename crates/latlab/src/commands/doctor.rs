//! `latlab doctor`: lists latency hazards of a machine, by severity.

use super::complete;
use super::target_options::TargetOptions;
use crate::target;
use anstyle::{AnsiColor, Style};
use latlab_core::doctor::{Finding, Severity, diagnose};
use latlab_core::machine::Machine;
use latlab_format::progress::Bar;
use latlab_format::width::{Width, wrapped};
use latlab_format::{self as format, live, printable};
use latlab_part::failure::{Context as _, Failure, Result};
use latlab_sys::guard::Guard;
use latlab_sys::root::Root;
use latlab_sys::signal::Signals;
use latlab_sys::terminal;
use serde::Serialize;
use std::io::{self, Write};

const EXAMPLES: &str = "\
Examples:
  latlab doctor
  latlab doctor --json | jq '.findings[].code'
  latlab doctor --on ssh:board                 another machine
  latlab doctor --on lab:rt                    a kernel of the laboratory, as its profile sets it up";

/// List latency hazards of a machine, the worst first
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
    /// The machine: native (this one), ssh:HOST, or a guest, lab:PROFILE or vm:PROFILE (see: latlab list
    /// targets, latlab list profiles)
    #[arg(long, value_name = "TARGET", default_value = NATIVE, add = complete::targets())]
    on: String,
    #[command(flatten)]
    options: TargetOptions,
}

/// The target that is this machine.
const NATIVE: &str = "native";

/// The output of `--json`.
#[derive(Serialize)]
struct Diagnosis<'a> {
    machine: &'a Machine,
    findings: &'a [Finding],
}

impl Doctor {
    pub(crate) fn run(&self) -> Result<()> {
        self.options.check(&self.on)?;
        let machine = if self.is_elsewhere() { self.elsewhere()? } else { here()? };
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
            1 => Err(Failure::worse("1 severe finding")),
            severe => Err(Failure::worse(format!("{severe} severe findings"))),
        }
    }

    /// Whether another machine or a guest is examined.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.on != NATIVE
    }

    /// The other machine, as latlab there reads it.
    fn elsewhere(&self) -> Result<Machine> {
        let target = target::find(&self.on)?;
        let signals = Signals::block().context("signals can't be blocked")?;
        let mut watch = live::view(None);
        let mut bar = Bar::new(&signals);
        target.machine(&self.on, &mut self.options.session(&signals, watch.as_mut(), &mut bar))
    }
}

/// This machine. Settings that a killed latlab left are restored before.
fn here() -> Result<Machine> {
    let root = Root::default();
    for mended in Guard::recover(&root) {
        format::say(&mended);
    }
    // Facts that can't be read are left out of the state, so that nothing would be found.
    let readable = std::fs::read(root.path("proc/self/stat"));
    readable.context("this machine can't be examined: /proc/self/stat")?;
    Ok(latlab_sys::machine::read(&root))
}

/// The text, with colours where stdout is a terminal that has them.
fn coloured(machine: &Machine, findings: &[Finding]) -> String {
    let mut text = Vec::new();
    let columns = Width::of_stdout().wraps_at(MOST);
    // In continuous integration (CI=true) anstream takes every terminal for one with colours.
    let choice = match anstream::AutoStream::choice(&io::stdout()) {
        _ if terminal::is_dumb() => anstream::ColorChoice::Never,
        choice => choice,
    };
    let mut out = anstream::AutoStream::new(&mut text, choice);
    print_text(&mut out, machine, findings, columns).expect("writing to memory does not fail");
    String::from_utf8_lossy(&text).into_owned()
}

/// Most columns of the text on a terminal, for short lines.
const MOST: usize = 80;

fn print_text(
    out: &mut impl Write,
    machine: &Machine,
    findings: &[Finding],
    columns: usize,
) -> io::Result<()> {
    let dim = Style::new().dimmed();
    let model = printable(machine.processor.model.as_deref().unwrap_or("unknown processor"));
    let kernel = printable(&machine.kernel);
    for line in wrapped(&format!("Linux {kernel}, {model}, CPUs {}", machine.cpus), columns) {
        writeln!(out, "{dim}{line}{dim:#}")?;
    }
    for finding in findings {
        print_finding(out, finding, columns)?;
    }
    writeln!(out, "\n{}", summary(findings))
}

fn print_finding(out: &mut impl Write, finding: &Finding, columns: usize) -> io::Result<()> {
    let (colour, bold, dim) =
        (colour(finding.severity), Style::new().bold(), Style::new().dimmed());
    let (word, code) = (finding.severity.word(), &finding.code);
    let columns = columns.saturating_sub(INDENT).max(1);
    writeln!(out, "\n{colour}{word:<6}{colour:#}  {dim}{code}{dim:#}")?;
    for line in wrapped(&printable(&finding.what), columns) {
        writeln!(out, "{:INDENT$}{bold}{line}{bold:#}", "")?;
    }
    for line in wrapped(&printable(&finding.why), columns) {
        writeln!(out, "{:INDENT$}{line}", "")?;
    }
    for (n, line) in
        wrapped(&printable(&finding.remedy), columns.saturating_sub(ARROW.len())).iter().enumerate()
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
        const COLUMNS: usize = 60;
        let findings = [finding(Severity::Fatal), finding(Severity::Info)];
        let mut out = anstream::StripStream::new(Vec::new());
        print_text(&mut out, &Machine::default(), &findings, COLUMNS).unwrap();
        let text = String::from_utf8(out.into_inner()).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        assert!(text.contains("\nfatal   smt\n        one two three\n"), "{text}");
        assert!(text.ends_with("\n\n2 findings: 1 fatal, 1 info\n"), "{text}");
    }

    #[test]
    fn text_in_a_pipe_has_whole_sentences() {
        let finding = finding(Severity::Fatal);
        let mut out = anstream::StripStream::new(Vec::new());
        let columns = Width::UNLIMITED.wraps_at(MOST);
        print_text(&mut out, &Machine::default(), std::slice::from_ref(&finding), columns).unwrap();
        let text = String::from_utf8(out.into_inner()).unwrap();
        for sentence in [&finding.why, &finding.remedy] {
            assert!(text.contains(&format!("{}\n", sentence.trim())), "{text}");
        }
        assert_eq!(Width::columns(200).wraps_at(MOST), 80);
    }

    #[test]
    fn summary_counts_findings() {
        assert_eq!(summary(&[]), "No latency hazard found.");
        assert_eq!(summary(&[finding(Severity::High)]), "1 finding: 1 high");
    }
}
