//! What mechanisms would do, for who asks before.

use super::counting::Counting;
use super::look;
use crate::failure::{Failure, Result};
use crate::mechanism;
use latlab_core::mechanism::Wish;
use latlab_core::mechanism::configuration::Configuration;
use latlab_sys::root::Root;
use std::fmt::Write as _;

/// What these mechanisms would turn here, and what can't be done, in lines. Nothing is changed.
/// Refused where the mechanisms would be.
pub(crate) fn foresee(names: &[String], configuration: &Configuration) -> Result<String> {
    let root = Root::default();
    let adaptation = mechanism::adaptation(names, configuration)?;
    let (knobs, unreadable) = look(&root, &adaptation.knobs());
    if let (true, Some((_, why))) = (knobs.is_empty(), unreadable.first()) {
        return Err(Failure::Unsupported(format!("{}: {why}", names.join(","))));
    }
    let mut text = String::new();
    for (mechanism, knob, wish) in adaptation.wishes(&knobs) {
        let (name, path, value) = (knob.name, &knob.path, &knob.value);
        let _ = match wish {
            Ok(Wish { value: to, because }) => {
                writeln!(
                    text,
                    "{mechanism}: {name} ({path}) would go from {value} to {to}: {because}"
                )
            }
            Err(why) => writeln!(text, "{mechanism}: {name} ({path}) would stay {value}: {why}"),
        };
    }
    if adaptation.counts_tasks() {
        let now = match Counting::start(&root)?.count() {
            0 => "there is no real-time task now, so it would be done at once".to_owned(),
            1 => "there is 1 real-time task now, so it would be done when that has gone".to_owned(),
            many => {
                format!("there are {many} real-time tasks now, so it would be done without them")
            }
        };
        let _ = writeln!(text, "mode: {now}");
    }
    for (name, why) in unreadable {
        let _ = writeln!(text, "{name} would stay as it is: {why}");
    }
    Ok(text)
}
