//! This program in a guest: the same file, or one that was built for the guest's architecture.

use crate::failure::{Failure, Result, failed};
use crate::lab::arch::Arch;
use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::FileHeader as _;
use std::path::PathBuf;

/// The program for guests of this architecture. `Unsupported` where it is missing.
pub(super) fn of(arch: &Arch) -> Result<Vec<u8>> {
    if arch.is_host() {
        return std::fs::read("/proc/self/exe").map_err(|e| failed("latlab's own program", e));
    }
    let path = beside(arch)?;
    let shown = path.display();
    let program = std::fs::read(&path).map_err(|e| {
        let (title, debian) = (arch.title, arch.debian);
        Failure::Unsupported(format!(
            "{shown} can't be read ({e}): guests for {title} need this program, which make build \
             ARCH={debian} puts into dist/"
        ))
    })?;
    let header = FileHeader64::<LittleEndian>::parse(program.as_slice());
    if header.is_ok_and(|header| header.e_machine.get(LittleEndian) == arch.elf_machine) {
        return Ok(program);
    }
    Err(Failure::Failed(format!("{shown}: this is not a program for {}", arch.title)))
}

/// The path of the program for another architecture: beside this one, `latlab-arm64`.
fn beside(arch: &Arch) -> Result<PathBuf> {
    let own = std::env::current_exe().map_err(|e| failed("latlab's own program", e))?;
    Ok(own.with_file_name(format!("latlab-{}", arch.debian)))
}
