//! Whether another program turned the settings of several runs.

use super::Record;
use crate::plan::Setting;

/// Why runs with these settings do not show their effect, if so: a knob had different values before
/// the runs, so another program turns it.
pub fn settings_turned(settings: &[Setting], runs: &[Record]) -> Option<String> {
    settings.iter().find_map(|Setting { knob, .. }| {
        let mut before = runs.iter().filter_map(|run| old(run, knob));
        let first = before.next()?;
        let other = before.find(|other| *other != first)?;
        Some(format!(
            "{knob} was {first} before one run and {other} before another: another program turns it"
        ))
    })
}

/// Why runs with these settings do not differ from runs without, if so: a knob had the value before
/// it was set.
pub fn settings_were_there(settings: &[Setting], runs: &[Record]) -> Option<String> {
    settings.iter().find_map(|Setting { knob, value }| {
        let is_there = runs.iter().any(|run| old(run, knob) == Some(value));
        is_there.then(|| {
            format!("{knob} was {value} before a run set it: another program has turned it")
        })
    })
}

/// The value of a knob before the run set it first.
fn old<'a>(run: &'a Record, knob: &str) -> Option<&'a str> {
    run.changes.iter().find(|change| change.knob == knob).map(|change| change.old.as_str())
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;
    use crate::record::Change;

    /// A run that found this value of a knob and set it to 0.
    fn run(old: &str) -> Record {
        let [knob, old, new, reason] = ["ksm", old, "0", "asked for"].map(str::to_owned);
        let change = Change { knob, old, new, reason, restored: true, unrestored: None };
        let again = Change { old: "0".to_owned(), new: "2".to_owned(), ..change.clone() };
        Record { changes: vec![change, again], ..record(1, &[]) }
    }

    fn setting() -> [Setting; 1] {
        [Setting { knob: "ksm".to_owned(), value: "0".to_owned() }]
    }

    #[test]
    fn setting_that_another_program_turns_is_told_from_its_old_values() {
        assert_eq!(settings_turned(&setting(), &[run("1"), run("1"), record(1, &[])]), None);
        assert_eq!(settings_turned(&[], &[run("1"), run("0")]), None);
        let why = "ksm was 1 before one run and 0 before another: another program turns it";
        let runs = [run("1"), run("1"), run("0")];
        assert_eq!(settings_turned(&setting(), &runs).as_deref(), Some(why));
    }

    #[test]
    fn setting_that_was_there_is_no_difference() {
        assert_eq!(settings_were_there(&setting(), &[run("1"), record(1, &[])]), None);
        let why = "ksm was 0 before a run set it: another program has turned it";
        let runs = [run("1"), run("0")];
        assert_eq!(settings_were_there(&setting(), &runs).as_deref(), Some(why));
    }
}
