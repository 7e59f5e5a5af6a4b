//! Tests of noticing that somebody else has changed what was set.

use super::*;

#[test]
fn guard_names_the_knobs_that_somebody_else_has_changed() {
    let (_folder, root) = small();
    let mut guard = Guard::new(root.clone());
    guard.set("swappiness", "5", "for a test").unwrap();
    guard.set("swappiness", "6", "for a test").unwrap();
    guard.set("stat_interval", "10", "for a test").unwrap();
    assert_eq!(guard.replaced(), []);
    let put = |value| knob::put("swappiness", &root.path(SWAP), value).unwrap();
    for value in ["60", "5", "77"] {
        put(value);
        let replaced = Replaced {
            knob: "swappiness".to_owned(),
            set: "6".to_owned(),
            path: root.path(SWAP),
            now: value.to_owned(),
        };
        assert_eq!(guard.replaced(), [replaced]);
    }
    put("6");
    assert_eq!(guard.replaced(), [], "it has the value that was set");
    guard.save("swappiness", "for a test").unwrap();
    put("8");
    assert_eq!(guard.replaced(), [], "any value may be the run's own");
}
