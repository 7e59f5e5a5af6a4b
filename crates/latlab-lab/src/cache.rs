//! Answers of earlier cells, kept by the digest of everything an answer depends on: the
//! fingerprint of its environment, and the job.

use super::guest::{self, Boot, Cell, GuestTime, Job, Plugin};
use super::kernel;
use latlab_core::path::Misses;
use latlab_measure::message::Message;
use latlab_part::failure::{Context as _, Result};
use latlab_sys::file;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The digest of everything an answer depends on, except the job.
pub(super) fn fingerprint(cell: &Cell, boot: &Boot) -> Result<String> {
    let (version, machine) = (guest::version(cell)?, guest::arguments(cell)?);
    let (kernel, timer) = (&cell.kernel.digest, cell.timer);
    let (cmdline, initramfs) = (&boot.cmdline, kernel::digest(&boot.initramfs));
    let text = format!("{version}\n{machine:?}\n{kernel}\n{timer:?}\n{cmdline}\n{initramfs}");
    Ok(kernel::digest(text.as_bytes()))
}

/// The digest of this program: the fingerprint of targets whose kernel latlab does not choose.
pub fn program_digest() -> Result<String> {
    let program = std::fs::read("/proc/self/exe").context("latlab's own program")?;
    Ok(kernel::digest(&program))
}

/// The file in which the answer of a cell is kept; none where the same cell may answer differently
/// next time, or its plugin records.
pub(super) fn path(cell: &Cell, boot: &Boot, fingerprint: &str) -> Result<Option<PathBuf>> {
    if !repeats(cell.time, cell.profile.cpus, &cell.job) || records(cell) {
        return Ok(None);
    }
    let name = kernel::digest(format!("{fingerprint}\n{}", kernel::digest(&boot.job)).as_bytes());
    let folder = kernel::cache()?.join("cells");
    // Without the folder nothing is kept, but cells still run.
    Ok(std::fs::create_dir_all(&folder).is_ok().then(|| folder.join(name)))
}

/// Whether a guest answers the same each time. QEMU can't record one with several CPUs, so that it may
/// differ; a kernel is calibrated once.
fn repeats(time: GuestTime, cpus: u32, job: &Job) -> bool {
    time == GuestTime::Instructions && cpus == 1 && !matches!(job, Job::Calibrate)
}

/// Whether the plugin of a cell records what only a guest that runs can show. A cached answer would
/// come from the cell without the plugin; that both agree is not yet shown.
fn records(cell: &Cell) -> bool {
    cell.plugin.as_ref().is_some_and(Plugin::records)
}

/// Bytes; a longer answer is quicker to measure again than to keep.
const LONGEST: u64 = 1 << 20;

/// All answers together may take this many bytes; those not used for longest are removed.
const LIMIT: u64 = 500_000_000;

/// The messages kept in a file, if they are as they were written.
pub(super) fn load(path: &Path) -> Option<Vec<Message>> {
    let text = String::from_utf8(file::read_at_most(path, 2 * LONGEST).ok()?).ok()?;
    let messages = read(&text)?;
    // Its last use; on a read-only file system no answer is removed.
    let _ = File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
    Some(messages)
}

/// The messages in the text of a file.
pub fn read(text: &str) -> Option<Vec<Message>> {
    let (digest, transcript) = text.split_once('\n')?;
    if digest != kernel::digest(transcript.as_bytes()) {
        return None;
    }
    let messages = transcript.lines().map(Message::read).collect::<Result<Vec<_>>>().ok()?;
    messages.last().is_some_and(Message::is_answer).then_some(messages)
}

/// Keeps the plugin's counts and the messages of a guest, after their digest. A cache that can't be
/// written costs time, not results.
pub(super) fn keep(path: &Path, misses: &[Misses], transcript: &str) {
    let mut messages = Vec::new();
    let counted = Message::Misses(misses.to_vec()).send(&mut messages);
    messages.extend(transcript.as_bytes());
    let text = [format!("{}\n", kernel::digest(&messages)).into_bytes(), messages].concat();
    let short = counted.is_ok() && text.len() as u64 <= LONGEST;
    if short && file::write_atomically(path, &text).is_ok() {
        remove_exceeding(path.parent().unwrap_or(path), LIMIT);
    }
}

/// Removes the answers not used for longest until the rest takes `limit` bytes or less.
fn remove_exceeding(folder: &Path, limit: u64) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut answers: Vec<_> = entries
        .filter_map(|answer| {
            let metadata = answer.metadata().ok()?;
            Some((metadata.modified().ok()?, metadata.blocks() * 512, answer.path()))
        })
        .collect();
    answers.sort_by_key(|(used, ..)| std::cmp::Reverse(*used));
    let mut sum = 0;
    for (_, bytes, path) in answers {
        sum += bytes;
        if sum > limit {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::time::Nanos;
    use latlab_measure::session::Accel;
    use std::time::Duration;

    #[test]
    fn answers_that_may_differ_are_not_kept() {
        let program =
            Job::Exec { words: vec![], folder: "/".into(), variables: guest::Variables::new() };
        assert!(repeats(GuestTime::Instructions, 1, &program));
        assert!(!repeats(GuestTime::Instructions, 2, &program));
        assert!(!repeats(GuestTime::Wall(Accel::Tcg), 1, &program));
        assert!(!repeats(GuestTime::Instructions, 1, &Job::Calibrate));
    }

    #[test]
    fn answer_of_a_cell_whose_plugin_records_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let cell = |samples: Vec<(u64, Nanos)>| {
            let kernel = kernel::Kernel::bare(folder.path());
            let (words, variables) = (vec![], guest::Variables::new());
            let program = Job::Exec { words, folder: "/".into(), variables };
            let (library, faults) = ("latlab.so".into(), vec![]);
            let (preempt_count, sections) = (None, None);
            let plugin = Plugin { library, misses: true, samples, faults, preempt_count, sections };
            let cell = Cell::plain("lab:bare", kernel, GuestTime::Instructions, program);
            Cell { plugin: Some(plugin), ..cell }
        };
        let (cmdline, modules) = (String::new(), vec![]);
        let boot = Boot { initramfs: vec![], cmdline, modules, job: vec![] };
        assert_eq!(path(&cell(vec![(1, Nanos(5_000))]), &boot, "0a"), Ok(None));
        assert!(!records(&cell(vec![])), "misses are kept with the answer");
    }

    #[test]
    fn kept_answer_with_a_changed_bit_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cell");
        keep(&path, &[], "\"end\"\n{\"exited\":7}\n");
        assert!(matches!(
            load(&path).unwrap()[..],
            [Message::Misses(_), Message::End, Message::Exited(7)]
        ));
        let written = std::fs::read(&path).unwrap();
        for bit in 0..written.len() * 8 {
            let mut changed = written.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            file::write_atomically(&path, &changed).unwrap();
            assert!(load(&path).is_none(), "bit {bit}");
        }
    }

    #[test]
    fn answers_not_used_for_longest_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second, third] = ["1", "2", "3"].map(|name| folder.path().join(name));
        for (path, seconds) in [(&first, 1), (&second, 2), (&third, 3)] {
            keep(path, &[], "\"end\"\n{\"exited\":7}\n");
            let written = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            File::open(path).unwrap().set_modified(written).unwrap();
        }
        let bytes = first.metadata().unwrap().blocks() * 512;
        assert!(load(&first).is_some());
        remove_exceeding(folder.path(), 3 * bytes);
        assert!(second.exists());
        remove_exceeding(folder.path(), 2 * bytes);
        assert_eq!([&first, &second, &third].map(|path| path.exists()), [true, false, true]);
    }
}
