//! Tests of claims: units, chains, brackets, missing results, errors.

use super::*;
use proptest::prelude::*;

fn results() -> Vec<NamedValue> {
    let of = |name: &str, time, value| NamedValue { name: name.to_owned(), time, value };
    vec![
        of("rt.worst", 1, Some(399_500_000.0)),
        of("rt-adapted.worst", 1, Some(90_000.0)),
        of("standard.worst", 1, None),
        of("rt.switches", 0, Some(1000.0)),
        of("g3.rt.time", 1, Some(3e6)),
        of("g40.rt.time", 1, Some(40e6)),
    ]
}

fn judged(text: &str) -> Judgement {
    let claim = Claim::read(text).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
    claim.check(&results()).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
    claim.judge(&results())
}

fn refused(text: &str) -> (usize, String) {
    let fault = Claim::read(text).and_then(|claim| claim.check(&results())).unwrap_err();
    (fault.at, fault.why)
}

#[test]
fn true_claims_hold_and_false_claims_differ() {
    let holds = [
        "rt.worst > 100us",
        "390ms <= rt.worst <= 410ms",
        "rt-adapted.worst < 100us and rt.worst / rt-adapted.worst > 1000",
        "rt-adapted.worst < rt.worst / 100",
        "rt-adapted.worst + 10us <= 100us",
        "(rt.worst - rt-adapted.worst) * 2 >= 700ms",
        "rt-adapted.worst <= 85% * rt.worst",
        "max(g3.rt.time, g40.rt.time) > 30ms",
        "max(*.rt.time) > 30ms and min(*.rt.time) < 5ms and mean(*.rt.time) > 21ms",
        "rt.switches >= 1000",
        "2 + 3 * 4 < 15 and 10 - 2 - 3 < 6",
        "2 + 1 == 3 and rt.switches == rt.switches >= 1000",
    ];
    for text in holds {
        assert_eq!(judged(text).verdict, ClaimVerdict::Holds, "{text}");
    }
    for text in [
        "rt.worst < 100us",
        "1ms < rt.worst < 2ms",
        "rt.switches == 5",
        "0 < 1 and rt.switches < 5",
    ] {
        assert_eq!(judged(text).verdict, ClaimVerdict::Differs, "{text}");
    }
}

#[test]
fn value_that_is_no_number_is_not_passed_over() {
    let zero = "(rt.switches - 1000)";
    for text in [
        format!("max({zero} / {zero}, 0.5) < 1"),
        format!("min(rt.switches / {zero}, 0.5) < 1"),
        format!("mean({zero} / {zero}, 0.5) < 1"),
    ] {
        let verdict = judged(&text).verdict;
        assert!(matches!(verdict, ClaimVerdict::NotMeasured(_)), "{text}: {verdict:?}");
    }
}

#[test]
fn judgement_lists_the_compared_values() {
    let judgement = judged("390ms <= rt.worst and rt.worst / rt-adapted.worst > 9");
    let told: Vec<String> =
        judgement.compared.iter().map(|(text, value)| format!("{text} is {value}")).collect();
    assert_eq!(told, ["rt.worst is 399.5 ms", "rt.worst / rt-adapted.worst is 4439"]);
}

#[test]
fn claim_over_missing_results_is_not_measured() {
    let missing = |name: &str| ClaimVerdict::NotMeasured(vec![name.to_owned()]);
    assert_eq!(judged("standard.worst >= 0s").verdict, missing("standard.worst"));
    assert_eq!(judged("max(*.worst) > 1us").verdict, missing("standard.worst"));
    assert_eq!(judged("0 > 1 and standard.worst > 0s").verdict, missing("standard.worst"));
    let nonsense = judged("rt.worst / (rt.worst - rt.worst) > 5");
    assert!(matches!(nonsense.verdict, ClaimVerdict::NotMeasured(_)), "{nonsense:?}");
}

