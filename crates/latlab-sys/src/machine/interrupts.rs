//! Interrupts and their handlers.

use crate::root::Root;
use std::collections::BTreeMap;

/// The handlers of each interrupt, by its number, as in /proc/interrupts: `virtio0-input`, or
/// several that share the interrupt.
pub fn handlers(root: &Root) -> BTreeMap<u32, String> {
    let Some(text) = root.text("proc/interrupts") else { return BTreeMap::new() };
    let mut lines = text.lines();
    let cpus = lines.next().map_or(0, |head| head.split_whitespace().count());
    lines.filter_map(|line| parse(line, cpus)).collect()
}

/// Parses a line: the number, a count for each CPU, the interrupt controller, the trigger, the
/// handlers. Interrupts without a number belong to no device.
fn parse(line: &str, cpus: usize) -> Option<(u32, String)> {
    let (number, rest) = line.split_once(':')?;
    let names: Vec<&str> = rest.split_whitespace().skip(cpus + 2).collect();
    Some((number.trim().parse().ok()?, names.join(" "))).filter(|(_, names)| !names.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupt_handlers_are_the_last_columns() {
        let line = " 28:   0  12 PCI-MSIX-0000:00:01.0   0-edge      virtio0-config, eth0";
        assert_eq!(parse(line, 2), Some((28, "virtio0-config, eth0".to_owned())));
        assert_eq!(parse("NMI:   0   0  Non-maskable interrupts", 2), None);
        assert_eq!(parse(" 3:   0   0", 2), None);
    }
}
