//! Sections and interrupts as QEMU's plugin writes them (`plugin/README.md`).

use super::Term;
use crate::path::DamagedTrace;
use crate::time::Nanos;

/// The plugin's output during a run, from the first sample that counts to the last one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Each section that was the longest of its kind so far.
    pub(super) sections: Vec<RawSection>,
    pub(super) interrupts: Vec<RawInterrupt>,
    pub(super) wakes: Vec<Wake>,
    /// The differences between instructions and time, where they should be the same.
    pub(super) apart: u64,
    /// The preemption counter when a program ran, which has to be 0.
    pub(super) drift: i64,
}

/// A section, with the addresses of the functions that began and ended it, and of their callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RawSection {
    pub(super) term: Term,
    /// Whether it is one of a kernel that runs on to its next scheduling point. None where that
    /// makes no difference.
    pub(super) runs_on: Option<bool>,
    pub(super) length: Nanos,
    pub(super) begin: Vec<u64>,
    pub(super) end: Vec<u64>,
}

/// An interrupt, with the address at which the processor enters the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawInterrupt {
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
    pub(super) own: Nanos,
    pub(super) address: u64,
}

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wake {
    pub(super) index: u64,
    /// When the interrupt began whose timer woke the thread; 0 where there was none.
    pub(super) interrupt: Nanos,
    /// For how long interrupts had been enabled then.
    pub(super) enabled: Nanos,
    /// When the program read the clock.
    pub(super) read: Nanos,
}

impl Trace {
    /// Reads a file of the plugin.
    pub fn read(text: &str) -> Result<Trace, DamagedTrace> {
        let mut trace = Trace::default();
        // What follows the last sample is not part of a measurement, and may be cut off, in a line.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines: Vec<&str> = whole.lines().collect();
        let last = lines.iter().rposition(|line| line.starts_with("wake "));
        for (number, line) in lines.iter().enumerate().take(last.map_or(0, |last| last + 1)) {
            let damaged = || DamagedTrace { line: number + 1, text: (*line).to_owned() };
            trace.line(line).ok_or_else(damaged)?;
        }
        Ok(trace)
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &str| word.parse().ok().map(Nanos);
        match words[..] {
            ["longest", kind, length, begin, end] => {
                let (term, runs_on) = kind_of(kind)?;
                let (begin, end) = (addresses(begin)?, addresses(end)?);
                let length = number(length)?;
                self.sections.push(RawSection { term, runs_on, length, begin, end });
            }
            ["interrupt", begin, end, own, address] => {
                let address = u64::from_str_radix(address, 16).ok()?;
                let (begin, end, own) = (number(begin)?, number(end)?, number(own)?);
                (begin <= end).then_some(())?;
                self.interrupts.push(RawInterrupt { begin, end, own, address });
            }
            ["wake", index, interrupt, enabled, read] => {
                let (interrupt, read) = (number(interrupt)?, number(read)?);
                let (index, enabled) = (index.parse().ok()?, number(enabled)?);
                self.wakes.push(Wake { index, interrupt, enabled, read });
            }
            // latlab measures its own cost first: only what follows the last one counts.
            ["begin"] => {
                self.sections.clear();
                self.interrupts.clear();
                self.wakes.clear();
                self.apart = 0;
            }
            ["drift", count] => self.drift = self.drift.max(count.parse().ok()?),
            ["apart", ns] => self.apart = self.apart.saturating_add(ns.parse().ok()?),
            _ => return None,
        }
        Some(())
    }
}

fn kind_of(kind: &str) -> Option<(Term, Option<bool>)> {
    Some(match kind {
        "poid" => (Term::Poid, Some(false)),
        "poid-none" => (Term::Poid, Some(true)),
        "st" => (Term::St, Some(false)),
        "st-none" => (Term::St, Some(true)),
        "paie" => (Term::Paie, Some(false)),
        "paie-none" => (Term::Paie, Some(true)),
        "psd" => (Term::Psd, None),
        "return" => (Term::Return, None),
        _ => return None,
    })
}

/// The addresses of a function and its callers; the plugin writes 0 where there is none.
fn addresses(text: &str) -> Option<Vec<u64>> {
    let addresses = text.split(',').map(|word| u64::from_str_radix(word, 16).ok());
    let addresses: Vec<u64> = addresses.collect::<Option<_>>()?;
    Some(addresses.into_iter().take_while(|address| *address != 0).collect())
}
