//! Plans: the parameters of a run, complete enough to repeat it.

mod scan;

pub use scan::{Interrupt, ScanPlan};

use crate::cpulist::CpuList;
use crate::random::Random;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::str::FromStr;

/// The parameters of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Probes, run one after another.
    pub probes: Vec<Part>,
    /// Calls to scan, one after another.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub scans: Vec<ScanPlan>,
    /// Loads, all of which run while a probe measures.
    pub loads: Vec<Part>,
    /// The target it runs on: `native`, `lab:PROFILE` and the like.
    pub target: String,
    /// Files and folders of this machine that a guest has too, for the commands of its loads.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub with: Vec<String>,
    /// Measured CPUs.
    pub cpus: CpuList,
    /// Length of the measurement of each probe.
    pub length: Length,
    /// Time that each probe runs before its samples count.
    pub warm_up: Nanos,
    /// Random seed for loads and for the probe start offset.
    pub seed: u64,
    /// Ends the run at the first sample above this latency.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stop_above: Option<Nanos>,
    /// The verdict of the run is that a sample was above this latency.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fail_above: Option<Nanos>,
    /// CPUs of latlab's own threads that do not measure; by default all that are allowed.
    #[serde(skip_serializing_if = "CpuList::is_empty", default)]
    pub housekeeping: CpuList,
    /// Control group that latlab joins while it measures, by its folder.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cgroup: Option<String>,
    /// Knobs to set for the duration of the run.
    pub settings: Vec<Setting>,
    /// Whether probes and loads whose requirements this machine lacks are skipped and named in the
    /// record, rather than refused.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub skip_missing: bool,
    /// Mechanisms that adapt the machine during the run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub adapt: Vec<String>,
    /// The wake-ups to explain, if any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub explain: Option<ExplainPlan>,
}

impl Plan {
    /// Returns a plan without probes, scans and loads.
    pub fn bare(target: &str, cpus: CpuList, length: Length) -> Plan {
        Plan {
            probes: Vec::new(),
            scans: Vec::new(),
            loads: Vec::new(),
            target: target.to_owned(),
            with: Vec::new(),
            cpus,
            length,
            warm_up: Nanos(0),
            seed: 0,
            stop_above: None,
            fail_above: None,
            housekeeping: CpuList::default(),
            cgroup: None,
            settings: Vec::new(),
            skip_missing: false,
            adapt: Vec::new(),
            explain: None,
        }
    }

    /// Whether a run of this plan may have `recorded` in its record: the same plan, but with the CPUs
    /// that the machine selected where this one names none.
    pub fn is_recorded_as(&self, recorded: &Plan) -> bool {
        let cpus = if self.cpus.is_empty() { &recorded.cpus } else { &self.cpus };
        *recorded == Plan { cpus: cpus.clone(), ..self.clone() }
    }

    /// Whether it starts a program that the user named, as a load or to scan it.
    pub fn starts_programs(&self) -> bool {
        let loads = self.loads.iter().any(|load| load.name == "exec");
        loads || self.scans.iter().any(|scan| scan.call.name == "program")
    }

    /// Returns the probe start offset: how long the loads run before a probe begins. It is 0 for
    /// seed 0, and otherwise up to 100 ms, depending on the seed. Without it a probe would always
    /// meet the same moments of a load where time is exactly repeatable.
    pub fn phase(&self) -> Nanos {
        const LONGEST: usize = 100_000_000;
        // The first numbers of small seeds are similar.
        let mut random = Random::new(self.seed);
        random.by_ref().take(8).for_each(drop);
        if self.seed == 0 { Nanos(0) } else { Nanos(random.below(LONGEST) as u64) }
    }
}

/// The wake-ups to explain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainPlan {
    /// Threshold above which a wake-up is late; by default the 99.9th percentile.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub above: Option<Nanos>,
    /// Other tasks whose wake-ups are explained; by default those of the plan's probes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub watch: Option<Watched>,
    /// In the laboratory: whether to trace inside the guest, as on any machine, rather than from
    /// outside.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub traced: bool,
    /// Whether to compare what is traced inside the guest with what is traced from outside.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub verify: bool,
    /// Of watched tasks: whether what took the CPU from them is explained although they sleep.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub running: bool,
}

