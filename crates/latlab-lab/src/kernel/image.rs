//! Kernel images: reads a bzImage or vmlinux for x86-64 or an Image for arm64, and finds the fastest
//! way to boot it.
//!
//! Formats: `Documentation/arch/x86/boot.rst`; the x86/HVM direct boot ABI (PVH), which avoids the
//! decompression in the guest; `Documentation/arch/arm64/booting.rst`; for an Image that EFI unpacks,
//! `drivers/firmware/efi/libstub/zboot-header.S`.

use crate::arch::Arch;
use crate::unpack::{self, Packing};
use object::LittleEndian;
use object::elf::{EM_AARCH64, EM_X86_64, FileHeader64, Machine, NoteType};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use std::ops::Range;

/// A kernel.
#[derive(Debug, PartialEq, Eq)]
pub struct Image {
    /// The architecture that it was built for.
    pub arch: &'static Arch,
    /// Its release, as `uname -r` prints it.
    pub release: String,
    /// How QEMU boots it.
    pub boot: Boot,
}

impl Image {
    /// Size of the decompressed kernel, bytes; 0 if it boots compressed.
    pub fn unpacked(&self) -> usize {
        match &self.boot {
            Boot::AsIs => 0,
            Boot::Unpacked(unpacked) => unpacked.len(),
        }
    }
}

/// The file that QEMU boots.
#[derive(Debug, PartialEq, Eq)]
pub enum Boot {
    /// The file as it is.
    AsIs,
    /// The decompressed kernel: a vmlinux with a PVH entry, or an Image.
    Unpacked(Vec<u8>),
}

/// Reason why the laboratory can't boot a file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoKernel {
    /// None of the formats that are known.
    #[error("this is not a Linux kernel: it is neither a bzImage nor a vmlinux nor an Image")]
    Unknown,
    /// So many bytes, fewer than any kernel has.
    #[error("this is not a kernel: it has only {0} bytes")]
    Short(usize),
    /// A file of gzip.
    #[error("this is compressed with gzip: unpack it first (gzip -d)")]
    Gzip,
    /// The ELF file of a kernel for arm64.
    #[error("this is a vmlinux for arm64, which QEMU does not boot: use arch/arm64/boot/Image")]
    Arm64Vmlinux,
    /// An ELF file of 32 bits.
    #[error("this is a 32-bit kernel, and latlab is a 64-bit program")]
    ThirtyTwoBit,
    /// An ELF file for this machine number.
    #[error("this is an ELF file for machine number {0}, not for x86-64 or arm64")]
    OtherMachine(u16),
    /// An ELF file that is no kernel.
    #[error("this is a program or a library, not a kernel")]
    Program,
    #[error(
        "this vmlinux has no PVH entry (CONFIG_PVH) by which QEMU could boot it: use its bzImage"
    )]
    /// A kernel without an entry point that QEMU can use.
    NoEntry,
    /// What its headers contradict.
    #[error("this is a damaged kernel: {0}")]
    Damaged(&'static str),
}

type Result<T> = std::result::Result<T, NoKernel>;

