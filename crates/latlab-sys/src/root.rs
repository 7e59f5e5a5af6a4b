//! The tree that the machine's state is read from: `/`, or a captured one in a test.

use std::path::{Path, PathBuf};

/// A path prefix: `/` on the machine itself.
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

    /// Where `path`, relative to the root, really lies.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.join(path)
    }

    /// The text of a file without surrounding white space; none where it can't be read.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        std::fs::read_to_string(self.path(path))
            .ok()
            .map(|text| text.trim().to_owned())
    }
}
