//! `latlab list`: what there is to run, and what each part can be told.

pub(super) mod reference;

use crate::call::CALLS;
use crate::cause::CAUSES;
use crate::failure::{Failure, Result};
use crate::format;
use crate::load::LOADS;
use crate::mechanism::MECHANISMS;
use crate::probe::PROBES;
use crate::profile::{self, Profile};
use crate::registry::{About, Entry};
use crate::study;
use crate::target::TARGETS;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use latlab_core::study::Study;
use latlab_core::suggest;
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
                None => explain(what)?,
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

/// The long text of the parts of this name, and their keys: a load may be called as a call is.
fn explain(name: &str) -> Result<String> {
    let parts = [
        explain_part("probe", PROBES, name),
        explain_part("call", CALLS, name),
        explain_part("load", LOADS, name),
        explain_cause(name),
        explain_mechanism(name),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if !parts.is_empty() {
        return Ok(parts.join("\n"));
    }
    let profiles = profile::shipped();
    if let Some(profile) = profiles.iter().find(|profile| profile.name == name) {
        return Ok(explain_profile(profile));
    }
    let studies = study::shipped();
    if let Some((name, study)) = studies.iter().find(|(study, _)| *study == name) {
        return Ok(explain_study(name, study));
    }
    let rooms = ROOMS.iter().map(|(name, _)| *name);
    let parts = parts_of_all_tables().map(|part| part.name);
    let profiles = profiles.iter().map(|profile| profile.name.as_str());
    let studies = studies.iter().map(|(name, _)| *name);
    let names: Vec<&str> = rooms.chain(parts).chain(profiles).chain(studies).collect();
    let hint = suggest::hint(name, &names);
    Err(Failure::Failed(format!("there is nothing called '{name}' to list: {hint}")))
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

fn explain_profile(profile: &Profile) -> String {
    let mut text = format!("{}: {}\n\n", profile.name, profile.summary);
    let mut row = |name: &str, what: &str| {
        if !what.is_empty() {
            let _ = writeln!(text, "  {name:<14}{what}");
        }
    };
    row("stands for", &profile.paper);
    row("kernel", &profile.kernel.in_profile());
    row("command line", &profile.cmdline);
    for (file, value) in &profile.files {
        row("setting", &format!("{value} in {file}"));
    }
    row("modules", &profile.modules.join(" "));
    row("memory", &profile.memory.to_string());
    row("CPUs", &profile.cpus.to_string());
    let name = &profile.name;
    let _ = write!(text, "\nRun there with --on lab:{name} (instruction time) or ");
    text + &format!("--on vm:{name} (wall time).\n")
}

fn explain_study(name: &str, study: &Study) -> String {
    let mut text = format!("{name} (study): {}\n\n", study.title);
    let _ = writeln!(text, "  {:<14}{}", "paper", study.paper);
    let _ = writeln!(text, "  {:<14}{}", "redoes", study.redoes);
    let _ = writeln!(text, "  {:<14}{} over {}", "cells", study.cells.len(), study.axes.join(", "));
    for claim in &study.claims {
        let _ = writeln!(text, "  {:<14}{}", "claim", claim.says);
    }
    let about = &study.about;
    let _ = write!(text, "\n{about}\n\nRun it with: latlab study {name} --out DIR\n");
    text
}

fn explain_part<T: ?Sized>(kind: &str, table: &'static [Entry<T>], name: &str) -> Option<String> {
    let entry = table.iter().find(|entry| entry.about.name == name)?;
    let command = (entry.keys)();
    let keys = keys(&command);
    let keys = if keys.is_empty() { "  (it has no keys)\n".to_owned() } else { keys };
    Some(format!("{name} ({kind}): {}\n\n{keys}", about(&command)))
}

/// A cause can't be told anything.
fn explain_cause(name: &str) -> Option<String> {
    let cause = CAUSES.iter().find(|cause| cause.about.name == name)?;
    Some(format!("{name} (cause): {}\n", about(&(cause.keys)())))
}

/// Nor can a mechanism.
fn explain_mechanism(name: &str) -> Option<String> {
    let mechanism = MECHANISMS.iter().find(|mechanism| mechanism.about.name == name)?;
    Some(format!("{name} (mechanism): {}\n", about(&(mechanism.keys)())))
}

/// What the doc comment of a part says.
fn about(command: &Command) -> String {
    let about = command.get_long_about().or(command.get_about());
    about.map(|text| text.to_string().trim_end().to_owned()).unwrap_or_default()
}

/// `key=default`, with what it means.
fn keys(command: &Command) -> String {
    command.get_arguments().fold(String::new(), |mut text, key| {
        let values: Vec<String> =
            key.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        let values =
            if values.is_empty() { String::new() } else { format!(": {}", values.join(", ")) };
        let help = key.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(text, "  {:<21} {help}{values}", with_default(key));
        text
    })
}

fn with_default(key: &Arg) -> String {
    let name = key.get_long().unwrap_or_default();
    let default = key.get_default_values().first().map(|value| value.to_string_lossy());
    format!("{name}={}", default.unwrap_or_else(|| "…".into()))
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

/// Prints the help for who has typed nothing yet.
pub(super) fn print_help(command: &mut Command) -> Result<()> {
    format::put(&command.render_help().to_string())
}

/// Help and version are results; anything else clap says is a failure, in one sentence.
pub(super) fn print_clap(error: &clap::Error) -> Result<()> {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return format::put(&error.render().to_string());
    }
    let rendered = error.render().to_string();
    let sentence = rendered.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let sentence = match (error.kind(), words(error, ContextKind::InvalidArg)) {
        // clap has them on lines of their own.
        (ErrorKind::MissingRequiredArgument, Some(missing)) => format!("{sentence} {missing}"),
        _ => sentence.to_owned(),
    };
    let near = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
        ContextKind::ValidValue,
    ];
    let near = near.into_iter().find_map(|kind| words(error, kind));
    let hint =
        near.map_or_else(|| "see latlab --help".to_owned(), |near| format!("did you mean {near}?"));
    Err(Failure::Failed(format!("{sentence}: {hint}")))
}

/// What clap knows beside its sentence; none where it knows nothing of this kind.
fn words(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(one) => Some(one.clone()),
        ContextValue::Strings(several) if !several.is_empty() => Some(several.join(" or ")),
        _ => None,
    }
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
