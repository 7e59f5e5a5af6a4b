//! Code that a process makes while it runs, which is in no file: where it is, and the perf map that names it.

use super::files::Bytes;
use crate::explain::proc;
use framehop::{ExplicitModuleSectionInfo, Module};
use latlab_check::{Frame, Mapping, PerfMap};
use latlab_sys::file;
use latlab_sys::root::Root;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::os::linux::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The code that a process has made.
#[derive(Default)]
pub(super) struct Made {
    ranges: Vec<Range<u64>>,
    /// Pages of addresses that were not known.
    sought: BTreeSet<u64>,
    place: Option<Place>,
    /// The perf map, kept open, so that it can be read after the process has ended.
    map: Option<File>,
    functions: OnceCell<PerfMap>,
}

/// Where a process writes its perf map.
struct Place {
    paths: Vec<PathBuf>,
    /// The user of the process: a map of another one may say anything.
    user: u32,
    /// When the process started. An older map belongs to an earlier process with the same ID.
    started: SystemTime,
}

/// Largest number of addresses that are looked for.
const SOUGHT: usize = 1000;
/// Largest part of a perf map that is read, in bytes.
const READ: u64 = 64 << 20;

impl Made {
    /// Reads where such code is, from the text of `/proc/PID/maps`. Returns the ranges that no longer are as
    /// they were, if anything has changed.
    pub(super) fn update(&mut self, pid: u32, maps: &str) -> Option<Vec<Range<u64>>> {
        let made = maps.lines().filter_map(Mapping::of).filter(is_made);
        let ranges: Vec<_> = made.map(|mapping| mapping.range).collect();
        if !ranges.is_empty() && self.map.is_none() {
            self.place = Place::of(pid).or(self.place.take());
            self.map = self.place.as_ref().and_then(Place::open);
        }
        (ranges != self.ranges).then(|| std::mem::replace(&mut self.ranges, ranges))
    }

    pub(super) fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    pub(super) fn has(&self, address: u64) -> bool {
        self.ranges.iter().any(|range| range.contains(&address))
    }

    /// Whether an unknown address has not been looked for yet.
    pub(super) fn is_new(&mut self, address: u64) -> bool {
        self.sought.len() < SOUGHT && self.sought.insert(address >> 12)
    }

    /// The function at an address, by the perf map as it is when the first is asked for.
    pub(super) fn frame(&self, address: u64) -> Option<Frame> {
        self.functions().frame(address)
    }

    /// Whether there is a perf map.
    pub(super) fn has_map(&self) -> bool {
        !self.functions().is_empty()
    }

    fn functions(&self) -> &PerfMap {
        self.functions.get_or_init(|| self.read().unwrap_or_default())
    }

    fn read(&self) -> Option<PerfMap> {
        let late = || self.place.as_ref().and_then(Place::open);
        let file = self.map.as_ref().and_then(|map| map.try_clone().ok()).or_else(late)?;
        let mut bytes = Vec::new();
        let _size = file.take(READ).read_to_end(&mut bytes).ok()?;
        Some(PerfMap::of(&String::from_utf8_lossy(&bytes)))
    }
}

impl Place {
    /// None if the process has ended.
    fn of(pid: u32) -> Option<Place> {
        let (root, folder) = (Root::default(), proc::folder(pid));
        let status = root.text(format!("{folder}/status"))?;
        // The last ID is that in the PID namespace of the process.
        let own = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let own = own.and_then(|all| all.split_ascii_whitespace().last()).map(str::to_owned);
        let name = format!("tmp/perf-{}.map", own.unwrap_or_else(|| pid.to_string()));
        let top = root.path(format!("{folder}/root"));
        let mut paths = vec![top.join(&name)];
        if is_same(&top, Path::new("/")) {
            // This one stays when the process has ended.
            paths.push(root.path(&name));
        }
        let user = std::fs::metadata(root.path(&folder)).ok()?.st_uid();
        let started = SystemTime::now().checked_sub(proc::age(pid)?)?;
        Some(Place { paths, user, started })
    }

