//! Sets of CPUs in the kernel's list format: `0-3,8`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A set of logical CPUs, written as the kernel writes it in `/sys/devices/system/cpu/online`
/// (Documentation/core-api/printk-formats.rst, `%*pbl`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuList(BTreeSet<u32>);

/// Highest CPU number of a list; the kernel's own limit (`NR_CPUS`) is 8192.
const LARGEST: u32 = 8191;

/// Error for a text that is not a CPU list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a list of CPUs: write numbers (at most {LARGEST}) and ranges, such as 0-3,8")]
pub struct CpuListError(String);

impl CpuList {
    /// Returns the CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Returns the number of CPUs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `cpu` is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// Returns the set as a user would name it: `CPU 2`, `CPUs 0-3`.
    pub fn in_words(&self) -> String {
        let noun = if self.len() == 1 { "CPU" } else { "CPUs" };
        format!("{noun} {self}")
    }

    /// Returns the CPUs of this set that are not in `other`.
    #[must_use]
    pub fn minus(&self, other: &CpuList) -> CpuList {
        CpuList(self.0.difference(&other.0).copied().collect())
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> CpuList {
        CpuList(cpus.into_iter().collect())
    }
}

impl FromStr for CpuList {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<CpuList, CpuListError> {
        let wrong = || CpuListError(text.to_owned());
        let number =
            |n: &str| n.trim().parse::<u32>().ok().filter(|n| *n <= LARGEST).ok_or_else(wrong);
        let mut cpus = BTreeSet::new();
        for range in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(wrong());
            }
            cpus.extend(first..=last);
        }
        Ok(CpuList(cpus))
    }
}

impl TryFrom<String> for CpuList {
    type Error = CpuListError;
    fn try_from(text: String) -> Result<CpuList, CpuListError> {
        text.parse()
    }
}

impl From<CpuList> for String {
    fn from(list: CpuList) -> String {
        list.to_string()
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for cpu in self.iter() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == cpu => *last = cpu,
                _ => ranges.push((cpu, cpu)),
            }
        }
        let text: Vec<String> = ranges
            .iter()
            .map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") })
            .collect();
        f.pad(&text.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cpu_list_reads_the_kernels_format() {
        let list: CpuList = "0-2,8,5\n".parse().unwrap();
        assert_eq!(list.iter().collect::<Vec<_>>(), [0, 1, 2, 5, 8]);
        assert_eq!("".parse(), Ok(CpuList::default()));
        for text in ["a", "3-1", "1,,2", "-1", "0-99999999999", "9000"] {
            assert!(text.parse::<CpuList>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn cpu_list_survives_formatting(cpus in proptest::collection::btree_set(0u32..200, 0..40)) {
            let list: CpuList = cpus.into_iter().collect();
            prop_assert_eq!(list.to_string().parse(), Ok(list));
        }
    }
}
