//! The functions that a trace names, each with an address: explanations know functions by their addresses.

use latlab_core::explain::names::Names;
use latlab_core::symbols::Symbols;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

/// Bytes between two functions, more than any has.
const APART: u64 = 1 << 21;
/// Most functions of a trace: a kernel has about as many.
const MOST: u64 = 1 << 18;
/// Longest name of a function: the kernel's `KSYM_NAME_LEN`.
const LONGEST: usize = 512;

/// The functions and interrupts that a trace has named so far.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    addresses: HashMap<String, u64>,
    /// The same, as /proc/kallsyms has it.
    listed: String,
    interrupts: BTreeMap<u32, String>,
    /// Whether names were added since they were last asked for.
    has_new: bool,
}

impl Functions {
    /// The address of a function, given as `name`, `name+0x1f/0x80` or `name+0x1f/0x80 [module]`; 0 where there is
    /// none.
    pub(crate) fn address(&mut self, text: &str) -> u64 {
        let (place, module) = match text.split_once(" [") {
            Some((place, module)) => (place.trim_end(), module.strip_suffix(']')),
            None => (text.trim_end(), None),
        };
        let (name, offset) = place.split_once('+').unwrap_or((without_size(place), ""));
        let offset = offset.split('/').next().and_then(|hex| hex.strip_prefix("0x"));
        let offset = offset.and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
        let is_name = !name.is_empty() && name.len() <= LONGEST && !name.contains([' ', '\t']);
        if !is_name || name.starts_with("0x") {
            return 0;
        }
        self.begin(name, module) + offset % (APART / 2)
    }

    fn begin(&mut self, name: &str, module: Option<&str>) -> u64 {
        if let Some(address) = self.addresses.get(name) {
            return *address;
        }
        let number = self.addresses.len() as u64 + 1;
        if number > MOST {
            return 0;
        }
        let address = number * APART;
        self.addresses.insert(name.to_owned(), address);
        let module = module.map(|module| format!("\t[{module}]")).unwrap_or_default();
        let _ = writeln!(self.listed, "{address:x} T {name}{module}");
        self.has_new = true;
        address
    }

    /// Keeps the name of an interrupt.
    pub(crate) fn interrupt(&mut self, number: u32, name: &str) {
        if let Entry::Vacant(free) = self.interrupts.entry(number) {
            free.insert(name.to_owned());
            self.has_new = true;
        }
    }

    /// The names, if there are new ones since the last call.
    pub(crate) fn new_names(&mut self) -> Option<Names> {
        std::mem::take(&mut self.has_new).then(|| Names {
            symbols: Symbols::parse(&self.listed).unwrap_or_default(),
            variables: Symbols::default(),
            interrupts: self.interrupts.clone(),
        })
    }
}

/// The name of a function without what trace-cmd appends: `hrtimer_wakeup/0x0`.
pub(crate) fn without_size(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_is_found_by_its_address() {
        let mut functions = Functions::default();
        let first = functions.address("igb_set_rx_mode+0x4f8/0x5a0 [igb]");
        let second = functions.address("do_syscall_64");
        assert_eq!(functions.address("igb_set_rx_mode+0x4f8/0x5a0 [igb]"), first);
        assert_eq!(functions.address("do_syscall_64/0x0"), second);
        functions.interrupt(36, "virtio1-req.0");
        let names = functions.new_names().expect("there are new ones");
        let shown = |address| names.symbols.find(address).map(|symbol| symbol.to_string());
        assert_eq!(shown(first).as_deref(), Some("igb_set_rx_mode+0x4f8 [igb]"));
        assert_eq!(shown(second).as_deref(), Some("do_syscall_64+0x0"));
        assert!(names.interrupts.contains_key(&36) && functions.new_names().is_none());
        assert_eq!(functions.address("0xffffffff81000000"), 0);
        assert_eq!(functions.address(""), 0);
    }
}
