//! What the laboratory has answered before, under the digest of all that an answer depends on: its
//! basis, and the job.

use super::Time;
use super::cell::{Boot, Cell};
use super::orders::Job;
use super::qemu;
use crate::failure::{Result, failed};
use crate::kernel;
use crate::message::Message;
use latlab_sys::file;
use std::path::{Path, PathBuf};

/// The digest of all that an answer depends on but for the job.
pub(super) fn basis(cell: &Cell, boot: &Boot) -> Result<String> {
    let (version, machine) = (qemu::version(&cell.target)?, qemu::arguments(cell));
    let (kernel, timer) = (&cell.kernel.digest, cell.timer);
    let Boot { cmdline, but_job, .. } = boot;
    let text = format!("{version}\n{machine:?}\n{kernel}\n{timer:?}\n{cmdline}\n{but_job}");
    Ok(kernel::digest(text.as_bytes()))
}

/// The digest of this program, which is all that is known of machines that are as they are.
pub(crate) fn this_program() -> Result<String> {
    let program = std::fs::read("/proc/self/exe").map_err(|e| failed("our own program", e))?;
    Ok(kernel::digest(&program))
}

/// Where the answer of a cell is kept; none where the next answer may be another one.
pub(super) fn place(cell: &Cell, boot: &Boot, basis: &str) -> Result<Option<PathBuf>> {
    if cell.time != Time::Instructions || matches!(cell.job, Job::Learn) {
        return Ok(None);
    }
    let name = kernel::digest(format!("{basis}\n{}", boot.orders).as_bytes());
    let folder = kernel::cache()?.join("cells");
    // Without a folder there is no memory, but there are results.
    Ok(std::fs::create_dir_all(&folder).is_ok().then(|| folder.join(name)))
}

/// All that was said then, if it is whole.
pub(super) fn recall(path: &Path) -> Option<Vec<Message>> {
    let text = std::fs::read_to_string(path).ok()?;
    let messages = text.lines().map(Message::read).collect::<Result<Vec<_>>>().ok()?;
    messages.last().is_some_and(Message::is_answer).then_some(messages)
}

/// Keeps what was said. A cache that can't be written costs time, not results.
pub(super) fn keep(path: &Path, transcript: &str) {
    /// What is longer is quicker to have again than to keep.
    const LONGEST: usize = 1 << 20;
    if transcript.len() <= LONGEST && file::write_atomically(path, transcript.as_bytes()).is_ok() {
        forget_oldest(path.parent().unwrap_or(path));
    }
}

/// Keeps the memory from growing for ever.
fn forget_oldest(folder: &Path) {
    const MOST: usize = 1000;
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut cells: Vec<_> = entries
        .filter_map(|cell| Some((cell.metadata().ok()?.modified().ok()?, cell.path())))
        .collect();
    cells.sort();
    for (_, path) in cells.iter().take(cells.len().saturating_sub(MOST)) {
        let _ = std::fs::remove_file(path);
    }
}
