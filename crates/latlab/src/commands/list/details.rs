//! The description of a part, target, profile, study, preset or knob.

use crate::commands::run::preset;
use crate::study;
use crate::target::TARGETS;
use clap::{Arg, Command};
use latlab_adapt::mechanism::MECHANISMS;
use latlab_core::study::Study;
use latlab_core::suggest;
use latlab_lab::profile::{self, Profile};
use latlab_measure::call::CALLS;
use latlab_measure::cause::CAUSES;
use latlab_measure::load::LOADS;
use latlab_measure::probe::PROBES;
use latlab_part::failure::{Failure, Result};
use latlab_part::part::Entry;
use latlab_sys::knob::Knob;
use std::fmt::Write as _;

/// Describes everything of this name, parts with their keys: a load and a call may share a name.
pub(super) fn describe(name: &str) -> Result<String> {
    let found = [
        describe_part("probe", PROBES, name),
        describe_part("call", CALLS, name),
        describe_part("load", LOADS, name),
        describe_cause(name),
        describe_mechanism(name),
        describe_target(name),
        profile::shipped().iter().find(|profile| profile.name == name).map(describe_profile),
        study::shipped().iter().find(|(study, _)| *study == name).map(describe_study),
        preset::describe(name),
        describe_knob(name),
    ];
    let found: Vec<String> = found.into_iter().flatten().collect();
    if !found.is_empty() {
        return Ok(found.join("\n"));
    }
    let names = super::names();
    let hint = suggest::hint(name, &names.iter().map(String::as_str).collect::<Vec<_>>());
    Err(Failure::failed(format!("nothing is named '{name}': {hint}")))
}

fn describe_target(name: &str) -> Option<String> {
    let about = TARGETS.iter().find(|entry| entry.about.name == name)?.about;
    let how = "Measure there with --on; latlab list profiles lists the profiles of guests.";
    Some(format!("{name} (target): {}\n\n{how}\n", about.summary))
}

fn describe_knob(name: &str) -> Option<String> {
    let knob = Knob::named(name)?;
    let set = format!("Set it while measuring with: latlab run --set {name}=VALUE");
    Some(format!("{name} (knob): {}\n\n{set}\n", knob.summary))
}

fn describe_profile(profile: &Profile) -> String {
    let mut text = format!("{}: {}\n\n", profile.name, profile.summary);
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "  {name:<14}{value}");
        }
    };
    row("models", &profile.paper);
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
    text + &format!("--on vm:{name} (wall-clock time).\n")
}

fn describe_study((name, study): &(&'static str, Study)) -> String {
    let mut text = format!("{name} (study): {}\n\n", study.title);
    let _ = writeln!(text, "  {:<14}{}", "paper", study.paper);
    let _ = writeln!(text, "  {:<14}{}", "reproduces", study.redoes);
    let _ = writeln!(text, "  {:<14}{} over {}", "cells", study.cells.len(), study.axes.join(", "));
    for claim in &study.claims {
        let _ = writeln!(text, "  {:<14}{}", "claim", claim.says);
    }
    let about = &study.about;
    let _ = write!(text, "\n{about}\n\nRun it with: latlab study {name} --out DIR\n");
    text
}

fn describe_part<T: ?Sized>(kind: &str, table: &'static [Entry<T>], name: &str) -> Option<String> {
    let entry = table.iter().find(|entry| entry.about.name == name)?;
    let command = (entry.keys)();
    let keys = keys(&command);
    let keys = if keys.is_empty() { "  (it has no keys)\n".to_owned() } else { keys };
    Some(format!("{name} ({kind}): {}\n\n{keys}", about(&command)))
}

/// Describes a cause, which has no keys.
fn describe_cause(name: &str) -> Option<String> {
    let cause = CAUSES.iter().find(|cause| cause.about.name == name)?;
    Some(format!("{name} (cause): {}\n", about(&(cause.keys)())))
}

/// Describes a mechanism, which has no keys.
fn describe_mechanism(name: &str) -> Option<String> {
    let mechanism = MECHANISMS.iter().find(|mechanism| mechanism.about.name == name)?;
    Some(format!("{name} (mechanism): {}\n", about(&(mechanism.keys)())))
}

/// The doc comment of a part.
pub(super) fn about(command: &Command) -> String {
    let about = command.get_long_about().or(command.get_about());
    about.map(|text| text.to_string().trim_end().to_owned()).unwrap_or_default()
}

/// The keys of a part as `key=default`, each with its help and values.
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

/// `key=default`, with an ellipsis where there is no default.
pub(super) fn with_default(key: &Arg) -> String {
    let name = key.get_long().unwrap_or_default();
    let default = key.get_default_values().first().map(|value| value.to_string_lossy());
    format!("{name}={}", default.unwrap_or_else(|| "…".into()))
}
