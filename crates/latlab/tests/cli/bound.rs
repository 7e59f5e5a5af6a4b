//! `latlab bound`: no measured latency exceeds the composition of what its runs have shown.

use crate::program::{folder, latlab};
use serde_json::Value;
use std::fs;

fn bounds(text: &str) -> Vec<Value> {
    let value: Value = serde_json::from_str(text).expect("it is JSON");
    value["bounds"].as_array().expect("it has bounds").clone()
}

#[test]
fn bound_exceeds_every_measured_latency_and_is_the_same_twice() {
    let folder = folder();
    let file = folder.path().join("bounds.json");
    let words = "bound --on lab:rt --load none --load fork --seeds 1 --count 50";
    let first = latlab(&format!("{words} --json -o {}", file.display()));
    assert_eq!(first.code(), Some(0), "{first:?}");
    let second = latlab(&format!("{words} --json --jobs 1 --cold"));
    assert_eq!(second.stdout, first.stdout);
    assert_eq!(fs::read_to_string(&file).expect("it was written"), first.stdout);
    let bounds = bounds(&first.stdout);
    assert_eq!(bounds.len(), 2);
    for bound in &bounds {
        let ns = |value: &Value| value.as_u64().expect("it is a time");
        assert!(ns(&bound["bound"]["ns"]) >= ns(&bound["maximum"]), "{bound}");
        assert_eq!((&bound["runs"], &bound["samples"]), (&Value::from(1), &Value::from(50)));
        for term in ["poid", "st", "psd", "return"] {
            let section = &bound["bound"]["sections"][term];
            assert!(ns(&section["ns"]) > 0, "{bound}");
            assert_ne!(section["begin"], "", "{bound}");
        }
        assert_eq!(bound["bound"]["sections"]["return"]["end"], "[program]");
        let interrupts = bound["bound"]["interrupts"].as_array().expect("it has interrupts");
        let timer = interrupts.iter().find(|one| one["name"] == "sysvec_apic_timer_interrupt");
        assert!(timer.is_some_and(|timer| ns(&timer["times"]) > 0), "{bound}");
    }
}

/// Hours of seeds are not lost for a wrong path. A profile is looked for when it is measured.
#[test]
fn bound_for_a_file_that_cannot_be_written_is_refused_before_it_is_measured() {
    let output = latlab("bound --on lab:no-such -o /nonexistent/bounds.json");
    output.assert_refused(2, &["/nonexistent/bounds.json"]);
}

/// With few interrupts, the last of what the plugin writes was not in its file yet when it was read.
#[test]
fn kernel_with_few_interrupts_has_a_bound_of_all_samples() {
    let output = latlab("bound --on lab:standard --load procfs --seeds 1 --count 50 --json");
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert!(bounds(&output.stdout)[0]["samples"].as_u64() > Some(0), "{output:?}");
}

#[test]
fn target_without_sections_is_refused() {
    latlab("bound --on native").assert_refused(3, &["native", "--on lab:"]);
    latlab("bound --on vm:rt").assert_refused(3, &["vm:rt", "--on lab:"]);
    latlab("bound --on lab:rt --load nonsense").assert_refused(2, &["nonsense"]);
    latlab("bound").assert_refused(2, &["--on"]);
}

#[test]
fn text_names_terms_functions_and_assumptions() {
    let folder = folder();
    let picture = folder.path().join("bounds.svg");
    let words = format!("bound --on lab:rt --seeds 1 --count 50 --svg {}", picture.display());
    let output = latlab(&words);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let picture = fs::read_to_string(&picture).expect("it was drawn");
    assert!(picture.contains("none · bound"), "{picture}");
    let words =
        ["D_POID", "D_ST", "D_PSD", "return", "[program]", "sliding window", "no guarantee"];
    for word in words {
        assert!(output.stdout.contains(word), "no '{word}' in {}", output.stdout);
    }
}
