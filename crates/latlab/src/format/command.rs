//! Commands that repeat a measurement, as the user would type them.

use super::plain;
use super::scan::written;
use crate::load::LOADS;
use crate::part::{self, Entry};
use crate::probe::PROBES;
use latlab_core::plan::{Length, Part};
use latlab_core::record::Record;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use serde_json::Value;

/// The warm-up without an option.
const WARM_UP: Nanos = Nanos::from_millis(200);

/// Returns the command that measures the probes of a record again and explains their worst samples.
pub(crate) fn explain(record: &Record) -> String {
    let plan = &record.plan;
    let option = |name: &str, value: &str| format!("--{name} {}", quoted(value));
    let mut words = vec!["latlab explain".to_owned()];
    words.extend(plan.probes.iter().map(|probe| quoted(&text("probe", PROBES, probe))));
    words.extend(plan.loads.iter().map(|load| option("load", &text("load", LOADS, load))));
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
    let settings = plan.settings.iter().map(|set| format!("{}={}", set.knob, set.value));
    words.extend(settings.map(|setting| option("set", &setting)));
    if !plan.adapt.is_empty() {
        words.push(format!("--adapt={}", plan.adapt.join(",")));
    }
    if plan.seed != 0 {
        words.push(option("seed", &plan.seed.to_string()));
    }
    words.join(" ")
}

/// Returns the text that is read as this part: its name and the parameters that differ from their
/// defaults.
fn text<T: ?Sized>(kind: &str, table: &'static [Entry<T>], given: &Part) -> String {
    let read = |text: &str| part::parse(kind, table, text, &[]).ok();
    let default = read(&given.name);
    let default = |key: &str| default.as_ref().and_then(|part| part.params.get(key).cloned());
    let changed = given.params.iter().filter(|(key, value)| default(key).as_ref() != Some(*value));
    let words = changed.filter(|(_, value)| !value.is_null()).map(|(key, value)| {
        // Plans keep bare numbers: the unit is the one with which the value is read.
        let is_read = |word: &String| {
            let text = format!("{}:{key}={word}", given.name);
            read(&text).is_some_and(|part| part.params.get(key) == Some(value))
        };
        let word = spellings(value).into_iter().find(is_read).unwrap_or_else(|| plain(value));
        format!("{key}={word}")
    });
    let words = words.collect::<Vec<_>>().join(",");
    if words.is_empty() { given.name.clone() } else { format!("{}:{words}", given.name) }
}

/// The ways in which a value may be written: a number may be a time or a size.
fn spellings(value: &Value) -> Vec<String> {
    match (value, value.as_u64()) {
        (_, Some(number)) => {
            vec![number.to_string(), written(Nanos(number)), Bytes(number).to_string()]
        }
        (Value::Array(values), _) => {
            vec![values.iter().map(plain).collect::<Vec<_>>().join("/")]
        }
        _ => vec![plain(value)],
    }
}

/// Quotes a word for a shell if it needs that.
fn quoted(word: &str) -> String {
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
    use crate::format::picture::tests::sample;
    use latlab_core::plan::{Plan, Setting};

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
            adapt: vec!["mode".to_owned()],
            seed: 7,
            ..record.plan
        };
        assert_eq!(
            explain(&record),
            "latlab explain cyclic --load 'disk:dir=/a folder' --on lab:rt --cpus 1 --count 500 \
             --warm-up 0ns --set ksm=0 --adapt=mode --seed 7"
        );
    }
}
