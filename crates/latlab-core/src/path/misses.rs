//! Misses of modelled caches and TLBs, as the QEMU plugin counts them (`plugin/README.md`).

use super::trace::DamagedTrace;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The misses of one cache or TLB of a modelled processor, between two marks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misses {
    /// The cache or TLB, and the processor, in words.
    pub of: String,
    /// Their number.
    pub number: u64,
}

impl Misses {
    /// Reads all misses in a file of the plugin.
    pub fn read(text: &str) -> Result<Vec<Misses>, DamagedTrace> {
        let mut all = Vec::new();
        for (line, text) in text.lines().enumerate() {
            if let Some(rest) = text.strip_prefix(super::trace::MISSES) {
                let misses = Misses::line(rest);
                let damaged = || DamagedTrace { line: line + 1, text: text.to_owned() };
                all.push(misses.ok_or_else(damaged)?);
            }
        }
        Ok(all)
    }

    fn line(rest: &str) -> Option<Misses> {
        let (number, of) = rest.trim_start().split_once(' ')?;
        Some(Misses { of: of.to_owned(), number: number.parse().ok()? })
    }

    /// Returns the mean of each cache and TLB, by its words.
    #[expect(clippy::cast_precision_loss, reason = "a figure is shown, not counted with")]
    pub fn means(all: &[Misses]) -> BTreeMap<&str, f64> {
        let mut totals: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for misses in all {
            let (total, times) = totals.entry(&misses.of).or_default();
            (*total, *times) = (total.saturating_add(misses.number), *times + 1);
        }
        totals.into_iter().map(|(of, (total, times))| (of, total as f64 / times as f64)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_are_read_between_traces_and_averaged() {
        let text = "misses 4 TLB misses of a modelled X\nsample 1 2 0\nend\n\
                    misses 7 TLB misses of a modelled X\nmisses 3 L2 cache misses of a modelled X\n";
        let all = Misses::read(text).unwrap();
        let means = Misses::means(&all);
        let expected =
            [("L2 cache misses of a modelled X", 3.0), ("TLB misses of a modelled X", 5.5)];
        assert_eq!(means.into_iter().collect::<Vec<_>>(), expected);
        assert_eq!(super::super::Trace::read(text).unwrap().len(), 1);
        let said = Misses::read("misses 4 a\nmisses four b\n").unwrap_err().to_string();
        assert_eq!(said, "line 2 of the plugin's trace is invalid: 'misses four b'");
    }
}