#[test]
fn syntax_errors_are_reported_with_their_position() {
    let (at, why) = refused("rt.wurst < 100us");
    assert_eq!(at, 0);
    assert!(why.contains("'rt.wurst'") && why.contains("rt.worst"), "{why}");
    let (at, why) = refused("rt.worst < 100");
    assert_eq!(at, 11);
    assert!(why.contains("a time and a number") && why.contains("unit"), "{why}");
    let (at, why) = refused("rt.worst");
    assert_eq!(at, 8);
    assert!(why.contains("expected a comparison") && why.contains("found the end"), "{why}");
    let (at, why) = refused("rt.worst < (5ms");
    assert_eq!(at, 15);
    assert!(why.contains("')'"), "{why}");
    let (at, why) = refused("rt.worst = 5ms");
    assert_eq!(at, 9);
    assert!(why.contains("'='"), "{why}");
    let (at, why) = refused("rt.worst < 5parsecs");
    assert_eq!(at, 11);
    assert!(why.contains("5parsecs"), "{why}");
    let (_, why) = refused("*.worst < 5ms");
    assert!(why.contains("3 results") && why.contains("max(*.worst)"), "{why}");
    let (_, why) = refused("rt.worst-rt-adapted.worst < 5ms");
    assert!(why.contains("spaces around"), "{why}");
    let (_, why) = refused("most(rt.worst) < 5ms");
    assert!(why.contains("max, min or mean"), "{why}");
    let (_, why) = refused(&format!("{}1{} < 2", "(".repeat(60), ")".repeat(60)));
    assert!(why.contains("nested"), "{why}");
    let (_, why) = refused(&format!("1{} < 2", " + 1".repeat(50_000)));
    assert_eq!(why, "a claim has at most 10000 characters");
}

/// An expression of times that is never zero, and its value in nanoseconds.
fn times() -> impl Strategy<Value = (String, f64)> {
    let leaf = (1u32..1_000_000).prop_map(|n| (format!("{n}us"), f64::from(n) * 1e3));
    leaf.prop_recursive(4, 32, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| (format!("({} + {})", a.0, b.0), a.1 + b.1)),
            (inner.clone(), 1u32..9)
                .prop_map(|(a, n)| (format!("{n} * {}", a.0), f64::from(n) * a.1)),
            (inner.clone(), inner)
                .prop_map(|(a, b)| { (format!("max({}, {})", a.0, b.0), a.1.max(b.1)) }),
        ]
    })
}

proptest! {
    #[test]
    fn expression_has_the_expected_value((text, value) in times()) {
        let (less, more) = (value * 0.999_999, value * 1.000_001);
        let claim = Claim::read(&format!("{less:.0}ns <= {text} <= {:.0}ns", more + 1.0)).unwrap();
        claim.check(&[]).unwrap();
        prop_assert_eq!(claim.judge(&[]).verdict, ClaimVerdict::Holds);
        // A time can't be compared with a number.
        let number = Claim::read(&format!("{text} > 5")).unwrap();
        prop_assert!(number.check(&[]).is_err());
        // A ratio of two times is a number.
        let ratio = Claim::read(&format!("({text}) / ({text}) >= 1")).unwrap();
        prop_assert!(ratio.check(&[]).is_ok());
        prop_assert_eq!(ratio.judge(&[]).verdict, ClaimVerdict::Holds);
    }

    #[test]
    fn less_and_at_least_are_opposites(a in 0u32..1000, b in 0u32..1000) {
        let holds = |text: String| Claim::read(&text).unwrap().judge(&[]).verdict == ClaimVerdict::Holds;
        prop_assert_eq!(holds(format!("{a}us < {b}us")), !holds(format!("{a}us >= {b}us")));
        prop_assert_eq!(holds(format!("{a}us < {b}us")), holds(format!("{b}us > {a}us")));
    }

    #[test]
    fn claim_over_a_missing_result_never_holds(text in "(max\\(missing[.]x, 5us\\)|missing[.]x \\* 2|missing[.]x)") {
        let results = [NamedValue { name: "missing.x".to_owned(), time: 1, value: None }];
        for claim in [format!("{text} > 0s"), format!("{text} <= 1h and 1 < 2")] {
            let claim = Claim::read(&claim).unwrap();
            claim.check(&results).unwrap();
            prop_assert!(matches!(claim.judge(&results).verdict, ClaimVerdict::NotMeasured(_)));
        }
    }

    #[test]
    fn parser_never_panics(text in "[a-z0-9.()<>=*/+, -]{0,40}|.{0,20}") {
        if let Ok(claim) = Claim::read(&text) {
            let _ = claim.check(&results());
            let _ = claim.judge(&results());
        }
    }
}
