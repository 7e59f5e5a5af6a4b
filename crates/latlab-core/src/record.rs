//! Records: the data of a run, as it is stored, sent, merged and compared.

pub mod explained;
mod json;
mod merge;
pub mod proofs;
pub mod remedy;
pub mod running;
mod sample;
mod series;
mod settings;
#[cfg(test)]
pub(crate) mod tests;
mod warning;

pub use json::RecordError;
pub use merge::Incomparable;
pub use sample::{Charge, Sample, worst_first};
pub use series::{Beyond, Counts, Disturbed, Schedule, Series, WarmUp};
pub use settings::{settings_turned, settings_were_there};
pub use warning::{Warning, WarningCode};

use self::explained::Explained;
use self::proofs::Proofs;
use crate::cpulist::CpuList;
use crate::machine::Machine;
use crate::plan::Plan;
use crate::scan::Scan;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// Version of the record's format; other versions are refused.
pub const SCHEMA: u32 = 2;

/// The results of one run, and its circumstances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// The writing program and its version.
    pub tool: String,
    /// Start of the run in nanoseconds since 1970; of merged runs, the first.
    pub started: Nanos,
    /// Number of merged runs.
    pub runs: u64,
    /// The plan.
    pub plan: Plan,
    /// SHA-256, in hexadecimal, of the programs involved: this program and, for a guest, its
    /// kernel, its profile and QEMU. With another fingerprint the same plan may give other results.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fingerprint: Option<String>,
    /// The machine it ran on.
    pub machine: Machine,
    /// The distributions.
    pub series: Vec<Series>,
    /// Results of scans.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub scans: Vec<Scan>,
    /// Single values.
    pub figures: Vec<Figure>,
    /// The worst samples of all series, the worst first.
    pub worst: Vec<Sample>,
    /// Summary of the causes of late wake-ups; absent where nothing was explained.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub explained: Option<Explained>,
    /// Remedies that were tried against the causes; absent where none was to be proven.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub proofs: Option<Proofs>,
    /// The work of the loads.
    pub work: Vec<Work>,
    /// Changes of the machine's settings.
    pub changes: Vec<Change>,
    /// Warnings to the reader.
    pub warnings: Vec<Warning>,
}

impl Record {
    /// Returns a record of one run without results. `tool` is the writing program and its version,
    /// `started` the start of the run in nanoseconds since 1970.
    pub fn new(tool: &str, started: Nanos, plan: Plan, machine: Machine) -> Record {
        Record {
            schema: SCHEMA,
            tool: tool.to_owned(),
            started,
            runs: 1,
            plan,
            fingerprint: None,
            machine,
            series: Vec::new(),
            scans: Vec::new(),
            figures: Vec::new(),
            worst: Vec::new(),
            explained: None,
            proofs: None,
            work: Vec::new(),
            changes: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Returns the CPU that a sample was measured on, or the CPUs where its probe uses several
    /// together.
    pub fn cpus_of(&self, sample: &Sample) -> CpuList {
        let is_origin = |s: &&Series| (&s.probe, s.cpu) == (&sample.probe, sample.cpu);
        let origin = self.series.iter().find(is_origin);
        origin.map_or_else(|| CpuList::from_iter([sample.cpu]), Series::cpus)
    }

    /// Returns the warning of a run that ended before its plan did, if it is one: it was interrupted,
    /// or killed after it had written this record.
    pub fn cut_short(&self) -> Option<&Warning> {
        self.warning(&[WarningCode::Interrupted, WarningCode::Unfinished])
    }

    /// Returns the warning that a part of the run was not what its plan asks for, if there is one: a
    /// measured CPU went offline, a load ended, or another program changed a setting.
    pub fn lost_part(&self) -> Option<&Warning> {
        self.warning(&[
            WarningCode::CpuOffline,
            WarningCode::LoadEnded,
            WarningCode::SettingChanged,
        ])
    }

    /// Returns the warning that another program changed a setting during the run, if there is one.
    pub fn setting_changed(&self) -> Option<&Warning> {
        self.warning(&[WarningCode::SettingChanged])
    }

    /// Returns the warning of a run that a sample above its `--stop-above` ended, if it is one.
    pub fn stopped_above(&self) -> Option<&Warning> {
        self.warning(&[WarningCode::StoppedAbove])
    }

    fn warning(&self, codes: &[WarningCode]) -> Option<&Warning> {
        self.warnings.iter().find(|warning| codes.iter().any(|code| warning.code == *code))
    }
}

/// A single value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The probe's name.
    pub probe: String,
    /// The value's name.
    pub name: String,
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// The loads that ran at the same time.
    pub load: Vec<String>,
    /// The kernel profile, if it ran in the laboratory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub profile: Option<String>,
}

/// Work of a load from its start to its end. It starts before the first probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The load's name.
    pub load: String,
    /// The unit of work.
    pub unit: String,
    /// Number of units.
    pub done: u64,
    /// CPU time of the load and its children.
    pub cpu_ns: Nanos,
}

/// A change of a setting of the machine, and whether it was restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The knob's name.
    pub knob: String,
    /// The old value.
    pub old: String,
    /// The new value.
    pub new: String,
    /// The reason.
    pub reason: String,
    /// Whether the old value was restored.
    pub restored: bool,
    /// The reason, as the end of a sentence, where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrestored: Option<String>,
}
