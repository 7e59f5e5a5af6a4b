//! Kernel images: what a file that is said to be an x86-64 kernel holds, and how QEMU boots it best.
//!
//! Formats: `Documentation/arch/x86/boot.rst`, and for the entry that spares the guest the
//! decompression, the x86/HVM direct boot ABI (PVH).

use elf::ElfBytes;
use elf::abi::{EM_X86_64, PT_NOTE};
use elf::endian::LittleEndian;
use elf::note::Note;
use std::io::{self, Read};
use std::ops::Range;

/// An x86-64 kernel, read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// What `uname -r` says in it.
    pub(crate) release: String,
    pub(crate) boot: Boot,
}

impl Image {
    /// How many bytes came out of the file that it was compressed in.
    pub(crate) fn unpacked(&self) -> usize {
        match &self.boot {
            Boot::AsIs => 0,
            Boot::Vmlinux(vmlinux) => vmlinux.len(),
        }
    }
}

/// What QEMU is to be given.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Boot {
    /// The file as it is.
    AsIs,
    /// The vmlinux that was compressed in it, which has a PVH entry.
    Vmlinux(Vec<u8>),
}

/// Why a file is no kernel that the laboratory can boot.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoKernel {
    #[error("this is no Linux kernel: it is neither a bzImage nor a vmlinux")]
    Unknown,
    #[error("this is no kernel: it is only {0} bytes long")]
    Short(usize),
    #[error("this is compressed with gzip: unpack it first (gzip -d)")]
    Gzip,
    #[error("this is a kernel for arm64, and the laboratory's machine is an x86-64")]
    Arm64,
    #[error("this is a 32-bit kernel, and latlab is a 64-bit program")]
    ThirtyTwoBit,
    #[error("this is an ELF file for another machine (number {0}) than x86-64")]
    OtherMachine(u16),
    #[error("this is a program or a library, not a kernel")]
    Program,
    #[error(
        "this vmlinux has no PVH entry (CONFIG_PVH) by which QEMU could start it: take its bzImage"
    )]
    NoEntry,
    #[error("this is a damaged kernel: {0}")]
    Damaged(&'static str),
}

type Result<T> = std::result::Result<T, NoKernel>;

/// Reads a bzImage or a vmlinux.
pub(crate) fn read(bytes: &[u8]) -> Result<Image> {
    if bytes.starts_with(ELF) {
        return vmlinux(bytes);
    }
    if bytes.starts_with(GZIP) {
        return Err(NoKernel::Gzip);
    }
    if bytes.get(0x38..0x3c) == Some(b"ARM\x64".as_slice()) {
        return Err(NoKernel::Arm64);
    }
    match bytes.get(0x202..0x206) {
        Some(b"HdrS") => bzimage(bytes),
        Some(_) => Err(NoKernel::Unknown),
        None => Err(NoKernel::Short(bytes.len())),
    }
}

const ELF: &[u8] = b"\x7fELF";
const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
const XZ: &[u8] = b"\xfd7zXZ\0";

/// No kernel is larger; a file that claims more is damaged, or made to fill our memory.
const LARGEST: u32 = 1 << 30;

fn vmlinux(bytes: &[u8]) -> Result<Image> {
    let elf = parse(bytes)?;
    if elf.ehdr.e_machine != EM_X86_64 {
        return Err(NoKernel::OtherMachine(elf.ehdr.e_machine));
    }
    let release = banner(bytes).ok_or(NoKernel::Program)?;
    if has_pvh_entry(&elf) {
        Ok(Image { release, boot: Boot::AsIs })
    } else {
        Err(NoKernel::NoEntry)
    }
}

fn parse(bytes: &[u8]) -> Result<ElfBytes<'_, LittleEndian>> {
    ElfBytes::minimal_parse(bytes).map_err(|_| NoKernel::Damaged("its ELF header makes no sense"))
}

/// The release in "Linux version RELEASE (…", which every kernel holds for `/proc/version`.
fn banner(bytes: &[u8]) -> Option<String> {
    const START: &[u8] = b"Linux version ";
    let after = |at: usize| release(&bytes[at + START.len()..]);
    let found = |at: &usize| bytes[*at..].starts_with(START);
    // Of the few places in a kernel that read so, one is its own format string.
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == START[0]);
    starts.map(|(at, _)| at).filter(found).find_map(after)
}

