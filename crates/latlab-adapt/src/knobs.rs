//! Current values of knobs.

use latlab_mechanism::Knob;
use latlab_sys::knob::{self, KnobState, Unreadable};
use latlab_sys::root::Root;

/// Reads the knobs called `names`. Returns the readable knobs, and the reasons why others can't be
/// read.
pub(super) fn read(
    root: &Root,
    names: &[&'static str],
) -> (Vec<Knob>, Vec<(&'static str, Unreadable)>) {
    let (mut knobs, mut unreadable) = (Vec::new(), Vec::new());
    for &name in names {
        match knob::state(root, name) {
            Ok(KnobState { path, value, possible }) => {
                let path = path.display().to_string();
                knobs.push(Knob { name: name.to_owned(), path, value, possible });
            }
            Err(why) => unreadable.push((name, why)),
        }
    }
    (knobs, unreadable)
}
