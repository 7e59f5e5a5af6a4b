//! `latlab list`: what there is to run, and what each part can be told.

mod one;
pub(super) mod reference;

use crate::call::CALLS;
use crate::cause::CAUSES;
use crate::failure::Result;
use crate::format;
use crate::load::LOADS;
use crate::mechanism::MECHANISMS;
use crate::probe::PROBES;
use crate::profile;
use crate::registry::About;
use crate::study;
use crate::target::TARGETS;
use latlab_sys::knob::KNOBS;
use std::fmt::Write as _;

/// List probes, calls, loads, causes, mechanisms, targets, profiles, studies and knobs, or explain one
#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// probes, calls, loads, causes, mechanisms, targets, profiles, studies, knobs, or the name of one of them [default: everything]
    what: Option<String>,
}

impl List {
    pub(super) fn run(&self) -> Result<()> {
        let text = match self.what.as_deref() {
            None => ROOMS.iter().map(|(name, room)| format!("{name}:\n{}\n", room())).collect(),
            Some(what) => match ROOMS.iter().find(|(name, _)| *name == what) {
                Some((_, room)) => room(),
                None => one::explain(what)?,
            },
        };
        format::put(&text)
    }
}

type Room = (&'static str, fn() -> String);

static ROOMS: &[Room] = &[
    ("probes", || table(PROBES.iter().map(|entry| entry.about))),
    ("calls", || table(CALLS.iter().map(|entry| entry.about))),
    ("loads", || table(LOADS.iter().map(|entry| entry.about))),
    ("causes", || table(CAUSES.iter().map(|cause| cause.about))),
    ("mechanisms", || table(MECHANISMS.iter().map(|mechanism| mechanism.about))),
    ("targets", || table(TARGETS.iter().map(|(about, _)| *about))),
    ("profiles", profiles),
    ("studies", studies),
    ("knobs", || table(KNOBS.iter().map(|knob| About { name: knob.name, summary: knob.summary }))),
];

fn profiles() -> String {
    profile::shipped().iter().fold(String::new(), |mut text, profile| {
        let _ = writeln!(text, "  {:<24}{}", profile.name, profile.summary);
        text
    })
}

fn studies() -> String {
    study::shipped().iter().fold(String::new(), |mut text, (name, study)| {
        let _ = writeln!(text, "  {name:<28}{}", study.title);
        text
    })
}

fn table(parts: impl Iterator<Item = About>) -> String {
    parts.fold(String::new(), |mut text, part| {
        let _ = writeln!(text, "  {:<24}{}", part.name, part.summary);
        text
    })
}

/// What the probes, calls, loads, causes and mechanisms say of themselves.
fn parts_of_all_tables() -> impl Iterator<Item = About> {
    let probes = PROBES.iter().map(|entry| entry.about);
    let calls = CALLS.iter().map(|entry| entry.about);
    let loads = LOADS.iter().map(|entry| entry.about);
    let causes = CAUSES.iter().map(|cause| cause.about);
    let mechanisms = MECHANISMS.iter().map(|mechanism| mechanism.about);
    probes.chain(calls).chain(loads).chain(causes).chain(mechanisms)
}

/// The probes and loads, for the help of `latlab run`.
pub(super) fn parts_help() -> String {
    let mut text = String::new();
    for (title, names) in [("Probes", room("probes")), ("Loads", room("loads"))] {
        let _ = write!(text, "{title} (latlab list NAME explains one and its keys):\n{names}\n");
    }
    text + "Examples:\n  \
        latlab run cyclic:interval=200us,priority=80 --cpus 0 --for 60s --out idle.json\n  \
        latlab run --load hackbench:groups=4 --load disk:dir=/tmp --stop-above 500us\n  \
        latlab run nanosleep:interval=3.25ms --count 1000 --policy other\n  \
        latlab run --on lab:standard --on lab:rt --load fork --count 1000 --out kernels/"
}

/// The calls, for the help of `latlab scan`.
pub(super) fn calls_help() -> String {
    let names = room("calls");
    format!("Calls (latlab list NAME explains one and its keys):\n{names}\n")
        + "Examples:\n  \
        latlab scan populate:4MiB --on lab:utime --on lab:preemptible-hr --out kernels/\n  \
        latlab scan fork munmap:4MiB,huge=never --cpu 1 --out calls.json\n  \
        latlab scan read:disk,64KiB,dir=/tmp --resolution 500ns --for 10s\n  \
        latlab scan -- ./window            a program between its own two marks"
}

/// What a room has to show.
fn room(name: &str) -> String {
    ROOMS.iter().find(|(room, _)| *room == name).map(|(_, list)| list()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_words_and_summaries_short() {
        for (_, room) in ROOMS {
            assert!(!room().is_empty());
        }
        for room in ["probes", "calls", "loads", "causes", "mechanisms"] {
            let names: Vec<String> = room_names(room);
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{room}");
        }
        for part in parts_of_all_tables() {
            assert!(part.name.bytes().all(|b| b.is_ascii_lowercase() || b"-._".contains(&b)));
            assert!(part.summary.len() <= 72, "{}", part.name);
        }
    }

    fn room_names(name: &str) -> Vec<String> {
        room(name)
            .lines()
            .filter_map(|line| Some(line.split_whitespace().next()?.to_owned()))
            .collect()
    }

    #[test]
    fn every_key_of_every_part_is_explained() {
        let commands = PROBES.iter().map(|p| (p.keys)()).chain(LOADS.iter().map(|l| (l.keys)()));
        let commands = commands.chain(CALLS.iter().map(|call| (call.keys)()));
        let commands = commands.chain(CAUSES.iter().map(|cause| (cause.keys)()));
        let commands = commands.chain(MECHANISMS.iter().map(|mechanism| (mechanism.keys)()));
        for command in commands {
            assert!(command.get_about().is_some());
            for key in command.get_arguments() {
                assert!(key.get_help().is_some(), "{key}");
            }
        }
    }
}
