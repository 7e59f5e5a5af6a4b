//! The symbols of a guest's kernel: read from a guest once, kept in the kernel's folder.

use super::cells::carry_out_one;
use super::guest::{Cell, Job};
use super::kernel;
use super::seal;
use super::unpack::{Packing, unpack};
use latlab_core::path::Location;
use latlab_core::size::Bytes;
use latlab_core::symbols::{KallsymsLine, preemption_counter};
use latlab_measure::session::Session;
use latlab_part::failure::{Context as _, Failure, Result};
use std::path::PathBuf;

/// Most bytes of `/proc/kallsyms`, packed or not, ten times those of a large kernel.
const LARGEST: u64 = 256 << 20;

/// Addresses and names of `/proc/kallsyms`.
#[derive(Debug)]
pub(super) struct Symbols {
    /// Address and name, sorted by address.
    functions: Vec<(u64, String)>,
    /// Offset of the preemption counter in a CPU's own memory, where the kernel has one.
    pub(super) preempt_count: Option<u64>,
}

impl Symbols {
    /// The symbols of the kernel of `cell`, which carries out a plan. Addresses are not randomized, and modules are
    /// loaded in the same order.
    pub(super) fn of(cell: Cell, session: &mut Session<'_>) -> Result<Symbols> {
        let job = match cell.job {
            Job::Run(plan) => Job::Symbols(plan),
            other => other,
        };
        let cell = Cell { job, plugin: None, ..cell };
        let (target, path) = (cell.target.clone(), path(&cell)?);
        let (packed, is_kept) = match seal::read(&path) {
            Some(packed) => (packed, true),
            None => (ask(cell, session)?, false),
        };
        let text = unpack(Packing::Gzip, &packed, LARGEST)
            .context(&format!("{target}: the symbols of its kernel"))?;
        let symbols = Symbols::parse(&String::from_utf8_lossy(&text));
        if symbols.functions.is_empty() {
            let why = "its kernel shows no symbols: use one with CONFIG_KALLSYMS";
            return Err(Failure::unsupported(format!("{target}: {why}")));
        }
        // A cache that can't be written costs time, not results.
        if !is_kept {
            let _ = seal::write(&path, &packed);
        }
        Ok(symbols)
    }

    fn parse(text: &str) -> Symbols {
        let mut symbols = Symbols { functions: Vec::new(), preempt_count: None };
        for entry in text.lines().filter_map(KallsymsLine::parse) {
            match preemption_counter(entry.name) {
                Some(offset) => symbols.preempt_count = Some(entry.address + u64::from(offset)),
                None if entry.is_function() => {
                    let module = entry.module.map(|module| format!(" [{module}]"));
                    let name = entry.name.to_owned() + &module.unwrap_or_default();
                    symbols.functions.push((entry.address, name));
                }
                None => {}
            }
        }
        // Of several names for one address the first stays: it is the one the kernel prints.
        symbols.functions.sort_by_key(|(address, _)| *address);
        symbols.functions.dedup_by_key(|(address, _)| *address);
        symbols
    }

    /// The function at an address.
    pub(super) fn place(&self, address: u64) -> Option<Location<'_>> {
        let after = self.functions.partition_point(|(begin, _)| *begin <= address);
        let (begin, function) = self.functions.get(after.checked_sub(1)?)?;
        Some(Location { function, offset: address - begin })
    }

    /// The functions that begin or end the sections of a bound, each with the letter of its role.
    pub(super) fn roles(&self) -> Vec<(u64, char)> {
        let role = |name: &str| {
            let known = ROLES.iter().find(|(known, _)| *known == name).map(|(_, role)| *role);
            let is_interrupt = name.starts_with("asm_sysvec_").then_some('i');
            known.or(is_interrupt).or(name.starts_with("asm_exc_").then_some('x'))
        };
        let roles = self.functions.iter().map(|(address, name)| Some((*address, role(name)?)));
        roles.flatten().collect()
    }

    /// Begin and end of the stubs at which interrupts of devices enter the kernel.
    pub(super) fn stubs(&self) -> Option<(u64, u64)> {
        let first = self.functions.iter().position(|(_, name)| name == "irq_entries_start")?;
        Some((self.functions[first].0, self.functions.get(first + 1)?.0))
    }

    /// Entry addresses of exceptions after which the interrupted instruction starts again;
    /// breakpoints follow their instruction and are left out.
    pub(super) fn faults(&self) -> impl Iterator<Item = u64> {
        let is_fault = |name: &str| {
            let exception = name.strip_prefix("asm_exc_");
            exception.is_some_and(|name| !matches!(name, "int3" | "debug" | "overflow" | "nmi"))
        };
        self.functions.iter().filter(move |(_, name)| is_fault(name)).map(|(address, _)| *address)
    }
}

