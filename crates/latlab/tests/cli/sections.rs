//! Sections found by scans of the known loops of the test driver (Heursch et al. 2001, section 2.7,
//! figures 3 to 8).

use super::program::latlab;
use latlab_core::record::Record;
use latlab_core::scan::{Interrupt, Offset, Point, Scan, Section};
use latlab_core::time::Nanos;

/// Scans the driver's loop of 482 µs with each of these parameters.
fn scans(profile: &str, ways: &[&str]) -> Vec<Scan> {
    let calls: Vec<String> = ways.iter().map(|way| format!("driver:{way}")).collect();
    let words = format!("scan {} --points 60 --json --on lab:{profile}", calls.join(" "));
    let output = latlab(&words);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = Record::from_json(&output.stdout).expect("the output is a record");
    assert!(record.warnings.is_empty(), "{:?}", record.warnings);
    record.scans
}

/// Returns the maximum over all points of the minimal PDLT.
fn worst(scan: &Scan) -> Nanos {
    scan.points.iter().map(|point| point.pdlt.min).max().unwrap_or_default()
}

fn worst_irt(scan: &Scan) -> Nanos {
    let irt = scan.points.iter().filter_map(|point| Some(point.irt?.min));
    irt.max().unwrap_or_default()
}

/// Asserts that two moments are closer than a hundredth of a section.
fn assert_at(found: Offset, known: Offset, section: &Section) {
    assert!(found.abs_diff(known) <= section.length().0 / 100, "{found} for {known}: {section:?}");
}

/// Returns when the task ran that an interrupt at this point woke.
fn woken(point: &Point) -> i64 {
    point.offset + i64::try_from(point.pdlt.min.0).expect("a PDLT fits into 63 bits")
}

#[test]
fn preemption_points_divide_loop_into_sections_without_preemption() {
    let points = [0, 1, 2, 3, 23];
    let ways = points.map(|points| format!("points={points}"));
    let scans = scans("utime", &ways.each_ref().map(String::as_str));
    for (scan, points) in scans.iter().zip(points) {
        let Scan { sections, parts, .. } = scan;
        assert_eq!(sections.len(), points + 1, "{sections:?}");
        // Preemption points are between parts.
        for (pair, after) in sections.windows(2).zip(&parts[1..]) {
            assert_eq!(pair[0].end, pair[1].start);
            assert_at(pair[1].start, after.begin, &pair[1]);
        }
        let each = 482_000 / (points as u64 + 1);
        let peak = scan.longest().expect("there is a section").peak.0;
        assert!((each..each + 6_000).contains(&peak), "{peak} ns, {points} points");
    }
    // The latency decreases as the interrupt comes later: the task runs at the end of the section,
    // wherever in it the interrupt came.
    let scan = &scans[0];
    let within = scan.points.iter().filter(|p| (1_000..480_000).contains(&p.offset));
    let ends: Vec<i64> = within.map(woken).collect();
    let (first, last) = (ends.iter().min().unwrap(), ends.iter().max().unwrap());
    assert!(ends.len() > 20 && last - first <= 100, "{first} to {last}");
    assert!((3_000..5_000).contains(&scan.baseline.0) && worst_irt(scan) < Nanos(600));
}

#[test]
fn sections_of_preemptible_kernel_are_its_locks() {
    let none = ["points=0", "mode=lock-break,points=1000"];
    let some = ["mode=spin,points=3", "mode=spin,points=23", "mode=raw-spin", "mode=preempt-off"];
    let scans = scans("preemptible-hr", &[&none[..], &some, &["mode=irq-off"]].concat());
    for scan in &scans[..2] {
        assert!(worst(scan) < Nanos(5_000), "{:?}: {}", scan.call.params, worst(scan));
        assert_eq!(scan.sections, [], "{:?}", scan.call.params);
    }
    for (scan, parts) in scans[2..].iter().zip([4, 24, 1, 1, 1]) {
        let sections = &scan.sections;
        assert_eq!((sections.len(), scan.parts.len()), (parts, parts), "{sections:?}");
        for (section, part) in sections.iter().zip(&scan.parts) {
            assert_at(section.start, part.begin, section);
            assert_at(section.end, part.end, section);
        }
    }
    let late = scans[2..].iter().map(|scan| worst_irt(scan) > Nanos(400_000));
    assert_eq!(
        late.collect::<Vec<_>>(),
        [false, false, false, false, true],
        "interrupts are disabled"
    );
}

#[test]
fn sections_of_real_time_kernel_are_its_raw_locks() {
    let none = ["points=0", "mode=spin", "mode=lock-break,points=1000"];
    let some = ["mode=raw-spin", "mode=preempt-off", "mode=irq-off"];
    let scans = scans("rt", &[none, some].concat());
    for scan in &scans[..3] {
        assert!(worst(scan) < Nanos(5_500), "{:?}: {}", scan.call.params, worst(scan));
        assert_eq!(scan.sections, [], "{:?}", scan.call.params);
    }
    for scan in &scans[3..] {
        let [section] = scan.sections.as_slice() else { panic!("{:?}", scan.sections) };
        assert_at(section.start, scan.parts[0].begin, section);
        assert_at(section.end, scan.parts[0].end, section);
    }
}

#[test]
fn scan_with_tick_timers_uses_the_device() {
    let scans = scans("standard", &["points=0"]);
    assert_eq!(scans[0].interrupt, Interrupt::Device);
    // The tick comes at the same moment of each call and may divide the section.
    let sections = &scans[0].sections;
    assert!((1..=2).contains(&sections.len()), "{sections:?}");
    assert!(sections.windows(2).all(|pair| pair[0].end == pair[1].start), "{sections:?}");
    let length: u64 = sections.iter().map(|section| section.length().0).sum();
    assert!((481_000..485_000).contains(&length), "{sections:?}");
    latlab("scan fork --interrupt timer --on lab:standard").assert_refused(3, &["ticks", "4 ms"]);
}
