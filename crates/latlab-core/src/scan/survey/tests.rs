//! A kernel made of numbers is scanned, and what it is made of must be found.

use super::super::ScanPlan;
use super::*;
use crate::plan::Part;
use proptest::prelude::*;

const BASELINE: u64 = 3_200;

fn plan(resolution: u64) -> ScanPlan {
    let call = Part { name: "made-up".to_owned(), params: serde_json::Map::new() };
    let (points, repeat) = (100, 20);
    let (resolution, limit) = (Nanos(resolution), Nanos::from_secs(60));
    ScanPlan { call, points, resolution, repeat, interrupt: None, limit }
}

/// How late the task is when the interrupt comes at `offset` and the stretches between these
/// moments can't be preempted.
fn late(stretches: &[(i64, i64)], offset: Offset) -> Nanos {
    let within = stretches.iter().find(|(start, end)| (*start..*end).contains(&offset));
    Nanos(BASELINE + within.map_or(0, |(_, end)| end.abs_diff(offset)))
}

/// Scans until nothing is left to look at. What `noise` gives is added to what is measured.
fn scan(
    plan: &ScanPlan,
    stretches: &[(i64, i64)],
    mut noise: impl FnMut() -> u64,
) -> (Findings, usize) {
    let duration = Nanos(stretches.last().map_or(100_000, |(_, end)| end.unsigned_abs()));
    let mut survey = Survey::new(plan, duration);
    let mut measurements = 0;
    loop {
        let offsets = survey.next();
        if offsets.is_empty() {
            return (survey.findings(), measurements);
        }
        measurements += offsets.len();
        assert!(measurements < 100_000, "it comes to an end");
        for offset in offsets {
            let pdlt = late(stretches, offset) + Nanos(noise());
            survey.add(offset, Measurement { offset, pdlt, irt: None, duration });
        }
    }
}

/// Stretches one after another, some with a gap before them.
fn stretches() -> impl Strategy<Value = Vec<(i64, i64)>> {
    let stretch = (prop_oneof![Just(0), 20_000i64..50_000], 20_000i64..200_000);
    proptest::collection::vec(stretch, 1..6).prop_map(|lengths| {
        let mut at = 0;
        let place = |(gap, length): (i64, i64)| {
            let start = at + gap;
            at = start + length;
            (start, at)
        };
        lengths.into_iter().map(place).collect()
    })
}

proptest! {
    #[test]
    fn every_stretch_is_found_with_its_edges(stretches in stretches(), resolution in 1u64..500) {
        let (found, _) = scan(&plan(resolution), &stretches, || 0);
        prop_assert_eq!(found.baseline, Nanos(BASELINE));
        prop_assert_eq!(found.regions.len(), stretches.len());
        for (region, (start, end)) in found.regions.iter().zip(&stretches) {
            prop_assert!(region.start >= *start && region.start - start <= signed(Nanos(resolution)).max(1));
            prop_assert!(region.end.abs_diff(*end) <= SAME);
            prop_assert_eq!(region.peak, late(&stretches, region.start));
        }
    }

    #[test]
    fn what_only_ever_makes_later_does_not_hide_the_stretches(seed in any::<u64>()) {
        let mut random = crate::random::Random::new(seed);
        // Most measurements are a little late, some are very late, and none is early.
        let mut below = |limit| random.next().unwrap_or_default() % limit;
        let noise = || if below(10) == 0 { below(50_000) } else { below(400) };
        let stretches = [(5_000, 105_000), (155_000, 255_000)];
        let (found, _) = scan(&plan(500), &stretches, noise);
        // Now and then noise looks like a region, but only like a short one.
        let long = found.regions.iter().filter(|region| region.length() > Nanos(5_000));
        prop_assert_eq!(long.clone().count(), 2);
        for (region, (start, end)) in long.zip(&stretches) {
            prop_assert!(region.start.abs_diff(*start) <= 2_000, "{region:?}");
            prop_assert!(region.end.abs_diff(*end) <= 2_000, "{region:?}");
        }
    }
}

#[test]
fn a_call_that_can_be_preempted_everywhere_has_no_region_and_no_edges() {
    let (found, measurements) = scan(&plan(1), &[], || 0);
    assert_eq!((found.regions, found.noise), (Vec::new(), Nanos(0)));
    assert_eq!(measurements, 3 * (102 + 2 * 5));
}

#[test]
fn looking_closer_takes_a_few_points_not_all_of_them() {
    let (found, measurements) = scan(&plan(1), &[(0, 482_000)], || 0);
    assert_eq!((found.regions[0].start, found.regions[0].end), (0, 482_000));
    assert!(measurements < 3 * 140, "{measurements}");
}

#[test]
fn a_moment_whose_minimum_is_not_sure_is_measured_again() {
    let mut survey = Survey::new(&plan(100), Nanos(100_000));
    for offset in survey.next() {
        let pdlt = Nanos(BASELINE);
        survey.add(offset, Measurement { offset, pdlt, irt: None, duration: Nanos(100_000) });
    }
    assert_eq!(survey.next(), [0; 0]);
    survey.add(0, Measurement { offset: 0, pdlt: Nanos(1_000), irt: None, duration: Nanos(0) });
    assert_eq!(survey.next(), [0], "one that is lower than all others");
}
