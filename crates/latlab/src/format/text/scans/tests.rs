//! What a terminal shows of scans.

use super::*;
use crate::format::picture::tests::sample_scan;

/// The summary of the sample scan in this place.
fn shown(n: usize) -> String {
    of(&sample_scan::scans()[n])
}

#[test]
fn the_regions_stand_below_what_was_scanned() {
    let text = shown(0);
    let mut lines = text.lines();
    let first = lines.next().unwrap();
    assert!(first.starts_with("populate:size=4MiB on standard on CPU 1: takes 482 us, "), "{text}");
    assert!(first.ends_with("interrupt: driver"), "{text}");
    let sentence = lines.next().unwrap();
    assert_eq!(sentence, "one stretch can't be preempted: 482 us, beginning 0 ns into the call");
    assert!(lines.next().unwrap().ends_with("function"), "{text}");
    let words: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(words, ["0.000", "482.000", "482.000", "485.200", "clear_huge_page"]);
    assert_eq!(lines.next(), None);
}

#[test]
fn of_many_regions_the_longest_are_shown_in_their_order() {
    let mut scan = sample_scan::scans().swap_remove(0);
    let region = |n: i64| Region {
        start: 10_000 * n,
        end: 10_000 * n + 100 * (20 - n),
        peak: Nanos(5_000),
        function: None,
        nth: None,
    };
    scan.regions = (0..14).map(region).collect();
    let text = of(&scan);
    assert!(
        text.contains("14 stretches can't be preempted, the longest for 2 us, beginning 0 ns into")
    );
    let starts: Vec<&str> =
        text.lines().skip(3).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(starts[..2], ["0.000", "10.000"]);
    assert_eq!(starts[9..], ["90.000", "and"], "{text}");
    assert!(text.ends_with("and 4 shorter ones\n"), "{text}");
}

#[test]
fn where_nothing_was_found_it_says_how_long_it_could_be() {
    let text = shown(2);
    assert!(text.contains("no stretch that can't be preempted is longer than 4.97 us\n"), "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn nothing_in_a_record_commands_the_terminal() {
    let mut scan = sample_scan::scans().swap_remove(0);
    scan.call.name = "\u{1b}[2J".to_owned();
    scan.profile = Some("\u{9b}".to_owned());
    scan.regions[0].function = Some("a\nb".to_owned());
    assert!(of(&scan).lines().count() == 4 && !of(&scan).contains(['\u{1b}', '\u{9b}']));
}

#[test]
fn of_the_series_of_a_scan_there_is_a_row_and_no_distribution() {
    let mut record = crate::format::picture::tests::source("run", 1).record;
    record.series.truncate(1);
    record.series[0].probe.insert_str(0, "scan.");
    record.scans = sample_scan::scans();
    let text = crate::format::text::summary(&record);
    assert!(text.contains("\nscan.cyclic ") && !text.contains('#'), "{text}");
    assert_eq!(text.matches("\npopulate:size=4MiB on ").count(), 4, "{text}");
}