/// Reads a bzImage, a vmlinux or an Image.
pub fn read(bytes: &[u8]) -> Result<Image> {
    if bytes.starts_with(ELF) {
        return vmlinux(bytes);
    }
    if bytes.starts_with(GZIP) {
        return Err(NoKernel::Gzip);
    }
    if bytes.get(0x38..0x3c) == Some(b"ARM\x64".as_slice()) {
        return arm64(bytes, Boot::AsIs);
    }
    if bytes.get(4..8) == Some(b"zimg".as_slice()) {
        return zboot(bytes);
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

/// Upper bound of a kernel's size, debug information included, bytes; a file that claims more is
/// damaged or malicious.
pub const LARGEST: u32 = 1 << 31;

/// The setup header's flag that distinguishes a bzImage from its predecessor, the zImage.
const LOADED_HIGH: u8 = 1;

fn vmlinux(bytes: &[u8]) -> Result<Image> {
    let machine = parse(bytes)?.e_machine.get(LittleEndian);
    if ![EM_X86_64, EM_AARCH64].contains(&machine) {
        return Err(NoKernel::OtherMachine(machine.0));
    }
    let release = banner(bytes).ok_or(NoKernel::Program)?;
    if machine == EM_AARCH64 {
        return Err(NoKernel::Arm64Vmlinux);
    }
    if has_pvh_entry(bytes)? {
        Ok(Image { arch: arch(machine), release, boot: Boot::AsIs })
    } else {
        Err(NoKernel::NoEntry)
    }
}

fn arch(machine: Machine) -> &'static Arch {
    Arch::of_machine(machine).expect("the laboratory has it")
}

/// An uncompressed Image of arm64, whose release is in its banner only.
fn arm64(image: &[u8], boot: Boot) -> Result<Image> {
    let release = banner(image).ok_or(NoKernel::Damaged("it does not say which release it is"))?;
    Ok(Image { arch: arch(EM_AARCH64), release, boot })
}

/// An Image that EFI would unpack, which QEMU 7.2 can't.
fn zboot(bytes: &[u8]) -> Result<Image> {
    let damaged = NoKernel::Damaged("its compressed part can't be unpacked");
    let header = bytes.get(..0x40).ok_or(NoKernel::Short(bytes.len()))?;
    let number = |at| usize::try_from(u32_at(header, at)).unwrap_or(usize::MAX);
    let (start, length) = (number(8), number(12));
    let payload = bytes.get(start..start.saturating_add(length));
    let unpacked = unpack(payload.ok_or(NoKernel::Damaged("its end is missing"))?)?;
    let unpacked = unpacked.ok_or(damaged)?;
    if unpacked.get(0x38..0x3c) != Some(b"ARM\x64".as_slice()) {
        return Err(NoKernel::Unknown);
    }
    arm64(&unpacked.clone(), Boot::Unpacked(unpacked))
}

fn parse(bytes: &[u8]) -> Result<&FileHeader64<LittleEndian>> {
    FileHeader64::parse(bytes).map_err(|_| NoKernel::Damaged("its ELF header is invalid"))
}

/// The release in "Linux version RELEASE (…", which every kernel contains for `/proc/version`.
fn banner(bytes: &[u8]) -> Option<String> {
    const START: &[u8] = b"Linux version ";
    let after = |at: usize| release(&bytes[at + START.len()..]);
    let found = |at: &usize| bytes[*at..].starts_with(START);
    // A kernel also contains the format string of this text.
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == START[0]);
    starts.map(|(at, _)| at).filter(found).find_map(after)
}

/// The release at the start of a version string. It becomes the name of a folder: characters that
/// don't occur in releases are refused.
fn release(version: &[u8]) -> Option<String> {
    const LONGEST: usize = 64;
    let end = version.iter().take(LONGEST + 1).position(|byte| matches!(byte, b' ' | 0))?;
    let release = std::str::from_utf8(&version[..end]).ok()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "+-._~".contains(c);
    let starts = release.starts_with(|c: char| c.is_ascii_digit());
    (starts && release.chars().all(fits)).then(|| release.to_owned())
}

/// Whether QEMU can boot it directly: a note named "Xen" contains the entry
/// (`XEN_ELFNOTE_PHYS32_ENTRY`, `include/xen/interface/elfnote.h`).
fn has_pvh_entry(vmlinux: &[u8]) -> Result<bool> {
    const PHYS32_ENTRY: NoteType = NoteType(18);
    let segments = parse(vmlinux)?.program_headers(LittleEndian, vmlinux).unwrap_or_default();
    let notes = segments.iter().filter_map(|s| s.notes(LittleEndian, vmlinux).ok().flatten());
    // A damaged note ends the notes of its segment.
    let mut notes = notes.flat_map(|mut notes| std::iter::from_fn(move || notes.next().ok()?));
    let is_entry = |note: object::read::elf::Note<'_, FileHeader64<LittleEndian>>| {
        note.n_type(LittleEndian) == PHYS32_ENTRY && note.name() == b"Xen"
    };
    Ok(notes.any(is_entry))
}

fn bzimage(bytes: &[u8]) -> Result<Image> {
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
        Some(vmlinux) if has_pvh_entry(&vmlinux)? => Boot::Unpacked(vmlinux),
        _ => Boot::AsIs,
    };
    Ok(Image { arch: arch(EM_X86_64), release, boot })
}

