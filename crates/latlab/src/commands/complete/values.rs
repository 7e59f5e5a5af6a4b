//! Words that complete the values of options and arguments. Nothing of the machine is read except
//! file names and the names in latlab's cache.

use crate::commands::list;
use crate::study;
use clap::ValueHint;
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use latlab_adapt::mechanism::MECHANISMS;
use latlab_lab::kernel::build::BUILDS;
use latlab_lab::{kernel, profile};
use latlab_measure::call::CALLS;
use latlab_measure::load::LOADS;
use latlab_measure::probe::PROBES;
use latlab_part::part::{About, Entry};
use latlab_sys::knob::KNOBS;
use std::ffi::{OsStr, OsString};

/// A program with its arguments: clap completes paths only.
pub(in crate::commands) const COMMAND: ValueHint = ValueHint::AnyPath;

/// Probes with their keys.
pub(in crate::commands) fn probes() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| part(PROBES, current))
}

/// Loads with their keys.
pub(in crate::commands) fn loads() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| part(LOADS, current))
}

/// Calls of scans with their keys.
pub(in crate::commands) fn calls() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| part(CALLS, current))
}

/// Targets, with the profiles and added kernels of guests.
pub(in crate::commands) fn targets() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        match current.to_str().and_then(|it| it.split_once(':')) {
            Some((kind @ ("lab" | "vm"), _)) => guests(kind, current),
            _ => beginning_with(
                current,
                [
                    described("native", "this machine"),
                    described("lab:", "a kernel in QEMU, in instruction time"),
                    described("vm:", "a kernel in QEMU, in wall-clock time"),
                    described("ssh:", "another machine"),
                ],
            ),
        }
    })
}

/// Scheduling policies.
pub(in crate::commands) fn policies() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        Vec::from(["fifo", "rr", "deadline", "other"].map(|policy| described(policy, "")))
    })
}

/// Knobs, each with an equals sign.
pub(in crate::commands) fn settings() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        KNOBS.iter().map(|knob| described(format!("{}=", knob.name), knob.summary)).collect()
    })
}

/// Mechanisms, separated by commas.
pub(in crate::commands) fn mechanisms() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let given = current.to_str().and_then(|text| text.rsplit_once(','));
        let before = given.map(|(before, _)| format!("{before},")).unwrap_or_default();
        let name = |about: About| described(format!("{before}{}", about.name), about.summary);
        beginning_with(current, MECHANISMS.iter().map(|entry| name(entry.about)))
    })
}

/// Studies that come with latlab, and TOML files.
pub(in crate::commands) fn studies() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let shipped = study::shipped().into_iter();
        let shipped = shipped.map(|(name, study)| described(name, &study.title));
        let is_toml = |path: &std::path::Path| path.extension().is_some_and(|end| end == "toml");
        let files = PathCompleter::any().filter(is_toml).complete(current);
        beginning_with(current, shipped).into_iter().chain(files).collect()
    })
}

/// Whatever `latlab list` describes.
pub(in crate::commands) fn listed() -> ArgValueCandidates {
    ArgValueCandidates::new(|| list::names().iter().map(|name| described(name, "")).collect())
}

/// Kernels that latlab builds.
pub(in crate::commands) fn builds() -> ArgValueCandidates {
    ArgValueCandidates::new(|| BUILDS.iter().map(|build| about(build.about)).collect())
}

/// Packages with kernels.
pub(in crate::commands) fn packages() -> ArgValueCandidates {
    ArgValueCandidates::new(|| kernel::packages().iter().map(|one| about(*one)).collect())
}

/// Kernels in the cache.
pub(in crate::commands) fn cached() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let names = kernel::names().unwrap_or_default();
        names.iter().map(|name| described(name, "")).collect()
    })
}

/// The names of parts or, after the colon, the part's keys that are not given yet.
fn part<T: ?Sized>(table: &'static [Entry<T>], current: &OsStr) -> Vec<CompletionCandidate> {
    let Some((name, given)) = current.to_str().and_then(|text| text.split_once(':')) else {
        return beginning_with(current, table.iter().map(|entry| about(entry.about)));
    };
    let Some(entry) = table.iter().find(|entry| entry.about.name == name) else {
        return Vec::new();
    };
    let command = (entry.keys)();
    let (before, last) = given.rsplit_once(',').unwrap_or(("", given));
    let prefix = current.len() - last.len();
    let prefix = &current.to_string_lossy()[..prefix];
    if let Some((key, value)) = last.split_once('=') {
        let Some(argument) = command.get_arguments().find(|one| one.get_long() == Some(key)) else {
            return Vec::new();
        };
        return values(argument, value)
            .into_iter()
            .map(|value| value.add_prefix(format!("{prefix}{key}=")))
            .collect();
    }
    let is_given = |key: &str| before.split(',').any(|word| word.split('=').next() == Some(key));
    let keys = command.get_arguments().filter_map(|key| Some((key.get_long()?, key.get_help())));
    let keys = keys
        .filter(|(key, _)| !is_given(key))
        .map(|(key, help)| CompletionCandidate::new(format!("{prefix}{key}=")).help(help.cloned()));
    beginning_with(current, keys)
}

/// The values of a key: a choice, or paths.
fn values(key: &clap::Arg, current: &str) -> Vec<CompletionCandidate> {
    if key.get_value_hint() == ValueHint::AnyPath {
        return PathCompleter::any().complete(OsStr::new(current));
    }
    let choice = key.get_possible_values();
    let choice = choice.iter().map(|value| CompletionCandidate::new(value.get_name().to_owned()));
    beginning_with(OsStr::new(current), choice)
}

/// The profiles and added kernels of `lab:` or `vm:`.
fn guests(kind: &str, current: &OsStr) -> Vec<CompletionCandidate> {
    let shipped = profile::shipped().into_iter();
    let shipped =
        shipped.map(|profile| described(format!("{kind}:{}", profile.name), &profile.summary));
    // Without a cache there are no added kernels.
    let added = kernel::added().unwrap_or_default().into_iter();
    let added = added.map(|name| described(format!("{kind}:{name}"), "your own kernel"));
    beginning_with(current, shipped.chain(added))
}

fn about(about: About) -> CompletionCandidate {
    described(about.name, about.summary)
}

/// A candidate with a description, which may be empty: only names of files have none.
fn described(word: impl Into<OsString>, description: &str) -> CompletionCandidate {
    CompletionCandidate::new(word).help(Some(description.to_owned().into()))
}

fn beginning_with(
    current: &OsStr,
    words: impl IntoIterator<Item = CompletionCandidate>,
) -> Vec<CompletionCandidate> {
    let current = current.as_encoded_bytes();
    let fits =
        |word: &CompletionCandidate| word.get_value().as_encoded_bytes().starts_with(current);
    words.into_iter().filter(fits).collect()
}
