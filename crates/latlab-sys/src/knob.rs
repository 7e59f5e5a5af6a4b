//! The knobs of a machine that a run may set, and the files behind them.

use crate::console;
use crate::root::Root;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A setting of the machine that affects latency.
#[derive(Clone, Copy, Debug)]
pub struct Knob {
    /// The name that users type.
    pub name: &'static str,
    /// One line: its effect and its values.
    pub summary: &'static str,
    /// The place where it is set.
    pub(crate) place: KnobPlace,
}

/// The place where a knob is set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KnobPlace {
    /// Files below the root; a `*` stands for each CPU or state.
    Files(&'static str),
    /// Files below the root, one of each CPU that is online; a `*` stands for its number. There are
    /// files of other CPUs too, for which the kernel refuses values.
    OnlineCpus(&'static str),
    /// `/dev/cpu_dma_latency`: in force while it is open.
    Held,
    /// Idle states whose exit takes longer than the value, in microseconds, are disabled.
    IdleStates,
    /// A setting of the console.
    Console(console::Setting),
    /// A feature of the scheduler, by its name in [`FEATURES`]: 1 where the name is listed, 0 where
    /// it is listed with `NO_` before it.
    Feature(&'static str),
}

/// The list of the scheduler's features. Writing a name switches the feature on, a name after `NO_`
/// off.
const FEATURES: &str = "sys/kernel/debug/sched/features";

/// The files that disable an idle state.
const IDLE_STATES: &str = "sys/devices/system/cpu/cpu*/cpuidle/state*/disable";

/// The CPUs that are online.
const ONLINE: &str = "sys/devices/system/cpu/online";

/// Why it is not known what setting a knob writes.
#[derive(Debug)]
pub(crate) enum NoWrites {
    /// The value is not a number.
    NotANumber,
    /// Not all of its files can be found.
    Unreadable(Unreadable),
}

/// The present state of a knob that is one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnobState {
    /// The file, below the root.
    pub path: PathBuf,
    /// The value it has.
    pub value: String,
    /// All values that it can have; empty where the file does not list them.
    pub possible: Vec<String>,
}

/// Why a knob can't be read, and what would help.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// Its file system is not mounted.
    #[error("debugfs is not mounted: run `mount -t debugfs debugfs /sys/kernel/debug` first")]
    NotMounted,
    /// There is no such file.
    #[error("this kernel has no {0}")]
    Missing(String),
    /// The caller may not read it.
    #[error("only root can read {0}: run latlab as root")]
    NotRoot(String),
    /// The kernel denies it to everybody.
    #[error(
        "not even root may read {0} on this kernel: boot it without lockdown (kernel_lockdown(7)) \
         and without the parameter debugfs="
    )]
    LockedDown(String),
    /// The file does not list the feature.
    #[error("{0} does not know {1}")]
    Unknown(String, &'static str),
    /// Any other error.
    #[error("{0} can't be read: {1}")]
    Failed(String, io::Error),
}

