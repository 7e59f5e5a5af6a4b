//! Scans of the same call on both sides: the latencies that it causes.

use super::Row;
use crate::plan::Part;
use crate::scan::{Scan, Section};
use crate::time::Nanos;
use serde::Serialize;

/// One call, scanned on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScanPair {
    /// The call with its parameters.
    pub call: Part,
    /// Its figures.
    pub rows: Vec<Row>,
}

/// Returns the calls scanned on both sides; of several scans of one call, those at the same
/// position.
pub(super) fn pairs(a: &[Scan], b: &[Scan]) -> Vec<ScanPair> {
    let pair = |(nth, mine): (usize, &Scan)| {
        let theirs = counterpart(mine, &a[..nth], b)?;
        Some(ScanPair { call: mine.call.clone(), rows: rows(mine, theirs) })
    };
    a.iter().enumerate().filter_map(pair).collect()
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
    let figures = figures(a).into_iter().zip(figures(b));
    figures.map(|((name, a), (_, b))| Row::new(name, a, b)).collect()
}

fn figures(scan: &Scan) -> [(&'static str, Nanos); 4] {
    [
        ("call", scan.duration.median),
        ("baseline", scan.baseline),
        ("worst PDLT", scan.peak().unwrap_or_default()),
        ("longest section", scan.longest().map(Section::length).unwrap_or_default()),
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
}
