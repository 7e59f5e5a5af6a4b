//! The timer calibration of the running kernel.

use latlab_measure::message::{ApicTimer, Calibration};
use latlab_part::failure::{Failure, Result};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;

/// Reads the calibration of the running kernel. `names`: the function with which the calibration
/// begins, and the variable with its result. None if the hardware knows its frequency.
pub(super) fn read(names: Option<&[String; 2]>) -> Result<Calibration> {
    let Some([entry, result]) = names else { return Ok(Calibration::default()) };
    let unreadable = |e| Failure::failed(format!("the kernel's symbols can't be read: {e}"));
    let symbols = BufReader::new(File::open("/proc/kallsyms").map_err(unreadable)?);
    let (mut setup, mut variable) = (None, None);
    for line in symbols.lines() {
        let line = line.map_err(unreadable)?;
        let mut words = line.split(' ');
        let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
        match words.nth(1) {
            Some(name) if name == entry => setup = address,
            Some(name) if name == result => variable = address,
            _ => {}
        }
    }
    let timer = |(setup, variable)| {
        let period = kernel_word(variable)?;
        (period > 0).then_some(ApicTimer { setup, variable, period })
    };
    Ok(Calibration { apic_timer: setup.zip(variable).and_then(timer) })
}

/// Four bytes of the kernel's memory, from `/proc/kcore`, which is an ELF core file.
fn kernel_word(address: u64) -> Option<u32> {
    let mut core = File::open("/proc/kcore").ok()?;
    let mut header = [0; 64];
    core.read_exact(&mut header).ok()?;
    let count = u16::from_le_bytes([header[56], header[57]]);
    let table = u64::from_le_bytes(header[32..40].try_into().ok()?);
    (0..u64::from(count)).find_map(|n| {
        let mut segment = [0; 56];
        core.read_exact_at(&mut segment, table + n * 56).ok()?;
        let field = |at: usize| segment[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let (offset, start, size) = (field(8)?, field(16)?, field(40)?);
        if address < start || address - start >= size {
            return None;
        }
        let mut word = [0; 4];
        core.read_exact_at(&mut word, offset + (address - start)).ok()?;
        Some(u32::from_le_bytes(word))
    })
}