/// Every knob, in the order `latlab list knobs` shows them.
pub static KNOBS: &[Knob] = &[
    Knob {
        name: "rt_runtime_us",
        summary: "µs of each second real-time tasks may run; -1: no limit (a spinning task hangs \
                  the CPU)",
        place: KnobPlace::Files("proc/sys/kernel/sched_rt_runtime_us"),
    },
    Knob {
        name: "fair_server",
        summary: "fair server of each CPU, in debugfs: ns of each period (1 s) for starving SCHED_OTHER \
                  tasks; 0: off (a spinning task hangs the CPU)",
        place: KnobPlace::OnlineCpus("sys/kernel/debug/sched/fair_server/cpu*/runtime"),
    },
    Knob {
        name: "cpu_dma_latency",
        summary: "limit on idle-state exit latency in µs (PM QoS) while latlab runs; 0 costs power",
        place: KnobPlace::Held,
    },
    Knob {
        name: "idle_latency",
        summary: "idle states with a longer exit latency than this, in µs, are disabled",
        place: KnobPlace::IdleStates,
    },
    Knob {
        name: "governor",
        summary: "frequency governor of all CPUs: performance, powersave, schedutil",
        place: KnobPlace::Files("sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"),
    },
    Knob {
        name: "boost",
        summary: "turbo frequencies: 0 or 1",
        place: KnobPlace::Files("sys/devices/system/cpu/cpufreq/boost"),
    },
    Knob {
        name: "preempt",
        summary: "preemption model, in debugfs: none, voluntary, full, lazy",
        place: KnobPlace::Files("sys/kernel/debug/sched/preempt"),
    },
    Knob {
        name: "wakeup_preemption",
        summary: "whether a waking SCHED_OTHER task may preempt another: 0 or 1, in debugfs",
        place: KnobPlace::Feature("WAKEUP_PREEMPTION"),
    },
    Knob {
        name: "place_lag",
        summary: "whether a waking SCHED_OTHER task keeps the lag it slept with (EEVDF): 0 or 1, in debugfs",
        place: KnobPlace::Feature("PLACE_LAG"),
    },
    Knob {
        name: "base_slice",
        summary: "slice in ns after which the tick may preempt a SCHED_OTHER task, in debugfs",
        place: KnobPlace::Files("sys/kernel/debug/sched/base_slice_ns"),
    },
    Knob {
        name: "timer_migration",
        summary: "whether timers move to busy CPUs: 0 or 1",
        place: KnobPlace::Files("proc/sys/kernel/timer_migration"),
    },
    Knob {
        name: "nmi_watchdog",
        summary: "the hard-lockup detector's interrupts: 0 or 1",
        place: KnobPlace::Files("proc/sys/kernel/nmi_watchdog"),
    },
    Knob {
        name: "numa_balancing",
        summary: "NUMA hinting page faults: 0 or 1",
        place: KnobPlace::Files("proc/sys/kernel/numa_balancing"),
    },
    Knob {
        name: "transparent_hugepage",
        summary: "transparent huge pages: always, madvise, never",
        place: KnobPlace::Files("sys/kernel/mm/transparent_hugepage/enabled"),
    },
    Knob {
        name: "ksm",
        summary: "merging of identical pages: 0, 1, 2",
        place: KnobPlace::Files("sys/kernel/mm/ksm/run"),
    },
    Knob {
        name: "swappiness",
        summary: "tendency to swap memory out: 0 to 200",
        place: KnobPlace::Files("proc/sys/vm/swappiness"),
    },
    Knob {
        name: "compaction_proactiveness",
        summary: "how much kcompactd compacts memory in advance: 0 to 100",
        place: KnobPlace::Files("proc/sys/vm/compaction_proactiveness"),
    },
    Knob {
        name: "pagelist_high_fraction",
        summary: "a CPU's lists of free pages hold 1/N of memory; a high N frees fewer at once under zone->lock; 0: default",
        place: KnobPlace::Files("proc/sys/vm/percpu_pagelist_high_fraction"),
    },
    Knob {
        name: "stat_interval",
        summary: "seconds between updates of the memory statistics on each CPU",
        place: KnobPlace::Files("proc/sys/vm/stat_interval"),
    },
];

/// Knobs that users do not set, but that loads change while they run.
static LOAD_KNOBS: &[Knob] = &[
    Knob {
        name: "console_leds",
        summary: "the LEDs of the keyboard",
        place: KnobPlace::Console(console::Setting::Leds),
    },
    Knob {
        name: "active_console",
        summary: "the virtual terminal that is shown",
        place: KnobPlace::Console(console::Setting::Active),
    },
];

