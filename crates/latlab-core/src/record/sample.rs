//! Late wake-ups and their causes.

use crate::path::Path;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// One late wake-up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The probe's name.
    pub probe: String,
    /// The CPU.
    pub cpu: u32,
    /// When the thread ran, since counting began.
    pub at: Nanos,
    /// The latency.
    pub latency: Nanos,
    /// Sample index in the run on the machine that measured, from 1, warm-up included, over all
    /// CPUs. It is unique where only one CPU was measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub index: Option<u64>,
    /// The known causes, in order of time.
    #[serde(default)]
    pub causes: Vec<Charge>,
    /// The part without a known cause; absent where nothing was explained. The causes and this part
    /// add up to the latency exactly.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unexplained: Option<Nanos>,
    /// The functions that the CPU executed meanwhile, where the laboratory traced all instructions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<Path>,
}

/// A part of a latency, and the cause it is charged to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// The cause's name.
    pub cause: String,
    /// Its beginning, relative to the moment at which the thread should have run.
    #[serde(default)]
    pub from: Nanos,
    /// Its length.
    pub ns: Nanos,
    /// The task, interrupt or softirq to blame; empty where there is none.
    pub culprit: String,
    /// The kernel functions, the innermost first, where known.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub stack: Vec<String>,
}

/// Sorts samples by latency, the longest first, then by time and CPU, and keeps the first few.
pub fn worst_first(samples: &mut Vec<Sample>) {
    samples.sort_by(|a, b| {
        let key = |s: &Sample| (std::cmp::Reverse(s.latency), s.at, s.cpu);
        key(a).cmp(&key(b)).then_with(|| a.probe.cmp(&b.probe))
    });
    samples.truncate(crate::worst::KEPT);
}

impl Sample {
    /// Returns an inconsistency, if there is one.
    pub(super) fn flaw(&self) -> Option<&'static str> {
        if let Some(flaw) = self.path.as_ref().and_then(Path::flaw) {
            return Some(flaw);
        }
        let rest = self.unexplained.or_else(|| (!self.causes.is_empty()).then_some(Nanos(0)))?;
        let sum = self.causes.iter().fold(rest, |sum, charge| sum + charge.ns);
        (sum != self.latency)
            .then_some("its causes and its unexplained part do not add up to its latency")
    }
}
