//! Loops of the test driver with random lengths, preemption points and protections, which a scan
//! has to find.

use super::run_all;
use crate::program::latlab;
use latlab_core::scan::{LoopSection, Offset, Section};

/// The protections that make parts of a loop non-preemptible, by kernel.
const PROTECTED: [(&str, &[&str]); 3] = [
    ("utime", &["plain", "spin", "raw-spin", "preempt-off", "irq-off"]),
    ("preemptible-hr", &["spin", "raw-spin", "preempt-off", "irq-off"]),
    ("rt", &["raw-spin", "preempt-off", "irq-off"]),
];

/// The shortest part of a loop.
const SHORTEST: u64 = 15_000;

#[test]
fn sections_of_random_loops_are_found() {
    run_all(|draw| {
        let (kernel, modes) = draw.one(&PROTECTED);
        let length = draw.between(30_000, 8_000_000);
        let points = draw.between(1, (length / SHORTEST).min(24)) - 1;
        let mode = draw.one(modes);
        let words =
            format!("scan driver:length={length}ns,points={points},mode={mode} --on lab:{kernel}");
        judge(&words, points).map_err(|why| format!("latlab {words}: {why}"))
    });
}

fn judge(words: &str, points: u64) -> Result<(), String> {
    let output = latlab(&format!("{words} --json"));
    if output.code() != Some(0) {
        return Err(output.stderr);
    }
    let record = output.record();
    let scan = record.scans.first().ok_or("there is no scan")?;
    let (sections, parts) = (&scan.sections, &scan.parts);
    if sections.len() as u64 != points + 1 {
        return Err(format!("{} sections: {sections:?}", sections.len()));
    }
    match sections.iter().zip(parts).find(|(section, part)| !agree(section, part)) {
        Some((section, part)) => Err(format!("{section:?} for {part:?}")),
        None => Ok(()),
    }
}

/// Whether a section begins and ends where it should, to 1 us or 2 % of its length.
fn agree(section: &Section, part: &LoopSection) -> bool {
    let tolerance = (part.end.abs_diff(part.begin) / 50).max(1_000);
    let near = |found: Offset, known: Offset| found.abs_diff(known) <= tolerance;
    near(section.start, part.begin) && near(section.end, part.end)
}
