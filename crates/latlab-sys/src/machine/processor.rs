//! The processor: model, frequencies, idle states and vulnerabilities.

use crate::root::Root;
use latlab_core::cpulist::CpuList;
use latlab_core::machine::{Frequency, Idle, IdleState, Processor};
use std::collections::BTreeMap;

const CPU: &str = "sys/devices/system/cpu";

pub(super) fn read(root: &Root, cpus: &CpuList) -> Processor {
    let info = root.text("proc/cpuinfo").unwrap_or_default();
    Processor {
        arch: root.word("proc/sys/kernel/arch"),
        model: cpuinfo(&info, "model name").or_else(|| root.word("proc/device-tree/model")),
        microcode: cpuinfo(&info, "microcode"),
        smt: root.word(format!("{CPU}/smt/control")),
        frequency: frequency(root),
        idle: idle(root, cpus),
        cooling: cooling(root),
        vulnerabilities: vulnerabilities(root),
    }
}

/// The first value of a key in `/proc/cpuinfo`, where lines are `key<tab>: value`.
pub(super) fn cpuinfo(info: &str, key: &str) -> Option<String> {
    let value = info.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim_end() == key).then(|| value.trim().to_owned())
    });
    value.filter(|value| !value.is_empty())
}

/// The governor of all CPUs; if they differ, the governor of each CPU, separated by commas.
pub(super) fn governor(root: &Root, cpus: &CpuList) -> Option<String> {
    let governors: Vec<String> = cpus
        .iter()
        .filter_map(|cpu| root.word(format!("{CPU}/cpu{cpu}/cpufreq/scaling_governor")))
        .collect();
    let first = governors.first()?;
    let same = governors.iter().all(|governor| governor == first);
    Some(if same { first.clone() } else { governors.join(",") })
}

fn frequency(root: &Root) -> Frequency {
    let policies: Vec<String> = root
        .numbered(format!("{CPU}/cpufreq"), "policy")
        .into_iter()
        .map(|(_, policy)| format!("{CPU}/cpufreq/{policy}"))
        .collect();
    let all = |file: &str| -> Vec<u64> {
        policies.iter().filter_map(|policy| root.number(format!("{policy}/{file}"))).collect()
    };
    let first = |file: &str| policies.first().map(|policy| format!("{policy}/{file}"));
    // intel_pstate has its own file, with the opposite meaning.
    let no_turbo = root.flag(format!("{CPU}/intel_pstate/no_turbo"));
    Frequency {
        driver: first("scaling_driver").and_then(|file| root.word(file)),
        governors: first("scaling_available_governors")
            .map(|file| root.words(file))
            .unwrap_or_default(),
        min_khz: all("scaling_min_freq").into_iter().min(),
        max_khz: all("scaling_max_freq").into_iter().max(),
        boost: root.flag(format!("{CPU}/cpufreq/boost")).or(no_turbo.map(|off| !off)),
    }
}

fn idle(root: &Root, cpus: &CpuList) -> Idle {
    Idle {
        driver: root.word(format!("{CPU}/cpuidle/current_driver")).filter(|name| name != "none"),
        governor: root
            .word(format!("{CPU}/cpuidle/current_governor"))
            .or_else(|| root.word(format!("{CPU}/cpuidle/current_governor_ro"))),
        states: idle_states(root, cpus),
        // Opening the file is a request for the default, which changes nothing.
        cpu_dma_latency_us: root.signed("dev/cpu_dma_latency"),
    }
}

/// The idle states of the first CPU that has any. A state counts as disabled if it is on all CPUs.
fn idle_states(root: &Root, cpus: &CpuList) -> Vec<IdleState> {
    let folder = |cpu: u32| format!("{CPU}/cpu{cpu}/cpuidle");
    let states = |cpu: u32| root.numbered(folder(cpu), "state");
    let Some(first) = cpus.iter().find(|cpu| !states(*cpu).is_empty()) else {
        return Vec::new();
    };
    let disabled = |state: &str| {
        // Without a readable file, the state counts as enabled.
        let on = |cpu| root.number::<u32>(format!("{}/{state}/disable", folder(cpu)));
        cpus.iter().all(|cpu| on(cpu).is_some_and(|disabled| disabled != 0))
    };
    states(first)
        .into_iter()
        .filter_map(|(_, state)| {
            Some(IdleState {
                name: root.word(format!("{}/{state}/name", folder(first)))?,
                latency_us: root.number(format!("{}/{state}/latency", folder(first)))?,
                disabled: disabled(&state),
            })
        })
        .collect()
}

/// The cooling devices of CPUs that are active, by type (`drivers/thermal/cpufreq_cooling.c`,
/// `cpuidle_cooling.c`, until Linux 5.12 with `thermal-`; `drivers/acpi/processor_thermal.c`).
fn cooling(root: &Root) -> Vec<String> {
    const OF_CPUS: &[&str] = &["cpufreq-", "idle-", "Processor"];
    const FOLDER: &str = "sys/class/thermal";
    let is_active = |device: &str| {
        let state: Option<u64> = root.number(format!("{FOLDER}/{device}/cur_state"));
        state.is_some_and(|state| state > 0)
    };
    root.numbered(FOLDER, "cooling_device")
        .into_iter()
        .filter(|(_, device)| is_active(device))
        .filter_map(|(_, device)| root.word(format!("{FOLDER}/{device}/type")))
        .filter(|kind| {
            let kind = kind.strip_prefix("thermal-").unwrap_or(kind);
            OF_CPUS.iter().any(|start| kind.starts_with(start))
        })
        .collect()
}

/// The vulnerabilities of the processor, without those that are "Not affected".
fn vulnerabilities(root: &Root) -> BTreeMap<String, String> {
    let folder = format!("{CPU}/vulnerabilities");
    root.names(&folder)
        .into_iter()
        .filter_map(|name| Some((root.word(format!("{folder}/{name}"))?, name)))
        .filter(|(state, _)| state != "Not affected")
        .map(|(state, name)| (name, state))
        .collect()
}
