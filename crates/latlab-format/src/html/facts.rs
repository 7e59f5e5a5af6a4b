//! Tables of the facts about a measurement: plan, loads, changed settings, machine.

use super::Scope;
use super::side_by_side;
use super::table::{number, per_record, words};
use crate::{grouped, micro, part, plain, scan};
use latlab_core::plan::{Length, Part, Plan, ScanPlan};
use latlab_core::record::Record;
use maud::{Markup, html};
use serde_json::Value;

/// All tables of facts; one without rows is left out.
pub(super) fn tables(scope: Scope<'_>) -> Markup {
    html! {
        (parameters(scope))
        (side_by_side::section(scope, "Machine", machine))
    }
}

/// The tables of facts without the machine.
pub(super) fn parameters(scope: Scope<'_>) -> Markup {
    html! {
        (side_by_side::section(scope, "Parameters", |record| plan(&record.plan)))
        (loads(scope))
        (changes(scope))
    }
}

fn plan(plan: &Plan) -> Vec<(String, String)> {
    let parts = |parts: &[Part]| parts.iter().map(part).collect::<Vec<_>>().join("  ");
    let scans = plan.scans.iter().map(scan_plan).collect::<Vec<_>>();
    let settings = plan.settings.iter().map(|s| format!("{}={}", s.knob, s.value));
    let length = match plan.length {
        Length::For(time) => micro(time),
        Length::Count(count) => format!("{} periods", grouped(count)),
    };
    let cgroup = plan.cgroup.clone().unwrap_or_default();
    let facts = [
        ("probes", parts(&plan.probes)),
        ("scans", scans.join("  ")),
        ("loads", parts(&plan.loads)),
        ("target", plan.target.clone()),
        ("CPUs", plan.cpus.to_string()),
        ("length", length),
        ("warm-up", micro(plan.warm_up)),
        ("seed", plan.seed.to_string()),
        ("stop above", plan.stop_above.map(micro).unwrap_or_default()),
        ("fail above", plan.fail_above.map(micro).unwrap_or_default()),
        ("housekeeping CPUs", plan.housekeeping.to_string()),
        ("control group", cgroup),
        ("settings", settings.collect::<Vec<_>>().join("  ")),
        ("adapted by", plan.adapt.join("  ")),
    ];
    facts.map(|(name, value)| (name.to_owned(), value)).into()
}

fn scan_plan(plan: &ScanPlan) -> String {
    format!(
        "{} ({} points, edges to {}, up to {} times each, in at most {})",
        scan::call(&plan.call),
        plan.points,
        micro(plan.resolution),
        plan.repeat,
        micro(plan.limit),
    )
}

/// Every fact about the machine that the record holds, new fields included.
pub(super) fn machine(record: &Record) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let value = serde_json::to_value(&record.machine).expect("a machine is plain data");
    flatten("", &value, &mut facts);
    facts
}

fn flatten(name: &str, value: &Value, facts: &mut Vec<(String, String)>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (key, value) in fields {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                flatten(&name, value, facts);
            }
        }
        _ => facts.push((name.to_owned(), plain(value))),
    }
}

fn loads(scope: Scope<'_>) -> Markup {
    let columns = [words("load"), number("done"), words("unit"), number("CPU time")];
    per_record(scope, "Work done by the loads", &columns, |record| {
        let work = record.work.iter().map(|work| {
            vec![work.load.clone(), grouped(work.done), work.unit.clone(), micro(work.cpu_ns)]
        });
        work.collect()
    })
}

fn changes(scope: Scope<'_>) -> Markup {
    let columns = [words("knob"), words("old"), words("new"), words("reason"), words("restored")];
    per_record(scope, "Changed settings", &columns, |record| {
        let changes = record.changes.iter().map(|change| {
            let restored = if change.restored { "yes" } else { "NO" };
            vec![
                change.knob.clone(),
                change.old.clone(),
                change.new.clone(),
                change.reason.clone(),
                restored.to_owned(),
            ]
        });
        changes.collect()
    })
}