/// The release that a version string begins with. It names folders, so nothing but what a release
/// is made of is let through.
fn release(version: &[u8]) -> Option<String> {
    const LONGEST: usize = 64;
    let end = version.iter().take(LONGEST + 1).position(|byte| matches!(byte, b' ' | 0))?;
    let release = std::str::from_utf8(&version[..end]).ok()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "+-._~".contains(c);
    let starts = release.starts_with(|c: char| c.is_ascii_digit());
    (starts && release.chars().all(fits)).then(|| release.to_owned())
}

/// Whether QEMU can start it as it is: a note of the name "Xen" says where
/// (`XEN_ELFNOTE_PHYS32_ENTRY`, `include/xen/interface/elfnote.h`).
fn has_pvh_entry(elf: &ElfBytes<'_, LittleEndian>) -> bool {
    const PHYS32_ENTRY: u64 = 18;
    let segments = elf.segments().into_iter().flatten().filter(|s| s.p_type == PT_NOTE);
    let mut notes = segments.filter_map(|s| elf.segment_data_as_notes(&s).ok()).flatten();
    notes.any(|note| match note {
        Note::Unknown(note) => note.n_type == PHYS32_ENTRY && note.name == b"Xen\0",
        _ => false,
    })
}

fn bzimage(bytes: &[u8]) -> Result<Image> {
    const LOADED_HIGH: u8 = 1;
    const KERNEL_64: u16 = 1;
    let cut = NoKernel::Damaged("it ends within its header");
    let header = bytes.get(..0x250).ok_or(cut)?;
    if header[0x211] & LOADED_HIGH == 0 {
        return Err(NoKernel::Unknown);
    }
    // Before 2.12 (Linux 3.8) the header does not say whether it is a 64-bit kernel.
    if u16_at(header, 0x206) < 0x20c || u16_at(header, 0x236) & KERNEL_64 == 0 {
        return Err(NoKernel::ThirtyTwoBit);
    }
    let version = 0x200 + usize::from(u16_at(header, 0x20e));
    let release = bytes.get(version..).and_then(release);
    let release = release.ok_or(NoKernel::Damaged("it does not say which release it is"))?;
    let payload = bytes.get(payload(header)).ok_or(NoKernel::Damaged("its end is missing"))?;
    let boot = match unpack(payload)? {
        Some(vmlinux) if has_pvh_entry(&parse(&vmlinux)?) => Boot::Vmlinux(vmlinux),
        _ => Boot::AsIs,
    };
    Ok(Image { release, boot })
}

/// Where the compressed kernel lies, as the setup header says.
fn payload(header: &[u8]) -> Range<usize> {
    let sectors = match header[0x1f1] {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let offset = |at| usize::try_from(u32_at(header, at)).unwrap_or(usize::MAX);
    let start = ((sectors + 1) * 512).saturating_add(offset(0x248));
    start..start.saturating_add(offset(0x24c))
}

/// The kernel that is compressed in the payload; none where it is in a way that only the kernel
/// itself has to know.
fn unpack(payload: &[u8]) -> Result<Option<Vec<u8>>> {
    let damaged = NoKernel::Damaged("what is compressed in it can't be unpacked");
    // The build appends the size; gzip has it there anyway, as the last part of its own format.
    let Some((stream, size)) = payload.split_last_chunk::<4>() else { return Err(damaged) };
    let size = u32::from_le_bytes(*size);
    if size > LARGEST {
        return Err(damaged);
    }
    let unpacked = if payload.starts_with(ZSTD) {
        ruzstd::decoding::StreamingDecoder::new(stream)
            .map_err(io::Error::other)
            .and_then(|decoder| read_to(size, decoder))
    } else if payload.starts_with(XZ) {
        read_to(size, lzma_rust2::XzReader::new(stream, false))
    } else if payload.starts_with(GZIP) {
        read_to(size, flate2::read::GzDecoder::new(payload))
    } else {
        return Ok(None);
    };
    match unpacked {
        Ok(bytes) if bytes.len() as u64 == u64::from(size) => Ok(Some(bytes)),
        _ => Err(damaged),
    }
}

/// What `from` gives, and no more than a byte above `size`.
fn read_to(size: u32, from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(u64::from(size) + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn u16_at(header: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([header[at], header[at + 1]])
}

fn u32_at(header: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}
