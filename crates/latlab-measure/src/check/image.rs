//! The files that a process executes: where they are mapped, how to unwind them, and their symbols.

use super::budget::Budgeted;
use super::files::{Bytes, CodeFile, Files};
use super::made::{Made, trampolines};
use super::mappings::Mappings;
use crate::explain::proc;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use framehop::{CacheNative, MayAllocateDuringUnwind, Module};
use framehop::{UnwindRegsNative, Unwinder as _, UnwinderNative};
use latlab_bpf::UserStack;
use latlab_check::{Frame, Mapping, how_to_name, is_of_library, is_run_time};
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::root::Root;
use object::read::{Object as _, ObjectSection as _};
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::rc::Rc;

/// The executable files of a process, kept open, so that they can be read after it has ended.
pub struct Image {
    pub(super) pid: u32,
    /// When it was first read.
    pub(super) at: Nanos,
    parts: Vec<Part>,
    /// Code in no file.
    made: Made,
    /// None once it has ended.
    unwinding: Option<Unwinding>,
    /// Whether the first call of a library function looks up its symbol.
    pub(super) lazy: bool,
}

/// How to unwind the stacks of a process.
#[derive(Default)]
struct Unwinding {
    unwinder: UnwinderNative<Bytes, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
}

/// An executable part of a file in the memory of a process.
struct Part {
    start: u64,
    end: u64,
    offset: u64,
    /// Device and inode of the file, as the kernel writes them.
    id: String,
    name: String,
    library: bool,
    file: Option<Rc<CodeFile>>,
}

/// Beginnings of the names of libraries that are the user's in no folder.
const LIBRARIES: [&str; 5] = ["libstdc++.", "libc++.", "libc++abi.", "libboost_", "libgcc_s."];
/// The folder of Python's own libraries, wherever Python is.
const EXTENSIONS: &str = "/lib-dynload/";
/// The module of a function in no file and no map.
const UNKNOWN: &str = "unknown";
/// Largest number of functions of a stack.
const DEPTH: usize = 48;

impl Image {
    fn new(pid: u32) -> Image {
        let unwinding = Some(Unwinding::default());
        let (parts, made) = (Vec::new(), Made::default());
        Image { pid, at: clock::now(), parts, made, unwinding, lazy: false }
    }

    /// An image of one file, mapped by a line of `/proc/PID/maps`, for the fuzz targets.
    pub fn of_file(file: &File, line: &str) -> Option<Image> {
        let mut image = Image::new(0);
        let file = Some(Rc::new(CodeFile::read(file.try_clone().ok()?)));
        image.add(Part { file, ..Part::of(&Mapping::of(line)?)? });
        Some(image)
    }

    /// Reads the image of a process. None if it has ended and its mappings are not known.
    pub(super) fn read(pid: u32, mappings: &mut Mappings, files: &mut Files) -> Option<Image> {
        let mut image = Image::new(pid);
        // There is nothing yet whose place it could take.
        let _can_be_added = image.update(mappings, files);
        let (root, folder) = (Root::default(), proc::folder(pid));
        let Ok(file) = File::open(root.path(format!("{folder}/exe"))) else {
            return (!image.parts.is_empty()).then_some(image);
        };
        let now = root.bytes(format!("{folder}/environ")).unwrap_or_default();
        let now = now.split(|byte| *byte == 0).any(|one| one.starts_with(b"LD_BIND_NOW="));
        image.lazy = !now && binds_lazily(file);
        (!image.parts.is_empty()).then_some(image)
    }

    /// Adds the mappings since the last call. Returns whether that is possible: new mappings must
    /// not replace known ones.
    #[must_use]
    pub(super) fn update(&mut self, mappings: &mut Mappings, files: &mut Files) -> bool {
        let (root, folder) = (Root::default(), proc::folder(self.pid));
        let maps = root.text(format!("{folder}/maps")).filter(|maps| !maps.is_empty());
        let added = if let Some(maps) = &maps {
            let open = |path: &str, _: &str| files.open(&root.path(format!("{folder}/root{path}")));
            self.add_new(maps, open)
        } else {
            // Another file may have replaced the mapped one.
            let open = |path: &str, id: &str| {
                files.open(&root.path(path)).filter(|file| file.has_inode_of(id))
            };
            self.add_new(&mappings.of(self.pid), open)
        };
        if let Some(old) = self.made.update(self.pid, &maps.unwrap_or_default()) {
            self.unwind_made(&old);
        }
        added
    }

