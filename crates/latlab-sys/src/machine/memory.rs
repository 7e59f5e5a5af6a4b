//! Memory management in the background: huge pages, page merging, swapping.

use crate::root::Root;
use latlab_core::machine::Memory;

pub(super) fn read(root: &Root) -> Memory {
    let (swap_kib, swap_used_kib) = root.text("proc/swaps").map(|text| swap(&text)).unzip();
    Memory {
        transparent_hugepage: root.chosen("sys/kernel/mm/transparent_hugepage/enabled"),
        ksm: root.number("sys/kernel/mm/ksm/run"),
        swap_kib,
        swap_used_kib,
        swappiness: root.number("proc/sys/vm/swappiness"),
        stat_interval: root.number("proc/sys/vm/stat_interval"),
    }
}

/// The total size and use of all swap areas, in KiB. The columns are file, type, size, used,
/// priority; they are counted from the end, because file names may contain spaces.
fn swap(text: &str) -> (u64, u64) {
    let areas = text.lines().skip(1).filter_map(|line| {
        let mut columns = line.split_whitespace().rev().skip(1);
        let used: u64 = columns.next()?.parse().ok()?;
        let size: u64 = columns.next()?.parse().ok()?;
        Some((size, used))
    });
    areas.fold((0, 0), |sum: (u64, u64), area| {
        (sum.0.saturating_add(area.0), sum.1.saturating_add(area.1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_swap_areas_are_added() {
        let text = "Filename\tType\tSize\tUsed\tPriority\n\
                    /dev/dm-1 partition\t1000\t10\t-2\n/my swap file\t200\t1\t-3\n";
        assert_eq!(swap(text), (1200, 11));
        assert_eq!(swap(""), (0, 0));
    }
}
