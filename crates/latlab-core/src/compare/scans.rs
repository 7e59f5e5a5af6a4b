//! Scans of the same call on both sides: the latencies that it causes.

use super::Row;
use crate::plan::Part;
use crate::scan::{Scan, Section};
use crate::time::Nanos;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The figures of a scan by name.
type Figures = [(&'static str, Found); 4];

/// A time that was found, and up to where more may have been missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) time: Nanos,
    at_most: Nanos,
}

impl Found {
    fn exactly(time: Nanos) -> Found {
        Found { time, at_most: time }
    }

    /// Returns the detection limit, if there may be more than was found.
    pub(super) fn none_above(self) -> Option<Nanos> {
        (self.at_most > self.time).then_some(self.at_most)
    }

    fn max(self, other: Found) -> Found {
        Found { time: self.time.max(other.time), at_most: self.at_most.max(other.at_most) }
    }
}

/// By the name of a call, the greatest figures of all scans of each side.
pub(super) type Greatest = BTreeMap<String, (Figures, Figures)>;

/// One call, scanned on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScanPair {
    /// The call with its parameters.
    pub call: Part,
    /// Its figures.
    pub rows: Vec<Row>,
}

/// Returns the calls scanned on both sides; for several scans of one call, the scans at the same
/// position.
pub(super) fn pairs(a: &[Scan], b: &[Scan]) -> Vec<ScanPair> {
    let pair = |(nth, mine): (usize, &Scan)| {
        let theirs = counterpart(mine, &a[..nth], b)?;
        Some(ScanPair { call: mine.call.clone(), rows: rows(mine, theirs) })
    };
    a.iter().enumerate().filter_map(pair).collect()
}

/// Returns the greatest figures of the calls that both sides have scanned. Unlike pairs, they cover
/// all scans of these calls: one side may have more runs than the other.
pub(super) fn greatest(a: &[Scan], b: &[Scan]) -> Greatest {
    let has = |all: &[Scan], scan: &Scan| all.iter().any(|other| other.call == scan.call);
    let of = |name: &str, all: &[Scan], others: &[Scan]| {
        let scans = all.iter().filter(|scan| scan.call.name == name && has(others, scan));
        scans.map(figures).reduce(greater)
    };
    let common = a.iter().filter(|scan| has(b, scan));
    let names: BTreeSet<&str> = common.map(|scan| scan.call.name.as_str()).collect();
    let both = |name: &str| Some((name.to_owned(), (of(name, a, b)?, of(name, b, a)?)));
    names.into_iter().filter_map(both).collect()
}

fn greater(one: Figures, other: Figures) -> Figures {
    std::array::from_fn(|nth| (one[nth].0, one[nth].1.max(other[nth].1)))
}

/// Returns the scans of `all` without a counterpart in `others`.
pub(super) fn alone<'a>(all: &'a [Scan], others: &[Scan]) -> Vec<&'a Scan> {
    let places =
        (0..all.len()).filter(|nth| counterpart(&all[*nth], &all[..*nth], others).is_none());
    places.map(|nth| &all[nth]).collect()
}

/// Returns the scan of the same call at the same position among `others`; `before` are the scans
/// before it in its own record.
fn counterpart<'a>(scan: &Scan, before: &[Scan], others: &'a [Scan]) -> Option<&'a Scan> {
    let same = |other: &&Scan| other.call == scan.call;
    let place = before.iter().filter(same).count();
    others.iter().filter(same).nth(place)
}

fn rows(a: &Scan, b: &Scan) -> Vec<Row> {
    let row = |((name, a), (_, b)): ((&str, Found), (&str, Found))| {
        let row = Row::new(name, a.time, b.time);
        let none_above = (a.none_above(), b.none_above());
        Row { ratio: row.ratio.filter(|_| none_above == (None, None)), none_above, ..row }
    };
    figures(a).into_iter().zip(figures(b)).map(row).collect()
}

fn figures(scan: &Scan) -> Figures {
    let none = || Found { time: Nanos(0), at_most: scan.detection_limit() };
    let longest = scan.longest().map(Section::length);
    [
        ("call", Found::exactly(scan.duration.median)),
        ("baseline", Found::exactly(scan.baseline)),
        ("worst PDLT", Found::exactly(scan.peak().unwrap_or_default())),
        ("longest section", longest.map_or_else(none, Found::exactly)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::{Interrupt, Spread};

    fn scan(name: &str, call: u64, end: i64) -> Scan {
        let duration = Spread { min: Nanos(call), median: Nanos(call), max: Nanos(call) };
        Scan {
            call: Part { name: name.to_owned(), params: serde_json::Map::new() },
            profile: None,
            cpu: 0,
            interrupt: Interrupt::Timer,
            duration,
            baseline: Nanos(4_000),
            noise: Nanos(0),
            points: Vec::new(),
            sections: vec![Section { start: 0, end, peak: Nanos(0), function: None, nth: None }],
            parts: Vec::new(),
        }
    }

    #[test]
    fn scans_of_a_call_are_paired_in_their_order() {
        let a = [scan("fork", 10, 100), scan("exec", 20, 200), scan("fork", 30, 300)];
        let b = [scan("fork", 15, 400), scan("fork", 45, 600), scan("pipe", 1, 1)];
        let pairs = pairs(&a, &b);
        assert_eq!(pairs.len(), 2);
        let second = &pairs[1].rows;
        assert_eq!((second[0].a, second[0].b, second[0].ratio), (Nanos(30), Nanos(45), Some(1.5)));
        assert_eq!((second[3].name.as_str(), second[3].ratio), ("longest section", Some(2.0)));
        let alone = |all, others| alone(all, others).into_iter().map(|s| s.call.name.clone());
        assert_eq!(alone(&a, &b).collect::<Vec<_>>(), ["exec"]);
        assert_eq!(alone(&b, &a).collect::<Vec<_>>(), ["pipe"]);
    }

    /// The longest section is in a scan without a counterpart.
    #[test]
    fn greatest_figures_cover_all_scans_of_a_call() {
        let a = [scan("fork", 10, 100), scan("exec", 20, 200)];
        let b = [scan("fork", 15, 50), scan("fork", 45, 600), scan("pipe", 1, 1)];
        let greatest = greatest(&a, &b);
        assert_eq!(greatest.keys().collect::<Vec<_>>(), ["fork"]);
        let (a, b) = greatest["fork"];
        assert_eq!((a[0].1.time, b[0].1.time), (Nanos(10), Nanos(45)));
        assert_eq!((a[3].1.time, b[3].1.time), (Nanos(100), Nanos(600)));
    }

    /// Without points, the detection limit is the longest call.
    #[test]
    fn longest_section_that_was_not_found_is_known_up_to_the_detection_limit() {
        let none = |call| Scan { sections: Vec::new(), ..scan("fork", call, 0) };
        let rows = rows(&scan("fork", 10, 100), &none(30));
        let row = &rows[3];
        assert_eq!((row.a, row.b, row.ratio), (Nanos(100), Nanos(0), None));
        assert_eq!(row.none_above, (None, Some(Nanos(30))));
        assert!(rows[..3].iter().all(|row| row.none_above == (None, None)));
        let [(_, found), (_, none)] = [scan("fork", 10, 20), none(30)].map(|one| figures(&one)[3]);
        let both = found.max(none);
        assert_eq!((both.time, both.none_above()), (Nanos(20), Some(Nanos(30))));
    }
}
