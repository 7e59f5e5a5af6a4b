//! The kernel's symbols: which function an address lies in.

use std::fmt;

/// The farthest that an address may lie behind the begin of its function. What is farther lies in
/// no function that is known: none of the kernel is as long.
const LONGEST: u64 = 1 << 20;

/// The functions of a kernel and of its modules, by their addresses.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// In order.
    addresses: Vec<u64>,
    /// Beside the addresses.
    places: Vec<Place>,
    /// All names, one behind the other.
    text: String,
    modules: Vec<String>,
}

/// Where a name stands in the text, and which module it belongs to; 0 is the kernel itself.
#[derive(Clone, Copy, Debug)]
struct Place {
    begin: u32,
    length: u16,
    module: u16,
}

/// A line of /proc/kallsyms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Where it is; 0 where the kernel does not say. Of what each CPU has for itself, the offset.
    pub address: u64,
    /// Its name.
    pub name: &'a str,
    /// Its module; none for the kernel itself.
    pub module: Option<&'a str>,
    /// As nm has it: in lower case it is local.
    kind: char,
}

/// An address within a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// The function.
    pub function: &'a str,
    /// Its module; none for the kernel itself.
    pub module: Option<&'a str>,
    /// How far in the function the address lies.
    pub offset: u64,
}

/// Why there are no symbols.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSymbols {
    /// The kernel shows zeros instead of addresses.
    #[error("symbols are hidden (kernel.kptr_restrict): be root, and set it to 0 or 1")]
    Hidden,
    /// It is not the text of /proc/kallsyms.
    #[error("/proc/kallsyms can't be read: line {0} is no symbol")]
    Damaged(usize),
    /// The kernel was built without them.
    #[error("the kernel has no symbols: it was built without CONFIG_KALLSYMS")]
    Missing,
}

/// How many bytes behind the begin of this per-CPU variable the kernel of x86 counts what keeps
/// preemption off; none if it does not count it there. It is a variable of its own, but from 6.2 to
/// 6.14 a field of `struct pcpu_hot`, behind the current task (arch/x86/include/asm/current.h).
pub fn preemption_counter(variable: &str) -> Option<u32> {
    match variable {
        "__preempt_count" => Some(0),
        "pcpu_hot" => Some(8),
        _ => None,
    }
}

impl<'a> Entry<'a> {
    /// Reads a line; none if it is no symbol.
    pub fn parse(line: &'a str) -> Option<Entry<'a>> {
        let mut words = line.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let kind = words.next()?.chars().next()?;
        let name = words.next()?;
        let module = words.next().map(|word| word.trim_matches(['[', ']']));
        Some(Entry { address, name, module, kind })
    }

    /// Whether it is code, and no data.
    pub fn is_function(&self) -> bool {
        matches!(self.kind, 't' | 'T' | 'w' | 'W')
    }
}

impl Symbols {
    /// Reads the text of /proc/kallsyms; only functions are kept.
    pub fn parse(text: &str) -> Result<Symbols, NoSymbols> {
        let mut found: Vec<(u64, bool, Place)> = Vec::new();
        let mut symbols = Symbols::default();
        for (number, line) in text.lines().enumerate() {
            let damaged = || NoSymbols::Damaged(number + 1);
            let entry = Entry::parse(line).ok_or_else(damaged)?;
            if entry.is_function() {
                let place = symbols.keep(entry.name, entry.module).ok_or_else(damaged)?;
                found.push((entry.address, entry.kind.is_lowercase(), place));
            }
        }
        if found.is_empty() {
            return Err(NoSymbols::Missing);
        }
        if found.iter().all(|(address, ..)| *address == 0) {
            return Err(NoSymbols::Hidden);
        }
        // Of several names of one address the public one is known better.
        found.sort_by_key(|(address, local, _)| (*address, *local));
        found.dedup_by_key(|(address, ..)| *address);
        symbols.addresses = found.iter().map(|(address, ..)| *address).collect();
        symbols.places = found.into_iter().map(|(_, _, place)| place).collect();
        symbols.text.shrink_to_fit();
        Ok(symbols)
    }

    fn keep(&mut self, name: &str, module: Option<&str>) -> Option<Place> {
        let begin = u32::try_from(self.text.len()).ok()?;
        let length = u16::try_from(name.len()).ok()?;
        let module = match module {
            None => 0,
            Some(module) => {
                // Modules stand one after another, so that the last is nearly always the one.
                let known = self.modules.iter().rposition(|known| known == module);
                let place = known.unwrap_or_else(|| {
                    self.modules.push(module.to_owned());
                    self.modules.len() - 1
                });
                u16::try_from(place + 1).ok()?
            }
        };
        self.text.push_str(name);
        Some(Place { begin, length, module })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// The function that `address` lies in.
    pub fn find(&self, address: u64) -> Option<Symbol<'_>> {
        let place = self.addresses.partition_point(|begin| *begin <= address).checked_sub(1)?;
        let offset = address - self.addresses[place];
        if offset >= LONGEST {
            return None;
        }
        let Place { begin, length, module } = self.places[place];
        let begin = begin as usize;
        let function = &self.text[begin..begin + usize::from(length)];
        let module = usize::from(module).checked_sub(1).map(|place| self.modules[place].as_str());
        Some(Symbol { function, module, offset })
    }
}

impl fmt::Display for Symbol<'_> {
    /// As the kernel writes it: `function+0x1f [module]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{:#x}", self.function, self.offset)?;
        self.module.map_or(Ok(()), |module| write!(f, " [{module}]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
        ffffffff81000000 T _text\n\
        ffffffff81000200 t local_name\n\
        ffffffff81000200 T do_work\n\
        ffffffff81000100 T before_it\n\
        ffffffff82000000 D some_data\n\
        ffffffffc0200000 t loop_begin\t[latlab]\n\
        ffffffffc0200040 t loop_end\t[latlab]\n\
        ffffffffc0300000 t other\t[virtio_net]\n";

    fn shown(symbols: &Symbols, address: u64) -> Option<String> {
        symbols.find(address).map(|symbol| symbol.to_string())
    }

    #[test]
    fn an_address_lies_in_the_function_before_it() {
        let symbols = Symbols::parse(TEXT).unwrap();
        let of = |address| shown(&symbols, address);
        assert_eq!(of(0xffff_ffff_8100_021f).as_deref(), Some("do_work+0x1f"));
        assert_eq!(of(0xffff_ffff_8100_01ff).as_deref(), Some("before_it+0xff"));
        assert_eq!(of(0xffff_ffff_c020_0044).as_deref(), Some("loop_end+0x4 [latlab]"));
        assert_eq!(of(0xffff_ffff_c030_0000).as_deref(), Some("other+0x0 [virtio_net]"));
    }

    #[test]
    fn an_address_outside_of_all_functions_has_no_name() {
        let symbols = Symbols::parse(TEXT).unwrap();
        for address in [0, 0xffff_ffff_80ff_ffff, 0xffff_ffff_9000_0000, u64::MAX] {
            assert_eq!(shown(&symbols, address), None, "{address:x}");
        }
        assert_eq!(shown(&Symbols::default(), 5), None);
    }

    #[test]
    fn why_there_are_none_is_said() {
        let why = |text: &str| Symbols::parse(text).unwrap_err();
        assert_eq!(why("0000000000000000 T a\n0000000000000000 t b\n"), NoSymbols::Hidden);
        assert_eq!(why("ffffffff81000000 T a\nnonsense\n"), NoSymbols::Damaged(2));
        assert_eq!(why(""), NoSymbols::Missing);
    }
}
