//! A late wake-up as a line of text.

use super::explained::{culprit_and_function, share};
use super::printable;
use latlab_core::record::Sample;
use latlab_core::record::explained::Explanations;
use std::path::Path;

/// Returns a late wake-up of this thread in a line: its leading cause, and where its record is.
pub fn line(pid: u32, late: &Explanations, record: Option<&Path>) -> String {
    let Some(Sample { probe, cpu, latency, .. }) = late.worst.first() else { return String::new() };
    let explained = &late.explained;
    let cause = explained.causes.first().filter(|first| first.total >= explained.unexplained);
    let why = match cause {
        None => format!("{} unexplained", share(explained.unexplained, *latency)),
        Some(first) => {
            let function = first.function.as_deref();
            let culprit = culprit_and_function(&first.cause, &first.culprit, function);
            let by = if culprit.is_empty() { String::new() } else { format!(" ({culprit})") };
            format!("{} {}{by}", share(first.total, *latency), first.cause)
        }
    };
    let record = record.map(|path| format!("; {}", path.display())).unwrap_or_default();
    let name = printable(probe);
    format!("{name} (pid {pid}) on CPU {cpu}: {latency} late, {why}{record}\n")
}
