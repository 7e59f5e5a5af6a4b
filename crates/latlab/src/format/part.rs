//! Parts of a plan as on the command line, with the units of times and sizes.

use super::plain;
use super::scan::written;
use crate::call::CALLS;
use crate::load::LOADS;
use crate::part::Entry;
use crate::probe::PROBES;
use latlab_core::plan::Part;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use serde_json::Value;
use std::any::TypeId;

/// Formats a probe, load or call as on the command line.
pub(crate) fn part(part: &Part) -> String {
    let value = |key: &str, value: &Value| match value.as_u64() {
        Some(number) if is_a::<Nanos>(&part.name, key) => written(Nanos(number)),
        Some(number) if is_a::<Bytes>(&part.name, key) => Bytes(number).to_string(),
        _ => plain(value),
    };
    let params: Vec<String> =
        part.params.iter().map(|(key, one)| format!("{key}={}", value(key, one))).collect();
    if params.is_empty() {
        part.name.clone()
    } else {
        format!("{}:{}", part.name, params.join(","))
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
        assert_eq!(shown("none-of-ours", json!({ "size": 7 })), "none-of-ours:size=7");
    }
}
