//! Tests of the survey on simulated calls whose non-preemptible sections are known.

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

/// The latency of an interrupt at `offset` in a call with these non-preemptible sections.
fn late(sections: &[(i64, i64)], offset: Offset) -> Nanos {
    let within = sections.iter().find(|(start, end)| (*start..*end).contains(&offset));
    Nanos(BASELINE + within.map_or(0, |(_, end)| end.abs_diff(offset)))
}

/// Scans until the survey is complete. Adds `noise` to each measurement.
fn scan(
    plan: &ScanPlan,
    sections: &[(i64, i64)],
    mut noise: impl FnMut() -> u64,
) -> (SurveyFindings, usize) {
    let duration = Nanos(sections.last().map_or(100_000, |(_, end)| end.unsigned_abs()));
    let mut survey = Survey::new(plan, duration);
    let mut measurements = 0;
    loop {
        let offsets = survey.next();
        if offsets.is_empty() {
            return (survey.findings(), measurements);
        }
        measurements += offsets.len();
        assert!(measurements < 100_000, "the survey ends");
        for offset in offsets {
            let pdlt = late(sections, offset) + Nanos(noise());
            survey.add(offset, Measurement { offset, pdlt, irt: None, duration });
        }
    }
}

/// Consecutive sections, some with a gap before them.
fn any_sections() -> impl Strategy<Value = Vec<(i64, i64)>> {
    let section = (prop_oneof![Just(0), 20_000i64..50_000], 20_000i64..200_000);
    proptest::collection::vec(section, 1..6).prop_map(|lengths| {
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
    fn survey_finds_every_section_with_its_edges(sections in any_sections(), resolution in 1u64..500) {
        let (found, _) = scan(&plan(resolution), &sections, || 0);
        prop_assert_eq!(found.baseline, Nanos(BASELINE));
        prop_assert_eq!(found.sections.len(), sections.len());
        for (section, (start, end)) in found.sections.iter().zip(&sections) {
            prop_assert!(section.start >= *start && section.start - start <= signed(Nanos(resolution)).max(1));
            let to_the_next = signed(Nanos(resolution)).max(1);
            prop_assert!(section.end >= *end && section.end - end <= to_the_next, "{section:?}");
            prop_assert_eq!(section.peak, late(&sections, section.start));
        }
    }

    #[test]
    fn survey_finds_sections_despite_noise(seed in any::<u64>()) {
        let mut random = crate::random::Random::new(seed);
        // Most measurements are a little late, some are very late, and none is early.
        let mut below = |limit| random.next().unwrap_or_default() % limit;
        let noise = || if below(10) == 0 { below(50_000) } else { below(400) };
        let sections = [(5_000, 105_000), (155_000, 255_000)];
        let (found, _) = scan(&plan(500), &sections, noise);
        // Now and then noise looks like a section, but only like a short one.
        let long = found.sections.iter().filter(|section| section.length() > Nanos(5_000));
        prop_assert_eq!(long.clone().count(), 2);
        for (section, (start, end)) in long.zip(&sections) {
            prop_assert!(section.start.abs_diff(*start) <= 2_000, "{section:?}");
            prop_assert!(section.end.abs_diff(*end) <= 2_000, "{section:?}");
        }
    }
}

#[test]
fn preemptible_call_has_no_sections_and_no_edges() {
    let (found, measurements) = scan(&plan(1), &[], || 0);
    assert_eq!((found.sections, found.noise), (Vec::new(), Nanos(0)));
    assert_eq!(measurements, 10 * (102 + 2 * 5));
}

#[test]
fn survey_locates_edges_with_few_measurements() {
    let plan = ScanPlan { repeat: 3, ..plan(1) };
    let (found, measurements) = scan(&plan, &[(0, 482_000)], || 0);
    assert_eq!(found.sections[0].start, 0);
    assert_eq!(found.sections[0].end, 482_000);
    assert!(measurements < 3 * 140, "{measurements}");
}

#[test]
fn moment_with_an_unconfirmed_minimum_is_measured_again() {
    let mut survey = Survey::new(&plan(100), Nanos(100_000));
    let first = survey.next();
    for offset in first.iter().copied().cycle().take(10 * first.len()) {
        let pdlt = Nanos(BASELINE);
        survey.add(offset, Measurement { offset, pdlt, irt: None, duration: Nanos(100_000) });
    }
    assert_eq!(survey.next(), [0; 0]);
    let (pdlt, duration) = (Nanos(1_000), Nanos(100_000));
    survey.add(0, Measurement { offset: 0, pdlt, irt: None, duration });
    assert_eq!(survey.next(), [0], "a minimum far below all others");
}

#[test]
fn interrupted_survey_has_measured_all_moments_about_equally() {
    let mut survey = Survey::new(&plan(100), Nanos(100_000));
    let moments = survey.next().len();
    for _ in 0..moments + moments / 2 {
        let offset = survey.next()[0];
        let pdlt = Nanos(BASELINE);
        survey.add(offset, Measurement { offset, pdlt, irt: None, duration: Nanos(100_000) });
    }
    let found = survey.findings();
    assert_eq!((found.points.len(), found.sections), (moments, Vec::new()));
    assert!(found.points.iter().all(|point| (1..=2).contains(&point.repeats)));
    for pair in found.points.windows(3) {
        assert!(pair.iter().any(|point| point.repeats == 2), "{pair:?}");
    }
}

#[test]
fn stray_measurements_do_not_count_and_are_not_repeated_for_ever() {
    let mut survey = Survey::new(&plan(100), Nanos(100_000));
    let mut asked = 0;
    loop {
        let offsets = survey.next();
        if offsets.is_empty() {
            break;
        }
        for offset in offsets {
            // At one moment another task always runs, and the interrupt seems to come early.
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
fn points_are_at_measured_not_at_requested_moments() {
    let mut survey = Survey::new(&plan(100), Nanos(100_000));
    for (asked, offset) in [(0, 900), (1_000, 500)] {
        let pdlt = Nanos(BASELINE);
        survey.add(asked, Measurement { offset, pdlt, irt: None, duration: Nanos(100_000) });
    }
    let offsets: Vec<Offset> = survey.findings().points.iter().map(|p| p.offset).collect();
    assert_eq!(offsets, [500, 900]);
}

#[test]
fn sections_far_shorter_than_the_longest_are_not_located() {
    let turns = (0..500).map(|turn| (2_000_000 + turn * 4_000, 2_003_900 + turn * 4_000));
    let sections: Vec<(i64, i64)> = std::iter::once((0, 2_000_000)).chain(turns).collect();
    let plan = ScanPlan { repeat: 3, ..plan(50) };
    let (found, measurements) = scan(&plan, &sections, || 0);
    assert_eq!(found.sections.len(), 1);
    assert_eq!(found.sections[0].start, 0);
    let end = found.sections[0].end;
    assert!(end.abs_diff(2_000_000) < 4_000, "{end}: the next turn is late as well");
    assert!(measurements < 3 * 140, "{measurements}");
}

#[test]
fn edge_with_stray_measurements_is_located_between_its_neighbours() {
    let (sections, duration) = ([(700, 480_000)], Nanos(480_000));
    let mut survey = Survey::new(&ScanPlan { repeat: 3, ..plan(50) }, duration);
    let mut at_begin = [-238, 20_000, 20_000].into_iter();
    loop {
        let offsets = survey.next();
        if offsets.is_empty() {
            break;
        }
        for asked in offsets {
            let offset = if asked == 0 { at_begin.next().expect("three times") } else { asked };
            // The task of the one that does not stray runs at the end of the section.
            let early = if asked == 0 && offset < 0 { 480_238 } else { 0 };
            let pdlt = late(&sections, offset) + Nanos(early);
            survey.add(asked, Measurement { offset, pdlt, irt: None, duration });
        }
    }
    let sections = survey.findings().sections;
    assert!(sections.len() == 1 && sections[0].start.abs_diff(700) <= 50, "{sections:?}");
}

#[test]
fn edge_whose_middle_is_measured_elsewhere_is_located_from_the_quarters() {
    let (sections, duration) = ([(0, 50_100), (50_100, 100_000)], Nanos(100_000));
    let mut survey = Survey::new(&ScanPlan { repeat: 3, ..plan(50) }, duration);
    loop {
        let offsets = survey.next();
        if offsets.is_empty() {
            break;
        }
        for asked in offsets {
            let offset = if asked == 50_500 { 49_900 } else { asked };
            let pdlt = late(&sections, offset);
            survey.add(asked, Measurement { offset, pdlt, irt: None, duration });
        }
    }
    let sections = survey.findings().sections;
    assert!(sections.len() == 2 && sections[1].start.abs_diff(50_100) <= 50, "{sections:?}");
}

/// A survey of a call of 100 us that ended after these moments were measured.
fn unfinished(measured: &[(Offset, u64)]) -> Vec<Section> {
    let duration = Nanos(100_000);
    let mut survey = Survey::new(&plan(100), duration);
    for (offset, late) in measured.iter().copied().cycle().take(3 * measured.len()) {
        let pdlt = Nanos(BASELINE + late);
        survey.add(offset, Measurement { offset, pdlt, irt: None, duration });
    }
    survey.findings().sections
}

#[test]
fn section_of_unfinished_survey_is_no_longer_than_its_wait() {
    let outside = [(-4_000, 0), (-2_000, 0), (102_000, 0), (104_000, 0)];
    let sections = unfinished(&[&outside[..], &[(11_000, 9_000), (75_000, 5_000)]].concat());
    let found: Vec<_> = sections.iter().map(|section| (section.start, section.end)).collect();
    assert_eq!(found, [(11_000, 20_000), (75_000, 80_000)]);
}

#[test]
fn wait_after_the_end_of_the_call_is_no_section() {
    let late =
        [(-4_000, 0), (-2_000, 0), (50_000, 0), (100_001, 9_000), (106_000, 0), (108_000, 0)];
    assert_eq!(unfinished(&late), []);
}
