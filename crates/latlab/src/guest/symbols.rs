//! The functions of a guest's kernel: asked for once, kept beside the kernel.

use super::Time;
use super::cell::Cell;
use super::laboratory::{carry_out, cell};
use super::orders::Job;
use crate::errand::Errand;
use crate::failure::{Failure, Result, failed};
use crate::kernel;
use crate::message::{Message, Stream};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use latlab_core::path::Place;
use latlab_core::plan::Plan;
use latlab_core::symbols::{Entry, preemption_counter};
use latlab_sys::file;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::path::PathBuf;

/// Addresses and names, as `/proc/kallsyms` has them.
#[derive(Debug)]
pub(super) struct Symbols {
    /// By address.
    functions: Vec<(u64, String)>,
    /// Where a CPU counts what keeps preemption off, by the kernel's own naming of such places.
    pub(super) preempt_count: Option<u64>,
}

impl Symbols {
    /// The symbols of the guest that carries out `plan`. Its addresses are not random, and its
    /// modules come in the same order.
    pub(super) fn of(plan: &Plan, errand: &mut Errand<'_>) -> Result<Symbols> {
        let job = Job::Symbols(Box::new(plan.clone()));
        let cell = cell(&plan.target, Time::Instructions, job, errand)?;
        let place = place(&cell)?;
        let packed = match std::fs::read(&place) {
            Ok(packed) => packed,
            Err(_) => ask(cell, errand)?,
        };
        let mut text = String::new();
        let read = GzDecoder::new(packed.as_slice()).read_to_string(&mut text);
        read.map_err(|e| failed(&format!("{}: the symbols of its kernel", plan.target), e))?;
        let symbols = Symbols::parse(&text);
        if symbols.functions.is_empty() {
            let why = "its kernel shows no symbols: one with CONFIG_KALLSYMS does";
            return Err(Failure::Unsupported(format!("{}: {why}", plan.target)));
        }
        // A cache that can't be written costs time, not results.
        if !place.exists() {
            let _ = file::write_atomically(&place, &packed);
        }
        Ok(symbols)
    }

    /// In the guest: sends what is needed of them, compressed: each byte takes the serial line's
    /// driver hundreds of instructions.
    pub(super) fn send(port: &mut dyn Write) -> Result<()> {
        let unreadable = |e| failed("the kernel's symbols can't be read", e);
        let symbols = File::open("/proc/kallsyms").map_err(unreadable)?;
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        for line in BufReader::new(symbols).lines() {
            let line = line.map_err(unreadable)?;
            if is_wanted(&line) {
                writeln!(packed, "{line}").map_err(unreadable)?;
            }
        }
        let packed = packed.finish().map_err(unreadable)?;
        let sent = packed.chunks(1 << 16).try_for_each(|chunk| {
            let message = Message::output(Stream::Stdout, chunk);
            message.send(port)
        });
        sent.map_err(|e| failed("the port", e))
    }

    fn parse(text: &str) -> Symbols {
        let mut symbols = Symbols { functions: Vec::new(), preempt_count: None };
        for entry in text.lines().filter_map(Entry::parse) {
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
        // Of several names the first stays: the kernel puts those that it shows itself first.
        symbols.functions.sort_by_key(|(address, _)| *address);
        symbols.functions.dedup_by_key(|(address, _)| *address);
        symbols
    }

    /// The function at an address.
    pub(super) fn place(&self, address: u64) -> Option<Place<'_>> {
        let after = self.functions.partition_point(|(begin, _)| *begin <= address);
        let (begin, function) = self.functions.get(after.checked_sub(1)?)?;
        Some(Place { function, offset: address - begin })
    }

    /// Where exceptions enter the kernel that come in the middle of an instruction, which is begun
    /// again afterwards; breakpoints come after theirs.
    pub(super) fn faults(&self) -> impl Iterator<Item = u64> {
        let is_fault = |name: &str| {
            let exception = name.strip_prefix("asm_exc_");
            exception.is_some_and(|name| !matches!(name, "int3" | "debug" | "overflow" | "nmi"))
        };
        self.functions.iter().filter(move |(_, name)| is_fault(name)).map(|(address, _)| *address)
    }
}

/// Code, but for the padding before functions; and the counter.
fn is_wanted(line: &str) -> bool {
    Entry::parse(line).is_some_and(|entry| {
        entry.is_function() && !entry.name.starts_with("__pfx_")
            || preemption_counter(entry.name).is_some()
    })
}

/// Asks a guest for them.
fn ask(cell: Cell, errand: &mut Errand<'_>) -> Result<Vec<u8>> {
    errand.watch.note(&format!("{} is asked for its symbols", cell.kernel.name));
    let mut packed = Vec::new();
    let answer = carry_out(vec![Ok(cell)], errand, &mut |_, bytes| {
        packed.extend_from_slice(bytes);
        Ok(())
    });
    answer.into_iter().next().expect("one cell, one answer")?.exited()?;
    Ok(packed)
}

/// Where they are kept: under what addresses depend on.
fn place(cell: &Cell) -> Result<PathBuf> {
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
    fn an_address_is_found_in_its_function() {
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
        assert!(!is_wanted("ffffffff81000000 T __pfx_x") && !is_wanted("ffffffff81000000 D x"));
    }
}
