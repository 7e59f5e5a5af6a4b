//! Judgement of a system's configuration: what increases latency, by severity.
//!
//! A [`Machine`] goes in, findings come out. Unknown facts give no finding. Severities are those of
//! the kernel's own guide (Documentation/core-api/real-time/kernel-configuration.rst, as of commit
//! 3160c8de3ae5) where it has one. The guide is about configuring a kernel; where the running
//! system shows its effective state, that state is judged instead.

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

/// Severity of a finding, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Real-time guarantees are impossible.
    Fatal,
    /// The worst case gets much worse.
    High,
    /// The worst case can get worse, or vary between runs.
    Medium,
    /// Useful to know when reading results.
    Info,
}

impl Severity {
    /// All severities, the worst first.
    pub const ALL: [Severity; 4] =
        [Severity::Fatal, Severity::High, Severity::Medium, Severity::Info];

    /// Returns the word used in records and tables.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Fatal => "fatal",
            Severity::High => "high",
            Severity::Medium => "medium",
            Severity::Info => "info",
        }
    }

    /// Whether a machine with such a finding is unfit for hard deadlines.
    pub fn is_severe(self) -> bool {
        self <= Severity::High
    }
}

/// One property of a machine that increases latency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Machine-readable code in kebab case; one of [`codes`].
    pub code: String,
    /// The severity.
    pub severity: Severity,
    /// The finding, with the values of this machine.
    pub what: String,
    /// The effect on latency, in a sentence.
    pub why: String,
    /// How to fix it.
    pub remedy: String,
}

/// A row of the tables: the code of a finding, and the function that checks for it.
type Check = (&'static str, fn(&Machine) -> Option<Diagnosis>);

/// The result of a check: a finding without its code.
struct Diagnosis {
    severity: Severity,
    what: String,
    why: String,
    remedy: String,
}

impl Diagnosis {
    /// Wraps a finding, as the last expression of a check.
    #[expect(clippy::unnecessary_wraps, reason = "it is the last expression of every check")]
    fn new(
        severity: Severity,
        what: impl Into<String>,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Option<Diagnosis> {
        Some(Diagnosis { severity, what: what.into(), why: why.into(), remedy: remedy.into() })
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

pub use processor::deepest_idle_state;

/// Returns the codes of all findings.
pub fn codes() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().copied().flatten().map(|(code, _)| *code)
}

/// Returns all findings about a machine, the worst first.
pub fn diagnose(machine: &Machine) -> Vec<Finding> {
    let checks = CHECKS.iter().copied().flatten();
    let mut findings: Vec<Finding> = checks
        .filter_map(|(code, judge)| {
            let Diagnosis { severity, what, why, remedy } = judge(machine)?;
            Some(Finding { code: (*code).to_owned(), severity, what, why, remedy })
        })
        .collect();
    findings.sort_by(|a, b| (a.severity, &a.code).cmp(&(b.severity, &b.code)));
    findings
}

/// Returns the first few names, and how many more there are.
fn few(names: &[String]) -> String {
    const FEW: usize = 6;
    let shown = names.iter().take(FEW).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(FEW) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Formats CPUs for a sentence: `CPU 3`, `CPUs 2-3`.
fn named(cpus: &CpuList) -> String {
    format!("CPU{} {cpus}", if cpus.len() == 1 { "" } else { "s" })
}

/// Formats a number with its noun: `1 thread`, `2 threads`.
fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
