//! Mechanisms: each decides from observations of the machine which knobs to set.

mod demote;
mod inherit;
mod mode;
mod selective;
mod suppress;
mod transparent;

use clap::Command;
use latlab_core::suggest;
use latlab_mechanism::configuration::Configuration;
use latlab_mechanism::{self as mechanism, Adaptation};
use latlab_part::failure::{Failure, Result};
use latlab_part::part::{About, Describe};

/// Every mechanism. They are independent: each knob that is a file belongs to at most one of them,
/// and their priorities for one thread are combined.
pub static MECHANISMS: &[Entry] = &[
    entry::<transparent::Transparent>(),
    entry::<inherit::Inherit>(),
    entry::<demote::Demote>(),
    entry::<selective::Selective>(),
    entry::<suppress::Suppress>(),
    entry::<mode::ByTasks>(),
];

/// One mechanism. The doc comment of its struct says what it does, from which paper, by which means
/// and at which cost; it has no parameters.
pub trait Mechanism: Describe + clap::Args {
    /// When it is active although the user names none.
    const ACTIVE: Active = Active::Always;

    /// Its decisions, a pure function of observations, for this configuration.
    fn pure(configuration: &Configuration) -> Box<dyn mechanism::Mechanism>;
}

/// When a mechanism is active although the user names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Active {
    /// In each adaptation.
    Always,
    /// In the daemon, as only that receives requests.
    InDaemon,
    /// Nowhere: the user has to name it.
    Never,
}

/// One line of the table of mechanisms.
#[derive(Debug)]
pub struct Entry {
    /// Its name and summary.
    pub about: About,
    /// The mechanism as clap knows it, for its help.
    pub keys: fn() -> Command,
    active: Active,
    pure: fn(&Configuration) -> Box<dyn mechanism::Mechanism>,
}

const fn entry<M: Mechanism>() -> Entry {
    Entry {
        about: M::ABOUT,
        keys: || M::augment_args(Command::new("mechanism")),
        active: M::ACTIVE,
        pure: M::pure,
    }
}

/// The mechanisms of the daemon if the user names none.
pub fn of_daemon() -> Vec<String> {
    active(|active| active != Active::Never)
}

/// The names in a comma-separated list; the mechanisms of a measurement where it is empty.
pub fn names(list: &str) -> std::result::Result<Vec<String>, String> {
    let known: Vec<&str> = MECHANISMS.iter().map(|entry| entry.about.name).collect();
    let asked: Vec<&str> = list.split(',').filter(|name| !name.is_empty()).collect();
    if asked.is_empty() {
        return Ok(active(|active| active == Active::Always));
    }
    let mut names: Vec<String> = Vec::new();
    for name in asked {
        if !known.contains(&name) {
            let hint = suggest::hint(name, &known);
            return Err(format!("there is no mechanism '{name}': {hint}"));
        }
        if !names.iter().any(|earlier| earlier == name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// The first of these mechanisms that acts only on what the daemon receives.
pub fn only_in_daemon(names: &[String]) -> Option<&str> {
    let receives = |name: &&String| {
        { MECHANISMS }.iter().any(|e| e.about.name == **name && e.active == Active::InDaemon)
    };
    names.iter().find(receives).map(String::as_str)
}

fn active(when: impl Fn(Active) -> bool) -> Vec<String> {
    let chosen = MECHANISMS.iter().filter(|entry| when(entry.active));
    chosen.map(|entry| entry.about.name.to_owned()).collect()
}

/// The mechanisms of these names, ready to decide.
pub fn adaptation(names: &[String], configuration: &Configuration) -> Result<Adaptation> {
    let find = |name: &String| {
        let found = MECHANISMS.iter().find(|entry| entry.about.name == name);
        found
            .map(|entry| (entry.pure)(configuration))
            .ok_or_else(|| format!("there is no mechanism '{name}'"))
    };
    let mechanisms = names.iter().map(find).collect::<std::result::Result<_, _>>();
    mechanisms.and_then(|all| Adaptation::of(all, configuration.ceiling)).map_err(Failure::failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mechanisms_are_compatible_and_their_knobs_exist() {
        let configuration = Configuration::default();
        let all: Vec<String> = MECHANISMS.iter().map(|entry| entry.about.name.to_owned()).collect();
        for knob in adaptation(&all, &configuration).unwrap().knobs() {
            assert!(latlab_sys::knob::Knob::named(knob).is_some(), "{knob}");
        }
        for entry in MECHANISMS {
            assert_eq!((entry.pure)(&configuration).description().name, entry.about.name);
        }
    }

    #[test]
    fn demote_is_never_a_default_and_selective_one_of_the_daemon() {
        assert_eq!(names("").unwrap(), ["transparent", "inherit", "suppress", "mode"]);
        assert_eq!(of_daemon(), ["transparent", "inherit", "selective", "suppress", "mode"]);
    }

    #[test]
    fn names_come_from_a_list_without_duplicates() {
        assert_eq!(names("suppress,suppress").unwrap(), ["suppress"]);
        let refused = names("supress").unwrap_err();
        assert_eq!(refused, "there is no mechanism 'supress': did you mean suppress?");
    }
}
