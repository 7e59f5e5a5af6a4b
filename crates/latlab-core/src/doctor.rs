//! What on a machine spoils latency, by severity.
//!
//! Pure: a [`Machine`] goes in, findings come out, and what is not known about the machine is not
//! held against it. Severities are those of the kernel's own guide
//! (Documentation/core-api/real-time/kernel-configuration.rst, as of commit 3160c8de3ae5) where it
//! has one. The guide is about configuring a kernel; where the running machine shows what is really in force,
//! that is judged instead.

use crate::cpulist::CpuList;
use crate::machine::Machine;
use serde::{Deserialize, Serialize};

mod clock;
mod debug;
mod isolation;
mod kernel;
mod memory;
mod platform;
mod processor;
mod rights;
mod scheduling;
#[cfg(test)]
mod tests;

/// How bad a finding is, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Real-time does not work at all on this machine.
    Fatal,
    /// The worst case gets much worse.
    High,
    /// The worst case can get worse, or vary between runs.
    Medium,
    /// Good to know when reading results.
    Info,
}

impl Severity {
    /// All of them, the worst first.
    pub const ALL: [Severity; 4] =
        [Severity::Fatal, Severity::High, Severity::Medium, Severity::Info];

    /// The word used in records and tables.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Fatal => "fatal",
            Severity::High => "high",
            Severity::Medium => "medium",
            Severity::Info => "info",
        }
    }

    /// Whether a machine with such a finding should not be trusted with a deadline.
    pub fn is_severe(self) -> bool {
        self <= Severity::High
    }
}

/// One thing about a machine that spoils latency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// A word for programs, in kebab case; one of [`codes`].
    pub code: String,
    /// How bad it is.
    pub severity: Severity,
    /// What was found, with the values of this machine.
    pub what: String,
    /// What it does to latency, in a sentence.
    pub why: String,
    /// What to do about it.
    pub remedy: String,
}

/// A row of the tables: the code of what may be found, and who looks for it.
type Check = (&'static str, fn(&Machine) -> Option<Verdict>);

/// What a check has found: a finding without its code.
struct Verdict {
    severity: Severity,
    what: String,
    why: String,
    remedy: String,
}

impl Verdict {
    /// The answer of a check that found something.
    #[expect(clippy::unnecessary_wraps, reason = "it is the last expression of every check")]
    fn new(
        severity: Severity,
        what: impl Into<String>,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Option<Verdict> {
        Some(Verdict { severity, what: what.into(), why: why.into(), remedy: remedy.into() })
    }
}

const CHECKS: &[&[Check]] = &[
    kernel::CHECKS,
    clock::CHECKS,
    debug::CHECKS,
    processor::CHECKS,
    platform::CHECKS,
    scheduling::CHECKS,
    isolation::CHECKS,
    memory::CHECKS,
    rights::CHECKS,
];

/// The code of every finding there can be.
pub fn codes() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().copied().flatten().map(|(code, _)| *code)
}

/// Everything that is wrong with a machine, the worst first.
pub fn diagnose(machine: &Machine) -> Vec<Finding> {
    let checks = CHECKS.iter().copied().flatten();
    let mut findings: Vec<Finding> = checks
        .filter_map(|(code, judge)| {
            let Verdict { severity, what, why, remedy } = judge(machine)?;
            Some(Finding { code: (*code).to_owned(), severity, what, why, remedy })
        })
        .collect();
    findings.sort_by(|a, b| (a.severity, &a.code).cmp(&(b.severity, &b.code)));
    findings
}

/// The first few of many, and how many more there are.
fn few(names: &[String]) -> String {
    const FEW: usize = 6;
    let shown = names.iter().take(FEW).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(FEW) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// CPUs in a sentence: `CPU 3`, `CPUs 2-3`.
fn named(cpus: &CpuList) -> String {
    format!("CPU{} {cpus}", if cpus.len() == 1 { "" } else { "s" })
}

/// A word that agrees with a number: `1 thread`, `2 threads`.
fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