    fn open(&self) -> Option<File> {
        /// The kernel reports the start time of a process in hundredths of a second.
        const ROUNDING: Duration = Duration::from_secs(1);
        let file = self.paths.iter().find_map(|path| file::open_regular(path).ok())?;
        let about = file.metadata().ok()?;
        let is_own = about.st_uid() == self.user || about.st_uid() == 0;
        let is_new = about.modified().is_ok_and(|written| written + ROUNDING >= self.started);
        (is_own && is_new).then_some(file)
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    let id = |path| std::fs::metadata(path).ok().map(|about| (about.st_dev(), about.st_ino()));
    id(one).is_some() && id(one) == id(other)
}

/// Whether a mapping is executable memory of no file.
fn is_made(mapping: &Mapping<'_>) -> bool {
    mapping.is_executable && (mapping.path.is_empty() || mapping.path.starts_with("[anon"))
}

/// How to unwind what Python with `-X perf` makes for each of its functions: code that calls the interpreter,
/// with 8 bytes on the stack above its return address, and no table of its own. None on processors for which
/// it has a frame pointer instead.
pub(super) fn trampolines(range: &Range<u64>) -> Option<Module<Bytes>> {
    /// Where the code is by the table; any number but 0.
    const AT: u64 = 0x1000;
    /// DWARF: the frame ends 16 bytes above register 7 (rsp), with register 16, the return address, below.
    #[rustfmt::skip]
    const COMMON: [u8; 24] = [
        20, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0, 0x0c, 7, 16, 0x90, 1, 0, 0,
    ];
    if cfg!(target_arch = "aarch64") {
        return None;
    }
    let size = range.end - range.start;
    let mut table = COMMON.to_vec();
    table.extend([28_u32, 28].iter().flat_map(|word| word.to_le_bytes()));
    table.extend([AT, size, 0].iter().flat_map(|word| word.to_le_bytes()));
    table.extend([0; 4]);
    let sections = ExplicitModuleSectionInfo {
        base_svma: AT,
        eh_frame_svma: Some(2 * AT + size..2 * AT + size + table.len() as u64),
        eh_frame: Some(table.into()),
        ..ExplicitModuleSectionInfo::default()
    };
    Some(Module::new("trampolines".to_owned(), range.clone(), range.start, sections))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    const MAPS: &str = "1000-3000 r-xp 00000000 08:01 7    /opt/one.so\n\
                        5000-6000 rwxp 00000000 00:00 0 \n\
                        7000-8000 rw-p 00000000 00:00 0 \n\
                        9000-a000 r-xp 00000000 00:00 0    [anon:v8]\n\
                        b000-c000 r-xp 00000000 00:00 0    [vdso]";

    #[test]
    fn executable_memory_of_no_file_is_code_that_was_made() {
        let mut made = Made::default();
        let own = std::process::id();
        assert_eq!(made.update(own, MAPS), Some(vec![]));
        assert_eq!(made.ranges(), [0x5000..0x6000, 0x9000..0xa000]);
        assert_eq!(made.update(own, MAPS), None);
        assert!(made.has(0x5fff) && !made.has(0x7000) && !made.has(0xb000));
        assert!(made.is_new(0xd123) && !made.is_new(0xd456) && made.is_new(0xe000));
        assert_eq!(made.frame(0x5010), None);
    }

    #[test]
    fn map_of_another_user_or_an_earlier_process_names_nothing() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"5000 100 update\n").unwrap();
        let user = file.as_file().metadata().unwrap().st_uid();
        let function = |user, started| {
            let paths = vec![PathBuf::from("/nonexistent/map"), file.path().to_owned()];
            let place = Some(Place { paths, user, started });
            let made = Made { place, ..Made::default() };
            made.frame(0x5010).and_then(|frame| frame.function)
        };
        let (now, hour) = (SystemTime::now(), Duration::from_hours(1));
        assert_eq!(function(user, now - hour).as_deref(), Some("update"));
        assert_eq!(function(user, now + hour), None);
        // Root may have written the map for any process.
        let other = function(user + 1, now - hour);
        assert_eq!(other.is_some(), user == 0);
    }
}
