//! Whose interrupts are whose.

use crate::root::Root;
use std::collections::BTreeMap;

/// The drivers that handle each interrupt, by the kernel's number of it, as /proc/interrupts has
/// them: `virtio0-input`, or several where they share it.
pub fn handlers(root: &Root) -> BTreeMap<u32, String> {
    let Some(text) = root.text("proc/interrupts") else { return BTreeMap::new() };
    let mut lines = text.lines();
    let cpus = lines.next().map_or(0, |head| head.split_whitespace().count());
    lines.filter_map(|line| of_line(line, cpus)).collect()
}

/// The number; then a count for each CPU, the controller, how it is wired there, and who handles
/// it. Interrupts without a number are no device's.
fn of_line(line: &str, cpus: usize) -> Option<(u32, String)> {
    let (number, rest) = line.split_once(':')?;
    let names: Vec<&str> = rest.split_whitespace().skip(cpus + 2).collect();
    Some((number.trim().parse().ok()?, names.join(" "))).filter(|(_, names)| !names.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_is_what_stands_last() {
        let line = " 28:   0  12 PCI-MSIX-0000:00:01.0   0-edge      virtio0-config, eth0";
        assert_eq!(of_line(line, 2), Some((28, "virtio0-config, eth0".to_owned())));
        assert_eq!(of_line("NMI:   0   0  Non-maskable interrupts", 2), None);
        assert_eq!(of_line(" 3:   0   0", 2), None);
    }
}
