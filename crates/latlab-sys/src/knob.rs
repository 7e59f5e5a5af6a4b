//! The knobs of a machine that a run may turn, each with the files behind it.

use crate::console;
use crate::root::Root;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::num::ParseIntError;
use std::path::{Path, PathBuf};

/// One setting of the machine that decides about latency.
#[derive(Clone, Copy, Debug)]
pub struct Knob {
    /// What the user types.
    pub name: &'static str,
    /// One line on what it does and which values it takes.
    pub summary: &'static str,
    /// Where it is.
    pub(crate) place: Place,
}

/// How a knob is turned.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// Files below the root; a `*` stands for each CPU or state.
    Files(&'static str),
    /// `/dev/cpu_dma_latency`: in force while it is held open.
    Held,
    /// Idle states whose exit takes longer than the value, in microseconds, are disabled.
    IdleStates,
    /// A part of the console.
    Console(console::Part),
    /// A feature of the scheduler, by its name in [`FEATURES`]: 1 where that is listed, 0 where it
    /// is with `NO_` before it.
    Feature(&'static str),
}

/// What the scheduler does, as words; writing one of them has it so.
const FEATURES: &str = "sys/kernel/debug/sched/features";

/// A knob's file and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The file, below the root.
    pub path: PathBuf,
    /// The value it has.
    pub value: String,
    /// All values it can have; empty where the file does not say.
    pub possible: Vec<String>,
}

/// Why a knob can't be read, and what would help.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// What it lies in is not there.
    #[error("debugfs is not mounted: do `mount -t debugfs debugfs /sys/kernel/debug` first")]
    NotMounted,
    /// There is no such file.
    #[error("this kernel has no {0}")]
    Missing(String),
    /// The caller may not read it.
    #[error("{0} can be read by root alone: run latlab as root")]
    NotRoot(String),
    /// Nobody may.
    #[error(
        "this kernel lets nobody read {0}: it is locked down (kernel_lockdown(7)) or keeps debugfs \
         to itself (debugfs=); boot it without"
    )]
    LockedDown(String),
    /// It says nothing of what was looked for.
    #[error("{0} does not know {1}")]
    Unknown(String, &'static str),
    /// Something else.
    #[error("{0} can't be read: {1}")]
    Failed(String, io::Error),
}

/// Every knob, in the order `latlab list knobs` shows them.
pub static KNOBS: &[Knob] = &[
    Knob {
        name: "rt_runtime_us",
        summary: "µs of each second real-time tasks may run; -1: no limit (a spinning task hangs the CPU)",
        place: Place::Files("proc/sys/kernel/sched_rt_runtime_us"),
    },
    Knob {
        name: "cpu_dma_latency",
        summary: "longest wake-up from idle allowed, in µs, held while latlab runs; 0 costs power",
        place: Place::Held,
    },
    Knob {
        name: "idle_latency",
        summary: "idle states that take longer than this many µs to leave are disabled",
        place: Place::IdleStates,
    },
    Knob {
        name: "governor",
        summary: "frequency governor of all CPUs: performance, powersave, schedutil",
        place: Place::Files("sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"),
    },
    Knob {
        name: "boost",
        summary: "turbo frequencies: 0 or 1",
        place: Place::Files("sys/devices/system/cpu/cpufreq/boost"),
    },
    Knob {
        name: "preempt",
        summary: "preemption model, where debugfs lets it change: none, voluntary, full, lazy",
        place: Place::Files("sys/kernel/debug/sched/preempt"),
    },
    Knob {
        name: "wakeup_preemption",
        summary: "whether an ordinary task that wakes may preempt another: 0 or 1, in debugfs",
        place: Place::Feature("WAKEUP_PREEMPTION"),
    },
    Knob {
        name: "place_lag",
        summary: "whether an ordinary task that wakes has the lag it slept with: 0 or 1, in debugfs",
        place: Place::Feature("PLACE_LAG"),
    },
    Knob {
        name: "base_slice",
        summary: "ns an ordinary task runs before another has its turn at the tick, in debugfs",
        place: Place::Files("sys/kernel/debug/sched/base_slice_ns"),
    },
    Knob {
        name: "timer_migration",
        summary: "whether timers move to busy CPUs: 0 or 1",
        place: Place::Files("proc/sys/kernel/timer_migration"),
    },
    Knob {
        name: "nmi_watchdog",
        summary: "the hard-lockup detector's interrupts: 0 or 1",
        place: Place::Files("proc/sys/kernel/nmi_watchdog"),
    },
    Knob {
        name: "numa_balancing",
        summary: "page faults made on purpose to find the best node: 0 or 1",
        place: Place::Files("proc/sys/kernel/numa_balancing"),
    },
    Knob {
        name: "transparent_hugepage",
        summary: "huge pages without asking: always, madvise, never",
        place: Place::Files("sys/kernel/mm/transparent_hugepage/enabled"),
    },
    Knob {
        name: "ksm",
        summary: "merging of equal pages: 0, 1, 2",
        place: Place::Files("sys/kernel/mm/ksm/run"),
    },
    Knob {
        name: "swappiness",
        summary: "how readily memory is swapped out: 0 to 200",
        place: Place::Files("proc/sys/vm/swappiness"),
    },
    Knob {
        name: "pagelist_high_fraction",
        summary: "a CPU keeps 1/N of memory as free pages; a high N: fewer freed under one lock; 0: default",
        place: Place::Files("proc/sys/vm/percpu_pagelist_high_fraction"),
    },
    Knob {
        name: "stat_interval",
        summary: "seconds between updates of the memory statistics on each CPU",
        place: Place::Files("proc/sys/vm/stat_interval"),
    },
];

