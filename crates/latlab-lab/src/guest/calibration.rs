//! The timer calibration of a kernel: read at its first boot, and kept in the kernel's folder.

use crate::arch::Arch;
use crate::kernel::Kernel;
use crate::seal;
use latlab_measure::message::{ApicTimer, Calibration};
use latlab_part::failure::{Failure, Result};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

/// The file in a kernel's folder: the calibration, and the digest of the kernel that made it.
#[derive(Serialize, Deserialize)]
struct Kept {
    digest: String,
    calibration: Calibration,
}

/// The calibration kept for `kernel`.
pub(crate) fn kept(kernel: &Kernel) -> Option<Calibration> {
    let kept: Kept = serde_json::from_slice(&seal::read(&path(kernel))?).ok()?;
    (kept.digest == kernel.digest).then_some(kept.calibration)
}

/// Keeps a calibration. A cache that can't be written costs time, not results.
pub(crate) fn keep(calibration: Calibration, kernel: &Kernel) {
    let kept = Kept { digest: kernel.digest.clone(), calibration };
    let text = serde_json::to_vec_pretty(&kept).expect("a calibration is plain data");
    let _ = seal::write(&path(kernel), &text);
}

/// Reads the calibration of the running kernel.
pub(super) fn read() -> Result<Calibration> {
    let Some([entry, result]) = Arch::own().calibration else { return Ok(Calibration::default()) };
    let unreadable = |e| Failure::Failed(format!("the kernel's symbols can't be read: {e}"));
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

fn path(kernel: &Kernel) -> PathBuf {
    kernel.folder.join("calibration.json")
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