    /// Unwinds the code that Python makes from now on where it is. That of other run times has frame pointers.
    fn unwind_made(&mut self, old: &[Range<u64>]) {
        let is_python =
            |part: &Part| part.name.starts_with("python") || part.name.starts_with("libpython");
        let Some(Unwinding { unwinder, .. }) = &mut self.unwinding else { return };
        for range in old {
            unwinder.remove_module(range.start);
        }
        if self.parts.iter().any(is_python) {
            let modules = self.made.ranges().iter().filter_map(trampolines);
            modules.for_each(|module| unwinder.add_module(module));
        }
    }

    /// The same with the text of `/proc/PID/maps`. `open` gets path and `Part::id` of a file.
    fn add_new(
        &mut self,
        maps: &str,
        mut open: impl FnMut(&str, &str) -> Option<Rc<CodeFile>>,
    ) -> bool {
        for mapping in maps.lines().filter_map(Mapping::of) {
            let Some(mut part) = Part::of(&mapping) else { continue };
            let mut there = self.parts.iter().filter(|known| known.overlaps(&part)).peekable();
            if there.peek().is_some() {
                if there.all(|known| known.is_of_one_mapping(&part)) {
                    continue;
                }
                return false;
            }
            part.file = open(mapping.path, &part.id);
            self.add(part);
        }
        true
    }

    fn add(&mut self, part: Part) {
        if let (Some(file), Some(unwinding)) = (&part.file, &mut self.unwinding)
            && let Some(bias) = bias(file, &part)
        {
            let (name, range) = (part.name.clone(), part.start..part.end);
            let module = Module::new(name, range, bias, file.sections.clone());
            unwinding.unwinder.add_module(module);
        }
        self.parts.push(part);
    }

    /// Whether a stack has an address in code that the program may have generated since the last
    /// call of `update`. Each address is looked for once.
    pub(super) fn has_new(&mut self, addresses: &[u64]) -> bool {
        let unknown = addresses.iter().find(|address| !self.has(**address));
        unknown.is_some_and(|address| self.made.is_new(*address))
    }

    /// The process has ended, or executes another program. What names addresses is kept if it
    /// `has_stacks`.
    pub(super) fn end(&mut self, has_stacks: bool) {
        self.unwinding = None;
        if !has_stacks {
            self.parts = Vec::new();
        }
    }

    /// Number of parts of files that it has.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.parts.len()
    }

    pub(super) fn has(&self, address: u64) -> bool {
        self.parts.iter().any(|part| (part.start..part.end).contains(&address))
            || self.made.has(address)
    }

    /// The addresses of the functions on a stack, the innermost first. Return addresses are those of
    /// the call.
    pub fn unwind(&mut self, stack: &UserStack) -> Vec<u64> {
        let mut read = |address: u64| {
            let at = usize::try_from(address.checked_sub(stack.sp).ok_or(())?).map_err(|_| ())?;
            let bytes = stack.bytes.get(at..).and_then(|bytes| bytes.first_chunk());
            bytes.map(|bytes| u64::from_ne_bytes(*bytes)).ok_or(())
        };
        let mut found = Vec::new();
        let Some(Unwinding { unwinder, cache }) = &mut self.unwinding else { return found };
        let mut frames = unwinder.iter_frames(stack.ip, registers(stack), cache, &mut read);
        while let Ok(Some(frame)) = frames.next() {
            found.push(frame.address_for_lookup());
            if found.len() == DEPTH {
                break;
            }
        }
        found
    }

    /// The functions at an address, the innermost of inlined ones first.
    pub fn frames(&self, symbolizer: &Symbolizer, address: u64) -> Vec<Frame> {
        let inside = |part: &&Part| (part.start..part.end).contains(&address);
        let frames = if let Some(part) = self.parts.iter().find(inside) {
            part.frames(symbolizer, address)
        } else {
            let module = UNKNOWN.to_owned();
            vec![Frame { module, offset: address, library: true, ..Frame::default() }]
        };
        let has_name = frames.iter().any(|frame| frame.function.is_some());
        let made = if has_name { None } else { self.made.frame(address) };
        made.map_or(frames, |frame| vec![frame])
    }

    /// Whether a function has its name from a perf map.
    fn is_of_map(&self, frame: &Frame) -> bool {
        frame.module != UNKNOWN && self.parts.iter().all(|part| part.name != frame.module)
    }

    /// If a stack leads through functions of the user's that a run time executes, the run time's
    /// own functions count as library functions.
    pub(super) fn set_run_time_apart(&self, frames: &mut [Frame]) {
        if frames.iter().any(|frame| !frame.library && self.is_of_map(frame)) {
            for frame in frames {
                frame.library |= is_run_time(&frame.module);
            }
        }
    }

    /// The file of a run time on a stack, or of a program that makes code itself, if no perf map names its
    /// functions.
    fn unnamed_run_time<'a>(&'a self, frames: &'a [Frame]) -> Option<&'a str> {
        if self.made.has_map() {
            return None;
        }
        let is_made = |frame: &Frame| frame.module == UNKNOWN && self.made.has(frame.offset);
        let makes = frames.iter().any(is_made).then(|| self.parts.first()).flatten();
        let known = frames.iter().map(|frame| &frame.module).find(|name| is_run_time(name));
        known.or(makes.map(|part| &part.name)).map(String::as_str)
    }

    /// What is missing in the files of these stacks, and how to get it.
    pub fn lacks(&self, frames: &[Frame]) -> Option<String> {
        if let Some(name) = self.unnamed_run_time(frames) {
            return Some(how_to_name(name));
        }
        let own = frames.iter().find(|frame| !frame.library)?;
        let is_own = |part: &&Part| part.name == own.module && !is_run_time(&part.name);
        let part = self.parts.iter().find(is_own)?;
        let name = &part.name;
        let file = part.file.as_deref();
        let lines = file.is_some_and(|file| file.lines);
        if !lines && !file.is_some_and(|file| file.symbols) {
            return Some(format!(
                "{name} is stripped, so that its functions have no names: use a build that is not \
                 stripped, compiled with -g"
            ));
        }
        (!lines).then(|| {
            format!("{name} has no debug information: compile it with -g to see files and lines")
        })
    }
}