/// Tasks that latlab did not start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Watched {
    /// A thread by its id, or all threads of a process by its id.
    Task(u32),
    /// All tasks of this name.
    Name(String),
    /// All user-space tasks of real-time priority.
    Realtime,
}

/// Length of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// For this time.
    For(Nanos),
    /// For this many periods, or repetitions, on each CPU.
    Count(u64),
}

/// A probe, load or call with its parameters, defaults included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// All parameters by name.
    pub params: Map<String, Value>,
}

/// A knob and the value to set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The knob's name, as in `latlab list knobs`.
    pub knob: String,
    /// The value, in the format of the kernel's file.
    pub value: String,
}

/// Error for a text that is not a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// There is no equals sign.
    #[error("it has no '=': write KNOB=VALUE")]
    NoValue,
    /// There is nothing before the equals sign.
    #[error("it names no knob: write KNOB=VALUE")]
    NoKnob,
}

impl FromStr for Setting {
    type Err = SettingError;

    /// Parses `KNOB=VALUE`; the value may contain further equals signs. Whether the knob exists is
    /// not checked.
    fn from_str(text: &str) -> Result<Setting, SettingError> {
        let (knob, value) = text.split_once('=').ok_or(SettingError::NoValue)?;
        if knob.is_empty() {
            return Err(SettingError::NoKnob);
        }
        Ok(Setting { knob: knob.to_owned(), value: value.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn setting_is_split_at_the_first_equals_sign() {
        let setting = |knob: &str, value: &str| {
            Ok(Setting { knob: knob.to_owned(), value: value.to_owned() })
        };
        assert_eq!("ksm=0".parse(), setting("ksm", "0"));
        assert_eq!("idle_latency=a=b".parse(), setting("idle_latency", "a=b"));
        assert_eq!("governor=".parse(), setting("governor", ""));
        assert_eq!("ksm".parse::<Setting>(), Err(SettingError::NoValue));
        assert_eq!("=1".parse::<Setting>(), Err(SettingError::NoKnob));
    }

    #[test]
    fn recorded_plan_differs_only_in_cpus_that_were_not_named() {
        let sent = Plan::bare("ssh:a", CpuList::default(), Length::Count(1));
        let on = |cpu, plan: &Plan| Plan { cpus: CpuList::from_iter([cpu]), ..plan.clone() };
        assert!(sent.is_recorded_as(&sent) && sent.is_recorded_as(&on(1, &sent)));
        assert!(on(1, &sent).is_recorded_as(&on(1, &sent)));
        assert!(!on(1, &sent).is_recorded_as(&on(2, &sent)));
        let elsewhere = Plan { target: "ssh:b".to_owned(), ..sent.clone() };
        assert!(!sent.is_recorded_as(&elsewhere) && !sent.is_recorded_as(&on(1, &elsewhere)));
        assert!(!sent.is_recorded_as(&Plan { length: Length::Count(2), ..sent.clone() }));
    }

    #[test]
    fn phase_depends_on_the_seed_and_is_below_100_ms() {
        let phase = |seed| {
            let plan = Plan::bare("native", CpuList::default(), Length::Count(1));
            Plan { seed, ..plan }.phase()
        };
        assert_eq!(phase(0), Nanos(0));
        let phases: BTreeSet<Nanos> = (1..=1000).map(phase).collect();
        assert_eq!(phases.len(), 1000);
        assert!(phases.iter().all(|phase| *phase < Nanos::from_millis(100)));
        // A quarter of them is in each quarter; four standard deviations of a count of 250 are 55.
        for quarter in 0..4 {
            let [from, to] = [quarter, quarter + 1].map(|nth| Nanos::from_millis(25 * nth));
            let n = phases.range(from..to).count();
            assert!((195..305).contains(&n), "{n} in quarter {quarter}");
        }
    }
}
