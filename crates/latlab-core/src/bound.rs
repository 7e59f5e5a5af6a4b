//! Worst composition of the sections that runs have shown: a bound of the wake-up latency.
//!
//! The terms are those of D. B. de Oliveira, D. Casini, R. S. de Oliveira and T. Cucinotta,
//! *Demystifying the Real-Time Linux Scheduling Latency*, ECRTS 2020, theorem 8:
//!
//! > L = max(D_ST, D_POID) + D_PAIE + D_PSD + I_NMI(L) + I_IRQ(L), the least positive solution.
//!
//! A probe's latency begins earlier and ends later than the paper's, so two terms are added: the
//! timer's resolution, and the way back to the program. The bound holds for the observed sections,
//! not for everything that the kernel can do.

mod interrupts;
mod observation;
#[cfg(test)]
mod tests;
mod trace;

pub use interrupts::{Interrupt, Vector};
pub use observation::{NoObservation, Observation};
pub use trace::Trace;

use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A term of the bound, in the order in which they pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Term {
    /// `D_POID`: preemption or interrupts disabled to postpone the scheduler. Under `preempt=none`
    /// and `voluntary`, all kernel code between two scheduling points.
    Poid,
    /// `D_ST`: from interrupts disabled by the scheduler to the end of its section.
    St,
    /// `D_PAIE`: preemption and interrupts enabled, but the scheduler not called yet.
    Paie,
    /// `D_PSD`: preemption disabled to schedule, from the call of the scheduler to its return.
    Psd,
    /// From the scheduler's return to the program's reading of the clock.
    Return,
}

/// The longest section of a term.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Its length, without interrupts.
    pub ns: Nanos,
    /// The function that began it.
    pub begin: String,
    /// The function that ended it.
    pub end: String,
}

/// The worst composition of all observed sections and interrupts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// The bound.
    pub ns: Nanos,
    /// The longest observed delay of the hardware timer, from when the probe was due.
    pub timer: Nanos,
    /// By how much the plugin's count of instructions may be wrong; it is a part of the bound.
    pub uncertain: Nanos,
    /// The longest section of each term that was observed.
    pub sections: BTreeMap<Term, Section>,
    /// The interrupts that can meet one wake-up, those that take longest in all first.
    pub interrupts: Vec<Vector>,
}

/// The bound of a target under a load, and what was measured in the same runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The target.
    pub target: String,
    /// The load, `none` without one.
    pub load: String,
    /// The kernel's release.
    pub kernel: String,
    /// Its preemption model, where known.
    pub preempt: Option<String>,
    /// Number of runs, each with a seed of its own.
    pub runs: u64,
    /// Number of samples in all runs.
    pub samples: u64,
    /// The longest latency measured in these runs.
    pub maximum: Nanos,
    /// The bound.
    pub bound: Bound,
}

/// No window is longer: interrupts that fill one second leave no bound.
const LONGEST: Nanos = Nanos::from_secs(1);

/// A bound that is more than this many times the measured maximum says nothing: the longest sections
/// and interrupts that were observed hardly ever meet.
pub const LOOSE: f64 = 10.0;

/// The assumptions of a bound, in one sentence each.
pub const ASSUMPTIONS: [&str; 3] = [
    "The bound is the worst composition of what was observed, in instructions: one takes 1 ns. It \
     is no guarantee: not for what these runs did not show, and not for silicon.",
    "Interrupts: those of each vector take as long in one wake-up as they ever took together within \
     as long a time (sliding window).",
    "The probe has the highest priority: no other task delays it except in these sections.",
];

impl Row {
    /// Whether no measured latency exceeds the bound. If one does, a task of higher
    /// priority delayed the probe, or latlab is wrong.
    pub fn holds(&self) -> bool {
        self.bound.ns >= self.maximum
    }

    /// Returns how many times the measured maximum the bound is.
    pub fn ratio(&self) -> f64 {
        self.bound.ns.as_secs_f64() / self.maximum.as_secs_f64()
    }

    /// Whether the bound is so far above the measured maximum that it says nothing about the target.
    pub fn is_loose(&self) -> bool {
        self.ratio() > LOOSE
    }
}

impl Bound {
    /// Returns the longest section of a term, if there is one.
    pub fn section(&self, term: Term) -> Option<&Section> {
        self.sections.get(&term)
    }

    /// Whether the section of this term is a part of the sum: of `D_POID` and `D_ST`, the longer one.
    pub fn counts(&self, term: Term) -> bool {
        let length = |term| self.section(term).map_or(Nanos(0), |section| section.ns);
        match term {
            Term::Poid => length(Term::Poid) >= length(Term::St),
            Term::St => length(Term::St) > length(Term::Poid),
            Term::Paie | Term::Psd | Term::Return => true,
        }
    }
}

impl Term {
    /// All terms, in the order in which they pass.
    pub const ALL: [Term; 5] = [Term::Poid, Term::St, Term::Paie, Term::Psd, Term::Return];

    /// Returns its name in the paper; the last term is not in it.
    pub fn name(self) -> &'static str {
        match self {
            Term::Poid => "D_POID",
            Term::St => "D_ST",
            Term::Paie => "D_PAIE",
            Term::Psd => "D_PSD",
            Term::Return => "return",
        }
    }
}

/// Composes what several runs have shown. None where there is no run, or where interrupts leave a
/// thread no time.
///
/// Interrupts are summed in a sliding window: the interrupts of each vector take as long as they
/// took at most, together, within any window of that length in any run (the paper's sliding
/// window).
pub fn compose(runs: &[Observation]) -> Option<Bound> {
    let longest = |term: Term| {
        let sections = runs.iter().filter_map(|run| run.sections.get(&term));
        // Among sections of equal length, the first run's.
        sections.fold(None, |longest: Option<&Section>, section| match longest {
            Some(longest) if longest.ns >= section.ns => Some(longest),
            _ => Some(section),
        })
    };
    let length = |term| longest(term).map_or(Nanos(0), |section| section.ns);
    let free = length(Term::Poid).max(length(Term::St))
        + length(Term::Paie)
        + length(Term::Psd)
        + length(Term::Return);
    let timer = runs.iter().map(|run| run.timer).max()?;
    let uncertain = runs.iter().map(|run| run.uncertain).max()?;
    let all: Vec<&[Interrupt]> = runs.iter().map(|run| run.interrupts.as_slice()).collect();
    let mut window = free;
    loop {
        let vectors = interrupts::within(&all, window);
        let taken = vectors.iter().fold(Nanos(0), |taken, vector| taken + vector.total);
        if free + taken == window {
            let known = |term| Some((term, longest(term)?.clone()));
            let sections = Term::ALL.into_iter().filter_map(known).collect();
            return Some(Bound {
                ns: timer + window + uncertain,
                timer,
                uncertain,
                sections,
                interrupts: vectors,
            });
        }
        window = free + taken;
        if window > LONGEST {
            return None;
        }
    }
}