/// What users don't set, but loads change while they work.
static KEPT: &[Knob] = &[
    Knob {
        name: "console_leds",
        summary: "the LEDs of the keyboard",
        place: Place::Console(console::Part::Leds),
    },
    Knob {
        name: "active_console",
        summary: "the virtual terminal that is to be seen",
        place: Place::Console(console::Part::Active),
    },
];

impl Knob {
    /// The knob of this name.
    pub fn named(name: &str) -> Option<&'static Knob> {
        KNOBS.iter().find(|knob| knob.name == name)
    }

    /// The one of this name among all that runs change.
    pub(crate) fn kept(name: &str) -> Option<&'static Knob> {
        Knob::named(name).or_else(|| KEPT.iter().find(|knob| knob.name == name))
    }

    /// Where it is, as files that are read and written.
    pub(crate) fn paths(&self, root: &Root) -> Vec<PathBuf> {
        match self.place {
            Place::Files(pattern) => expand(root, pattern),
            Place::Console(_) => expand(root, console::PATH.trim_start_matches('/')),
            Place::Feature(_) => expand(root, FEATURES),
            Place::Held | Place::IdleStates => Vec::new(),
        }
    }

    /// The files that turning it writes, and what goes into each.
    pub(crate) fn writes(
        &self,
        root: &Root,
        value: &str,
    ) -> Result<Vec<(PathBuf, String)>, ParseIntError> {
        Ok(match self.place {
            Place::Held => Vec::new(),
            Place::Files(_) | Place::Console(_) | Place::Feature(_) => {
                self.paths(root).into_iter().map(|path| (path, value.to_owned())).collect()
            }
            Place::IdleStates => idle_states_above(root, value.parse()?),
        })
    }
}

/// How the knob of this name stands, which is one file.
pub fn standing(root: &Root, name: &str) -> Result<Standing, Unreadable> {
    let knob = Knob::named(name).ok_or_else(|| Unreadable::Missing(name.to_owned()))?;
    let (pattern, feature) = match knob.place {
        Place::Files(pattern) => (pattern, None),
        Place::Feature(feature) => (FEATURES, Some(feature)),
        _ => return Err(Unreadable::Missing(name.to_owned())),
    };
    let path = root.path(pattern);
    let text = std::fs::read_to_string(&path).map_err(|e| unreadable(root, pattern, e))?;
    match feature {
        None => Ok(Standing { path, value: chosen(&text), possible: choices(&text) }),
        Some(feature) => {
            let value = listed(&text, feature)
                .ok_or_else(|| Unreadable::Unknown(format!("/{pattern}"), feature))?;
            let possible = ["0", "1"].map(str::to_owned).to_vec();
            Ok(Standing { path, value, possible })
        }
    }
}

fn unreadable(root: &Root, pattern: &str, error: io::Error) -> Unreadable {
    let name = format!("/{pattern}");
    let debugfs = root.path("sys/kernel/debug");
    let is_empty = || std::fs::read_dir(&debugfs).is_ok_and(|mut all| all.next().is_none());
    match (error.kind(), error.raw_os_error()) {
        (_, Some(libc::EPERM)) => Unreadable::LockedDown(name),
        (io::ErrorKind::PermissionDenied, _) => Unreadable::NotRoot(name),
        (io::ErrorKind::NotFound, _) if pattern.starts_with("sys/kernel/debug/") && is_empty() => {
            Unreadable::NotMounted
        }
        (io::ErrorKind::NotFound, _) => Unreadable::Missing(name),
        _ => Unreadable::Failed(name, error),
    }
}

