//! `latlab list`: lists probes, loads and all other parts, and describes each.

mod details;
pub(super) mod reference;

use super::complete;
use super::run::preset::PRESETS;
use crate::study;
use crate::target::TARGETS;
use latlab_adapt::mechanism::MECHANISMS;
use latlab_format as format;
use latlab_lab::profile;
use latlab_measure::call::CALLS;
use latlab_measure::cause::CAUSES;
use latlab_measure::load::LOADS;
use latlab_measure::probe::PROBES;
use latlab_part::failure::Result;
use latlab_part::part::About;
use latlab_sys::knob::KNOBS;
use std::collections::BTreeSet;
use std::fmt::Write as _;

const EXAMPLES: &str = "\
Examples:
  latlab list                                  list all parts
  latlab list loads                            list the loads
  latlab list cyclic                           describe the probe cyclic and its parameters
  latlab list governor                         describe the knob governor";

/// List probes, loads and other parts, or describe one with its parameters
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct List {
    /// probes, calls, loads, causes, mechanisms, targets, profiles, studies, knobs, presets, or the
    /// name of one of them [default: everything]
    #[arg(add = complete::listed())]
    name: Option<String>,
}

impl List {
    pub(super) fn run(&self) -> Result<()> {
        let text = match self.name.as_deref() {
            None => KINDS.iter().map(|(kind, list)| format!("{kind}:\n{}\n", list())).collect(),
            Some(name) => match KINDS.iter().find(|(kind, _)| *kind == name) {
                Some((_, list)) => list(),
                None => details::describe(name)?,
            },
        };
        format::show(&text)
    }
}

/// A kind of parts: its name in the plural, and the list of the parts with their summaries.
type Listing = (&'static str, fn() -> String);

static KINDS: &[Listing] = &[
    ("probes", || table(PROBES.iter().map(|entry| entry.about))),
    ("calls", || table(CALLS.iter().map(|entry| entry.about))),
    ("loads", || table(LOADS.iter().map(|entry| entry.about))),
    ("causes", || table(CAUSES.iter().map(|cause| cause.about))),
    ("mechanisms", || table(MECHANISMS.iter().map(|mechanism| mechanism.about))),
    ("targets", || table(TARGETS.iter().map(|entry| entry.about))),
    ("profiles", profiles),
    ("studies", studies),
    ("presets", || table(PRESETS.iter().map(|preset| preset.about))),
    ("knobs", || table(KNOBS.iter().map(|knob| About { name: knob.name, summary: knob.summary }))),
];

fn profiles() -> String {
    let profiles = profile::shipped();
    rows(profiles.iter().map(|profile| (profile.name.as_str(), profile.summary.as_str())))
}

fn studies() -> String {
    let studies = study::shipped();
    rows(studies.iter().map(|(name, study)| (*name, study.title.as_str())))
}

fn table(parts: impl Iterator<Item = About>) -> String {
    rows(parts.map(|part| (part.name, part.summary)))
}

/// A line for each name and its summary, which begin below each other.
fn rows<'a>(named: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    const NARROWEST: usize = 24;
    let named: Vec<(&str, &str)> = named.collect();
    let longest = named.iter().map(|(name, _)| name.len() + 2).max().unwrap_or_default();
    let width = longest.max(NARROWEST);
    named.iter().fold(String::new(), |mut text, (name, summary)| {
        let _ = writeln!(text, "  {name:<width$}{summary}");
        text
    })
}

/// The names and summaries of all probes, calls, loads, causes and mechanisms.
fn all_parts() -> impl Iterator<Item = About> {
    let probes = PROBES.iter().map(|entry| entry.about);
    let calls = CALLS.iter().map(|entry| entry.about);
    let loads = LOADS.iter().map(|entry| entry.about);
    let causes = CAUSES.iter().map(|cause| cause.about);
    let mechanisms = MECHANISMS.iter().map(|mechanism| mechanism.about);
    probes.chain(calls).chain(loads).chain(causes).chain(mechanisms)
}

/// Whatever `latlab list` describes.
pub(super) fn names() -> Vec<String> {
    let kinds = KINDS.iter().map(|(kind, _)| *kind);
    let parts = all_parts().map(|part| part.name);
    let targets = TARGETS.iter().map(|entry| entry.about.name);
    let profiles = profile::names().chain(study::names());
    let presets = PRESETS.iter().map(|preset| preset.about.name);
    let knobs = KNOBS.iter().map(|knob| knob.name);
    let names = kinds.chain(parts).chain(targets).chain(profiles).chain(presets).chain(knobs);
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    // A load and a call may share a name.
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// The probes and loads, for the help of `latlab run` and `latlab explain`.
pub(super) fn probes_and_loads() -> String {
    help_section("Probes", "probes") + &help_section("Loads", "loads")
}

/// The calls, for the help of `latlab scan`.
pub(super) fn calls() -> String {
    help_section("Calls", "calls")
}

fn help_section(title: &str, kind: &str) -> String {
    format!("{title} (latlab list NAME describes one and its parameters):\n{}\n", list(kind))
}

/// The list of the parts of a kind.
fn list(kind: &str) -> String {
    KINDS.iter().find(|(name, _)| *name == kind).map(|(_, list)| list()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_names_are_unique_words_and_summaries_short() {
        for (_, list) in KINDS {
            assert!(!list().is_empty());
        }
        for kind in ["probes", "calls", "loads", "causes", "mechanisms"] {
            let names: Vec<String> = listed_names(kind);
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{kind}");
        }
        for part in all_parts() {
            assert!(part.name.bytes().all(|b| b.is_ascii_lowercase() || b"-._".contains(&b)));
            assert!(part.summary.len() <= 72, "{}", part.name);
        }
    }

    fn listed_names(kind: &str) -> Vec<String> {
        list(kind)
            .lines()
            .filter_map(|line| Some(line.split_whitespace().next()?.to_owned()))
            .collect()
    }

    #[test]
    fn keys_of_all_parts_have_help() {
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