impl Knob {
    /// The knob of this name.
    pub fn named(name: &str) -> Option<&'static Knob> {
        KNOBS.iter().find(|knob| knob.name == name)
    }

    /// The knob of this name, including those that only loads change.
    pub(crate) fn any_named(name: &str) -> Option<&'static Knob> {
        Knob::named(name).or_else(|| LOAD_KNOBS.iter().find(|knob| knob.name == name))
    }

    /// Its files, where it is read and written as such. An error where one may be missing among them.
    pub(crate) fn paths(&self, root: &Root) -> Result<Vec<PathBuf>, Unreadable> {
        match self.place {
            KnobPlace::Files(pattern) => expand(root, pattern),
            KnobPlace::OnlineCpus(pattern) => of_online_cpus(root, pattern),
            KnobPlace::Console(_) => expand(root, console::PATH.trim_start_matches('/')),
            KnobPlace::Feature(_) => expand(root, FEATURES),
            KnobPlace::Held | KnobPlace::IdleStates => Ok(Vec::new()),
        }
    }

    /// Whether `path` is one of its files, on this machine or one with other CPUs and states.
    pub(crate) fn may_have(&self, root: &Root, path: &Path) -> bool {
        let pattern = match self.place {
            KnobPlace::Files(pattern) | KnobPlace::OnlineCpus(pattern) => pattern,
            KnobPlace::Console(_) => console::PATH.trim_start_matches('/'),
            KnobPlace::Feature(_) => FEATURES,
            KnobPlace::IdleStates => IDLE_STATES,
            KnobPlace::Held => return false,
        };
        path.strip_prefix(root.path("")).is_ok_and(|below| matches(pattern, below))
    }

    /// The files that setting it writes, with the text for each.
    pub(crate) fn writes(
        &self,
        root: &Root,
        value: &str,
    ) -> Result<Vec<(PathBuf, String)>, NoWrites> {
        if let KnobPlace::IdleStates = self.place {
            let limit = value.parse().map_err(|_| NoWrites::NotANumber)?;
            let slower = idle_states_above(root, limit).map_err(NoWrites::Unreadable)?;
            return Ok(slower.into_iter().map(|path| (path, "1".to_owned())).collect());
        }
        let paths = self.paths(root).map_err(NoWrites::Unreadable)?;
        Ok(paths.into_iter().map(|path| (path, value.to_owned())).collect())
    }
}

/// The present state of the knob of this name, which must be one file.
pub fn state(root: &Root, name: &str) -> Result<KnobState, Unreadable> {
    let knob = Knob::named(name).ok_or_else(|| Unreadable::Missing(name.to_owned()))?;
    let (pattern, feature) = match knob.place {
        KnobPlace::Files(pattern) => (pattern, None),
        KnobPlace::Feature(feature) => (FEATURES, Some(feature)),
        _ => return Err(Unreadable::Missing(name.to_owned())),
    };
    let path = root.path(pattern);
    let text = std::fs::read_to_string(&path).map_err(|e| unreadable(root, pattern, e))?;
    match feature {
        None => Ok(KnobState { path, value: chosen(&text), possible: choices(&text) }),
        Some(feature) => {
            let value = listed(&text, feature)
                .ok_or_else(|| Unreadable::Unknown(format!("/{pattern}"), feature))?;
            let possible = ["0", "1"].map(str::to_owned).to_vec();
            Ok(KnobState { path, value, possible })
        }
    }
}

fn unreadable(root: &Root, pattern: &str, error: io::Error) -> Unreadable {
    let debugfs = root.path("sys/kernel/debug");
    let is_empty = || std::fs::read_dir(&debugfs).is_ok_and(|mut all| all.next().is_none());
    match error.kind() {
        io::ErrorKind::NotFound if pattern.starts_with("sys/kernel/debug/") && is_empty() => {
            Unreadable::NotMounted
        }
        _ => unreadable_file(format!("/{pattern}"), error),
    }
}

fn unreadable_file(name: String, error: io::Error) -> Unreadable {
    match (error.kind(), error.raw_os_error()) {
        (_, Some(libc::EPERM)) => Unreadable::LockedDown(name),
        (io::ErrorKind::PermissionDenied, _) => Unreadable::NotRoot(name),
        (io::ErrorKind::NotFound, _) => Unreadable::Missing(name),
        _ => Unreadable::Failed(name, error),
    }
}

/// Why no value can be read from the file of a knob.
pub(crate) fn why_unreadable(path: &Path) -> Unreadable {
    let name = path.display().to_string();
    match std::fs::read(path) {
        Ok(_) => Unreadable::Failed(name, io::Error::other("it has no such value")),
        Err(error) => unreadable_file(name, error),
    }
}

/// The `disable` files of all idle states slower than `limit` microseconds.
fn idle_states_above(root: &Root, limit: u64) -> Result<Vec<PathBuf>, Unreadable> {
    let mut slower = Vec::new();
    for path in expand(root, "sys/devices/system/cpu/cpu*/cpuidle/state*/latency")? {
        let latency = match std::fs::read_to_string(&path) {
            // Its CPU has gone offline.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            text => text.and_then(|text| text.trim().parse::<u64>().map_err(io::Error::other)),
        };
        let latency = latency.map_err(|e| unreadable_file(path.display().to_string(), e))?;
        if latency > limit {
            slower.push(path.with_file_name("disable"));
        }
    }
    Ok(slower)
}

