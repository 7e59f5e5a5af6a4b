//! Symbols of the kernel, to find the function or the variable of an address.

use std::fmt;

/// Maximum offset of an address in its function: no function of the kernel is longer.
const MAX_OFFSET: u64 = 1 << 20;

/// Types of functions, as in nm(1).
const FUNCTIONS: &str = "tTwW";

/// Types of variables.
const VARIABLES: &str = "bBdD";

/// The functions of a kernel and its modules, or their variables, by address.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// In ascending order.
    addresses: Vec<u64>,
    /// The name and module of each address, in the same order.
    names: Vec<NameSlot>,
    /// All names, concatenated.
    text: String,
    modules: Vec<String>,
}

/// The position of a name in the text, and its module by number; 0 is the kernel itself.
#[derive(Clone, Copy, Debug)]
struct NameSlot {
    begin: u32,
    length: u16,
    module: u16,
}

/// A line of /proc/kallsyms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KallsymsLine<'a> {
    /// Its address, 0 where the kernel hides it; of a per-CPU variable, its offset.
    pub address: u64,
    /// Its name.
    pub name: &'a str,
    /// Its module; none for the kernel itself.
    pub module: Option<&'a str>,
    /// The type as in nm(1); lower case if it is local.
    kind: char,
}

/// The function that contains an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// The function or variable.
    pub function: &'a str,
    /// Its module; none for the kernel itself.
    pub module: Option<&'a str>,
    /// The offset of the address in the function.
    pub offset: u64,
}

/// The reason why there are no symbols.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSymbols {
    /// The kernel shows zeros instead of addresses.
    #[error(
        "the kernel hides its symbols from a process without CAP_SYSLOG: run as root, and set \
         kernel.kptr_restrict to 0 or 1"
    )]
    Hidden,
    /// This line of /proc/kallsyms is invalid.
    #[error("line {0} of /proc/kallsyms is not a symbol")]
    Damaged(usize),
    /// The kernel was built without symbols.
    #[error("the kernel has no symbols: build it with CONFIG_KALLSYMS")]
    Missing,
}

/// Returns the offset in bytes of the preemption counter in this per-CPU variable of an x86 kernel;
/// none if the variable does not contain it. The counter is a variable of its own, except from 6.2
/// to 6.14, where it follows the current task in `struct pcpu_hot`
/// (arch/x86/include/asm/current.h).
pub fn preemption_counter(variable: &str) -> Option<u32> {
    match variable {
        "__preempt_count" => Some(0),
        "pcpu_hot" => Some(8),
        _ => None,
    }
}

impl<'a> KallsymsLine<'a> {
    /// Parses a line; none if it is not a symbol.
    pub fn parse(line: &'a str) -> Option<KallsymsLine<'a>> {
        let mut words = line.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let kind = words.next()?.chars().next()?;
        let name = words.next()?;
        let module = words.next().map(|word| word.trim_matches(['[', ']']));
        Some(KallsymsLine { address, name, module, kind })
    }

    /// Whether it is code, not data.
    pub fn is_function(&self) -> bool {
        FUNCTIONS.contains(self.kind)
    }
}

impl Symbols {
    /// Parses the text of /proc/kallsyms, and keeps the functions.
    pub fn parse(text: &str) -> Result<Symbols, NoSymbols> {
        Symbols::select(text, FUNCTIONS)
    }

    /// The same, and keeps the variables. A kernel has them there with `CONFIG_KALLSYMS_ALL`.
    pub fn variables(text: &str) -> Result<Symbols, NoSymbols> {
        Symbols::select(text, VARIABLES)
    }

