//! This program in a guest: the same file, or one that was built for the guest's architecture.

use crate::arch::Arch;
use latlab_part::failure::{Context as _, Failure, Result};
use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::FileHeader as _;
use std::path::PathBuf;

/// The program for guests of this architecture.
pub(super) fn of(arch: &Arch) -> Result<Vec<u8>> {
    let path = find(arch)?;
    let shown = path.display();
    let program = std::fs::read(&path).context(&shown.to_string())?;
    let header = FileHeader64::<LittleEndian>::parse(program.as_slice());
    if header.is_ok_and(|header| header.e_machine.get(LittleEndian) == arch.elf_machine) {
        return Ok(program);
    }
    Err(Failure::Failed(format!("{shown}: this is not a program for {}", arch.title)))
}

/// The path of the program: that for another architecture lies beside this one, as `latlab-arm64`.
/// `Unsupported` where it is missing.
pub(crate) fn find(arch: &Arch) -> Result<PathBuf> {
    if arch.is_host() {
        return Ok("/proc/self/exe".into());
    }
    let own = std::env::current_exe().context("latlab's own program")?;
    let path = own.with_file_name(format!("latlab-{}", arch.debian));
    if path.exists() {
        return Ok(path);
    }
    Err(Failure::Unsupported(format!(
        "{} is missing, the program that guests for {} run: make build ARCH={} puts it into dist/",
        path.display(),
        arch.title,
        arch.debian
    )))
}
