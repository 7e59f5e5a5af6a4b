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
            let to_the_next = signed(Nanos(resolution)).max(1);
            prop_assert!(region.end >= *end && region.end - end <= to_the_next, "{region:?}");
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
    assert_eq!(measurements, 10 * (102 + 2 * 5));
}

#[test]
fn looking_closer_takes_a_few_points_not_all_of_them() {
    let plan = ScanPlan { repeat: 3, ..plan(1) };
    let (found, measurements) = scan(&plan, &[(0, 482_000)], || 0);
    assert_eq!(found.regions[0].start, 0);
    assert_eq!(found.regions[0].end, 482_000);
    assert!(measurements < 3 * 140, "{measurements}");
}

#[test]
fn a_moment_whose_minimum_is_not_sure_is_measured_again() {
    let mut survey = Survey::new(&plan(100), Nanos(100_000));
    let first = survey.next();
    for offset in first.iter().copied().cycle().take(10 * first.len()) {
        let pdlt = Nanos(BASELINE);
        survey.add(offset, Measurement { offset, pdlt, irt: None, duration: Nanos(100_000) });
    }
    assert_eq!(survey.next(), [0; 0]);
    let (pdlt, duration) = (Nanos(1_000), Nanos(100_000));
    survey.add(0, Measurement { offset: 0, pdlt, irt: None, duration });
    assert_eq!(survey.next(), [0], "one that is lower than all others");
}

#[test]
fn whenever_time_is_up_all_moments_are_known_about_equally() {
    let mut survey = Survey::new(&plan(100), Nanos(100_000));
    let moments = survey.next().len();
    for _ in 0..moments + moments / 2 {
        let offset = survey.next()[0];
        let pdlt = Nanos(BASELINE);
        survey.add(offset, Measurement { offset, pdlt, irt: None, duration: Nanos(100_000) });
    }
    let found = survey.findings();
    assert_eq!((found.points.len(), found.regions), (moments, Vec::new()));
    assert!(found.points.iter().all(|point| (1..=2).contains(&point.repeats)));
    for pair in found.points.windows(3) {
        assert!(pair.iter().any(|point| point.repeats == 2), "{pair:?}");
    }
}

#[test]
fn what_strays_from_its_moment_does_not_count_there_and_is_not_tried_for_ever() {
    let mut survey = Survey::new(&plan(100), Nanos(100_000));
    let mut asked = 0;
    loop {
        let offsets = survey.next();
        if offsets.is_empty() {
            break;
        }
        for offset in offsets {
            // At one moment something else always runs, and the interrupt seems to come early.
            let strayed = offset == 50_000;
            asked += usize::from(strayed);
            let measured = if strayed { offset - 20_000 } else { offset };
            let (pdlt, irt) = (Nanos(if strayed { 1 } else { BASELINE }), None);
            let measurement = Measurement { offset: measured, pdlt, irt, duration: Nanos(100_000) };
            survey.add(offset, measurement);
        }
    }
    assert_eq!(asked, 20);
    let found = survey.findings();
    assert!(found.points.iter().all(|point| point.pdlt.min == Nanos(BASELINE)));
}

#[test]
fn points_stand_where_they_were_measured_not_where_they_were_wanted() {
    let mut survey = Survey::new(&plan(100), Nanos(100_000));
    for (asked, offset) in [(0, 900), (1_000, 500)] {
        let pdlt = Nanos(BASELINE);
        survey.add(asked, Measurement { offset, pdlt, irt: None, duration: Nanos(100_000) });
    }
    let offsets: Vec<Offset> = survey.findings().points.iter().map(|p| p.offset).collect();
    assert_eq!(offsets, [500, 900]);
}

#[test]
fn what_is_small_beside_the_longest_is_not_closed_in_on() {
    let turns = (0..500).map(|nth| (2_000_000 + nth * 4_000, 2_003_900 + nth * 4_000));
    let stretches: Vec<(i64, i64)> = std::iter::once((0, 2_000_000)).chain(turns).collect();
    let plan = ScanPlan { repeat: 3, ..plan(50) };
    let (found, measurements) = scan(&plan, &stretches, || 0);
    assert_eq!(found.regions.len(), 1);
    assert_eq!(found.regions[0].start, 0);
    let end = found.regions[0].end;
    assert!(end.abs_diff(2_000_000) < 4_000, "{end}: the next turn is late as well");
    assert!(measurements < 3 * 140, "{measurements}");
}

#[test]
fn a_begin_that_interrupts_stray_from_is_closed_in_on_between_its_neighbours() {
    let (stretches, duration) = ([(700, 480_000)], Nanos(480_000));
    let mut survey = Survey::new(&ScanPlan { repeat: 3, ..plan(50) }, duration);
    let mut at_begin = [-238, 20_000, 20_000].into_iter();
    loop {
        let offsets = survey.next();
        if offsets.is_empty() {
            break;
        }
        for asked in offsets {
            let offset = if asked == 0 { at_begin.next().expect("three times") } else { asked };
            // The one that does not stray is heard of when the stretch ends.
            let early = if asked == 0 && offset < 0 { 480_238 } else { 0 };
            let pdlt = late(&stretches, offset) + Nanos(early);
            survey.add(asked, Measurement { offset, pdlt, irt: None, duration });
        }
    }
    let regions = survey.findings().regions;
    assert!(regions.len() == 1 && regions[0].start.abs_diff(700) <= 50, "{regions:?}");
}
