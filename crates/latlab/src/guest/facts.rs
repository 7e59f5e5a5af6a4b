//! What a kernel finds out at each boot, learnt once and kept beside it.

use crate::failure::{Failure, Result};
use crate::kernel::Kernel;
use latlab_sys::file;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

/// What a first boot in instruction time has told of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// Absent where the kernel does not show its symbols or its memory.
    pub(crate) apic_timer: Option<ApicTimer>,
}

/// What the kernel calibrates its local APIC timer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApicTimer {
    /// Where the calibration begins: `setup_boot_APIC_clock`.
    pub(crate) setup: u64,
    /// Where its result lies: `lapic_timer_period`.
    pub(crate) variable: u64,
    /// The result: cycles of the timer in one tick.
    pub(crate) period: u32,
}

/// The file in a kernel's folder: the facts, and the kernel that they are of.
#[derive(Serialize, Deserialize)]
struct Kept {
    digest: String,
    facts: Facts,
}

impl Facts {
    /// What is known of `kernel`.
    pub(super) fn known(kernel: &Kernel) -> Option<Facts> {
        let text = std::fs::read_to_string(place(kernel)).ok()?;
        let kept: Kept = serde_json::from_str(&text).ok()?;
        (kept.digest == kernel.digest).then_some(kept.facts)
    }

    /// Keeps them. A cache that can't be written costs time, not results.
    pub(super) fn keep(self, kernel: &Kernel) {
        let kept = Kept { digest: kernel.digest.clone(), facts: self };
        let text = serde_json::to_string_pretty(&kept).expect("facts are plain data");
        let _ = file::write_atomically(&place(kernel), text.as_bytes());
    }

    /// Reads them in the kernel that runs here.
    pub(super) fn read() -> Result<Facts> {
        let unreadable = |e| Failure::Failed(format!("the kernel's symbols can't be read: {e}"));
        let symbols = BufReader::new(File::open("/proc/kallsyms").map_err(unreadable)?);
        let (mut setup, mut variable) = (None, None);
        for line in symbols.lines() {
            let line = line.map_err(unreadable)?;
            let mut words = line.split(' ');
            let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
            match words.nth(1) {
                Some("setup_boot_APIC_clock") => setup = address,
                Some("lapic_timer_period") => variable = address,
                _ => {}
            }
        }
        let timer = |(setup, variable)| {
            let period = kernel_word(variable)?;
            (period > 0).then_some(ApicTimer { setup, variable, period })
        };
        Ok(Facts { apic_timer: setup.zip(variable).and_then(timer) })
    }
}

fn place(kernel: &Kernel) -> PathBuf {
    kernel.folder.join("facts.json")
}

/// Four bytes of the kernel's memory, out of `/proc/kcore`, which is an ELF core file.
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
