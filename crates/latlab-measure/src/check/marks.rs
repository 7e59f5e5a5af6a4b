//! The marks in the files of a program: found in their notes, and observed.

use super::budget::Budgeted;
use super::files::{Elfs, offset_of};
use crate::explain::proc;
use latlab_bpf::Checker;
use latlab_check::{Mapping, MarkOfFile, marks_of_file};
use latlab_sys::file;
use latlab_sys::root::Root;
use object::ObjectSegment as _;
use object::read::{Object as _, ObjectSection as _};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::linux::fs::MetadataExt as _;
use std::path::Path;

/// The files whose marks are observed.
#[derive(Default)]
pub(super) struct Marks {
    /// Device and inode of each file that was read.
    known: BTreeSet<(u64, u64)>,
    /// Marks that are observed.
    observed: usize,
    /// Processes that have mapped code since their files were last read.
    changed: BTreeSet<u32>,
    /// What is wrong with marks, for the report.
    pub(super) notes: BTreeSet<String>,
}

/// Largest number of marks that are observed: each takes two file descriptors.
const MOST: usize = 256;

impl Marks {
    /// Observes the marks of a program that is about to start.
    pub(super) fn add_file(&mut self, checker: &mut Checker, path: &Path) {
        let Ok(file) = file::open_regular(path) else { return };
        let new = file.metadata().is_ok_and(|about| {
            about.is_file() && self.known.insert((about.st_dev(), about.st_ino()))
        });
        if new {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.observe(checker, &file, &name);
        }
    }

    /// A process has mapped code, or has executed another program.
    pub(super) fn change(&mut self, pid: u32) {
        self.changed.insert(pid);
    }

    /// Observes the marks of the files that have been mapped.
    pub(super) fn update(&mut self, checker: &mut Checker) {
        for pid in std::mem::take(&mut self.changed) {
            let (root, folder) = (Root::default(), proc::folder(pid));
            let maps = root.text(format!("{folder}/maps")).unwrap_or_default();
            let code = maps.lines().filter_map(Mapping::of).filter(|one| one.is_executable);
            for path in code.map(|one| one.path).filter(|path| path.starts_with('/')) {
                self.add_file(checker, &root.path(format!("{folder}/root{path}")));
            }
        }
    }

    fn observe(&mut self, checker: &mut Checker, file: &File, name: &str) {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let Some(marks) = file.try_clone().ok().and_then(marks_with_offsets) else { return };
        for (offset, mark) in marks {
            if !mark.is_readable {
                self.notes.insert(format!(
                    "{name}: marks whose arguments are in other registers than those of \
                     latlab-mark.h are not watched"
                ));
                continue;
            }
            if self.observed >= MOST {
                self.notes.insert(format!("{name}: marks beyond the first {MOST} are not watched"));
                return;
            }
            let Ok(offset) = usize::try_from(offset) else { continue };
            match checker.attach_mark(Path::new(&path), offset, mark.is_end) {
                Ok(()) => self.observed += 1,
                Err(error) => {
                    self.notes.insert(format!("{name}: its marks can't be watched: {error}"));
                    return;
                }
            }
        }
    }
}

/// The marks of a file, with the offset in it of the instruction to observe.
pub fn marks_with_offsets(file: File) -> Option<Vec<(u64, MarkOfFile)>> {
    let cache = Budgeted::new(file);
    let object = object::File::parse(&cache).ok()?;
    let notes = object.section_by_name(".note.stapsdt")?;
    let base = object.section_by_name(".stapsdt.base").map(|section| section.address());
    let mut found = Vec::new();
    for mark in marks_of_file(notes.data().ok()?) {
        // The file's addresses may have been moved since the note was written.
        let moved = base.map_or(0, |base| base.wrapping_sub(mark.base));
        let address = mark.address.wrapping_add(moved);
        // The linker may have left out the code of a mark, but not its note.
        let Some(offset) = code_at(&object, address) else { continue };
        found.push((offset, mark));
    }
    Some(found)
}

/// The offset in a file of an address in its code.
fn code_at(object: &Elfs<'_>, address: u64) -> Option<u64> {
    let is_code = object.segments().any(|one| {
        let within = address.checked_sub(one.address()).is_some_and(|within| within < one.size());
        within && one.permissions().executable()
    });
    is_code.then(|| offset_of(object, address)).flatten()
}