impl Part {
    fn frames(&self, symbolizer: &Symbolizer, address: u64) -> Vec<Frame> {
        let offset = address - self.start + self.offset;
        let unnamed =
            Frame { module: self.name.clone(), offset, library: self.library, ..Frame::default() };
        let Some(file) = &self.file else { return vec![unnamed] };
        let path = format!("/proc/self/fd/{}", file.file.as_raw_fd());
        let source = Source::Elf(Elf::new(path));
        let found = symbolizer.symbolize_single(&source, Input::FileOffset(offset));
        let Ok(Symbolized::Sym(symbol)) = found else {
            let export = file
                .exports
                .iter()
                .find(|(at, size, _)| (*at..at.saturating_add(*size)).contains(&offset));
            let function = export.map(|(.., name)| name.clone());
            let is_library = function.as_ref().is_some_and(|name| is_of_library(name, None));
            let library = self.library || is_library;
            return vec![Frame { function, library, ..unnamed }];
        };
        let mut frames = Vec::new();
        let mut add = |name: &str, code: Option<&blazesym::symbolize::CodeInfo<'_>>| {
            let file = code.map(|code| code.file.to_string_lossy().into_owned());
            let line = code.and_then(|code| code.line);
            let folder = code.and_then(|code| code.dir.as_ref()).map(|dir| dir.to_string_lossy());
            let library = self.library || is_of_library(name, folder.as_deref());
            let function = Some(name.to_owned());
            frames.push(Frame { function, file, line, library, ..unnamed.clone() });
        };
        add(&symbol.name, symbol.code_info.as_deref());
        for inlined in &symbol.inlined {
            add(&inlined.name, inlined.code_info.as_ref());
        }
        frames.reverse();
        frames
    }

    fn overlaps(&self, other: &Part) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// Whether both are parts of one mapping of a file, which the kernel may split.
    fn is_of_one_mapping(&self, other: &Part) -> bool {
        let base = |part: &Part| part.start.wrapping_sub(part.offset);
        self.id == other.id && base(self) == base(other)
    }

    /// None if the mapping is not executable or not of a file.
    fn of(mapping: &Mapping<'_>) -> Option<Part> {
        let Mapping { range, is_executable: true, offset, file: id, path } = mapping else {
            return None;
        };
        let name = path.strip_suffix(" (deleted)").unwrap_or(path);
        let name = Path::new(name).file_name()?.to_string_lossy().into_owned();
        let system = ["/lib", "/usr/lib", "["].iter().any(|folder| path.starts_with(folder));
        Some(Part {
            start: range.start,
            end: range.end,
            offset: *offset,
            id: id.clone(),
            library: system && (name.contains(".so") || path.starts_with('['))
                || path.contains(EXTENSIONS)
                || LIBRARIES.iter().any(|library| name.starts_with(library)),
            name,
            file: None,
        })
    }
}

#[cfg(target_arch = "aarch64")]
fn registers(stack: &UserStack) -> UnwindRegsNative {
    UnwindRegsNative::new(stack.lr, stack.sp, stack.bp)
}

#[cfg(not(target_arch = "aarch64"))]
fn registers(stack: &UserStack) -> UnwindRegsNative {
    UnwindRegsNative::new(stack.ip, stack.sp, stack.bp)
}

