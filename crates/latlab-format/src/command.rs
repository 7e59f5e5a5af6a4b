//! Commands that repeat a measurement, as the user would type them.

use super::part::with;
use super::part::written;
use latlab_core::plan::{Length, Part};
use latlab_core::record::Record;
use latlab_core::time::Nanos;
use latlab_measure::load::LOADS;
use latlab_measure::probe::PROBES;
use latlab_part::part::{self, Entry};

/// The warm-up without an option.
const WARM_UP: Nanos = Nanos::from_millis(200);

/// Returns the command that measures the probes of a record again and explains their worst samples.
pub fn explain(record: &Record) -> String {
    let plan = &record.plan;
    let option = |name: &str, value: &str| format!("--{name} {}", quoted(value));
    let mut words = vec!["latlab explain".to_owned()];
    words.extend(plan.probes.iter().map(|probe| quoted(&text("probe", PROBES, probe))));
    words.extend(plan.loads.iter().map(|load| option("load", &text("load", LOADS, load))));
    words.extend(plan.with.iter().map(|path| option("with", path)));
    if plan.target != "native" {
        words.push(option("on", &plan.target));
    }
    if plan.cpus != record.machine.cpus {
        words.push(option("cpus", &plan.cpus.to_string()));
    }
    words.push(match plan.length {
        Length::For(time) => option("for", &written(time)),
        Length::Count(count) => option("count", &count.to_string()),
    });
    if plan.warm_up != WARM_UP {
        words.push(option("warm-up", &written(plan.warm_up)));
    }
    if !plan.housekeeping.is_empty() {
        words.push(option("housekeeping", &plan.housekeeping.to_string()));
    }
    words.extend(plan.cgroup.iter().map(|folder| option("cgroup", folder)));
    let settings = plan.settings.iter().map(|set| format!("{}={}", set.knob, set.value));
    words.extend(settings.map(|setting| option("set", &setting)));
    if plan.skip_missing {
        words.push("--skip-missing".to_owned());
    }
    if !plan.adapt.is_empty() {
        words.push(format!("--adapt={}", plan.adapt.join(",")));
    }
    if plan.seed != 0 {
        words.push(option("seed", &plan.seed.to_string()));
    }
    words.join(" ")
}

/// Returns a part with the parameters that differ from their defaults, as on the command line.
fn text<T: ?Sized>(kind: &str, table: &'static [Entry<T>], given: &Part) -> String {
    let default = part::parse(kind, table, &given.name, &[]).ok();
    let default = |key: &str| default.as_ref().and_then(|part| part.params.get(key).cloned());
    with(given, |key, value| default(key).as_ref() != Some(value))
}

/// Quotes a word for a shell if it needs that.
pub(super) fn quoted(word: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "-_=:,./@+%".contains(c);
    if word.chars().all(harmless) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::plan::{Plan, Setting};
    use latlab_testing::sample;

    /// A record of this probe under this load on all CPUs.
    fn record(probe: &str, load: &str) -> Record {
        let mut record = sample::record(1);
        record.plan = Plan {
            probes: vec![part::parse("probe", PROBES, probe, &[]).expect("it is a probe")],
            loads: vec![part::parse("load", LOADS, load, &[]).expect("it is a load")],
            warm_up: WARM_UP,
            ..Plan::bare("native", record.machine.cpus.clone(), Length::For(Nanos::from_secs(20)))
        };
        record
    }

    #[test]
    fn command_has_the_parameters_that_differ_from_their_defaults() {
        for (probe, load) in [
            ("cyclic", "hackbench"),
            ("cyclic:interval=200us,priority=80", "disk:dir=/mnt,size=8MiB"),
            ("nanosleep:policy=other", "cpu:busy=30us,every=1ms"),
        ] {
            let expected = format!("latlab explain {probe} --load {load} --for 20s");
            assert_eq!(explain(&record(probe, load)), expected);
        }
    }

    #[test]
    fn command_has_target_cpus_and_settings_and_quotes_words() {
        let mut record = record("cyclic", "disk:dir=/a folder");
        record.plan = Plan {
            target: "lab:rt".to_owned(),
            cpus: (1..2).collect(),
            length: Length::Count(500),
            settings: vec![Setting { knob: "ksm".to_owned(), value: "0".to_owned() }],
            warm_up: Nanos(0),
            skip_missing: true,
            adapt: vec!["mode".to_owned()],
            seed: 7,
            ..record.plan
        };
        assert_eq!(
            explain(&record),
            "latlab explain cyclic --load 'disk:dir=/a folder' --on lab:rt --cpus 1 --count 500 \
             --warm-up 0ns --set ksm=0 --skip-missing --adapt=mode --seed 7"
        );
    }
}
