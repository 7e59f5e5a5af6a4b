//! The root of the file tree that a machine's state is read from: `/`, or a captured tree in a
//! test.

use crate::procfs;
use latlab_core::cpulist::CpuList;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A path prefix: `/` for the running machine. Paths are relative to it.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Default for Root {
    fn default() -> Root {
        Root(PathBuf::from("/"))
    }
}

impl Root {
    /// The tree under `path`.
    pub fn new(path: impl Into<PathBuf>) -> Root {
        Root(path.into())
    }

    /// The full path of `path`, which is relative to the root.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.join(path)
    }

    /// Whether this is the running machine, so that system calls describe it as well.
    pub fn is_live(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Whether a file or folder exists.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// The content of a file; None where it can't be read.
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        std::fs::read(self.path(path)).ok()
    }

    /// The target of a symbolic link; None where it can't be read.
    pub fn link(&self, path: impl AsRef<Path>) -> Option<String> {
        let target = std::fs::read_link(self.path(path)).ok()?;
        Some(target.to_string_lossy().into_owned())
    }

    /// The text of a file without surrounding white space; None where it can't be read.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = String::from_utf8_lossy(&self.bytes(path)?).into_owned();
        // Strings of a device tree end with a NUL.
        Some(text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
    }

    /// The text of a file of a task in `/proc`; None where the task has ended.
    pub fn text_of_task(&self, path: impl AsRef<Path>) -> std::io::Result<Option<String>> {
        match std::fs::read(self.path(path)) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) if procfs::is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The text of a file, unless it is empty.
    pub fn word(&self, path: impl AsRef<Path>) -> Option<String> {
        self.text(path).filter(|text| !text.is_empty())
    }

    /// The words of a file; empty where it can't be read.
    pub fn words(&self, path: impl AsRef<Path>) -> Vec<String> {
        let text = self.text(path).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// The number in a file.
    pub fn number<N: FromStr>(&self, path: impl AsRef<Path>) -> Option<N> {
        self.text(path)?.parse().ok()
    }

    /// The boolean in a file, in any of the kernel's spellings.
    pub fn flag(&self, path: impl AsRef<Path>) -> Option<bool> {
        match self.text(path)?.as_str() {
            "1" | "Y" | "y" | "on" => Some(true),
            "0" | "N" | "n" | "off" => Some(false),
            _ => None,
        }
    }

    /// The list of CPUs in a file.
    pub fn cpulist(&self, path: impl AsRef<Path>) -> Option<CpuList> {
        self.text(path)?.parse().ok()
    }

    /// The word in brackets: the kernel marks the current choice so, as in `[always] never`.
    pub fn chosen(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = self.text(path)?;
        let (_, after) = text.split_once('[')?;
        Some(after.split_once(']')?.0.to_owned())
    }

    /// The 64-bit number at `offset` of a device file, in native byte order.
    pub fn word_at(&self, path: impl AsRef<Path>, offset: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        let file = std::fs::File::open(self.path(path)).ok()?;
        file.read_exact_at(&mut bytes, offset).ok()?;
        Some(u64::from_ne_bytes(bytes))
    }

    /// The signed 32-bit number at the start of a device file, in native byte order.
    pub fn signed(&self, path: impl AsRef<Path>) -> Option<i32> {
        let mut bytes = [0; 4];
        std::fs::File::open(self.path(path)).ok()?.read_exact(&mut bytes).ok()?;
        Some(i32::from_ne_bytes(bytes))
    }

    /// The names in a folder, sorted; empty where it can't be read.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The names in a folder that consist of `prefix` and a number, in order of that number.
    pub fn numbered(&self, path: impl AsRef<Path>, prefix: &str) -> Vec<(u32, String)> {
        let number = |name: &String| name.strip_prefix(prefix)?.parse().ok();
        let names = self.names(path).into_iter();
        let mut numbered: Vec<_> = names.filter_map(|name| Some((number(&name)?, name))).collect();
        numbered.sort();
        numbered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a temporary folder is not the machine")]
    fn tree(path: &str, content: &[u8]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(path), content).unwrap();
        let root = Root::new(folder.path());
        (folder, root)
    }

    #[test]
    fn root_text_is_read_as_number_flag_choice_and_list() {
        let (_folder, root) = tree("file", b" 42\n");
        assert_eq!(root.text("file").as_deref(), Some("42"));
        assert_eq!(root.number::<u8>("file"), Some(42));
        assert_eq!(root.flag("file"), None);
        assert_eq!(root.number::<u8>("missing"), None);
        let (_folder, root) = tree("file", b"always [madvise] never\n");
        assert_eq!(root.chosen("file").as_deref(), Some("madvise"));
        assert_eq!(root.words("file").len(), 3);
        let (_folder, root) = tree("file", b"0-2\n");
        assert_eq!(root.cpulist("file").map(|cpus| cpus.len()), Some(3));
    }

    #[test]
    fn root_text_may_contain_any_bytes() {
        let (_folder, root) = tree("file", b"ACME \xff board\0");
        assert_eq!(root.text("file").as_deref(), Some("ACME \u{fffd} board"));
        let (_folder, root) = tree("file", &2_000_000_000_i32.to_ne_bytes());
        assert_eq!(root.signed("file"), Some(2_000_000_000));
        assert_eq!(root.word_at("file", 0), None);
    }

    #[test]
    fn root_numbered_names_are_in_numeric_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["cpu10", "cpu9", "cpufreq", "cpu"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let numbers: Vec<u32> =
            Root::new(folder.path()).numbered("", "cpu").into_iter().map(|(n, _)| n).collect();
        assert_eq!(numbers, [9, 10]);
    }
}