/// The roles of functions for the plugin, which has the same letters (`plugin/sections.c`).
const ROLES: &[(&str, char)] = &[
    ("__schedule", 's'),
    ("__switch_to_asm", 'w'),
    ("__cond_resched", 'p'),
    ("resched_curr", 'n'),
    ("hrtimer_wakeup", 't'),
    ("entry_SYSCALL_64", 'x'),
    ("asm_exc_nmi", 'i'),
];

/// Reads the symbols, compressed, from a guest.
fn ask(cell: Cell, session: &mut Session<'_>) -> Result<Vec<u8>> {
    session.watch.note(&format!("{}: reading the kernel's symbols", cell.kernel.name));
    let mut packed = Vec::new();
    let answer = carry_out_one(cell, session, &mut |_, bytes| append(&mut packed, bytes, LARGEST))?;
    answer.exited()?;
    Ok(packed)
}

/// Appends what the guest sent, up to `most` bytes in all.
fn append(packed: &mut Vec<u8>, bytes: &[u8], most: u64) -> Result<()> {
    if packed.len() as u64 + bytes.len() as u64 > most {
        let why = format!("the guest sent more than {} as its kernel's symbols", Bytes(most));
        return Err(Failure::failed(why));
    }
    packed.extend_from_slice(bytes);
    Ok(())
}

/// The file that keeps them, named by a digest of everything that addresses depend on.
fn path(cell: &Cell) -> Result<PathBuf> {
    let boot = cell.boot()?;
    let text =
        format!("{}\n{}\n{:?}\n{:?}", cell.kernel.digest, boot.cmdline, boot.modules, cell.driver);
    let digest = kernel::digest(text.as_bytes());
    Ok(cell.kernel.folder.join(format!("symbols-{}.gz", &digest[..16])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_a_guest_that_never_stops_sending_are_refused() {
        let mut packed = Vec::new();
        assert_eq!(append(&mut packed, &[1; 4], 8), Ok(()));
        assert_eq!(append(&mut packed, &[2; 4], 8), Ok(()));
        let failure = append(&mut packed, &[3], 8).unwrap_err().to_string();
        assert!(failure.contains("more than 8B"), "{failure}");
        assert_eq!(packed.len(), 8);
    }

    #[test]
    fn symbols_place_an_address_in_its_function() {
        let text = "\
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000100 t asm_exc_page_fault
ffffffff81000180 T asm_exc_int3
ffffffffc0000000 t do_it\t[latlab]
0000000000034a40 D pcpu_hot
";
        let symbols = Symbols::parse(text);
        let at = |address| symbols.place(address).map(|place| (place.function, place.offset));
        assert_eq!(at(0xffff_ffff_8100_0004), Some(("_stext", 4)));
        assert_eq!(at(0xffff_ffff_c000_0000), Some(("do_it [latlab]", 0)));
        assert_eq!(at(0x40_0000), None);
        assert_eq!(symbols.preempt_count, Some(0x34a48));
        assert_eq!(symbols.faults().collect::<Vec<_>>(), [0xffff_ffff_8100_0100]);
    }
}