/// The difference between the addresses of a mapped file in memory and in the file.
fn bias(file: &CodeFile, part: &Part) -> Option<u64> {
    /// The largest page size.
    const PAGE: u64 = 64 << 10;
    let (offset, _, address) = file.segments.iter().find(|(offset, size, _)| {
        (offset & !(PAGE - 1)..offset.saturating_add(*size)).contains(&part.offset)
            && part.offset + (part.end - part.start) > *offset
    })?;
    Some(part.start.wrapping_sub(part.offset).wrapping_sub(address.wrapping_sub(*offset)))
}

/// Whether the dynamic linker binds the functions of libraries when they are first called.
pub fn binds_lazily(file: File) -> bool {
    let cache = Budgeted::new(file);
    let Ok(object) = object::File::parse(&cache) else { return false };
    let data = object.section_by_name(".dynamic").and_then(|section| section.data().ok());
    let (words, _) = data.unwrap_or_default().as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    is_lazy(words.as_chunks::<2>().0)
}

/// Whether a dynamic section with these tags and values has functions that are bound when they are first
/// called. A file that needs no library, as a static PIE, may have relocations in their place.
fn is_lazy(entries: &[[u64; 2]]) -> bool {
    /// Tags and flags of the dynamic section (`elf.h`).
    const NEEDED: u64 = 1;
    const JMPREL: u64 = 23;
    const BIND_NOW: u64 = 24;
    const FLAGS: (u64, u64) = (30, 8);
    const FLAGS_1: (u64, u64) = (0x6fff_fffb, 1);
    let has = |wanted| entries.iter().any(|[tag, _]| *tag == wanted);
    let at_once = |[tag, value]: &[u64; 2]| {
        *tag == BIND_NOW
            || (*tag == FLAGS.0 && value & FLAGS.1 != 0)
            || (*tag == FLAGS_1.0 && value & FLAGS_1.1 != 0)
    };
    has(NEEDED) && has(JMPREL) && !entries.iter().any(at_once)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(line: &str) -> Part {
        Mapping::of(line).and_then(|mapping| Part::of(&mapping)).expect("it is code of a file")
    }

    #[test]
    fn only_files_that_need_a_library_bind_lazily() {
        let (needed, jump_relocations, now) = ([1, 9], [23, 0x1000], [30, 8]);
        assert!(is_lazy(&[needed, jump_relocations]));
        assert!(!is_lazy(&[needed, jump_relocations, now]));
        assert!(!is_lazy(&[needed]));
        assert!(!is_lazy(&[jump_relocations]));
    }

    #[test]
    fn code_that_python_makes_is_unwound() {
        let mut image = Image::new(0);
        image.parts.push(part("1000-2000 r-xp 1000 08:01 7    /usr/bin/python3.12"));
        image.made.update(0, "10000-20000 r-xp 00000000 00:00 0 ");
        image.unwind_made(&[]);
        // The saved values of the code on the stack, its return address, and its caller's return
        // address.
        let bytes = [7_u64, 0x1008, 9, 9].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let stack = UserStack { ip: 0x1_0006, sp: 0x8000, bp: 1, lr: 0, bytes };
        let found = image.unwind(&stack);
        if cfg!(not(target_arch = "aarch64")) {
            assert_eq!(found[..2], [0x1_0006, 0x1007]);
        }
    }

    #[test]
    fn standard_library_is_one_in_any_folder() {
        for (path, library) in [
            ("/usr/lib/x86_64-linux-gnu/libm.so.6", true),
            ("/opt/gcc/lib64/libstdc++.so.6.0.30", true),
            ("/opt/loop/lib/libloop.so", false),
            ("/usr/lib/loop/loop", false),
        ] {
            let part = part(&format!("1000-3000 r-xp 1000 08:01 7    {path}"));
            assert_eq!(part.library, library, "{path}");
        }
    }

    #[test]
    fn other_code_in_place_of_known_code_is_not_added() {
        let mut image = Image::new(0);
        let mut add = |line: &str| {
            let added = image.add_new(line, |_, _| None);
            (added, image.size())
        };
        assert_eq!(add("1000-3000 r-xp 1000 08:01 7    /opt/one.so"), (true, 1));
        assert_eq!(add("1000-2000 r-xp 1000 08:01 7    /opt/one.so"), (true, 1));
        assert_eq!(add("4000-5000 r-xp 1000 08:01 8    /opt/two.so"), (true, 2));
        assert_eq!(add("1000-3000 r-xp 1000 08:01 9    /opt/one.so"), (false, 2));
        assert_eq!(add("1000-3000 r-xp 2000 08:01 7    /opt/one.so"), (false, 2));
    }
}
