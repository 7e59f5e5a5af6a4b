//! What mechanisms would do, for who asks before.

use super::able;
use super::observing::Observing;
use crate::failure::Result;
use crate::mechanism;
use latlab_core::mechanism::configuration::Configuration;
use latlab_core::mechanism::{Adaptation, Decision, Mode, Observation, Thread, Wish};
use latlab_sys::root::Root;
use std::fmt::Write as _;

/// What these mechanisms would turn here, and what can't be done, in lines. Nothing is changed.
/// Refused where the mechanisms would be.
pub(crate) fn foresee(names: &[String], told: &Configuration) -> Result<String> {
    let root = Root::default();
    let mut adaptation = mechanism::adaptation(names, told)?;
    let cant = able::check(&adaptation, names, &root)?;
    let seen = Observing::start(&adaptation, names, &root)?.look(Vec::new(), |_| false);
    let mut text = knobs(&adaptation, &seen);
    text.push_str(&threads(&mut adaptation, &seen));
    if let (true, Some(tasks)) = (adaptation.decides_mode(), &seen.realtime) {
        let _ = writeln!(text, "mode: {}", now(tasks.len(), &adaptation));
    }
    for line in cant {
        let _ = writeln!(text, "{line}");
    }
    Ok(text)
}

fn knobs(adaptation: &Adaptation, seen: &Observation) -> String {
    let mut text = String::new();
    let later = adaptation.knobs_for(Mode::Latency);
    for (mechanism, knob, wish) in adaptation.wishes(&seen.knobs) {
        let (name, path, value) = (knob.name, &knob.path, &knob.value);
        let when =
            if later.contains(&name.as_str()) { " while there are real-time tasks" } else { "" };
        let _ = match wish {
            Ok(Wish { value: to, because }) => {
                writeln!(
                    text,
                    "{mechanism}: {name} ({path}) would go from {value} to {to}{when}: {because}"
                )
            }
            Err(why) => writeln!(text, "{mechanism}: {name} ({path}) would stay {value}: {why}"),
        };
    }
    text
}

/// Which threads there are, and what would become of them at once.
fn threads(adaptation: &mut Adaptation, seen: &Observation) -> String {
    let decisions = adaptation.decide(seen);
    let mut text = String::new();
    for thread in &seen.threads {
        let Thread { name, policy, .. } = thread;
        let mut own = decisions.iter().filter(|one| one.thread() == Some(thread.id));
        let becomes = match own.next() {
            Some(Decision::Set { mechanism, to, because, .. }) => {
                format!("would go from {policy} to {to} ({mechanism}): {because}")
            }
            _ => format!("would stay {policy} until a real-time task needs it"),
        };
        let driver = thread.driver.iter().map(|driver| format!(", of the driver {driver}"));
        let driver = driver.collect::<String>();
        let _ = writeln!(text, "{name} ({}{driver}) {becomes}", thread.path());
    }
    text
}

/// What the mode would be.
fn now(tasks: usize, adaptation: &Adaptation) -> String {
    let there = match tasks {
        0 => {
            return "there is no real-time task now, so what serves ordinary tasks would be done \
                    at once"
                .to_owned();
        }
        1 => "there is 1 real-time task now".to_owned(),
        many => format!("there are {many} real-time tasks now"),
    };
    match (adaptation.turns_threads(), tasks) {
        (true, _) => format!("{there}, so that interrupt threads would not wait"),
        (false, 1) => {
            format!("{there}, so what serves ordinary tasks would be done when that has gone")
        }
        (false, _) => {
            format!("{there}, so what serves ordinary tasks would be done without them")
        }
    }
}
