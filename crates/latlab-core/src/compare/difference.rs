//! Differences between the plans and machines of two sides, as data and in words.

use crate::plan::Part;
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
    /// Returns each value in which the field differs. `written` formats a part as on the command
    /// line, because only the part knows which of its numbers are times or sizes.
    pub fn changes(&self, written: &dyn Fn(&Part) -> String) -> Vec<Change> {
        let mut changes = Vec::new();
        let place = Place { path: self.field.clone(), part: None, written };
        collect(&place, &self.a, &self.b, &mut changes);
        changes
    }
}

/// Where a value is.
#[derive(Clone)]
struct Place<'a> {
    /// The field, and the names inside it.
    path: String,
    /// The part whose parameter it is.
    part: Option<&'a str>,
    written: &'a dyn Fn(&Part) -> String,
}

/// Adds the changes from `a` to `b`, which are the values at `place`.
fn collect(place: &Place<'_>, a: &Value, b: &Value, changes: &mut Vec<Change>) {
    match (a, b) {
        _ if a == b => {}
        (Value::Object(one), Value::Object(other)) => {
            let others = other.keys().filter(|key| !one.contains_key(*key));
            for key in one.keys().chain(others) {
                let value = |of: &Map<String, Value>| of.get(key).cloned().unwrap_or_default();
                let inner = if key == PARAMS {
                    Place { part: name(a), ..place.clone() }
                } else {
                    place.within(key)
                };
                collect(&inner, &value(one), &value(other), changes);
            }
        }
        (Value::Array(one), Value::Array(other)) if same_names(one, other) => {
            for (a, b) in one.iter().zip(other) {
                collect(&place.within(name(a).unwrap_or_default()), a, b, changes);
            }
        }
        _ => {
            let (a, b) = (place.words(a), place.words(b));
            changes.push(Change { path: place.path.clone(), a, b });
        }
    }
}

/// The field of a part that has its parameters.
const PARAMS: &str = "params";

fn name(value: &Value) -> Option<&str> {
    ["name", "knob", "comm"].into_iter().find_map(|key| value.get(key)?.as_str())
}

/// Whether both lists have things of the same names in the same order.
fn same_names(one: &[Value], other: &[Value]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(a, b)| name(a).is_some() && name(a) == name(b))
}

impl Place<'_> {
    fn within(&self, key: &str) -> Self {
        Place { path: format!("{} {key}", self.path), ..self.clone() }
    }

    fn key(&self) -> &str {
        self.path.rsplit(' ').next().unwrap_or_default()
    }

    /// The value here as a user would write it. Fields that are times have units.
    fn words(&self, value: &Value) -> String {
        /// Names of a plan's own fields that are times in ns.
        const TIMES: [&str; 7] =
            ["for", "warm_up", "stop_above", "fail_above", "above", "resolution", "limit"];
        match value {
            Value::Null => "none".to_owned(),
            Value::String(text) if text.is_empty() => "none".to_owned(),
            Value::Array(values) if values.is_empty() => "none".to_owned(),
            _ if self.part.is_some() => self.parameter(value),
            Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
            Value::Number(number) => {
                match number.as_u64().filter(|_| TIMES.contains(&self.key())) {
                    Some(time) => Nanos(time).to_string(),
                    None => number.to_string(),
                }
            }
            Value::String(text) => text.clone(),
            Value::Array(values) => {
                values.iter().map(|value| self.words(value)).collect::<Vec<_>>().join(", ")
            }
            Value::Object(fields) => self.of_fields(value, fields),
        }
    }

    /// The value of a parameter, as the part is written with it alone.
    fn parameter(&self, value: &Value) -> String {
        let (name, key) = (self.part.unwrap_or_default(), self.key());
        let params = [(key.to_owned(), value.clone())].into_iter().collect();
        let written = (self.written)(&Part { name: name.to_owned(), params });
        let text = written.strip_prefix(&format!("{name}:{key}="));
        text.map_or_else(|| value.to_string(), str::to_owned)
    }

    /// A part with its parameters, a setting, a task by its name, or any other set of fields.
    fn of_fields(&self, value: &Value, fields: &Map<String, Value>) -> String {
        let part: Option<Part> =
            fields.get(PARAMS).and_then(|_| serde_json::from_value(value.clone()).ok());
        let text = |key: &str, value: &Value| self.within(key).words(value);
        match (part, name(value), fields.get("value")) {
            (Some(part), ..) => (self.written)(&part),
            (None, Some(knob), Some(value)) => format!("{knob}={}", text("value", value)),
            (None, Some(name), None) => name.to_owned(),
            (None, None, _) => {
                let each = fields.iter().map(|(key, value)| format!("{key}={}", text(key, value)));
                each.collect::<Vec<_>>().join(" ")
            }
        }
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

    /// A part whose numbers are microseconds, except for its priority.
    fn written(part: &Part) -> String {
        let param = |(key, value): (&String, &Value)| match value {
            Value::Number(number) if key != "priority" => format!("{key}={number}us"),
            Value::String(text) => format!("{key}={text}"),
            _ => format!("{key}={value}"),
        };
        let params: Vec<String> = part.params.iter().map(param).collect();
        format!("{}:{}", part.name, params.join(","))
    }

    fn changes(field: &str, a: Value, b: Value) -> Vec<String> {
        let changes = Difference { field: field.to_owned(), a, b }.changes(&written);
        changes.into_iter().map(|Change { path, a, b }| format!("{path}: {a} → {b}")).collect()
    }

    #[test]
    fn changes_name_only_the_values_that_differ() {
        let probe = |interval: u64| {
            let params = json!({"interval": interval, "policy": "fifo", "priority": interval});
            json!([{"name": "cyclic", "params": params}])
        };
        assert_eq!(
            changes("probes", probe(1_000), probe(20)),
            ["probes cyclic interval: 1000us → 20us", "probes cyclic priority: 1000 → 20"]
        );
        let cpu = json!([{"name": "cpu", "params": {"busy": 4, "on": "all"}}]);
        assert_eq!(changes("loads", json!([]), cpu), ["loads: none → cpu:busy=4us,on=all"]);
        let command = |value: Value| json!([{"name": "exec", "params": {"command": value}}]);
        assert_eq!(
            changes("loads", command(json!("cc")), command(json!(null))),
            ["loads exec command: cc → none"]
        );
        let scan = |limit: u64| {
            let call = json!({"name": "populate", "params": {"size": 3}});
            json!([{"call": call, "limit": limit}])
        };
        assert_eq!(
            changes("scans", scan(1_000_000), scan(5)),
            ["scans: call=populate:size=3us limit=1 ms → call=populate:size=3us limit=5 ns"]
        );
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