/// Whether a path matches a pattern. A `*` matches the number at the end of a folder's name.
fn matches(pattern: &str, path: &Path) -> bool {
    let mut names = path.iter();
    let all = pattern.split('/').all(|part| {
        let name = names.next().and_then(OsStr::to_str).unwrap_or_default();
        match part.strip_suffix('*') {
            None => name == part,
            Some(stem) => {
                name.strip_prefix(stem).is_some_and(|digits| digits.parse::<u32>().is_ok())
            }
        }
    });
    all && names.next().is_none()
}

/// The files that match a pattern and exist. A `*` matches the number at the end of a folder's
/// name. An error where a folder can't be listed: CPUs or states might be missing.
fn expand(root: &Root, pattern: &str) -> Result<Vec<PathBuf>, Unreadable> {
    let mut paths = vec![root.path("")];
    for part in pattern.split('/') {
        let Some(stem) = part.strip_suffix('*') else {
            for path in &mut paths {
                path.push(part);
            }
            continue;
        };
        let mut found = Vec::new();
        for folder in &paths {
            let all = numbered(folder, stem);
            found.extend(all.map_err(|e| unreadable_file(folder.display().to_string(), e))?);
        }
        paths = found;
    }
    // A path that can't be examined stays: the failure to read or write it gives the reason.
    paths.retain(|path| path.try_exists().unwrap_or(true));
    Ok(paths)
}

/// The files that match a pattern and are of a CPU that is online; all that exist where it is not known
/// which CPUs are.
fn of_online_cpus(root: &Root, pattern: &str) -> Result<Vec<PathBuf>, Unreadable> {
    let mut paths = expand(root, pattern)?;
    if let Some(online) = root.cpulist(ONLINE) {
        let of = |cpu: u32| root.path(pattern.replacen('*', &cpu.to_string(), 1));
        let files: Vec<PathBuf> = online.iter().map(of).collect();
        paths.retain(|path| files.contains(path));
    }
    Ok(paths)
}

/// The entries of a folder with this stem and a number; none where it does not exist.
fn numbered(folder: &Path, stem: &str) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let number = |name: &str| name.strip_prefix(stem)?.parse::<u32>().ok();
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        found.extend(
            entry.file_name().to_str().and_then(number).map(|number| (number, entry.path())),
        );
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// The value of the knob of this name at `path`.
pub(crate) fn read(name: &str, path: &Path) -> Option<String> {
    match Knob::any_named(name)?.place {
        KnobPlace::Console(part) => part.read(path),
        KnobPlace::Feature(feature) => listed(&std::fs::read_to_string(path).ok()?, feature),
        _ => text(path),
    }
}

/// Sets the knob of this name at `path`.
pub(crate) fn put(name: &str, path: &Path, value: &str) -> io::Result<()> {
    let place = Knob::any_named(name).map(|knob| knob.place);
    let word = match (place, value) {
        (Some(KnobPlace::Console(part)), _) => return part.put(path, value),
        (Some(KnobPlace::Feature(feature)), "1") => feature.to_owned(),
        (Some(KnobPlace::Feature(feature)), "0") => format!("NO_{feature}"),
        (Some(KnobPlace::Feature(_)), _) => {
            return Err(io::Error::other("the value must be 0 or 1"));
        }
        _ => value.to_owned(),
    };
    OpenOptions::new().write(true).truncate(true).open(path)?.write_all(word.as_bytes())
}

/// The state of a feature in a list of features: 1 or 0.
fn listed(text: &str, feature: &str) -> Option<String> {
    let value = text.split_whitespace().find_map(|word| match word.strip_prefix("NO_") {
        Some(off) if off == feature => Some("0"),
        None if word == feature => Some("1"),
        _ => None,
    });
    value.map(str::to_owned)
}

/// The text of a file, or the chosen word of it.
fn text(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| chosen(&text))
}

/// The word in brackets of a list as `always [madvise] never` or `none (full)`; else the text.
fn chosen(text: &str) -> String {
    text.split_whitespace().find_map(bracketed).unwrap_or(text.trim()).to_owned()
}

