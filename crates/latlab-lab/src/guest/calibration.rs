//! The timer calibration of a kernel, which its first boot reads, kept in the kernel's folder.

use crate::kernel::Kernel;
use crate::seal;
use latlab_measure::message::Calibration;
use serde::{Deserialize, Serialize};
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

fn path(kernel: &Kernel) -> PathBuf {
    kernel.folder.join("calibration.json")
}
