//! The files that a process executes: where they are mapped, how to unwind them, and their symbols.

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use framehop::{CacheNative, ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module};
use framehop::{UnwindRegsNative, Unwinder as _, UnwinderNative};
use latlab_bpf::UserStack;
use latlab_core::check::Frame;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::root::Root;
use object::read::{Object as _, ObjectSection as _, ReadCache};
use object::{ObjectSegment as _, ObjectSymbol as _, ObjectSymbolTable as _};
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::Path;

type Bytes = Vec<u8>;

/// The executable files of a process, kept open, so that they can be read after it has ended.
pub(crate) struct Image {
    pub(super) pid: u32,
    /// When it was first read.
    pub(super) at: Nanos,
    parts: Vec<Mapped>,
    unwinder: UnwinderNative<Bytes, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
    /// Whether the first call of a library function looks up its symbol.
    pub(super) lazy: bool,
}

/// An executable part of a file in the memory of a process.
struct Mapped {
    start: u64,
    end: u64,
    offset: u64,
    name: String,
    library: bool,
    file: Option<File>,
    /// Whether the file has a table of symbols and debug information.
    symbols: bool,
    lines: bool,
    /// Exported functions, for a file without a table of symbols.
    exports: Vec<Export>,
}

/// A function that a file exports: its offset in the file, its size and its name.
type Export = (u64, u64, String);

/// Folder of the sources of Rust's standard library, which programs are linked with statically.
const RUST: &str = "/rustc";
/// Largest number of functions of a stack.
const DEPTH: usize = 48;

impl Image {
    fn new(pid: u32) -> Image {
        let (unwinder, cache) = (UnwinderNative::new(), CacheNative::new());
        Image { pid, at: clock::now(), parts: Vec::new(), unwinder, cache, lazy: false }
    }

    /// An image of one file, mapped by a line of `/proc/PID/maps`, for the fuzz targets.
    pub(crate) fn of_file(file: &File, line: &str) -> Option<Image> {
        let mut image = Image::new(0);
        let file = Some(file.try_clone().ok()?);
        image.add(Mapped { file, ..Mapped::of(line)? });
        Some(image)
    }

    /// Reads the image of a process. None if it has ended.
    pub(super) fn read(pid: u32) -> Option<Image> {
        let mut image = Image::new(pid);
        image.update();
        let file = File::open(format!("/proc/{pid}/exe")).ok()?;
        let now = Root::default().bytes(format!("proc/{pid}/environ")).unwrap_or_default();
        let now = now.split(|byte| *byte == 0).any(|one| one.starts_with(b"LD_BIND_NOW="));
        image.lazy = !now && binds_lazily(file);
        (!image.parts.is_empty()).then_some(image)
    }

    /// Adds what has been mapped since the last call.
    pub(super) fn update(&mut self) {
        let maps = Root::default().text(format!("proc/{}/maps", self.pid)).unwrap_or_default();
        for line in maps.lines() {
            let Some(mut part) = Mapped::of(line) else { continue };
            if self.parts.iter().any(|known| known.start == part.start) {
                continue;
            }
            let path = line.splitn(6, ' ').nth(5).unwrap_or_default().trim_start();
            part.file = File::open(format!("/proc/{}/root{path}", self.pid)).ok();
            self.add(part);
        }
    }

    fn add(&mut self, mut part: Mapped) {
        let again = part.file.as_ref().and_then(|file| file.try_clone().ok());
        if let Some(file) = again {
            let cache = ReadCache::new(file);
            if let Ok(object) = object::File::parse(&cache) {
                part.symbols = object.symbol_table().is_some_and(|all| all.symbols().count() > 0);
                part.lines = object.section_by_name(".debug_line").is_some();
                if !part.symbols {
                    part.exports = exports(&object);
                }
                if let Some(bias) = bias(&object, &part) {
                    let range = part.start..part.end;
                    let name = part.name.clone();
                    self.unwinder.add_module(Module::new(name, range, bias, sections(&object)));
                }
            }
        }
        self.parts.push(part);
    }

    pub(super) fn has(&self, address: u64) -> bool {
        self.parts.iter().any(|part| (part.start..part.end).contains(&address))
    }

