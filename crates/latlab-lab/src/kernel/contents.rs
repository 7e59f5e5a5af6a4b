//! The files of a kernel in the cache besides the one that QEMU boots: its modules and its
//! configuration. Their digests are in a list that sha256sum(1) can check.

use super::store::{exists, modules_place};
use super::{Kernel, digest};
use crate::seal::Seal;
use latlab_part::failure::{Context as _, Failure, Result, failed};
use latlab_sys::file;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// The list in a kernel's folder.
pub(super) const LIST: &str = "SHA256SUMS";
/// The files and folders that are listed.
const LISTED: [&str; 2] = ["config", "lib"];

/// Writes the list into a kernel's folder, and returns its seal.
pub(super) fn list(folder: &Path) -> Result<Seal> {
    let mut text = String::new();
    for path in LISTED.map(|name| folder.join(name)) {
        if !exists(&path)? {
            continue;
        }
        for entry in WalkDir::new(path).sort_by_file_name() {
            let path = entry.at(folder)?.into_path();
            // No module has a name that can't be written on a line.
            let name = path.strip_prefix(folder).ok().and_then(Path::to_str);
            let Some(name) = name.filter(|name| !name.contains(['\n', '\\'])) else { continue };
            if is_file(&path)? {
                let bytes = std::fs::read(&path).map_err(|e| at(&path, e))?;
                let _ = writeln!(text, "{}  {name}", digest(&bytes));
            }
        }
    }
    let path = folder.join(LIST);
    let written = file::write_atomically(&path, text.as_bytes());
    written.and_then(|()| Seal::of(&path, text.as_bytes())).map_err(|e| at(&path, e))
}

/// Whether this is a regular file, or a link to one. Packages have links to folders that are not there.
fn is_file(path: &Path) -> Result<bool> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        facts => Ok(facts.map_err(|e| at(path, e))?.is_file()),
    }
}

/// The listed files of a kernel.
pub struct Contents<'a> {
    kernel: &'a Kernel,
    /// By their paths below the kernel's folder, in the order of the folders.
    digests: BTreeMap<PathBuf, String>,
}

impl Kernel {
    /// Reads the list of its files.
    pub fn contents(&self) -> Result<Contents<'_>> {
        let path = self.folder.join(LIST);
        if !self.contents.holds(&path).map_err(|e| at(&path, e))? {
            let why = format!("the kernel {} was changed meanwhile: run latlab again", self.name);
            return Err(Failure::failed(why));
        }
        let text = std::fs::read_to_string(&path).map_err(|e| at(&path, e))?;
        let entries = text.lines().filter_map(|line| line.split_once("  "));
        let digests = entries.map(|(digest, name)| (name.into(), digest.to_owned())).collect();
        Ok(Contents { kernel: self, digests })
    }

    /// The refusal of a file that differs from the list.
    fn was_changed(&self, path: &Path) -> Failure {
        let (path, name) = (path.display(), &self.name);
        Failure::failed(format!(
            "{path}: it was changed since the kernel was stored: remove the kernel with latlab kernel \
             remove {name}, and run this again (one that was added must be added again)"
        ))
    }
}

impl Contents<'_> {
    /// The paths of the files below the kernel's folder.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.digests.keys().map(PathBuf::as_path)
    }

    /// The contents of a file, by its path below the kernel's folder; none where the kernel came
    /// without it.
    pub fn read(&self, path: &Path) -> Result<Option<Vec<u8>>> {
        let Some(stored) = self.digests.get(path) else { return Ok(None) };
        let path = self.place(path);
        let bytes = std::fs::read(&path).map_err(|e| at(&path, e))?;
        if digest(&bytes) == *stored {
            Ok(Some(bytes))
        } else {
            Err(self.kernel.was_changed(&path))
        }
    }

    /// Whether the kernel came with modules.
    pub fn have_modules(&self) -> bool {
        let folder = modules_place(&self.kernel.release);
        self.paths().any(|path| path.starts_with(&folder))
    }

    /// The whole path of a file.
    pub fn place(&self, path: &Path) -> PathBuf {
        self.kernel.folder.join(path)
    }
}

fn at(path: &Path, error: io::Error) -> Failure {
    failed(&path.display().to_string(), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        file::write_atomically(&path, text.as_bytes()).unwrap();
    }

    fn kernel(folder: &Path) -> Kernel {
        put(folder, "config", "CONFIG_PREEMPT=y\n");
        put(folder, "lib/modules/6.1-bare/kernel/one.ko", "one");
        put(folder, "headers/Makefile", "all:\n");
        Kernel { contents: list(folder).unwrap(), ..Kernel::bare(folder) }
    }

    #[test]
    fn contents_are_modules_and_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = kernel(folder.path());
        let contents = kernel.contents().unwrap();
        let one = Path::new("lib/modules/6.1-bare/kernel/one.ko");
        assert_eq!(contents.paths().collect::<Vec<_>>(), [Path::new("config"), one]);
        assert!(contents.have_modules());
        assert_eq!(contents.read(one).unwrap().unwrap(), b"one");
        assert_eq!(contents.read(Path::new("headers/Makefile")), Ok(None));
    }

    #[test]
    fn contents_that_were_changed_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let kernel = kernel(folder);
        put(folder, "config", "CONFIG_PREEMPT=n\n");
        let said = kernel.contents().unwrap().read(Path::new("config")).unwrap_err().to_string();
        assert!(said.contains("config: it was changed") && said.contains("remove bare"), "{said}");
        let text = std::fs::read_to_string(folder.join(LIST)).unwrap();
        put(folder, LIST, &text.replace("one.ko", "two.ko"));
        let Err(said) = kernel.contents() else { panic!("the list was changed") };
        assert!(said.to_string().contains("was changed meanwhile"), "{said}");
    }

    #[test]
    fn file_that_can_not_be_looked_at_is_not_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let modules = folder.path().join("lib/modules/6.1-bare");
        std::fs::create_dir_all(&modules).unwrap();
        std::os::unix::fs::symlink("/nowhere", modules.join("build")).unwrap();
        list(folder.path()).unwrap();
        // stat(2) fails with ELOOP.
        for name in ["config", "lib/modules/6.1-bare/one.ko"] {
            let path = folder.path().join(name);
            std::os::unix::fs::symlink(&path, &path).unwrap();
            assert!(list(folder.path()).is_err(), "{name}");
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn list_is_one_that_sha256sum_checks() {
        let folder = tempfile::tempdir().unwrap();
        kernel(folder.path());
        let mut check = latlab_sys::process::command("sha256sum");
        let checked = check.args(["--check", "--strict", "--quiet", LIST]);
        assert!(checked.current_dir(folder.path()).status().unwrap().success());
    }
}