    fn select(text: &str, kinds: &str) -> Result<Symbols, NoSymbols> {
        let mut found: Vec<(u64, bool, NameSlot)> = Vec::new();
        let mut symbols = Symbols::default();
        for (number, line) in text.lines().enumerate() {
            let damaged = || NoSymbols::Damaged(number + 1);
            let entry = KallsymsLine::parse(line).ok_or_else(damaged)?;
            if kinds.contains(entry.kind) {
                let name = symbols.keep(entry.name, entry.module).ok_or_else(damaged)?;
                found.push((entry.address, entry.kind.is_lowercase(), name));
            }
        }
        if found.is_empty() {
            return Err(NoSymbols::Missing);
        }
        if found.iter().all(|(address, ..)| *address == 0) {
            return Err(NoSymbols::Hidden);
        }
        // Of several names of one address the global one is better known.
        found.sort_by_key(|(address, local, _)| (*address, *local));
        found.dedup_by_key(|(address, ..)| *address);
        symbols.addresses = found.iter().map(|(address, ..)| *address).collect();
        symbols.names = found.into_iter().map(|(_, _, name)| name).collect();
        symbols.text.shrink_to_fit();
        Ok(symbols)
    }

    fn keep(&mut self, name: &str, module: Option<&str>) -> Option<NameSlot> {
        let begin = u32::try_from(self.text.len()).ok()?;
        let length = u16::try_from(name.len()).ok()?;
        let module = match module {
            None => 0,
            Some(module) => {
                // The symbols of a module are consecutive, so that it is nearly always the last
                // one.
                let known = self.modules.iter().rposition(|known| known == module);
                let index = known.unwrap_or_else(|| {
                    self.modules.push(module.to_owned());
                    self.modules.len() - 1
                });
                u16::try_from(index + 1).ok()?
            }
        };
        self.text.push_str(name);
        Some(NameSlot { begin, length, module })
    }

    /// Whether there are no symbols.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Returns the function that contains `address`.
    pub fn find(&self, address: u64) -> Option<Symbol<'_>> {
        let index = self.addresses.partition_point(|begin| *begin <= address).checked_sub(1)?;
        let offset = address - self.addresses[index];
        if offset >= MAX_OFFSET {
            return None;
        }
        let NameSlot { begin, length, module } = self.names[index];
        let begin = begin as usize;
        let function = &self.text[begin..begin + usize::from(length)];
        let module = usize::from(module).checked_sub(1).map(|index| self.modules[index].as_str());
        Some(Symbol { function, module, offset })
    }
}

impl fmt::Display for Symbol<'_> {
    /// Formats it as the kernel does: `function+0x1f [module]`.
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
    fn address_is_found_in_the_function_before_it() {
        let symbols = Symbols::parse(TEXT).unwrap();
        let of = |address| shown(&symbols, address);
        assert_eq!(of(0xffff_ffff_8100_021f).as_deref(), Some("do_work+0x1f"));
        assert_eq!(of(0xffff_ffff_8100_01ff).as_deref(), Some("before_it+0xff"));
        assert_eq!(of(0xffff_ffff_c020_0044).as_deref(), Some("loop_end+0x4 [latlab]"));
        assert_eq!(of(0xffff_ffff_c030_0000).as_deref(), Some("other+0x0 [virtio_net]"));
    }

    #[test]
    fn variables_are_found_apart_from_functions() {
        let variables = Symbols::variables(TEXT).unwrap();
        assert_eq!(shown(&variables, 0xffff_ffff_8200_0008).as_deref(), Some("some_data+0x8"));
        assert_eq!(shown(&variables, 0xffff_ffff_8100_0200), None);
    }

    #[test]
    fn address_outside_of_all_functions_is_not_found() {
        let symbols = Symbols::parse(TEXT).unwrap();
        for address in [0, 0xffff_ffff_80ff_ffff, 0xffff_ffff_9000_0000, u64::MAX] {
            assert_eq!(shown(&symbols, address), None, "{address:x}");
        }
        assert_eq!(shown(&Symbols::default(), 5), None);
    }

    #[test]
    fn missing_symbols_are_refused_with_the_reason() {
        let why = |text: &str| Symbols::parse(text).unwrap_err();
        assert_eq!(why("0000000000000000 T a\n0000000000000000 t b\n"), NoSymbols::Hidden);
        assert_eq!(why("ffffffff81000000 T a\nnonsense\n"), NoSymbols::Damaged(2));
        assert_eq!(why(""), NoSymbols::Missing);
    }
}
