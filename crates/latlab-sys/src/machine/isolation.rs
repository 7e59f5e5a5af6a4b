//! The isolation of CPUs: from tasks, ticks, RCU callbacks and interrupts.

use crate::root::Root;
use latlab_core::cpulist::CpuList;
use latlab_core::machine::{Isolation, Machine};

/// All fields except `irqbalance`, which the list of tasks shows.
pub(super) fn read(root: &Root, machine: &Machine) -> Isolation {
    // The file contains "(null)" where the kernel supports nohz_full but no CPU has it.
    let nohz_full = root.text("sys/devices/system/cpu/nohz_full");
    let nohz_full = nohz_full.map(|text| text.parse().unwrap_or_default());
    Isolation {
        isolated: root.cpulist("sys/devices/system/cpu/isolated"),
        rcu_nocbs: rcu_nocbs(machine, nohz_full.as_ref()),
        nohz_full,
        irq_affinity: root.text("proc/irq/default_smp_affinity").as_deref().and_then(mask),
        irqbalance: None,
    }
}

/// No file shows these CPUs: they follow from the command line, the configuration and `nohz_full`.
fn rcu_nocbs(machine: &Machine, nohz_full: Option<&CpuList>) -> Option<CpuList> {
    let all_by_default = machine.has_config("CONFIG_RCU_NOCB_CPU_DEFAULT_ALL");
    let asked = match machine.boot_parameter("rcu_nocbs") {
        Some("all") => machine.cpus.clone(),
        // Without a list it only allows CPUs to be offloaded later.
        Some("") => CpuList::default(),
        Some(list) => list.parse().ok()?,
        None if all_by_default => machine.cpus.clone(),
        None if machine.cmdline.is_empty() => return None,
        None => CpuList::default(),
    };
    let full = nohz_full.into_iter().flat_map(CpuList::iter);
    Some(asked.iter().chain(full).collect())
}

/// Parses a set of CPUs as the kernel prints it with `%*pb`: hexadecimal words of 32 bits,
/// separated by commas, the highest first.
fn mask(text: &str) -> Option<CpuList> {
    let words: Option<Vec<u32>> =
        text.split(',').map(|word| u32::from_str_radix(word, 16).ok()).collect();
    let cpus = (0..).step_by(32).zip(words?.into_iter().rev());
    Some(cpus.flat_map(|(base, word)| bits(word).map(move |bit| base + bit)).collect())
}

fn bits(word: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS).filter(move |bit| word >> bit & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isolation_masks_are_parsed() {
        let set = |text| mask(text).map(|cpus| cpus.to_string());
        assert_eq!(set("3").as_deref(), Some("0-1"));
        assert_eq!(set("ff").as_deref(), Some("0-7"));
        assert_eq!(set("00000001,80000000").as_deref(), Some("31-32"));
        assert_eq!(set("no mask"), None);
    }
}