/// Range of the compressed kernel in the file, from the setup header.
fn payload(header: &[u8]) -> Range<usize> {
    let sectors = match header[0x1f1] {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let offset = |at| usize::try_from(u32_at(header, at)).unwrap_or(usize::MAX);
    let start = ((sectors + 1) * 512).saturating_add(offset(0x248));
    start..start.saturating_add(offset(0x24c))
}

/// Unpacks the kernel in the payload; none for a compression that only the kernel itself can
/// unpack.
fn unpack(payload: &[u8]) -> Result<Option<Vec<u8>>> {
    let damaged = NoKernel::Damaged("its compressed part can't be unpacked");
    // The build appends the size; gzip has it there anyway, as the last part of its own format.
    let Some((stream, size)) = payload.split_last_chunk::<4>() else { return Err(damaged) };
    let size = u32::from_le_bytes(*size);
    let (packing, stream) = if payload.starts_with(ZSTD) {
        (Packing::Zstd, stream)
    } else if payload.starts_with(XZ) {
        (Packing::Xz, stream)
    } else if payload.starts_with(GZIP) {
        (Packing::Gzip, payload)
    } else {
        return Ok(None);
    };
    if size > LARGEST {
        return Err(damaged);
    }
    match unpack::unpack(packing, stream, size.into()) {
        Ok(bytes) if bytes.len() as u64 == u64::from(size) => Ok(Some(bytes)),
        _ => Err(damaged),
    }
}

fn u16_at(header: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([header[at], header[at + 1]])
}

fn u32_at(header: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write as _;

    /// The smallest vmlinux: an ELF header, a segment of notes, the banner.
    fn elf(machine: u16, note: &[u8], text: &str) -> Vec<u8> {
        let mut file = vec![0_u8; 64 + 56];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        for (at, value) in [(16, 2), (18, machine), (52, 64), (54, 56), (56, 1)] {
            file[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        file[20] = 1;
        file[32] = 64;
        let notes = u64::try_from(note.len()).unwrap();
        // p_type, p_offset, p_filesz, p_align
        for (at, value) in [(64, 4), (72, 120), (96, notes), (112, 4)] {
            file[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
        }
        [file.as_slice(), note, text.as_bytes()].concat()
    }

    const ENTRY: &[u8] = b"\x04\0\0\0\x04\0\0\0\x12\0\0\0Xen\0\x53\x0b\0\x01";
    const BANNER: &str = "Linux version %s\nLinux version 6.12.1-test (a@b) #1 SMP\0";

    /// [`pvh`], compressed by xz.
    const XZ_OF_PVH: &[u8] = b"\
        \xfd\x37\x7a\x58\x5a\x00\x00\x01\x69\x22\xde\x36\x02\x01\x04\x00\x21\x01\x1a\x00\x01\xc9\
        \x80\xb3\xe0\x00\xc3\x00\x5f\x5d\x00\x3f\x91\x45\x84\x68\x3d\x89\xa6\xda\x8a\xcc\x93\xe2\
        \x4e\xf1\xed\xef\x67\x31\x28\x63\x1d\x5a\xaf\x31\x49\xc2\x14\x18\x8d\xb6\x3f\x80\xb7\x63\
        \x1e\xc6\xe4\x93\x3d\x3d\x55\x80\x55\x03\xbc\x30\xf4\xf4\xf2\xde\xe8\xad\xd4\xb0\xcb\x32\
        \x38\xb4\x06\x3d\x75\xba\xc9\x3d\xdb\x74\x04\x33\xa5\x27\xf7\x7b\x74\x54\x3d\x33\xfc\x05\
        \xf5\x43\xc7\xac\x0b\x48\x8a\xab\x3c\x1c\xd3\xbf\x91\xd1\x00\x00\x00\x00\x64\x72\x56\x61\
        \x00\x01\x77\xc4\x01\x00\x00\x00\xda\xc0\x5b\x71\x3e\x30\x0d\x8b\x02\x00\x00\x00\x00\x01\
        \x59\x5a";

    pub(in super::super) fn pvh() -> Vec<u8> {
        elf(62, ENTRY, BANNER)
    }

    /// A bzImage with this payload.
    fn bz(payload: &[u8]) -> Vec<u8> {
        let mut file = vec![0_u8; 1024];
        file[0x1f1] = 1;
        file[0x202..0x206].copy_from_slice(b"HdrS");
        file[0x206..0x208].copy_from_slice(&0x20f_u16.to_le_bytes());
        file[0x20e..0x210].copy_from_slice(&0x60_u16.to_le_bytes());
        file[0x211] = LOADED_HIGH;
        file[0x236] = 1;
        file[0x24c..0x250].copy_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
        file[0x260..0x26e].copy_from_slice(b"6.12.1-test (a");
        [&file, payload].concat()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn with_size(mut stream: Vec<u8>, size: usize) -> Vec<u8> {
        stream.extend(u32::try_from(size).unwrap().to_le_bytes());
        stream
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        with_size(ruzstd::encoding::compress_to_vec(bytes, level), bytes.len())
    }

    #[test]
    fn image_unpacks_each_compression() {
        // xz --check=crc32 --x86 --lzma2=dict=32MiB, as the kernel's build calls it.
        let xz = with_size(XZ_OF_PVH.to_vec(), pvh().len());
        for payload in [gzip(&pvh()), zstd(&pvh()), xz] {
            let image = read(&bz(&payload)).unwrap();
            assert_eq!(image.release, "6.12.1-test");
            assert_eq!(image.boot, Boot::Unpacked(pvh()));
        }
    }

    #[test]
    fn image_without_pvh_entry_boots_as_bzimage() {
        for payload in [gzip(&elf(62, b"", BANNER)), b"\x02\x21lz4 of some kind".to_vec()] {
            assert_eq!(read(&bz(&payload)).unwrap().boot, Boot::AsIs);
        }
    }

    #[test]
    fn vmlinux_with_pvh_entry_boots_as_it_is() {
        let release = "6.12.1-test".to_owned();
        let expected = Image { arch: arch(EM_X86_64), release, boot: Boot::AsIs };
        assert_eq!(read(&pvh()), Ok(expected));
        assert_eq!(read(&elf(62, b"", BANNER)), Err(NoKernel::NoEntry));
    }

    #[test]
    fn arm64_image_boots_as_it_is_or_unpacked() {
        let mut image = vec![0; 1024];
        image[0x38..0x3c].copy_from_slice(b"ARM\x64");
        assert!(matches!(read(&image), Err(NoKernel::Damaged(_))));
        image.extend(BANNER.as_bytes());
        let (arch, release) = (arch(EM_AARCH64), "6.12.1-test".to_owned());
        let plain = Image { arch, release: release.clone(), boot: Boot::AsIs };
        assert_eq!(read(&image), Ok(plain));
        let packed = gzip(&image);
        let mut zboot = vec![0; 1024];
        zboot[..8].copy_from_slice(b"MZ\0\0zimg");
        zboot[8..12].copy_from_slice(&1024_u32.to_le_bytes());
        zboot[12..16].copy_from_slice(&u32::try_from(packed.len()).unwrap().to_le_bytes());
        zboot.extend(packed);
        assert_eq!(read(&zboot), Ok(Image { arch, release, boot: Boot::Unpacked(image) }));
        assert!(matches!(read(&zboot[..1100]), Err(NoKernel::Damaged(_))));
    }

    #[test]
    fn read_names_files_that_are_not_kernels() {
        let damaged = |bytes: &[u8]| matches!(read(bytes), Err(NoKernel::Damaged(_)));
        let mut old = bz(b"");
        old[0x236] = 0;
        assert_eq!(read(b"MZ"), Err(NoKernel::Short(2)));
        assert_eq!(read(&[7; 4096]), Err(NoKernel::Unknown));
        assert_eq!(read(&gzip(&pvh())), Err(NoKernel::Gzip));
        assert_eq!(read(&old), Err(NoKernel::ThirtyTwoBit));
        assert_eq!(read(&elf(183, ENTRY, BANNER)), Err(NoKernel::Arm64Vmlinux));
        assert_eq!(read(&elf(243, ENTRY, BANNER)), Err(NoKernel::OtherMachine(243)));
        assert_eq!(read(&elf(62, ENTRY, "/bin/ls")), Err(NoKernel::Program));
        let whole = bz(&gzip(&pvh()));
        assert!(damaged(&whole[..0x240]) && damaged(&whole[..whole.len() - 1]));
        let claims_more = with_size(zstd(&pvh())[..40].to_vec(), 1000);
        assert!(damaged(&bz(&claims_more)));
    }

    #[test]
    fn release_is_a_valid_folder_name() {
        assert_eq!(release(b"6.1.0-rc1+ (x"), Some("6.1.0-rc1+".to_owned()));
        for text in ["../../etc (x", "6/../.. (x", "", "6.1", "%s\0"] {
            assert_eq!(release(text.as_bytes()), None, "{text}");
        }
        assert_eq!(release(&[b'6'; 100]), None);
    }

    proptest! {
        #[test]
        fn read_never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let _ = read(&bytes);
            let _ = read(&bz(&bytes));
            let _ = unpack(&bytes);
        }

        #[test]
        fn read_never_panics_on_damaged_kernels(
            compression in 0_usize..3,
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        ) {
            let mut bytes = [pvh(), bz(&gzip(&pvh())), bz(&zstd(&pvh()))][compression].clone();
            for (place, byte) in damage {
                let at = place.index(bytes.len());
                bytes[at] = byte;
            }
            let _ = read(&bytes);
        }
    }
}