/// The `disable` files of all idle states slower than `limit` microseconds.
fn idle_states_above(root: &Root, limit: u64) -> Vec<(PathBuf, String)> {
    expand(root, "sys/devices/system/cpu/cpu*/cpuidle/state*/latency")
        .into_iter()
        .filter(|path| {
            text(path).and_then(|text| text.parse::<u64>().ok()).is_some_and(|us| us > limit)
        })
        .map(|path| (path.with_file_name("disable"), "1".to_owned()))
        .collect()
}

/// The files that exist for a pattern: a `*` matches the rest of one folder's name, a number.
fn expand(root: &Root, pattern: &str) -> Vec<PathBuf> {
    let mut paths = vec![root.path("")];
    for part in pattern.split('/') {
        paths = match part.strip_suffix('*') {
            None => paths.into_iter().map(|path| path.join(part)).collect(),
            Some(stem) => paths.iter().flat_map(|path| numbered(path, stem)).collect(),
        };
    }
    paths.retain(|path| path.exists());
    paths
}

fn numbered(folder: &Path, stem: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |name: &str| name.strip_prefix(stem)?.parse::<u32>().ok();
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| Some((number(entry.file_name().to_str()?)?, entry.path())))
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// What the knob of this name has at `path`.
pub(crate) fn read(name: &str, path: &Path) -> Option<String> {
    match Knob::kept(name)?.place {
        Place::Console(part) => part.read(path),
        Place::Feature(feature) => listed(&std::fs::read_to_string(path).ok()?, feature),
        _ => text(path),
    }
}

/// Has the knob of this name have that at `path`.
pub(crate) fn put(name: &str, path: &Path, value: &str) -> io::Result<()> {
    let place = Knob::kept(name).map(|knob| knob.place);
    let word = match (place, value) {
        (Some(Place::Console(part)), _) => return part.put(path, value),
        (Some(Place::Feature(feature)), "1") => feature.to_owned(),
        (Some(Place::Feature(feature)), "0") => format!("NO_{feature}"),
        (Some(Place::Feature(_)), _) => return Err(io::Error::other("it is 0 or 1")),
        _ => value.to_owned(),
    };
    OpenOptions::new().write(true).truncate(true).open(path)?.write_all(word.as_bytes())
}

/// Whether a list of features has this one, as 1 or 0.
fn listed(text: &str, feature: &str) -> Option<String> {
    let value = text.split_whitespace().find_map(|word| match word.strip_prefix("NO_") {
        Some(off) if off == feature => Some("0"),
        None if word == feature => Some("1"),
        _ => None,
    });
    value.map(str::to_owned)
}

/// What a file says, with the choice taken out of `always [madvise] never` and `none (full)`.
fn text(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| chosen(&text))
}

fn chosen(text: &str) -> String {
    text.split_whitespace().find_map(bracketed).unwrap_or(text.trim()).to_owned()
}

/// All words of a list in which one is the choice.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique() {
        let names: BTreeSet<_> = KNOBS.iter().chain(KEPT).map(|knob| knob.name).collect();
        assert_eq!(names.len(), KNOBS.len() + KEPT.len());
    }

    #[test]
    fn a_feature_is_listed_with_or_without_a_no() {
        let text = "PLACE_LAG NO_WAKEUP_PREEMPTION NO_HRTICK WAKEUP\n";
        assert_eq!(listed(text, "WAKEUP_PREEMPTION").as_deref(), Some("0"));
        assert_eq!(listed(text, "PLACE_LAG").as_deref(), Some("1"));
        assert_eq!(listed(text, "NEXT_BUDDY"), None);
    }

    #[test]
    fn a_list_says_its_choice_and_what_else_there_is() {
        assert_eq!(chosen("none voluntary (full) lazy\n"), "full");
        assert_eq!(choices("none (full) lazy\n"), ["none", "full", "lazy"]);
        assert!(choices("60\n").is_empty());
    }

    #[test]
    fn who_asks_for_what_is_not_there_hears_what_would_help() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let said = |name| standing(&root, name).unwrap_err().to_string();
        std::fs::create_dir_all(root.path("sys/kernel/debug/sched")).unwrap();
        assert_eq!(said("preempt"), "this kernel has no /sys/kernel/debug/sched/preempt");
        std::fs::File::create(root.path(FEATURES)).unwrap().write_all(b"PLACE_LAG").unwrap();
        assert!(said("wakeup_preemption").contains("does not know WAKEUP_PREEMPTION"));
        std::fs::remove_dir_all(root.path("sys/kernel/debug/sched")).unwrap();
        assert!(said("preempt").starts_with("debugfs is not mounted"));
    }
}
