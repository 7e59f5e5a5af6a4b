//! Files built from sources in the program when first needed, and kept.

use super::store::{Draft, Store};
use super::work::{explain, log_file, run};
use super::{Progress, digest};
use crate::seal;
use latlab_part::failure::{Context as _, Failure, Result};
use latlab_sys::file;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file that `make` builds.
pub(super) struct Product<'a> {
    /// Its name in messages.
    pub(super) what: &'a str,
    /// The name of its draft and of its log.
    pub(super) key: &'a str,
    /// Its sources: file names and contents.
    pub(super) sources: &'a [(&'a str, &'a str)],
    /// The name of the built file.
    pub(super) file: &'a str,
    /// Folder and name prefix of the kept file; the digest of the sources follows, so that changed
    /// sources make a new file.
    pub(super) kept: (&'a Path, &'a str),
}

impl Product<'_> {
    /// The path of the kept file. If it does not exist, it is built with the command that `make`
    /// returns for the folder of its sources.
    pub(super) fn ready<M>(
        &self,
        store: &Store,
        progress: &mut dyn Progress,
        make: M,
    ) -> Result<PathBuf>
    where
        M: FnOnce(&Path, &Draft, &mut dyn Progress) -> Result<Command>,
    {
        let place = self.place();
        let is_intact = || seal::is_intact(&place).at(&place);
        if is_intact()? {
            return Ok(place);
        }
        let what = format!("building {}", self.what);
        let draft = store.begin(self.key, &what, progress)?;
        // Another process may have built it meanwhile.
        if !is_intact()? {
            let folder = draft.folder.join("sources");
            let mut command = make(&folder, &draft, progress)?;
            // A compiler that is killed leaves its temporary files: they are in the draft.
            command.env("TMPDIR", &folder);
            let built = self.build(&folder, &command, progress)?;
            keep(&built, &place).at(&place)?;
        }
        Ok(place)
    }

    fn place(&self) -> PathBuf {
        let text = self.sources.iter().map(|(name, text)| format!("{name}\n{text}\n"));
        let digest = digest(text.collect::<String>().as_bytes());
        let (folder, name) = self.kept;
        let kind = Path::new(self.file).extension().unwrap_or_default().display();
        folder.join(format!("{name}-{}.{kind}", &digest[..16]))
    }

    /// Builds it and returns its path.
    fn build(&self, folder: &Path, make: &Command, progress: &mut dyn Progress) -> Result<PathBuf> {
        self.unpack(folder)?;
        progress.note(&format!("building {}", self.what));
        let log = log_file(self.key)?;
        let ended = run(make, &log, progress, &mut |_| ());
        ended.map_err(|failure| explain(self.what, &log, failure, progress))?;
        let built = folder.join(self.file);
        if built.is_file() {
            Ok(built)
        } else {
            Err(Failure::failed(format!("{}: make did not build the file", self.what)))
        }
    }

    /// Writes the sources into a folder.
    fn unpack(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir(folder).at(folder)?;
        self.sources.iter().try_for_each(|(name, text)| {
            let path = folder.join(name);
            file::write_atomically(&path, text.as_bytes()).at(&path)
        })
    }
}

/// Moves a built file to its place, with its seal.
fn keep(built: &Path, place: &Path) -> io::Result<()> {
    std::fs::rename(built, place)?;
    seal::put(place, &std::fs::read(place)?)
}

/// Asserts that `sources` are all sources in a folder of the tree: the Makefile and the `.c` and
/// `.h` files. Build products have two dots.
#[cfg(test)]
pub(super) fn assert_complete(sources: &[(&str, &str)], folder: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let entries = std::fs::read_dir(folder).expect("it is there").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_source = |name: &String| {
        let kind = name.split_once('.').map(|(_, kind)| kind);
        name == "Makefile" || matches!(kind, Some("c" | "h"))
    };
    let mut names: Vec<String> = names.filter(is_source).collect();
    names.sort();
    let built_in: Vec<&str> = sources.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, built_in);
}
