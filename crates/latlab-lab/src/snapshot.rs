//! Snapshots: guests that were stopped before their job, kept in the cache.
//!
//! A snapshot is a folder, named by the digest of everything that the guest depends on except its
//! job. It has the guest's memory, which a restored guest maps privately, so that only the pages it
//! touches are read; the state of its devices, as QEMU stores it; and `snapshot.json`. It is written
//! as a draft, a hidden folder, and then renamed.

use super::kernel;
use super::seal::Identity;
use latlab_sys::file;
use latlab_sys::lock::LockFile;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// All snapshots together may take this many bytes; those not used for longest are removed.
pub const LIMIT: u64 = 4_000_000_000;

const MEMORY: &str = "memory";
const DEVICES: &str = "devices";
const FACTS: &str = "snapshot.json";
/// Start of a draft's name. The key follows.
const DRAFT: &str = ".draft-";

/// A stopped guest.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// Its memory.
    pub(super) memory: File,
    /// The disk image on which QEMU stored the state of its devices.
    pub(super) devices: Vec<u8>,
    pub(super) stopped: Stopped,
}

/// Data on a stopped guest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Stopped {
    /// The virtual CPU that reached the stop, as the debugger names it.
    pub(super) cpu: String,
    /// The guest's console up to there.
    pub(super) console: String,
}

/// Contents of `snapshot.json`: facts, and the digest of the text of these facts alone.
#[derive(Debug, Serialize, Deserialize)]
struct Sealed {
    #[serde(flatten)]
    facts: Facts,
    seal: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Facts {
    /// The name of its folder.
    key: String,
    /// The name of its kernel.
    kernel: String,
    memory: Identity,
    /// The digest of the state of the devices.
    devices: String,
    #[serde(flatten)]
    stopped: Stopped,
}

impl Facts {
    /// The text of `snapshot.json`.
    fn sealed(self) -> io::Result<Vec<u8>> {
        let seal = kernel::digest(&serde_json::to_vec(&self)?);
        Ok(serde_json::to_vec_pretty(&Sealed { facts: self, seal })?)
    }

    /// The facts in this text; none unless each byte of it is as [`Facts::sealed`] wrote it.
    fn unsealed(text: &[u8]) -> Option<Facts> {
        let read: Sealed = serde_json::from_slice(text).ok()?;
        let digest = kernel::digest(&serde_json::to_vec(&read.facts).ok()?);
        let is_whole = read.seal == digest && serde_json::to_vec_pretty(&read).ok()? == text;
        is_whole.then_some(read.facts)
    }
}

/// Opens the snapshot with this key. None where there is none; an error where it can't be used.
pub(super) fn open(key: &str) -> io::Result<Option<Snapshot>> {
    open_within(&folder()?, key)
}

fn open_within(folder: &Path, key: &str) -> io::Result<Option<Snapshot>> {
    let place = folder.join(key);
    let facts = match File::open(place.join(FACTS)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !place.exists() => {
            return Ok(None);
        }
        facts => facts?,
    };
    let wrong = |name: &str| io::Error::other(format!("its file {name} is not as it was written"));
    let read = Facts::unsealed(&file::contents(&facts)?).ok_or_else(|| wrong(FACTS))?;
    // QEMU maps it privately, and nevertheless opens it for writing.
    let memory = File::options().read(true).write(true).open(place.join(MEMORY))?;
    let devices = fs::read(place.join(DEVICES))?;
    if read.key != key {
        return Err(wrong(FACTS));
    }
    if read.memory != Identity::of(&memory)? {
        return Err(wrong(MEMORY));
    }
    if read.devices != kernel::digest(&devices) {
        return Err(wrong(DEVICES));
    }
    // Its last use: a snapshot on a read-only file system is never removed.
    let _ = facts.set_modified(SystemTime::now());
    Ok(Some(Snapshot { memory, devices, stopped: read.stopped }))
}

/// A snapshot that is being made. Dropping it removes it, unless it was published.
#[derive(Debug)]
pub(super) struct Draft {
    folder: PathBuf,
    place: PathBuf,
    key: String,
    kernel: String,
    /// Released last.
    _lock: LockFile,
}

/// Begins the snapshot with this key, in place of one that can't be used. None where another
/// process makes it.
pub(super) fn begin(key: &str, kernel: &str) -> io::Result<Option<Draft>> {
    begin_within(&folder()?, key, kernel)
}

fn begin_within(folder: &Path, key: &str, kernel: &str) -> io::Result<Option<Draft>> {
    let Some(lock) = lock(folder, key)? else { return Ok(None) };
    let draft = Draft {
        folder: folder.join(format!("{DRAFT}{key}")),
        place: folder.join(key),
        key: key.to_owned(),
        kernel: kernel.to_owned(),
        _lock: lock,
    };
    clear(&draft.folder)?;
    fs::create_dir(&draft.folder)?;
    Ok(Some(draft))
}

/// Locks the draft with this key. None where another process has it.
fn lock(folder: &Path, key: &str) -> io::Result<Option<LockFile>> {
    let locks = folder.join(".locks");
    fs::create_dir_all(&locks)?;
    LockFile::take(&locks.join(key))
}

impl Draft {
    /// Writes the memory and the devices of a guest that is stopped.
    pub(super) fn write(&self, memory: &File, devices: &File, stopped: Stopped) -> io::Result<()> {
        let copy = File::create(self.folder.join(MEMORY))?;
        file::copy_sparse(memory, &copy)?;
        copy.sync_all()?;
        let devices = file::contents(devices)?;
        file::write_atomically(&self.folder.join(DEVICES), &devices)?;
        let facts = Facts {
            key: self.key.clone(),
            kernel: self.kernel.clone(),
            memory: Identity::of(&copy)?,
            devices: kernel::digest(&devices),
            stopped,
        };
        file::write_atomically(&self.folder.join(FACTS), &facts.sealed()?)
    }

