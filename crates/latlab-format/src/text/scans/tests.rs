//! Tests of scans as text.

use super::*;
use latlab_testing::sample_scan;

/// Returns the summary of a sample scan.
fn shown(n: usize) -> String {
    scan_text(&sample_scan::scans()[n], Width::UNLIMITED)
}

#[test]
fn sections_follow_scan() {
    let text = shown(0);
    let mut lines = text.lines();
    let first = lines.next().unwrap();
    assert!(first.starts_with("populate:size=4MiB on standard on CPU 1: takes 482 us, "), "{text}");
    assert!(first.ends_with("interrupt: driver"), "{text}");
    let sentence = lines.next().unwrap();
    assert_eq!(sentence, "1 non-preemptible section: 482 us, starting 0 ns into the call");
    assert!(lines.next().unwrap().ends_with("function"), "{text}");
    let words: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(words, ["0.000", "482.000", "482.000", "485.200", "clear_huge_page"]);
    assert_eq!(lines.next(), None);
}

#[test]
fn longest_sections_are_shown_in_order_of_start() {
    let mut scan = sample_scan::scans().swap_remove(0);
    let section = |n: i64| Section {
        start: 10_000 * n,
        end: 10_000 * n + 100 * (20 - n),
        peak: Nanos(5_000),
        function: None,
        nth: None,
    };
    scan.sections = (0..14).map(section).collect();
    let text = scan_text(&scan, Width::UNLIMITED);
    assert!(text.contains("14 non-preemptible sections, the longest 2 us, starting 0 ns into"));
    let starts: Vec<&str> =
        text.lines().skip(3).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(starts[..2], ["0.000", "10.000"]);
    assert_eq!(starts[9..], ["90.000", "and"], "{text}");
    assert!(text.ends_with("and 4 shorter sections\n"), "{text}");
}

#[test]
fn scan_without_sections_has_detection_limit() {
    let text = shown(2);
    assert!(
        text.contains("no non-preemptible section > 4.97 us found (detection limit)\n"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn control_characters_never_reach_terminal() {
    let mut scan = sample_scan::scans().swap_remove(0);
    scan.call.name = "\u{1b}[2J".to_owned();
    scan.profile = Some("\u{9b}".to_owned());
    scan.sections[0].function = Some("a\nb".to_owned());
    assert!(
        scan_text(&scan, Width::UNLIMITED).lines().count() == 4
            && !scan_text(&scan, Width::UNLIMITED).contains(['\u{1b}', '\u{9b}'])
    );
}

#[test]
fn series_of_scan_has_row_and_no_histogram() {
    let mut record = crate::picture::tests::source("run", 1).record;
    record.series.truncate(1);
    record.series[0].probe.insert_str(0, "scan.");
    record.scans = sample_scan::scans();
    let text = crate::text::summary(&record, false, Width::UNLIMITED);
    assert!(text.contains("\nscan.cyclic ") && !text.contains('#'), "{text}");
    assert_eq!(text.matches("\npopulate:size=4MiB on ").count(), 4, "{text}");
}
