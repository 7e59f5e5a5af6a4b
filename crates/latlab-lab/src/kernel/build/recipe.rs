//! The recipe of a build: configuration options and edits of the source.

use super::Build;
use crate::arch::Arch;
use crate::kernel::digest;
use crate::kernel::work::check_tools;
use latlab_part::failure::{Context as _, Failure, Result};
use latlab_sys::file;
use serde::Deserialize;
use std::path::Path;

/// The recipe of a build.
#[derive(Debug)]
pub(super) struct Recipe {
    name: &'static str,
    pub(super) config: &'static str,
    edits: Vec<Edit>,
    /// SHA-256 of the recipe, in hexadecimal: equal recipes build the same kernel from the same
    /// source.
    pub(super) digest: String,
}

/// A replacement of text that must occur exactly once in the source.
#[derive(Debug, Deserialize)]
struct Edit {
    file: String,
    from: String,
    to: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edits {
    #[serde(default)]
    edit: Vec<Edit>,
}

/// Required commands and headers, and their Debian packages.
const TOOLS: &[(&str, &str)] = &[
    ("gcc", "gcc"),
    ("make", "make"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("perl", "perl"),
    ("xz", "xz-utils"),
    ("/usr/include/gelf.h", "libelf-dev"),
    ("/usr/include/stdio.h", "libc6-dev"),
];

impl Recipe {
    pub(super) fn of(build: &Build) -> Result<Recipe> {
        let name = build.about.name;
        let edits: Edits = toml::from_str(build.edits).context(name)?;
        let lines = options(build.config).map(str::to_owned);
        let edited = edits.edit.iter().map(|edit| format!("{edit:?}"));
        let digest = digest(lines.chain(edited).collect::<Vec<_>>().join("\n").as_bytes());
        Ok(Recipe { name, config: build.config, edits: edits.edit, digest })
    }

    fn has_types(&self) -> bool {
        self.config.lines().any(|line| line == "CONFIG_DEBUG_INFO_BTF=y")
    }

    /// Disk space for the build, bytes: 1.7 GB of source and its products; debug information, from
    /// which BTF is made, took 1.2 GB in lab-full.
    pub(super) fn room(&self) -> u64 {
        if self.has_types() { 3_500_000_000 } else { 2_300_000_000 }
    }

    /// Fails if a program needed to build is missing.
    pub(super) fn check_tools(&self) -> Result<()> {
        let arch = Arch::usual();
        if !arch.is_host() {
            let why = format!("{}: this kernel is built on {} only", self.name, arch.title);
            return Err(Failure::unsupported(why));
        }
        let types = self.has_types().then_some(("pahole", "dwarves"));
        let tools: Vec<(&str, &str)> = TOOLS.iter().copied().chain(types).collect();
        check_tools(self.name, &tools)
    }

    /// Edits the source.
    pub(super) fn edit(&self, tree: &Path) -> Result<()> {
        for edit in &self.edits {
            let path = tree.join(&edit.file);
            let text = std::fs::read_to_string(&path).context(&edit.file)?;
            let changed = edit.apply(&text)?;
            file::write_atomically(&path, changed.as_bytes()).context(&edit.file)?;
        }
        Ok(())
    }

    /// Fails if an option of the recipe is missing in the resulting configuration.
    pub(super) fn check_kept(&self, made: &str) -> Result<()> {
        let made: Vec<&str> = made.lines().collect();
        let is_set = |name: &str| {
            made.iter().any(|l| l.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))
        };
        let kept =
            |line: &&str| switched_off(line).map_or(made.contains(line), |name| !is_set(name));
        let lost: Vec<&str> = options(self.config).filter(|line| !kept(line)).collect();
        if lost.is_empty() {
            return Ok(());
        }
        Err(Failure::failed(format!("this source does not support {}", lost.join(", "))))
    }
}

impl Edit {
    fn apply(&self, text: &str) -> Result<String> {
        match text.matches(&self.from).count() {
            1 => Ok(text.replace(&self.from, &self.to)),
            n => Err(Failure::failed(format!(
                "the edit of {} does not fit this source: '{}' occurs {n} times",
                self.file, self.from
            ))),
        }
    }
}

/// The lines of a configuration without comments.
fn options(config: &str) -> impl Iterator<Item = &str> {
    config.lines().filter(|line| line.starts_with("CONFIG_") || switched_off(line).is_some())
}

/// The option that a line disables; the build system does not treat such lines as comments.
fn switched_off(line: &str) -> Option<&str> {
    line.strip_prefix("# ")?.strip_suffix(" is not set")
}

#[cfg(test)]
mod tests {
    use super::super::BUILDS;
    use super::*;

    fn recipe(config: &'static str) -> Recipe {
        Recipe { name: "test", config, edits: Vec::new(), digest: String::new() }
    }

    #[test]
    fn check_kept_names_dropped_options() {
        let recipe = recipe("# why\nCONFIG_A=y\n\nCONFIG_B=\"x\"\n# CONFIG_C is not set\n");
        assert_eq!(recipe.check_kept("CONFIG_A=y\nCONFIG_B=\"x\"\nCONFIG_CC=y\n"), Ok(()));
        let lost =
            recipe.check_kept("CONFIG_A=m\nCONFIG_B=\"x\"\nCONFIG_C=y\n").unwrap_err().to_string();
        assert!(lost.contains("CONFIG_A=y, # CONFIG_C is not set"), "{lost}");
    }

    #[test]
    fn edit_must_match_exactly_once() {
        let edit =
            Edit { file: "a.c".to_owned(), from: "if (x)".to_owned(), to: "if (0)".to_owned() };
        assert_eq!(edit.apply("{ if (x) y(); }").unwrap(), "{ if (0) y(); }");
        for text in ["", "if (x) if (x)"] {
            assert!(edit.apply(text).unwrap_err().to_string().contains("a.c"));
        }
    }

    #[test]
    fn builds_have_their_name_in_the_release_and_no_modules() {
        for build in BUILDS {
            let recipe = Recipe::of(build).unwrap();
            let version = format!("CONFIG_LOCALVERSION=\"-{}\"", build.about.name);
            assert!(build.config.lines().any(|line| line == version), "{version}");
            assert!(!build.config.lines().any(|line| line.ends_with("=m")));
            assert_eq!(recipe.edits.len(), build.edits.matches("[[edit]]").count());
            assert!(build.about.summary.len() <= 72);
        }
    }
}
