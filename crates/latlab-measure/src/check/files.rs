//! The files that processes execute: each is opened and read once, however many map it.

use super::budget::Budgeted;
use framehop::ExplicitModuleSectionInfo;
use latlab_sys::file;
use object::read::{Object as _, ObjectSection as _};
use object::{ObjectSegment as _, ObjectSymbol as _, ObjectSymbolTable as _};
use std::collections::HashMap;
use std::fs::File;
use std::os::linux::fs::MetadataExt as _;
use std::path::Path;
use std::rc::{Rc, Weak};

pub(super) type Bytes = Rc<[u8]>;
pub(super) type Elfs<'a> = object::File<'a, &'a Budgeted>;

/// A function that a file exports: its offset in the file, its size and its name.
pub(super) type Export = (u64, u64, String);

/// A file, kept open, so that it can be read after the processes that map it have ended.
pub(super) struct CodeFile {
    pub(super) file: File,
    /// Whether it has a table of symbols and debug information.
    pub(super) symbols: bool,
    pub(super) lines: bool,
    /// Exported functions, for a file without a table of symbols.
    pub(super) exports: Vec<Export>,
    /// Its segments: offset and size in the file, and the address.
    pub(super) segments: Vec<(u64, u64, u64)>,
    /// How to unwind its functions.
    pub(super) sections: ExplicitModuleSectionInfo<Bytes>,
}

/// The files that are open, by device and inode.
#[derive(Default)]
pub(super) struct Files(HashMap<(u64, u64), Weak<CodeFile>>);

impl Files {
    /// Opens a file unless it is open. None if it can't be opened, or is not a regular file:
    /// another user may have replaced a file that a process maps by anything.
    pub(super) fn open(&mut self, path: &Path) -> Option<Rc<CodeFile>> {
        let file = file::open_regular(path).ok()?;
        let about = file.metadata().ok()?;
        let id = (about.st_dev(), about.st_ino());
        if let Some(known) = self.0.get(&id).and_then(Weak::upgrade) {
            return Some(known);
        }
        self.0.retain(|_, file| file.strong_count() > 0);
        let new = Rc::new(CodeFile::read(file));
        self.0.insert(id, Rc::downgrade(&new));
        Some(new)
    }
}

impl CodeFile {
    /// Whether the file has the inode of these words of `/proc/PID/maps`: device and inode. The devices of
    /// some file systems differ between maps and files.
    pub(super) fn has_inode_of(&self, id: &str) -> bool {
        let inode = id.split_once(' ').and_then(|(_, inode)| inode.parse().ok());
        self.file.metadata().is_ok_and(|about| Some(about.st_ino()) == inode)
    }

    /// Reads the tables of a file. One of another format has none.
    pub(super) fn read(file: File) -> CodeFile {
        let mut code = CodeFile {
            file,
            symbols: false,
            lines: false,
            exports: Vec::new(),
            segments: Vec::new(),
            sections: ExplicitModuleSectionInfo::default(),
        };
        let Ok(again) = code.file.try_clone() else { return code };
        let cache = Budgeted::new(again);
        let Ok(object) = object::File::parse(&cache) else { return code };
        code.symbols = object.symbol_table().is_some_and(|all| all.symbols().count() > 0);
        code.lines = object.section_by_name(".debug_line").is_some();
        if !code.symbols {
            code.exports = exports(&object);
        }
        let of = |(offset, size): (u64, u64), address| (offset, size, address);
        code.segments = object.segments().map(|one| of(one.file_range(), one.address())).collect();
        code.sections = sections(&object);
        code
    }
}

/// The offset in a file of an address in its tables.
pub(super) fn offset_of(object: &Elfs<'_>, address: u64) -> Option<u64> {
    let inside = object
        .segments()
        .find(|one| address.checked_sub(one.address()).is_some_and(|within| within < one.size()))?;
    address.wrapping_sub(inside.address()).checked_add(inside.file_range().0)
}

/// The functions that a file exports.
fn exports(object: &Elfs<'_>) -> Vec<Export> {
    let functions = object.dynamic_symbols().filter(|one| one.is_definition() && one.size() > 0);
    let mut found = Vec::new();
    for one in functions {
        if let (Some(at), Ok(name)) = (offset_of(object, one.address()), one.name()) {
            found.push((at, one.size(), name.to_owned()));
        }
    }
    found
}

fn sections(object: &Elfs<'_>) -> ExplicitModuleSectionInfo<Bytes> {
    let range = |name| {
        let section = object.section_by_name(name)?;
        Some(section.address()..section.address().saturating_add(section.size()))
    };
    let data = |name| Some(object.section_by_name(name)?.data().ok()?.into());
    ExplicitModuleSectionInfo {
        text_svma: range(".text"),
        text: data(".text"),
        got_svma: range(".got"),
        eh_frame_svma: range(".eh_frame"),
        eh_frame: data(".eh_frame"),
        eh_frame_hdr_svma: range(".eh_frame_hdr"),
        eh_frame_hdr: data(".eh_frame_hdr"),
        debug_frame: data(".debug_frame"),
        ..ExplicitModuleSectionInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_open_once_and_as_long_as_it_is_used() {
        let mut files = Files::default();
        let path = std::env::current_exe().unwrap();
        let mut open = || files.open(&path).expect("it is open already");
        let (first, second) = (open(), open());
        assert!(Rc::ptr_eq(&first, &second));
        let kept = Rc::downgrade(&first);
        drop((first, second));
        assert!(kept.upgrade().is_none());
    }
}
