//! Parts of a plan as on the command line, with the units of times and sizes.

use super::plain;
use latlab_core::plan::Part;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_measure::call::CALLS;
use latlab_measure::load::LOADS;
use latlab_measure::probe::PROBES;
use latlab_part::part::Entry;
use serde_json::Value;
use std::any::TypeId;

/// The key whose value is the rest of the text.
const COMMAND: &str = "command";

/// Formats a probe, load or call as on the command line.
pub fn part(part: &Part) -> String {
    with(part, |_, _| true)
}

/// Formats a time as on the command line.
pub(crate) fn written(time: Nanos) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
    let fits = |(_, scale): &&(&str, u64)| time.0 >= *scale && time.0.is_multiple_of(*scale);
    let (unit, scale) = units.iter().find(fits).unwrap_or(&("ns", 1));
    format!("{}{unit}", time.0 / scale)
}

/// Formats a part with those parameters that are `wanted`.
pub(super) fn with(part: &Part, wanted: impl Fn(&str, &Value) -> bool) -> String {
    let given = part.params.iter().filter(|(key, value)| !value.is_null() && wanted(key, value));
    let (last, first): (Vec<_>, Vec<_>) = given.partition(|(key, _)| *key == COMMAND);
    let params = first.into_iter().chain(last);
    let params: Vec<String> =
        params.map(|(key, one)| format!("{key}={}", value(&part.name, key, one))).collect();
    if params.is_empty() {
        part.name.clone()
    } else {
        format!("{}:{}", part.name, params.join(","))
    }
}

fn value(part: &str, key: &str, value: &Value) -> String {
    match (value, value.as_u64()) {
        (_, Some(number)) if is_a::<Nanos>(part, key) => written(Nanos(number)),
        (_, Some(number)) if is_a::<Bytes>(part, key) => Bytes(number).to_string(),
        (Value::Array(values), _) => values.iter().map(plain).collect::<Vec<_>>().join("/"),
        _ => plain(value),
    }
}

/// Whether a parameter is of type `T`. Plans keep bare numbers.
fn is_a<T: 'static>(part: &str, key: &str) -> bool {
    let wanted = TypeId::of::<T>();
    of_type(PROBES, part, key, wanted)
        || of_type(LOADS, part, key, wanted)
        || of_type(CALLS, part, key, wanted)
}

fn of_type<P: ?Sized>(table: &[Entry<P>], part: &str, key: &str, wanted: TypeId) -> bool {
    table.iter().filter(|entry| entry.about.name == part).any(|entry| {
        let keys = (entry.keys)();
        let mut arguments = keys.get_arguments();
        arguments.any(|one| one.get_id() == key && one.get_value_parser().type_id() == wanted)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_and_sizes_have_units() {
        let shown = |name: &str, params: Value| {
            let params = params.as_object().unwrap().clone();
            part(&Part { name: name.to_owned(), params })
        };
        let cyclic = shown("cyclic", json!({ "interval": 1_000_000, "priority": 90 }));
        assert_eq!(cyclic, "cyclic:interval=1ms,priority=90");
        assert_eq!(shown("populate", json!({ "size": 4 << 20 })), "populate:size=4MiB");
        let exec = shown("exec", json!({ "command": "cc -o a,b", "on": "probe" }));
        assert_eq!(exec, "exec:on=probe,command=cc -o a,b");
        assert_eq!(shown("none-of-ours", json!({ "size": 7 })), "none-of-ours:size=7");
    }
}
