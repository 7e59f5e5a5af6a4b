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
            Place::Files(_) | Place::Console(_) => {
                self.paths(root).into_iter().map(|path| (path, value.to_owned())).collect()
            }
            Place::IdleStates => idle_states_above(root, value.parse()?),
        })
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
    match console_part(name) {
        Some(part) => part.read(path),
        None => text(path),
    }
}

/// Has the knob of this name have that at `path`.
pub(crate) fn put(name: &str, path: &Path, value: &str) -> io::Result<()> {
    match console_part(name) {
        Some(part) => part.put(path, value),
        None => {
            OpenOptions::new().write(true).truncate(true).open(path)?.write_all(value.as_bytes())
        }
    }
}

fn console_part(name: &str) -> Option<console::Part> {
    match Knob::kept(name)?.place {
        Place::Console(part) => Some(part),
        _ => None,
    }
}

/// What a file says, with the choice taken out of `always [madvise] never` and `none (full)`.
fn text(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let chosen = text.split_whitespace().find_map(|word| {
        let inner = word.strip_prefix('[').and_then(|w| w.strip_suffix(']'));
        inner.or_else(|| word.strip_prefix('(').and_then(|w| w.strip_suffix(')')))
    });
    Some(chosen.unwrap_or(text.trim()).to_owned())
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
}
