//! `latlab adapt --dry-run`: what mechanisms would change.

use super::observation::ObservationSource;
use super::precheck;
use crate::mechanism;
use latlab_mechanism::configuration::Configuration;
use latlab_mechanism::{Adaptation, Decision, Mode, Observation, Thread, Wish};
use latlab_part::failure::Result;
use latlab_sys::root::Root;
use std::fmt::Write as _;

/// Describes, in lines, what these mechanisms would set on this machine, and what can't be set.
/// Changes nothing. Fails where the mechanisms would.
pub fn dry_run(names: &[String], configuration: &Configuration) -> Result<String> {
    let root = Root::default();
    let mut adaptation = mechanism::adaptation(names, configuration)?;
    let limitations = precheck::check(&adaptation, names, &root)?;
    let seen = ObservationSource::start(&adaptation, names, &root)?.observe(|_| false);
    let mut text = knobs(&adaptation, &seen);
    text.push_str(&threads(&mut adaptation, &seen));
    if let (true, Some(tasks)) = (adaptation.decides_mode(), &seen.realtime) {
        let _ = writeln!(text, "mode: {}", mode(tasks.len(), &adaptation));
    }
    for limitation in limitations {
        let _ = writeln!(text, "{limitation}");
    }
    Ok(text)
}

/// A line for each knob.
fn knobs(adaptation: &Adaptation, seen: &Observation) -> String {
    let mut text = String::new();
    let for_latency = adaptation.knobs_for(Mode::Latency);
    for (mechanism, knob, wish) in adaptation.wishes(&seen.knobs) {
        let (name, path, value) = (knob.name, &knob.path, &knob.value);
        let condition = if for_latency.contains(&name.as_str()) {
            " while there are real-time tasks"
        } else {
            ""
        };
        let _ = match wish {
            Ok(Wish { value: to, because }) => {
                writeln!(
                    text,
                    "{mechanism}: {name} ({path}) would go from {value} to {to}{condition}: {because}"
                )
            }
            Err(why) => writeln!(text, "{mechanism}: {name} ({path}) would stay {value}: {why}"),
        };
    }
    text
}

/// A line for each IRQ thread.
fn threads(adaptation: &mut Adaptation, seen: &Observation) -> String {
    let decisions = adaptation.decide(seen);
    let mut text = String::new();
    for thread in &seen.threads {
        let Thread { name, policy, .. } = thread;
        let mut own = decisions.iter().filter(|one| one.thread() == Some(thread.id));
        let change = match own.next() {
            Some(Decision::Set { mechanism, to, because, .. }) => {
                format!("would go from {policy} to {to} ({mechanism}): {because}")
            }
            _ => format!("would stay {policy} until a real-time task needs it"),
        };
        let driver = thread.driver.iter().map(|driver| format!(", of the driver {driver}"));
        let driver = driver.collect::<String>();
        let _ = writeln!(text, "{name} ({}{driver}) {change}", thread.path());
    }
    text
}

/// The mode that this number of real-time tasks would lead to.
fn mode(tasks: usize, adaptation: &Adaptation) -> String {
    if tasks == 0 {
        return "there is no real-time task now: knobs for throughput would be set at once"
            .to_owned();
    }
    let running = match tasks {
        1 => "there is 1 real-time task now".to_owned(),
        many => format!("there are {many} real-time tasks now"),
    };
    if adaptation.schedules_threads() {
        format!("{running}: IRQ threads would keep their priority")
    } else {
        format!("{running}: knobs for throughput would be set once there is none")
    }
}
