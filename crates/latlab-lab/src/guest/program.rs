//! The programs in a guest: its init process, and latlab itself where its job starts it.

use crate::arch::Arch;
use flate2::read::GzDecoder;
use latlab_part::failure::{Context as _, Failure, Result};
use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::FileHeader as _;
use std::borrow::Cow;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The init process for guests of this machine's architecture, compressed: latlab-guest, which the build script
/// has built.
static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/latlab-guest.gz"));

/// The init process of guests of this architecture.
pub(super) fn init(arch: &Arch) -> Result<Cow<'static, [u8]>> {
    static UNPACKED: OnceLock<Vec<u8>> = OnceLock::new();
    if !arch.is_host() {
        return read(arch, &beside("latlab-guest", arch)?).map(Cow::Owned);
    }
    let unpack = || {
        let mut program = Vec::new();
        let read = GzDecoder::new(PACKED).read_to_end(&mut program);
        read.expect("the build script has packed it");
        program
    };
    Ok(Cow::Borrowed(UNPACKED.get_or_init(unpack)))
}

/// Latlab for guests of this architecture.
pub(super) fn latlab(arch: &Arch) -> Result<Vec<u8>> {
    let path = if arch.is_host() { "/proc/self/exe".into() } else { beside("latlab", arch)? };
    read(arch, &path)
}

/// Whether the programs for this architecture are there: `Unsupported` where one is missing.
pub(crate) fn check(arch: &Arch) -> Result<()> {
    if arch.is_host() {
        return Ok(());
    }
    ["latlab-guest", "latlab"].iter().try_for_each(|name| beside(name, arch).map(drop))
}

fn read(arch: &Arch, path: &Path) -> Result<Vec<u8>> {
    let shown = path.display();
    let program = std::fs::read(path).at(path)?;
    let header = FileHeader64::<LittleEndian>::parse(program.as_slice());
    if header.is_ok_and(|header| header.e_machine.get(LittleEndian) == arch.elf_machine) {
        return Ok(program);
    }
    Err(Failure::failed(format!("{shown}: this is not a program for {}", arch.title)))
}

/// The path of a program for another architecture, which lies beside this one, as `latlab-arm64`.
fn beside(name: &str, arch: &Arch) -> Result<PathBuf> {
    let own = std::env::current_exe().context("latlab's own program")?;
    let path = own.with_file_name(format!("{name}-{}", arch.debian));
    if path.exists() {
        return Ok(path);
    }
    Err(Failure::unsupported(format!(
        "{} is missing, a program that guests for {} run: make build ARCH={} puts it into dist/",
        path.display(),
        arch.title,
        arch.debian
    )))
}