/// All words of a list in which one is in brackets; none of any other text.
fn choices(text: &str) -> Vec<String> {
    if !text.split_whitespace().any(|word| bracketed(word).is_some()) {
        return Vec::new();
    }
    text.split_whitespace().map(|word| bracketed(word).unwrap_or(word).to_owned()).collect()
}

fn bracketed(word: &str) -> Option<&str> {
    let inner = word.strip_prefix('[').and_then(|w| w.strip_suffix(']'));
    inner.or_else(|| word.strip_prefix('(').and_then(|w| w.strip_suffix(')')))
}

/// Asserts for a fuzz target what holds for the text of any knob's file.
pub(crate) fn check_text(text: &str) {
    let (value, possible) = (chosen(text), choices(text));
    assert!(possible.is_empty() || possible.contains(&value), "{value:?} of {possible:?}");
    assert!(listed(text, "PLACE_LAG").is_none_or(|state| state == "0" || state == "1"));
    let path = Path::new(text);
    for knob in KNOBS.iter().chain(LOAD_KNOBS) {
        let is_plain = || !path.iter().any(|name| name == "..");
        assert!(!knob.may_have(&Root::default(), path) || is_plain());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn knob_names_are_unique() {
        let names: BTreeSet<_> = KNOBS.iter().chain(LOAD_KNOBS).map(|knob| knob.name).collect();
        assert_eq!(names.len(), KNOBS.len() + LOAD_KNOBS.len());
    }

    #[test]
    fn knob_feature_is_off_with_the_prefix_no() {
        let text = "PLACE_LAG NO_WAKEUP_PREEMPTION NO_HRTICK WAKEUP\n";
        assert_eq!(listed(text, "WAKEUP_PREEMPTION").as_deref(), Some("0"));
        assert_eq!(listed(text, "PLACE_LAG").as_deref(), Some("1"));
        assert_eq!(listed(text, "NEXT_BUDDY"), None);
    }

    #[test]
    fn knob_has_its_own_files_only() {
        let root = Root::default();
        let has = |name: &str, path: &str| {
            Knob::any_named(name).unwrap().may_have(&root, Path::new(path))
        };
        let governor = "/sys/devices/system/cpu/cpu99/cpufreq/scaling_governor";
        assert!(has("governor", governor) && has("swappiness", "/proc/sys/vm/swappiness"));
        assert!(has("idle_latency", "/sys/devices/system/cpu/cpu3/cpuidle/state2/disable"));
        for path in [
            "/etc/shadow",
            "/sys/devices/system/cpu/cpu/cpufreq/scaling_governor",
            "/sys/devices/system/cpu/cpu99/cpufreq",
            "/sys/devices/system/cpu/cpu99/cpufreq/scaling_governor/x",
            "/sys/devices/system/cpu/cpu99/cpufreq/../cpufreq/scaling_governor",
        ] {
            assert!(!has("governor", path), "{path}");
        }
        assert!(has("fair_server", "/sys/kernel/debug/sched/fair_server/cpu12/runtime"));
        assert!(!has("fair_server", "/sys/kernel/debug/sched/fair_server/cpu12/period"));
        assert!(!has("swappiness", governor) && !has("cpu_dma_latency", "/dev/cpu_dma_latency"));
    }

    #[test]
    fn knob_list_has_a_choice_and_alternatives() {
        assert_eq!(chosen("none voluntary (full) lazy\n"), "full");
        assert_eq!(choices("none (full) lazy\n"), ["none", "full", "lazy"]);
        assert!(choices("60\n").is_empty());
    }

    #[test]
    fn knob_that_is_missing_says_what_would_help() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let error = |name| state(&root, name).unwrap_err().to_string();
        std::fs::create_dir_all(root.path("sys/kernel/debug/sched")).unwrap();
        assert_eq!(error("preempt"), "this kernel has no /sys/kernel/debug/sched/preempt");
        std::fs::File::create(root.path(FEATURES)).unwrap().write_all(b"PLACE_LAG").unwrap();
        assert!(error("wakeup_preemption").contains("does not know WAKEUP_PREEMPTION"));
        std::fs::remove_dir_all(root.path("sys/kernel/debug/sched")).unwrap();
        assert!(error("preempt").starts_with("debugfs is not mounted"));
    }
}
