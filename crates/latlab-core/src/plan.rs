//! What was asked: enough to run it again.

use crate::cpulist::CpuList;
use crate::random::Random;
use crate::scan::ScanPlan;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One run: which probes, under which loads, where and how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The probes, run one after another.
    pub probes: Vec<Part>,
    /// The calls to scan, one after another.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub scans: Vec<ScanPlan>,
    /// The loads, all running while a probe measures.
    pub loads: Vec<Part>,
    /// Where it runs: `native`, later `lab:PROFILE` and the like.
    pub target: String,
    /// The CPUs under test.
    pub cpus: CpuList,
    /// How long each probe measures.
    pub length: Length,
    /// How long each probe runs before its samples count.
    pub warm_up: Nanos,
    /// The seed of everything that is drawn by chance: by the loads, and when probes begin.
    pub seed: u64,
    /// End at the first sample above this.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stop_above: Option<Nanos>,
    /// Knobs of the machine to turn for the time of the run.
    pub settings: Vec<Setting>,
    /// Whether probes and loads that this machine lacks something for are left out and named in
    /// the record, rather than refused.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub skip_missing: bool,
    /// The mechanisms that adapt the machine meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub adapt: Vec<String>,
    /// Whether late wake-ups are to be explained, and whose.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub explain: Option<ExplainPlan>,
}

impl Plan {
    /// One that measures nothing yet: the rest is put in.
    pub fn bare(target: &str, cpus: CpuList, length: Length) -> Plan {
        Plan {
            probes: Vec::new(),
            scans: Vec::new(),
            loads: Vec::new(),
            target: target.to_owned(),
            cpus,
            length,
            warm_up: Nanos(0),
            seed: 0,
            stop_above: None,
            settings: Vec::new(),
            skip_missing: false,
            adapt: Vec::new(),
            explain: None,
        }
    }

    /// How long the loads have had the machine to themselves when a probe begins: nothing with seed
    /// 0, else up to 100 ms, by the seed. Where time is exactly repeatable a probe would otherwise
    /// always meet the same moments of a load, and no number of runs would tell of the others.
    pub fn phase(&self) -> Nanos {
        const LONGEST: usize = 100_000_000;
        // The first numbers of small seeds are alike.
        let mut random = Random::new(self.seed);
        random.by_ref().take(8).for_each(drop);
        if self.seed == 0 { Nanos(0) } else { Nanos(random.below(LONGEST) as u64) }
    }
}

/// Which wake-ups to explain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainPlan {
    /// Those that took longer; where it is not said, one of a thousand.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub above: Option<Nanos>,
    /// Those of other tasks; where it is not said, those of the plan's probes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub watch: Option<Watched>,
    /// In the laboratory: with the means of any machine, rather than from outside of the guest.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub traced: bool,
}

/// Tasks that are there without us.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Watched {
    /// One, by the kernel's number of the thread, or all threads of a process by its own.
    Task(u32),
    /// All of a name.
    Name(String),
    /// All programs' tasks of real-time priority.
    Realtime,
}

/// How long a probe measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// Until this time has passed.
    For(Nanos),
    /// Until this many periods, or repetitions, have passed on each CPU.
    Count(u64),
}

/// A probe or a load with its parameters, defaults included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What the user typed before the colon.
    pub name: String,
    /// Every parameter by name.
    pub params: Map<String, Value>,
}

/// One knob and the value it is to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The knob's name, as `latlab list knobs` shows it.
    pub knob: String,
    /// The value, as the kernel's file takes it.
    pub value: String,
}

impl std::str::FromStr for Setting {
    type Err = String;

    /// Reads `KNOB=VALUE`.
    fn from_str(text: &str) -> Result<Setting, String> {
        let (knob, value) = text.split_once('=').ok_or("it has no '=': write KNOB=VALUE")?;
        Ok(Setting { knob: knob.to_owned(), value: value.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn seeds_begin_at_other_times_up_to_100_ms() {
        let phase = |seed| {
            let plan = Plan::bare("native", CpuList::default(), Length::Count(1));
            Plan { seed, ..plan }.phase()
        };
        assert_eq!(phase(0), Nanos(0));
        let phases: BTreeSet<Nanos> = (1..=1000).map(phase).collect();
        assert_eq!(phases.len(), 1000);
        assert!(phases.iter().all(|phase| *phase < Nanos::from_millis(100)));
        // A quarter of them in each quarter; four standard deviations of a count of 250 are 55.
        for quarter in 0..4 {
            let [from, to] = [quarter, quarter + 1].map(|nth| Nanos::from_millis(25 * nth));
            let n = phases.range(from..to).count();
            assert!((195..305).contains(&n), "{n} in quarter {quarter}");
        }
    }
}
