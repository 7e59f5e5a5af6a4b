//! The reference: every part and its keys, as one page of Markdown.

use super::one::{about, with_default};
use crate::call::CALLS;
use crate::cause::CAUSES;
use crate::load::LOADS;
use crate::mechanism::MECHANISMS;
use crate::probe::PROBES;
use crate::profile::{self, Profile};
use crate::registry::Entry;
use crate::study;
use crate::target::TARGETS;
use clap::Command;
use latlab_core::study::Study;
use latlab_sys::knob::KNOBS;
use std::fmt::Write as _;

const BEGIN: &str = "# Reference\n\nEvery probe, call, load, cause, mechanism, target, profile, \
    study and knob: what `latlab list NAME` says, on one page. \
    It is made by `latlab generate reference.md`.\n";

/// The page. It has the same bytes each time.
pub(in crate::commands) fn page() -> String {
    let causes = CAUSES.iter().map(|cause| (cause.about.name, (cause.keys)()));
    let mechanisms = MECHANISMS.iter().map(|it| (it.about.name, (it.keys)()));
    let targets = TARGETS.iter().map(|(about, _)| (about.name, about.summary));
    let knobs = KNOBS.iter().map(|knob| (knob.name, knob.summary));
    [
        BEGIN.to_owned(),
        parts("Probes", entries(PROBES)),
        parts("Calls", entries(CALLS)),
        parts("Loads", entries(LOADS)),
        parts("Causes", causes),
        parts("Mechanisms", mechanisms),
        table("Targets", ["target", "what it is"], targets),
        parts_of("Profiles", profile::shipped().iter().map(of_profile)),
        parts_of("Studies", study::shipped().iter().map(|(name, study)| of_study(name, study))),
        table("Knobs", ["knob", "what it is"], knobs),
    ]
    .concat()
}

fn entries<T: ?Sized>(table: &'static [Entry<T>]) -> impl Iterator<Item = (&'static str, Command)> {
    table.iter().map(|entry| (entry.about.name, (entry.keys)()))
}

fn parts(title: &str, parts: impl Iterator<Item = (&'static str, Command)>) -> String {
    parts_of(title, parts.map(|(name, command)| of_part(name, &command)))
}

fn parts_of(title: &str, parts: impl Iterator<Item = String>) -> String {
    parts.fold(format!("\n## {title}\n"), |text, part| text + &part)
}

fn of_part(name: &str, command: &Command) -> String {
    let mut text = format!("\n### {name}\n\n{}\n", about(command));
    let keys = command.get_arguments().map(|key| {
        let help = key.get_help().map(ToString::to_string).unwrap_or_default();
        let values = key.get_possible_values();
        let values: Vec<String> = values.iter().map(|it| format!("`{}`", it.get_name())).collect();
        let values =
            if values.is_empty() { String::new() } else { format!(": {}", values.join(", ")) };
        (format!("`{}`", with_default(key)), help + &values)
    });
    let rows: String = keys.map(|(key, help)| row([&key, &help])).collect();
    if !rows.is_empty() {
        let _ = write!(text, "\n{}{rows}", head(["key", "what it is"]));
    }
    text
}

fn of_profile(profile: &Profile) -> String {
    let mut text = format!("\n### {}\n\n{}\n", profile.name, profile.summary);
    if !profile.paper.is_empty() {
        let _ = write!(text, "\nStands for {}.\n", profile.paper);
    }
    let _ = write!(text, "\n{}", head(["setting", "value"]));
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            text += &row([name, &format!("`{value}`")]);
        }
    };
    line("kernel", &profile.kernel.in_profile());
    line("command line", &profile.cmdline);
    for (file, value) in &profile.files {
        line(file, value);
    }
    line("modules", &profile.modules.join(" "));
    line("memory", &profile.memory.to_string());
    line("CPUs", &profile.cpus.to_string());
    text
}

fn of_study(name: &str, study: &Study) -> String {
    let mut text =
        format!("\n### {name}\n\n{}: {} of {}.\n", study.title, study.redoes, study.paper);
    let _ = write!(text, "{} cells over {}.\n\n", study.cells.len(), study.axes.join(", "));
    if !study.about.is_empty() {
        let _ = write!(text, "{}\n\n", study.about.trim());
    }
    for claim in &study.claims {
        let _ = writeln!(text, "- {} ({})", claim.says, claim.source);
    }
    text
}

fn table<'a>(
    title: &str,
    columns: [&str; 2],
    rows: impl Iterator<Item = (&'a str, &'a str)>,
) -> String {
    let rows: String = rows.map(|(name, what)| row([&format!("`{name}`"), what])).collect();
    format!("\n## {title}\n\n{}{rows}", head(columns))
}

fn head(columns: [&str; 2]) -> String {
    row(columns) + "| --- | --- |\n"
}

/// A bar within a cell would end it.
fn row(cells: [&str; 2]) -> String {
    let [name, what] = cells.map(|cell| cell.replace('|', "\\|").replace('\n', " "));
    format!("| {name} | {what} |\n")
}