    /// Gives it its name, and removes the snapshots that exceed the limit and the drafts that killed
    /// processes left.
    pub(super) fn publish(self) -> io::Result<()> {
        clear(&self.place)?;
        fs::rename(&self.folder, &self.place)?;
        let all = self.place.parent().unwrap_or(&self.place);
        remove_exceeding(all, LIMIT);
        remove_abandoned(all);
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Number of snapshots, and the bytes that they take on the disk.
pub fn total() -> io::Result<(usize, u64)> {
    let all = all(&folder()?);
    Ok((all.len(), all.iter().map(|kept| kept.bytes).sum()))
}

/// Removes all snapshots of the kernel with this name.
pub fn remove_of(kernel: &str) -> io::Result<()> {
    for kept in all(&folder()?) {
        let facts = fs::read(kept.place.join(FACTS)).unwrap_or_default();
        // Whole or not: to remove one too many costs a boot.
        let facts: Option<Facts> = serde_json::from_slice(&facts).ok();
        if facts.is_some_and(|facts| facts.kernel == kernel) {
            clear(&kept.place)?;
        }
    }
    Ok(())
}

/// A snapshot in the cache.
struct Kept {
    used: SystemTime,
    bytes: u64,
    place: PathBuf,
}

fn all(folder: &Path) -> Vec<Kept> {
    let kept = |place: PathBuf| {
        let used = fs::metadata(place.join(FACTS)).ok()?.modified().ok()?;
        let files = fs::read_dir(&place).ok()?.flatten();
        let bytes = files.filter_map(|file| Some(file.metadata().ok()?.blocks() * 512)).sum();
        Some(Kept { used, bytes, place })
    };
    let places = fs::read_dir(folder).into_iter().flatten().flatten();
    places.filter_map(|place| kept(place.path())).collect()
}

/// Removes the snapshots not used for longest until the rest takes `limit` bytes or less. Guests
/// that were restored from them go on.
fn remove_exceeding(folder: &Path, limit: u64) {
    let mut all = all(folder);
    all.sort_by_key(|kept| std::cmp::Reverse(kept.used));
    let mut sum = 0;
    for kept in all {
        sum += kept.bytes;
        if sum > limit {
            let _ = clear(&kept.place);
        }
    }
}

/// Removes the drafts that no process has locked.
fn remove_abandoned(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let key = name.to_str().and_then(|name| name.strip_prefix(DRAFT));
        let lock = key.and_then(|key| lock(folder, key).ok().flatten());
        if lock.is_some() {
            let _ = clear(&entry.path());
        }
    }
}

fn folder() -> io::Result<PathBuf> {
    let cache = kernel::cache().map_err(io::Error::other)?;
    Ok(cache.join("snapshots"))
}

fn clear(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::time::Nanos;
    use latlab_sys::clock;
    use std::os::unix::fs::FileExt as _;

    fn make(folder: &Path, key: &str) -> io::Result<()> {
        let (memory, devices) = (file::in_memory()?, file::in_memory()?);
        memory.set_len(1 << 20)?;
        memory.write_all_at(b"memory", 40_000)?;
        devices.write_all_at(b"devices", 0)?;
        let draft = begin_within(folder, key, "debian")?.expect("nobody else makes it");
        let stopped = Stopped { cpu: "01".to_owned(), console: "boots".to_owned() };
        draft.write(&memory, &devices, stopped)?;
        draft.publish()
    }

    fn why(folder: &Path) -> String {
        open_within(folder, "key").unwrap_err().to_string()
    }

    #[test]
    fn snapshot_has_what_was_written_and_leaves_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert!(open_within(folder, "key").unwrap().is_none());
        make(folder, "key").unwrap();
        let snapshot = open_within(folder, "key").unwrap().unwrap();
        let mut bytes = [0; 6];
        snapshot.memory.read_exact_at(&mut bytes, 40_000).unwrap();
        assert_eq!((&bytes, snapshot.devices.as_slice()), (b"memory", &b"devices"[..]));
        assert_eq!(snapshot.stopped.console, "boots");
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, [".locks", "key"]);
        assert_eq!(fs::read_dir(folder.join(".locks")).unwrap().count(), 0);
    }

