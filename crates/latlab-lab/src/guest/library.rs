//! The files that a program needs in an otherwise empty root: its interpreter and libraries.

pub mod elf;
mod search;
#[cfg(test)]
mod tests;

use super::Variables;
use crate::arch::Arch;
use elf::Elf;
use latlab_part::failure::{Context as _, Failure, Result, failed};
use search::{Loaded, Search};
use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use walkdir::WalkDir;

/// The program's interpreter and libraries, as (path in the guest, path on the host). They are
/// searched as in `ld.so(8)`, without running anything, with `LD_LIBRARY_PATH` and `PATH` of these
/// environment variables, which the program must have in the guest. In the guest the program must
/// have its real path, since `$ORIGIN` is the folder of that. All are for the guest's architecture.
///
/// Files that a program opens at run time are unknown and not included: glibc's modules for host
/// names and users (NSS), its locales, and anything opened with `dlopen`.
pub fn closure(
    program: &Path,
    variables: &Variables,
    arch: &'static Arch,
) -> Result<Vec<(PathBuf, PathBuf)>> {
    closure_with(&Search::of(variables, arch)?, program)
}

/// The same for a file that a program opens at run time, which may be a library. Any other file
/// needs nothing.
pub fn closure_if_any(
    file: &Path,
    variables: &Variables,
    arch: &'static Arch,
) -> Result<Vec<(PathBuf, PathBuf)>> {
    let name = file.display().to_string();
    let bytes = std::fs::read(file).context(&name)?;
    let search = Search::of(variables, arch)?;
    let mut packing = Packing { search: &search, files: Vec::new(), seen: BTreeSet::new() };
    if let Ok(Some(elf)) = Elf::read(&bytes, arch) {
        let real = file.canonicalize().context(&name)?;
        packing.libraries(Loaded::program(real, elf))?;
    }
    Ok(packing.files)
}

/// One file, or all files below a folder, as (absolute path in the guest, path on the host).
/// Symbolic links are followed. Other file types, broken links and links to a parent folder are
/// left out.
pub fn tree(path: &Path) -> Result<Vec<(PathBuf, PathBuf)>> {
    /// The largest file of an archive, bytes.
    const LARGEST: u64 = u32::MAX as u64;
    let name = path.display().to_string();
    let top = path.metadata().context(&name)?;
    if !top.is_file() && !top.is_dir() {
        return Err(failed(
            &name,
            "this is neither a file nor a folder, and can't be copied into the guest",
        ));
    }
    let mut files = Vec::new();
    for entry in WalkDir::new(path).follow_links(true).sort_by_file_name() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(e) if e.loop_ancestor().is_some() || leads_nowhere(&e) => continue,
            Err(e) => return Err(failed(&name, e)),
        };
        if !entry.file_type().is_file() {
            continue;
        }
        let here = entry.path();
        let size = entry.metadata().context(&name)?.len();
        if size > LARGEST {
            let too_large = "this file is too large: 4 GiB is the limit";
            return Err(failed(&here.display().to_string(), too_large));
        }
        files.push((in_guest(here)?, here.to_owned()));
    }
    Ok(files)
}

/// Whether the error is a broken symbolic link.
fn leads_nowhere(error: &walkdir::Error) -> bool {
    let missing = error.io_error().is_some_and(|e| e.kind() == io::ErrorKind::NotFound);
    missing && error.path().is_some_and(Path::is_symlink)
}

/// [`closure`] with these search paths.
fn closure_with(search: &Search, program: &Path) -> Result<Vec<(PathBuf, PathBuf)>> {
    let mut packing = Packing { search, files: Vec::new(), seen: BTreeSet::new() };
    packing.program(program)?;
    Ok(packing.files)
}

/// The files collected so far.
struct Packing<'a> {
    search: &'a Search,
    files: Vec<(PathBuf, PathBuf)>,
    /// Real paths of programs already read.
    seen: BTreeSet<PathBuf>,
}