    /// The addresses of the functions on a stack, the innermost first. Return addresses are those of
    /// the call.
    pub(crate) fn unwind(&mut self, stack: &UserStack) -> Vec<u64> {
        let mut read = |address: u64| {
            let at = usize::try_from(address.checked_sub(stack.sp).ok_or(())?).map_err(|_| ())?;
            let bytes = stack.bytes.get(at..).and_then(|bytes| bytes.first_chunk());
            bytes.map(|bytes| u64::from_ne_bytes(*bytes)).ok_or(())
        };
        let registers = registers(stack);
        let mut frames = self.unwinder.iter_frames(stack.ip, registers, &mut self.cache, &mut read);
        let mut found = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            found.push(frame.address_for_lookup());
            if found.len() == DEPTH {
                break;
            }
        }
        found
    }

    /// The functions at an address, the innermost of inlined ones first.
    pub(crate) fn frames(&self, symbolizer: &Symbolizer, address: u64) -> Vec<Frame> {
        let inside = |part: &&Mapped| (part.start..part.end).contains(&address);
        let Some(part) = self.parts.iter().find(inside) else {
            let module = "unknown".to_owned();
            return vec![Frame { module, offset: address, library: true, ..Frame::default() }];
        };
        let offset = address - part.start + part.offset;
        let unnamed =
            Frame { module: part.name.clone(), offset, library: part.library, ..Frame::default() };
        let Some(file) = &part.file else { return vec![unnamed] };
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let source = Source::Elf(Elf::new(path));
        let found = symbolizer.symbolize_single(&source, Input::FileOffset(offset));
        let Ok(Symbolized::Sym(symbol)) = found else {
            let export = part
                .exports
                .iter()
                .find(|(at, size, _)| (*at..at.saturating_add(*size)).contains(&offset));
            let function = export.map(|(.., name)| name.clone());
            return vec![Frame { function, ..unnamed }];
        };
        let mut frames = Vec::new();
        let mut add = |name: &str, code: Option<&blazesym::symbolize::CodeInfo<'_>>| {
            let file = code.map(|code| code.file.to_string_lossy().into_owned());
            let line = code.and_then(|code| code.line);
            let folder = code.and_then(|code| code.dir.as_ref());
            let library = part.library || folder.is_some_and(|dir| dir.starts_with(RUST));
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

    /// What the files that stacks lead through lack, and how to get it.
    pub(crate) fn lacks(&self, frames: &[Frame]) -> Option<String> {
        let own = frames.iter().find(|frame| !frame.library)?;
        let part = self.parts.iter().find(|part| part.name == own.module)?;
        let name = &part.name;
        if !part.symbols && !part.lines {
            return Some(format!(
                "{name} is stripped, so that its functions have no names: use a build that is not \
                 stripped, compiled with -g"
            ));
        }
        (!part.lines).then(|| {
            format!("{name} has no debug information: compile it with -g to see files and lines")
        })
    }
}

impl Mapped {
    /// Reads a line of `/proc/PID/maps`. None if it is not executable or not a file.
    fn of(line: &str) -> Option<Mapped> {
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let (rights, offset) = (fields.next()?, fields.next()?);
        let path = fields.nth(2)?.trim_start();
        if !rights.contains('x') || path.is_empty() {
            return None;
        }
        let number = |text| u64::from_str_radix(text, 16).ok();
        let name = path.strip_suffix(" (deleted)").unwrap_or(path);
        let name = Path::new(name).file_name()?.to_string_lossy().into_owned();
        let system = ["/lib", "/usr/lib", "["].iter().any(|folder| path.starts_with(folder));
        Some(Mapped {
            start: number(start)?,
            end: number(end)?,
            offset: number(offset)?,
            library: system && (name.contains(".so") || path.starts_with('[')),
            name,
            file: None,
            symbols: false,
            lines: false,
            exports: Vec::new(),
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

pub(super) type Elfs<'a> = object::File<'a, &'a ReadCache<File>>;

/// The difference between the addresses of a mapped file in memory and in the file.
fn bias(object: &Elfs<'_>, part: &Mapped) -> Option<u64> {
    /// The largest page size.
    const PAGE: u64 = 64 << 10;
    let segment = object.segments().find(|segment| {
        let (offset, size) = segment.file_range();
        (offset & !(PAGE - 1)..offset.saturating_add(size)).contains(&part.offset)
            && part.offset + (part.end - part.start) > offset
    })?;
    let (offset, _) = segment.file_range();
    Some(part.start.wrapping_sub(part.offset).wrapping_sub(segment.address().wrapping_sub(offset)))
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
    let data = |name| Some(object.section_by_name(name)?.data().ok()?.to_vec());
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

/// Whether the dynamic linker binds the functions of libraries when they are first called.
pub(crate) fn binds_lazily(file: File) -> bool {
    /// Tags and flags of the dynamic section (`elf.h`).
    const JMPREL: u64 = 23;
    const BIND_NOW: u64 = 24;
    const FLAGS: (u64, u64) = (30, 8);
    const FLAGS_1: (u64, u64) = (0x6fff_fffb, 1);
    let cache = ReadCache::new(file);
    let Ok(object) = object::File::parse(&cache) else { return false };
    let data = object.section_by_name(".dynamic").and_then(|section| section.data().ok());
    let (words, _) = data.unwrap_or_default().as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    let (entries, _) = words.as_chunks::<2>();
    let at_once = |[tag, value]: &[u64; 2]| {
        *tag == BIND_NOW
            || (*tag == FLAGS.0 && value & FLAGS.1 != 0)
            || (*tag == FLAGS_1.0 && value & FLAGS_1.1 != 0)
    };
    entries.iter().any(|[tag, _]| *tag == JMPREL) && !entries.iter().any(at_once)
}
