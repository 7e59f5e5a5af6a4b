//! Settings that another program changes while a run has set them.

use crate::knob;
use crate::program::{Running, command, lock_machine, root};

const RUN: &str = "run --policy other --cpus 0 --for 10min --warm-up 0 --set stat_interval=7";

/// The run did not have the setting all the time, whether the other value is the old one or a third one.
#[test]
fn run_whose_setting_another_program_changes_fails_and_keeps_its_record() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let before = knob::restore_on_drop();
    for other in [before.0.as_str(), "9"] {
        let mut run = Running::start(&mut command(&format!("{RUN} --json")));
        run.wait_until_measuring();
        assert_eq!(knob::read(), "7");
        knob::write(other);
        run.signal("INT");
        let output = run.finish();
        let said = format!(
            "the run did not have stat_interval=7 all the time: another program, or the kernel, has \
             changed {} to {other}",
            knob::PATH
        );
        assert_eq!(output.code(), Some(2), "{output:?}");
        assert_eq!(output.stderr.lines().last(), Some(format!("latlab: {said}").as_str()));
        let record = output.record();
        let warning = record.warnings.iter().find(|one| one.code == "setting-changed");
        assert_eq!(warning.map(|one| one.text.as_str()), Some(said.as_str()));
        assert_eq!(knob::read(), other, "the value of another program stays");
        assert_eq!(record.changes[0].restored, other == before.0);
        knob::write(&before.0);
    }
}

#[test]
fn side_whose_setting_another_program_changes_is_refused() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let before = knob::restore_on_drop();
    let without = RUN.replace(" --set stat_interval=7", "");
    let mut ab = Running::start(&mut command(&format!("ab -- {RUN} -- {without}")));
    ab.wait_until_measuring();
    assert_eq!(knob::read(), "7");
    knob::write(&before.0);
    ab.signal("INT");
    let output = ab.finish();
    assert_eq!((output.code(), output.stdout.as_str()), (Some(2), ""), "{output:?}");
    let said = "latlab: side A: the run did not have stat_interval=7 all the time";
    assert!(output.stderr.lines().last().is_some_and(|line| line.starts_with(said)), "{output:?}");
}
