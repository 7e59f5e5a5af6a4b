//! Tests of the checks: for each, a machine that has the problem, and its severity.

use super::*;
use cases::{cases, innocent, merge};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

mod cases;

fn findings(machine: &Value) -> Vec<Finding> {
    diagnose(&serde_json::from_value(machine.clone()).expect("the tables hold machines"))
}

fn find(machine: &Value, code: &str) -> Option<Finding> {
    findings(machine).into_iter().find(|finding| finding.code == code)
}

#[test]
fn each_check_finds_its_problem() {
    for (code, severity, machine) in cases() {
        let found = find(&machine, code).unwrap_or_else(|| panic!("{code} not in {machine}"));
        assert_eq!(found.severity.word(), severity, "{code} in {machine}");
    }
}

#[test]
fn each_check_has_a_test_case() {
    let tested: BTreeSet<&str> = cases().into_iter().map(|(code, ..)| code).collect();
    assert_eq!(codes().collect::<BTreeSet<_>>(), tested);
}

#[test]
fn checks_ignore_similar_machines_without_the_problem() {
    for (code, machine) in innocent() {
        assert!(codes().any(|known| known == code), "{code} is not a code");
        assert_eq!(find(&machine, code), None, "{machine}");
    }
}

#[test]
fn unknown_machine_has_no_findings() {
    assert_eq!(diagnose(&Machine::default()), []);
}

#[test]
fn codes_are_unique_and_in_kebab_case() {
    let mut seen = BTreeSet::new();
    for code in codes() {
        assert!(seen.insert(code), "{code} twice");
        let kebab = |c: char| c.is_ascii_lowercase() || c == '-';
        assert!(code.chars().all(kebab) && code.starts_with(char::is_alphabetic), "{code}");
    }
}

#[test]
fn findings_are_complete_sentences() {
    for (code, _, machine) in cases() {
        let found = find(&machine, code).expect("tested above");
        for text in [&found.what, &found.why, &found.remedy] {
            assert!(!text.is_empty() && !text.contains("  ") && text.trim() == text, "{text:?}");
        }
        assert!(found.why.starts_with(char::is_uppercase), "{}", found.why);
        assert!(found.why.ends_with('.'), "{}", found.why);
        assert!(!found.what.ends_with('.'), "{}", found.what);
    }
}

#[test]
fn knobs_in_remedies_exist() {
    const KNOBS: &[&str] = &[
        "rt_runtime_us",
        "fair_server",
        "cpu_dma_latency",
        "governor",
        "boost",
        "idle_latency",
        "nmi_watchdog",
        "timer_migration",
        "numa_balancing",
        "transparent_hugepage",
        "ksm",
        "swappiness",
        "stat_interval",
    ];
    for (code, _, machine) in cases() {
        let remedy = find(&machine, code).expect("tested above").remedy;
        for after in remedy.split("--set ").skip(1) {
            let knob = after.split('=').next().unwrap_or_default();
            assert!(KNOBS.contains(&knob), "{code}: {remedy}");
        }
    }
}

#[test]
fn throttle_of_the_kernel_is_named_with_its_own_command() {
    let of = |kernel: &str, config: &str| {
        let machine = json!({"kernel": kernel, "rt_runtime_us": 950_000, "config": {config: "y"},
            "scheduling": {"fair_server": {"runtime_ns": 50_000_000, "period_ns": 1_000_000_000}}});
        find(&machine, "rt-throttled").expect("tested above")
    };
    let server = of("6.12.0", "CONFIG_PREEMPT_RT");
    assert!(server.what.contains("fair server") && server.what.contains("50000 us"), "{server:?}");
    assert!(server.remedy.ends_with("`latlab run --set fair_server=0`"), "{server:?}");
    assert!(server.why.contains("sched_rt_runtime_us does not limit"), "{server:?}");
    let both = of("6.12.0", "CONFIG_RT_GROUP_SCHED");
    assert!(both.what.starts_with("real-time tasks may run 950000 us"), "{both:?}");
    assert!(both.remedy.contains("--set rt_runtime_us=-1 --set fair_server=0"), "{both:?}");
    let older = json!({"kernel": "6.1.0", "rt_runtime_us": 950_000});
    let older = find(&older, "rt-throttled").expect("tested above");
    assert!(older.remedy.ends_with("`latlab run --set rt_runtime_us=-1`"), "{older:?}");
    assert!(!older.what.contains("fair server"), "{older:?}");
}

#[test]
fn severity_words_are_those_of_json() {
    for severity in Severity::ALL {
        assert_eq!(serde_json::to_value(severity).unwrap(), severity.word());
    }
    assert!(Severity::ALL.is_sorted());
}

proptest! {
    /// Any combination of the cases, with numbers of any size, gives sorted findings.
    #[test]
    fn diagnosis_of_any_machine_is_sorted(
        parts in proptest::sample::subsequence(cases(), 0..=12),
        numbers in any::<[u64; 6]>(),
        runtime in any::<i64>(),
        held in any::<i32>(),
        kernel in "[0-9.a-z-]{0,12}",
        cmdline in "[a-z0-9=, -]{0,40}",
    ) {
        let mut machine = json!({"kernel": kernel, "cmdline": cmdline, "rt_runtime_us": runtime,
            "hz": 0, "timer_resolution_ns": numbers[0],
            "scheduling": {"rt_period_us": numbers[1], "watchdog_thresh": u32::MAX},
            "counters": {"uptime_s": numbers[2], "steal_ticks": numbers[3], "throttles": 0},
            "memory": {"swap_kib": numbers[4], "swap_used_kib": numbers[5]},
            "processor": {"idle": {"cpu_dma_latency_us": held}}});
        for (_, _, part) in &parts {
            merge(&mut machine, part);
        }
        let found = findings(&machine);
        prop_assert!(found.is_sorted_by_key(|finding| (finding.severity, finding.code.clone())));
        let machine: Machine = serde_json::from_value(machine).unwrap();
        let text = serde_json::to_string(&machine).unwrap();
        prop_assert_eq!(serde_json::from_str::<Machine>(&text).unwrap(), machine);
    }
}
