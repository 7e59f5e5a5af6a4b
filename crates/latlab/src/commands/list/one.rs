//! All about one part: what it is, and its keys.

use super::{ROOMS, parts_of_all_tables};
use crate::call::CALLS;
use crate::cause::CAUSES;
use crate::failure::{Failure, Result};
use crate::load::LOADS;
use crate::mechanism::MECHANISMS;
use crate::probe::PROBES;
use crate::profile::{self, Profile};
use crate::registry::Entry;
use crate::study;
use clap::{Arg, Command};
use latlab_core::study::Study;
use latlab_core::suggest;
use std::fmt::Write as _;

/// The long text of the parts of this name, and their keys: a load may be called as a call is.
pub(super) fn explain(name: &str) -> Result<String> {
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
pub(super) fn about(command: &Command) -> String {
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

pub(super) fn with_default(key: &Arg) -> String {
    let name = key.get_long().unwrap_or_default();
    let default = key.get_default_values().first().map(|value| value.to_string_lossy());
    format!("{name}={}", default.unwrap_or_else(|| "…".into()))
}
