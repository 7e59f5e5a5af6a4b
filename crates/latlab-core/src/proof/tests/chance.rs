//! Whether remedies are judged right: none without an effect is said to help, and each with one is.

use super::*;
use crate::machine::TimeDomain;
use crate::random::Random;
use proptest::prelude::*;

/// Runs without and with a remedy, in turns: samples of about 10 us, of which one in 40 takes about
/// 200 us, and `late` times as long with the remedy.
fn turns_of(pairs: u64, late: f64, random: &mut Random) -> (Vec<Record>, Vec<Record>) {
    let mut run = |started, late| {
        let samples = (0..1_000).map(|nth| {
            let base = if nth % 40 == 0 { 200.0 * late } else { 10.0 };
            let nanos = base * (900.0 + 200.0 * random.share());
            format!("{nanos:.0}").parse().expect("a time")
        });
        tests::record(started, &[(0, (samples.collect(), 0))])
    };
    (0..pairs).map(|pair| (run(4 * pair, 1.0), run(4 * pair + 1, late))).unzip()
}

#[test]
fn remedy_with_an_effect_is_found_by_six_pairs_among_three() {
    let mut random = Random::new(5);
    let (without, with) = turns_of(6, 0.05, &mut random);
    let judged = judge(&without, &with, 6, 3).unwrap();
    assert_eq!(judged.effect, Effect::Helped, "{judged:?}");
    let worst = &judged.figures[0];
    let longest = |runs: &[Record]| runs.iter().map(|run| run.series[0].max).max().unwrap();
    assert_eq!((worst.without, worst.with), (longest(&without), longest(&with)));
    let named_so = judged.figures.iter().filter(|figure| figure.name == "worst").count();
    assert_eq!((worst.name.as_str(), named_so), ("worst", 1), "{judged:?}");
    assert!((0.05..0.06).contains(&worst.ratio), "{worst:?}");
    let interval = worst.interval.unwrap();
    assert!(interval.low <= worst.ratio && worst.ratio <= interval.high, "{worst:?}");
    let judged = judge(&with, &without, 6, 3).unwrap();
    assert_eq!(judged.effect, Effect::Harmed, "{judged:?}");
}

/// 1 of 40 is the error rate that is claimed: of 400 remedies 10, and three standard deviations
/// more are 19.
#[test]
fn remedy_without_an_effect_seldom_helps() {
    let mut random = Random::new(6);
    let helps = |_: &u32| {
        let (without, with) = turns_of(6, 1.0, &mut random);
        judge(&without, &with, 6, 1).unwrap().effect != Effect::NoneShown
    };
    let wrong = (0..400).filter(helps).count();
    assert!(wrong <= 19, "{wrong} of 400");
}

#[test]
fn too_few_runs_are_not_judged() {
    let mut random = Random::new(7);
    let (without, with) = turns_of(2, 0.05, &mut random);
    assert_eq!(judge(&without, &with, 6, 1).unwrap().effect, Effect::Unknown);
}

#[test]
fn latencies_of_one_probe_have_different_names() {
    let mut random = Random::new(8);
    let (mut without, mut with) = turns_of(6, 0.05, &mut random);
    for record in without.iter_mut().chain(&mut with) {
        let mut other = record.series[0].clone();
        other.span.1 = "read returns".to_owned();
        record.series.push(other);
    }
    let judged = judge(&without, &with, 6, 1).unwrap();
    let mut names: Vec<&str> = judged.figures.iter().map(|figure| &*figure.probe).collect();
    names.dedup();
    let [first, second] = names[..] else { panic!("two names are expected: {names:?}") };
    assert!(second.ends_with(".read-returns"), "{names:?}");
    let proof = Proof {
        remedy: Remedy::Priority(98),
        causes: Vec::new(),
        pairs: 6,
        outcome: Outcome::Judged(judged.clone()),
    };
    let words = proof.sentence(|time| time.to_string());
    assert!(words.contains(&format!("{first} worst")), "{words}");
    assert!(words.contains(&format!("; {second} worst")), "{words}");
}

/// A run of a guest, whose time is exact.
fn counted(seed: u64, worst: u64) -> Record {
    let mut record = tests::record(0, &[(0, (vec![4_000, worst], 0))]);
    record.machine.time_domain = TimeDomain::Instructions;
    record.plan.seed = seed;
    record
}

#[test]
fn exact_runs_that_do_not_differ_are_judged_by_one_pair() {
    let judged = |a, b| judge(&[counted(1, a)], &[counted(1, b)], 6, 1).unwrap();
    let helped = judged(2_000_000, 4_700);
    assert_eq!(helped.effect, Effect::Helped);
    assert_eq!((helped.figures[0].interval, helped.figures[0].p), (None, None));
    assert_eq!(judged(4_700, 4_700).effect, Effect::NoneShown);
    assert_eq!(judged(4_700, 4_600).effect, Effect::NoneShown, "it is not worth a setting");
    assert_eq!(judged(4_700, 2_000_000).effect, Effect::Harmed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    /// Both sides are the same runs.
    #[test]
    fn remedy_that_changes_nothing_never_helps(seed in 0u64..1_000, pairs in 6u64..11) {
        let (without, _) = turns_of(pairs, 1.0, &mut Random::new(seed));
        let judged = judge(&without, &without, 10, 1).unwrap();
        prop_assert_eq!(judged.effect, Effect::NoneShown);
        prop_assert!(judged.figures.iter().all(|figure| (figure.ratio - 1.0).abs() < 1e-9));
    }
}
