//! What mechanisms would do, for who asks before.

use super::look;
use crate::failure::{Failure, Result};
use crate::mechanism;
use latlab_core::mechanism::Wish;
use latlab_sys::root::Root;
use std::fmt::Write as _;

/// What these mechanisms would turn here, and what can't be done, in lines. Nothing is changed.
/// Refused where the mechanisms would be.
pub(crate) fn foresee(names: &[String]) -> Result<String> {
    let adaptation = mechanism::adaptation(names)?;
    let (knobs, unreadable) = look(&Root::default(), &adaptation.knobs());
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
    for (name, why) in unreadable {
        let _ = writeln!(text, "{name} would stay as it is: {why}");
    }
    Ok(text)
}