    #[test]
    fn snapshot_changed_truncated_or_moved_is_refused_and_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let place = folder.join("key");
        let edit = |name: &str| {
            // The file system may count time in ticks.
            clock::sleep_for(Nanos::from_millis(20));
            File::options().write(true).open(place.join(name)).unwrap()
        };
        make(folder, "key").unwrap();
        edit(MEMORY).write_all_at(b"M", 40_000).unwrap();
        assert_eq!(why(folder), "its file memory is not as it was written");
        make(folder, "key").unwrap();
        edit(MEMORY).set_len(10).unwrap();
        assert_eq!(why(folder), "its file memory is not as it was written");
        make(folder, "key").unwrap();
        edit(DEVICES).set_len(3).unwrap();
        assert_eq!(why(folder), "its file devices is not as it was written");
        make(folder, "key").unwrap();
        edit(FACTS).set_len(30).unwrap();
        assert_eq!(why(folder), "its file snapshot.json is not as it was written");
        fs::remove_file(place.join(FACTS)).unwrap();
        assert!(why(folder).contains("No such file"), "{}", why(folder));
        make(folder, "other").unwrap();
        fs::remove_dir_all(&place).unwrap();
        fs::rename(folder.join("other"), &place).unwrap();
        assert_eq!(why(folder), "its file snapshot.json is not as it was written");
        make(folder, "key").unwrap();
        assert!(open_within(folder, "key").unwrap().is_some());
    }

    #[test]
    fn snapshot_whose_facts_were_changed_anywhere_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let path = folder.join("key").join(FACTS);
        make(folder, "key").unwrap();
        let text = fs::read(&path).unwrap();
        assert!(Facts::unsealed(&text).is_some());
        for at in 0..text.len() {
            let mut other = text.clone();
            other[at] ^= 1;
            assert!(Facts::unsealed(&other).is_none(), "byte {at}");
        }
        let text = String::from_utf8(text).unwrap();
        for (was, is) in [
            ("{", "{\"more\": 1,"),
            ("\"01\"", "\"00\""),
            ("\"debian\"", "\"other\""),
            ("boots", "BUG: soft lockup"),
        ] {
            let changed = text.replacen(was, is, 1);
            assert_ne!(changed, text);
            file::write_atomically(&path, changed.as_bytes()).unwrap();
            assert_eq!(why(folder), "its file snapshot.json is not as it was written", "{is}");
        }
        file::write_atomically(&path, text.as_bytes()).unwrap();
        assert!(open_within(folder, "key").unwrap().is_some());
    }

    #[test]
    fn snapshot_is_made_by_one_process_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = begin_within(folder.path(), "key", "debian").unwrap();
        assert!(first.is_some());
        assert!(begin_within(folder.path(), "key", "debian").unwrap().is_none());
        assert!(begin_within(folder.path(), "other", "debian").unwrap().is_some());
        drop(first);
        // A killed process leaves a draft without a lock.
        let left = [".draft-key", ".draft-never-made-again"].map(|name| folder.path().join(name));
        for draft in &left {
            fs::create_dir(draft).unwrap();
        }
        let held = begin_within(folder.path(), "held", "debian").unwrap().unwrap();
        make(folder.path(), "key").unwrap();
        assert!(left.iter().all(|draft| !draft.exists()));
        assert!(held.folder.exists());
    }

    #[test]
    fn snapshots_above_the_limit_are_removed_oldest_use_first() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        // To make one may take longer than the differences between their ages.
        let now = SystemTime::now();
        for (age, key) in [(30, "old"), (10, "new"), (20, "middle")] {
            make(folder, key).unwrap();
            let facts = File::open(folder.join(key).join(FACTS)).unwrap();
            let used = now - std::time::Duration::from_secs(age);
            facts.set_modified(used).unwrap();
        }
        open_within(folder, "old").unwrap().unwrap();
        let each = all(folder)[0].bytes;
        remove_exceeding(folder, 2 * each);
        let there = |key: &str| folder.join(key).exists();
        assert_eq!((there("old"), there("new"), there("middle")), (true, true, false));
    }
}
