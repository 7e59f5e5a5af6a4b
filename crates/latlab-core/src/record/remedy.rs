//! Remedies that can be tried at once: each is a change of the plan, so that a run makes it and
//! undoes it.

use crate::plan::{Part, Plan, Setting};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A change that may help, for the time of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// A knob is set.
    Knob(Setting),
    /// Several knobs are set together.
    Knobs(Vec<Setting>),
    /// The measured tasks get `SCHED_FIFO` with this priority, those of `SCHED_RR` too.
    Priority(u32),
    /// The loads run on CPUs that are not measured.
    Elsewhere,
    /// These mechanisms adapt the machine.
    Adapt(Vec<String>),
}

/// How a knob is set for good: its name, and the text before and after the value.
type ForGood = (&'static str, &'static str, &'static str);

/// Settings that a file in /etc/sysctl.d makes.
const AT_EACH_START: &str = "`, in a file of /etc/sysctl.d";

const FOR_GOOD: &[ForGood] = &[
    ("preempt", "boot with `preempt=", "`"),
    ("rt_runtime_us", "`kernel.sched_rt_runtime_us=", AT_EACH_START),
    (
        "fair_server",
        "`echo ",
        " | tee /sys/kernel/debug/sched/fair_server/cpu*/runtime` at each start",
    ),
    ("timer_migration", "`kernel.timer_migration=", AT_EACH_START),
    ("numa_balancing", "`kernel.numa_balancing=", AT_EACH_START),
    ("swappiness", "`vm.swappiness=", AT_EACH_START),
    ("compaction_proactiveness", "`vm.compaction_proactiveness=", AT_EACH_START),
    ("pagelist_high_fraction", "`vm.percpu_pagelist_high_fraction=", AT_EACH_START),
    ("transparent_hugepage", "boot with `transparent_hugepage=", "`"),
    ("governor", "`cpupower frequency-set -g ", "` at each start"),
    ("ksm", "`echo ", " > /sys/kernel/mm/ksm/run` at each start"),
    (
        "cpu_dma_latency",
        "the application should keep /dev/cpu_dma_latency open with ",
        " written to it",
    ),
];

impl Remedy {
    /// Returns the change of a knob.
    pub(crate) fn knob(name: &str, value: impl Into<String>) -> Remedy {
        Remedy::Knob(Setting { knob: name.to_owned(), value: value.into() })
    }

    /// Returns the change of one knob or several, each with its value.
    pub(crate) fn knobs(values: &[(&str, &str)]) -> Remedy {
        if let [(name, value)] = *values {
            return Remedy::knob(name, value);
        }
        let setting = |(knob, value): &(&str, &str)| Setting {
            knob: (*knob).to_owned(),
            value: (*value).to_owned(),
        };
        Remedy::Knobs(values.iter().map(setting).collect())
    }

    /// Returns the same plan with this change.
    #[must_use]
    pub fn applied_to(&self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        match self {
            Remedy::Knob(setting) => set(&mut plan, setting),
            Remedy::Knobs(settings) => settings.iter().for_each(|setting| set(&mut plan, setting)),
            Remedy::Priority(priority) => {
                plan.probes.iter_mut().for_each(|probe| raise(probe, *priority));
            }
            Remedy::Elsewhere => plan.loads.iter_mut().for_each(move_off),
            Remedy::Adapt(names) => {
                let new = names.iter().filter(|name| !plan.adapt.contains(name));
                let new: Vec<String> = new.cloned().collect();
                plan.adapt.extend(new);
            }
        }
        plan
    }

    /// Returns the change in a few words.
    pub fn words(&self) -> String {
        match self {
            Remedy::Knob(setting) => words(setting),
            Remedy::Knobs(settings) => joined(settings, words, " and "),
            Remedy::Priority(priority) => format!("FIFO priority {priority}"),
            Remedy::Elsewhere => "loads on other CPUs".to_owned(),
            Remedy::Adapt(names) => format!("adapting by {}", names.join(" and ")),
        }
    }

    /// Returns how the change is made for good, as a clause.
    pub fn for_good(&self) -> String {
        match self {
            Remedy::Knob(setting) => for_good(setting),
            Remedy::Knobs(settings) => joined(settings, for_good, "; "),
            Remedy::Priority(priority) => format!(
                "give the task a priority above that of its rivals, as `chrt -f -p {priority} TID`, \
                 or CPUSchedulingPriority={priority} in its unit"
            ),
            Remedy::Elsewhere => "keep that work off the measured CPUs (`taskset -p`, cpusets, \
                                `isolcpus=`)"
                .to_owned(),
            Remedy::Adapt(names) => format!("run `latlab adapt --mechanisms {}`", names.join(",")),
        }
    }
}

/// Sets a knob in the plan, whatever the plan sets it to.
fn set(plan: &mut Plan, setting: &Setting) {
    plan.settings.retain(|known| known.knob != setting.knob);
    plan.settings.push(setting.clone());
}

fn words(Setting { knob, value }: &Setting) -> String {
    format!("{knob}={value}")
}

fn joined(settings: &[Setting], each: fn(&Setting) -> String, between: &str) -> String {
    settings.iter().map(each).collect::<Vec<_>>().join(between)
}

fn for_good(Setting { knob, value }: &Setting) -> String {
    match FOR_GOOD.iter().find(|(name, ..)| name == knob) {
        Some((_, before, after)) => format!("{before}{value}{after}"),
        None => format!("set {knob} to {value} at each start"),
    }
}

/// Gives the threads of a probe `SCHED_FIFO` with this priority, unless they have a higher one or a
/// deadline.
fn raise(probe: &mut Part, priority: u32) {
    let policy = probe.params.get("policy").and_then(Value::as_str).unwrap_or_default();
    let has = probe.params.get("priority").and_then(Value::as_u64);
    let is_ordinary = policy == "other";
    let Some(has) = has.filter(|_| policy != "deadline") else { return };
    if !is_ordinary && has >= u64::from(priority) {
        return;
    }
    probe.params.insert("policy".to_owned(), Value::from("fifo"));
    probe.params.insert("priority".to_owned(), Value::from(priority));
}

/// Moves a load off the measured CPUs, if it may run on them.
fn move_off(load: &mut Part) {
    let place = load.params.get("on").and_then(Value::as_str);
    if matches!(place, Some("all" | "probe")) {
        load.params.insert("on".to_owned(), Value::from("others"));
    }
}
