//! The fields of an ELF file that the dynamic loader reads (elf(5)).

use crate::arch::Arch;
use object::LittleEndian;
use object::elf::{
    DT_NEEDED, DT_NULL, DT_RPATH, DT_RUNPATH, DT_SONAME, DT_STRSZ, DT_STRTAB, DynamicTag,
    FileHeader64, PT_LOAD, ProgramHeader64,
};
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};
use std::path::PathBuf;

/// The first bytes of a 64-bit little-endian ELF file.
const MAGIC: &[u8] = b"\x7fELF\x02\x01";

/// The architecture for which a program or library was built, if the laboratory has it.
pub(super) fn arch(bytes: &[u8]) -> Option<&'static Arch> {
    if !bytes.starts_with(MAGIC) {
        return None;
    }
    let header = FileHeader64::<LittleEndian>::parse(bytes).ok()?;
    Arch::of_machine(header.e_machine(LittleEndian))
}

/// A program or library for the guest's architecture.
#[derive(Debug, Default)]
pub struct Elf {
    /// The loader; none for a library or a static program.
    pub(super) interpreter: Option<PathBuf>,
    /// The library's own name.
    pub(super) soname: Option<String>,
    /// The libraries that it needs.
    pub(super) needed: Vec<String>,
    /// Folders for its libraries and their libraries, separated by colons.
    pub(super) rpath: Option<String>,
    /// Folders for its libraries only, separated by colons; it overrides `rpath`.
    pub(super) runpath: Option<String>,
}

impl Elf {
    /// Reads a whole file; none if it is not such a file for this architecture, an error if it is
    /// damaged.
    pub fn read(bytes: &[u8], arch: &Arch) -> object::Result<Option<Elf>> {
        if !bytes.starts_with(MAGIC) {
            return Ok(None);
        }
        let header = FileHeader64::<LittleEndian>::parse(bytes)?;
        if header.e_machine(LittleEndian) != arch.elf_machine {
            return Ok(None);
        }
        let segments = header.program_headers(LittleEndian, bytes)?;
        let mut elf = Elf::default();
        for segment in segments {
            if let Some(path) = segment.interpreter(LittleEndian, bytes)? {
                elf.interpreter = Some(PathBuf::from(text(path)));
            }
            if let Some(entries) = segment.dynamic(LittleEndian, bytes)? {
                let entries = entries.iter().map(|e| (e.tag(LittleEndian), e.val(LittleEndian)));
                let entries: Vec<_> = entries.take_while(|(tag, _)| *tag != DT_NULL).collect();
                elf.read_dynamic(&entries, segments, bytes);
            }
        }
        Ok(Some(elf))
    }

    fn read_dynamic(
        &mut self,
        entries: &[(DynamicTag, u64)],
        segments: &[ProgramHeader64<LittleEndian>],
        bytes: &[u8],
    ) {
        let value = |wanted| {
            let entry = entries.iter().find(|(tag, _)| *tag == wanted);
            entry.map_or(0, |(_, value)| *value)
        };
        let (address, size) = (value(DT_STRTAB), value(DT_STRSZ));
        let mut loaded = segments.iter().filter(|s| s.p_type(LittleEndian) == PT_LOAD);
        let strings = loaded.find_map(|segment| {
            segment.data_range(LittleEndian, bytes, address, size).ok().flatten()
        });
        let strings = strings.unwrap_or_default();
        for (tag, value) in entries {
            let string = usize::try_from(*value).ok().and_then(|at| strings.get(at..));
            let string = string.map(text);
            match *tag {
                DT_NEEDED => self.needed.extend(string),
                DT_SONAME => self.soname = string,
                DT_RPATH => self.rpath = string,
                DT_RUNPATH => self.runpath = string,
                _ => {}
            }
        }
    }
}

/// The text up to the first zero.
fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}
