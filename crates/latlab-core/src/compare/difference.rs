//! Differences between the plans and machines of two sides, as data and in words.

use crate::time::Nanos;
use serde::Serialize;
use serde_json::{Map, Value};

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Its name.
    pub field: String,
    /// Its value in the first record.
    pub a: Value,
    /// Its value in the second record.
    pub b: Value,
}

/// One value within a field that differs, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The field, and the names inside it, as in `scheduling timer_migration`.
    pub path: String,
    /// The value of the first side.
    pub a: String,
    /// The value of the second side.
    pub b: String,
}

impl Difference {
    /// Returns each value in which the field differs.
    pub fn changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        collect(&self.field, &self.a, &self.b, &mut changes);
        changes
    }
}

/// Adds the changes from `a` to `b`, which are the values at `path`.
fn collect(path: &str, a: &Value, b: &Value, changes: &mut Vec<Change>) {
    match (a, b) {
        _ if a == b => {}
        (Value::Object(one), Value::Object(other)) => {
            let others = other.keys().filter(|key| !one.contains_key(*key));
            for key in one.keys().chain(others) {
                let value = |of: &Map<String, Value>| of.get(key).cloned().unwrap_or_default();
                let path = if key == "params" { path.to_owned() } else { format!("{path} {key}") };
                collect(&path, &value(one), &value(other), changes);
            }
        }
        (Value::Array(one), Value::Array(other)) if same_names(one, other) => {
            for (a, b) in one.iter().zip(other) {
                let name = name(a).unwrap_or_default();
                collect(&format!("{path} {name}"), a, b, changes);
            }
        }
        _ => {
            let (a, b) = (words(path, a), words(path, b));
            changes.push(Change { path: path.to_owned(), a, b });
        }
    }
}

fn name(value: &Value) -> Option<&str> {
    ["name", "knob", "comm"].into_iter().find_map(|key| value.get(key)?.as_str())
}

/// Whether both lists have things of the same names in the same order.
fn same_names(one: &[Value], other: &[Value]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(a, b)| name(a).is_some() && name(a) == name(b))
}

/// A value as a user would write it. Fields that are times have units.
fn words(path: &str, value: &Value) -> String {
    /// Names of plan fields and of a parameter that are times in ns.
    const TIMES: [&str; 5] = ["for", "warm_up", "stop_above", "fail_above", "interval"];
    let is_time = TIMES.contains(&path.rsplit(' ').next().unwrap_or_default());
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => match number.as_u64().filter(|_| is_time) {
            Some(time) => Nanos(time).to_string(),
            None => number.to_string(),
        },
        Value::String(text) if text.is_empty() => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(values) if values.is_empty() => "none".to_owned(),
        Value::Array(values) => {
            values.iter().map(|value| words(path, value)).collect::<Vec<_>>().join(", ")
        }
        Value::Object(fields) => of_fields(value, fields),
    }
}

/// A part with its parameters, a setting, a task by its name, or any other set of fields.
fn of_fields(value: &Value, fields: &Map<String, Value>) -> String {
    let listed = |fields: &Map<String, Value>, separator| {
        let each = fields.iter().map(|(key, value)| format!("{key}={}", words(key, value)));
        each.collect::<Vec<_>>().join(separator)
    };
    match (name(value), fields.get("params"), fields.get("value")) {
        (Some(name), Some(Value::Object(params)), _) if !params.is_empty() => {
            format!("{name}:{}", listed(params, ","))
        }
        (Some(knob), None, Some(value)) => format!("{knob}={}", words("value", value)),
        (Some(name), ..) => name.to_owned(),
        (None, ..) => listed(fields, " "),
    }
}

/// Fields of a machine, also those within others, that are measured, and vary from run to run on the
/// same machine.
const MEASURED: [&str; 4] = ["clock_read_ns", "record_ns", "counters", "swap_used_kib"];

/// Removes measured fields.
fn remove_measured(fields: &mut Map<String, Value>) {
    fields.retain(|name, _| !MEASURED.contains(&name.as_str()));
    fields.values_mut().filter_map(Value::as_object_mut).for_each(remove_measured);
}

/// Returns the top-level fields in which two values of one type differ.
pub(super) fn differences<T: Serialize>(a: &T, b: &T) -> Vec<Difference> {
    let fields = |x: &T| match serde_json::to_value(x) {
        Ok(Value::Object(mut map)) => {
            remove_measured(&mut map);
            map
        }
        _ => Map::new(),
    };
    let (a, b) = (fields(a), fields(b));
    let mut names: Vec<&String> =
        a.keys().chain(b.keys().filter(|k| !a.contains_key(*k))).collect();
    names.retain(|name| a.get(*name) != b.get(*name));
    let value =
        |map: &Map<String, Value>, name: &str| map.get(name).cloned().unwrap_or(Value::Null);
    names
        .into_iter()
        .map(|name| Difference { field: name.clone(), a: value(&a, name), b: value(&b, name) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn changes(field: &str, a: Value, b: Value) -> Vec<String> {
        let changes = Difference { field: field.to_owned(), a, b }.changes();
        changes.into_iter().map(|Change { path, a, b }| format!("{path}: {a} → {b}")).collect()
    }

    #[test]
    fn changes_name_only_the_values_that_differ() {
        let probe = |interval: u64| {
            let params = json!({"interval": interval, "policy": "fifo"});
            json!([{"name": "cyclic", "params": params}])
        };
        assert_eq!(
            changes("probes", probe(1_000_000), probe(200_000)),
            ["probes cyclic interval: 1 ms → 200 us"]
        );
        let fork = json!([{"name": "fork", "params": {"children": 4, "on": "all"}}]);
        assert_eq!(changes("loads", json!([]), fork), ["loads: none → fork:children=4,on=all"]);
        let setting = json!([{"knob": "timer_migration", "value": "0"}]);
        assert_eq!(changes("settings", json!([]), setting), ["settings: none → timer_migration=0"]);
        let scheduling = |on: bool| json!({"timer_migration": on, "rt_threads": []});
        assert_eq!(
            changes("scheduling", scheduling(true), scheduling(false)),
            ["scheduling timer_migration: yes → no"]
        );
        let (time, count) = (json!({"for": 3_000_000_000_u64}), json!({"count": 10}));
        assert_eq!(
            changes("length", time, count),
            ["length for: 3 s → none", "length count: none → 10"]
        );
    }

    #[test]
    fn every_difference_has_a_change() {
        let values = [json!(null), json!(1), json!("x"), json!([1]), json!({"a": [{"b": 1}]})];
        for a in &values {
            for b in values.iter().filter(|b| *b != a) {
                assert!(!changes("field", a.clone(), b.clone()).is_empty(), "{a} {b}");
            }
        }
    }
}