impl Packing<'_> {
    /// Adds the files that a program needs, without the program.
    fn program(&mut self, program: &Path) -> Result<()> {
        let name = program.display().to_string();
        let real = program.canonicalize().context(&name)?;
        if !self.seen.insert(real.clone()) {
            return Ok(());
        }
        let metadata = real.metadata().context(&name)?;
        if metadata.is_dir() {
            return Err(failed(&name, "this is a folder: name a program in it"));
        }
        if !metadata.is_file() {
            return Err(failed(&name, "this is not a file, so it is not a program"));
        }
        if metadata.permissions().mode() & 0o111 == 0 {
            return Err(failed(&name, "this is not executable: use chmod +x"));
        }
        let bytes = std::fs::read(&real).context(&name)?;
        if let Some(line) = bytes.strip_prefix(b"#!") {
            return self.script(&name, line);
        }
        match Elf::read(&bytes, self.search.arch).context(&name)? {
            Some(elf) => self.libraries(Loaded::program(real, elf)),
            None => Err(failed(&name, self.no_program(&bytes))),
        }
    }

    /// The reason why a file can't be started in the guest.
    fn no_program(&self, bytes: &[u8]) -> String {
        let guest = self.search.arch.title;
        match elf::arch(bytes) {
            Some(arch) => format!(
                "this is a program for {}, and the guest is for {guest}: choose a profile with @{}, \
                 such as lab:rt@{1}",
                arch.title, arch.debian
            ),
            None => {
                format!("this is neither a program for {guest} nor a script that begins with #!")
            }
        }
    }

    /// Adds the files that a script needs; its first line is `#!` and `line`.
    fn script(&mut self, name: &str, line: &[u8]) -> Result<()> {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line.split_whitespace();
        let Some(interpreter) = words.next().map(Path::new) else {
            return Err(failed(name, "its first line names no interpreter after #!"));
        };
        self.interpreter(name, interpreter)?;
        if interpreter.file_name().is_some_and(|name| name == "env") {
            let Some(command) = words.find(|word| !word.starts_with('-') && !word.contains('='))
            else {
                return Ok(());
            };
            let Some(interpreter) = self.search.command(command)? else {
                return Err(Failure::unsupported(format!(
                    "{name} is run by {command}, which is not in the guest's PATH: install it, or \
                         pass your PATH with --env PATH"
                )));
            };
            self.interpreter(name, &interpreter)?;
        }
        Ok(())
    }

    /// Adds the interpreter of a script, and the files that it needs.
    fn interpreter(&mut self, script: &str, interpreter: &Path) -> Result<()> {
        if !interpreter.exists() {
            let interpreter = interpreter.display();
            return Err(Failure::unsupported(format!(
                "{script} is run by {interpreter}, which does not exist: install it"
            )));
        }
        self.add(interpreter)?;
        self.program(interpreter)
    }

    /// Adds the loader of a program and the libraries that it will load, breadth first as the
    /// loader does: the first library of a name is used by all.
    fn libraries(&mut self, program: Loaded) -> Result<()> {
        // A library has no loader; the program that opens it has one.
        let mut names = match program.elf.interpreter.clone() {
            Some(loader) => self.loader(&program, &loader)?,
            None => BTreeSet::new(),
        };
        let mut objects = vec![program];
        let mut at = 0;
        while at < objects.len() {
            for name in objects[at].elf.needed.clone() {
                if !names.insert(name.clone()) {
                    continue;
                }
                let Some(found) = self.search.library(&name, &objects, at)? else {
                    let who = objects[at].path.display();
                    return Err(Failure::unsupported(format!(
                        "{who} needs {name}, and no library folder has it for {}: \
                         install its package, or name its folder with --env LD_LIBRARY_PATH=DIR",
                        self.search.arch.title
                    )));
                };
                self.add(&found.path)?;
                if self.search.only_cached(&found.path) {
                    self.add(Path::new(search::CACHE))?;
                }
                names.extend(found.elf.soname.clone());
                objects.push(found);
            }
            at += 1;
        }
        Ok(())
    }

    /// Adds the loader of a program. Returns the names under which it is a library itself.
    fn loader(&mut self, program: &Loaded, loader: &Path) -> Result<BTreeSet<String>> {
        let bytes = std::fs::read(loader).map_err(|e| {
            let (program, loader) = (program.path.display(), loader.display());
            Failure::unsupported(format!(
                "{program} is loaded by {loader}, which can't be read ({e}): install the C \
                 library that it was built for"
            ))
        })?;
        self.add(loader)?;
        let name = loader.display().to_string();
        let elf = Elf::read(&bytes, self.search.arch).context(&name)?;
        Ok(elf.and_then(|elf| elf.soname).into_iter().collect())
    }

    fn add(&mut self, here: &Path) -> Result<()> {
        let guest = in_guest(here)?;
        if !self.files.iter().any(|(path, _)| *path == guest) {
            self.files.push((guest, here.to_owned()));
        }
        Ok(())
    }
}

/// The path of a file in the guest, where no folder is a symbolic link.
fn in_guest(here: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(here);
    let absolute = absolute.at(here)?;
    let mut guest = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::ParentDir => drop(guest.pop()),
            part => guest.push(part),
        }
    }
    Ok(guest)
}
