//! The laboratory's kernels: where they come from, and the cache in which they lie ready to boot.

mod added;
mod apt;
pub(crate) mod build;
mod driver;
mod headers;
mod image;
mod package;
mod plugin;
mod product;
mod store;
mod work;

pub(crate) use package::PACKAGES;
pub(crate) use store::Facts;

use crate::failure::{Failure, Result};
use latlab_core::suggest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::path::{Path, PathBuf};
use store::Store;

/// Where a kernel comes from, as profiles name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Source {
    /// A package that apt knows, or one that depends on the newest of a series.
    Package(String),
    /// One of [`build::BUILDS`].
    Build(String),
    /// A bzImage or vmlinux in a file.
    Image(PathBuf),
    /// A kernel that `latlab kernel add` brought in under this name.
    Added(String),
}

impl Source {
    /// What follows the kind in a profile.
    fn name(&self) -> String {
        match self {
            Source::Package(name) | Source::Build(name) | Source::Added(name) => name.clone(),
            Source::Image(path) => path.display().to_string(),
        }
    }

    /// As a profile writes it: `{ package = "linux-image-6.12-amd64" }`.
    pub(crate) fn in_profile(&self) -> String {
        let kind = match self {
            Source::Package(_) => "package",
            Source::Build(_) => "build",
            Source::Image(_) => "image",
            Source::Added(_) => "added",
        };
        format!("{{ {kind} = \"{}\" }}", self.name())
    }
}

/// A kernel that is ready to boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// As `latlab kernel list` shows it: `debian-6.12.117-amd64`.
    pub(crate) name: String,
    /// What `uname -r` says in it.
    pub(crate) release: String,
    /// What QEMU's `-kernel` gets: the ELF vmlinux where it has a PVH entry, else the bzImage.
    pub(crate) image: PathBuf,
    /// The folder `…/lib/modules/RELEASE`, where it has modules.
    pub(crate) modules: Option<PathBuf>,
    /// SHA-256 of the file that it came in, the bzImage, in hexadecimal.
    pub(crate) digest: String,
    /// Its folder in the cache.
    pub(crate) folder: PathBuf,
}

/// Who looks on while a kernel is fetched or built, and may end it.
pub(crate) trait Progress {
    /// Something begins, or is worth knowing.
    fn note(&mut self, text: &str);
    /// So much of what was last noted is done.
    fn at(&mut self, done: u64, total: u64);
    /// Lets a moment pass; true when the user wants to end.
    fn pause(&mut self) -> bool;
}

/// The kernel behind `source`. It comes out of the cache; a package that is not there is fetched
/// first, and `progress` is told. A build takes minutes and is not begun unasked: then it is
/// `Unsupported`, naming the command.
pub(crate) fn ready(source: &Source, progress: &mut dyn Progress) -> Result<Kernel> {
    let store = Store::open()?;
    match source {
        Source::Package(name) => match store.newest(source)? {
            Some((kernel, _)) => Ok(kernel),
            None => package::fetch(&store, name, progress).map(Fetched::kernel),
        },
        Source::Build(name) => build::ready(&store, name),
        Source::Image(path) => added::image(&store, path, progress),
        Source::Added(name) => match store.newest(source)? {
            Some((kernel, _)) => Ok(kernel),
            None => Err(unknown(&store, name)),
        },
    }
}

/// The test driver for a kernel: built when it is first needed, and kept beside it.
/// `Unsupported` where that can't be done here, saying what is missing.
pub(crate) fn driver(kernel: &Kernel, progress: &mut dyn Progress) -> Result<PathBuf> {
    driver::ready(&Store::open()?, kernel, progress)
}

/// The plugin that watches the laboratory's guests: built when it is first needed, and kept in the
/// cache. `Unsupported` where that can't be done here, saying what is missing.
pub(crate) fn plugin(progress: &mut dyn Progress) -> Result<PathBuf> {
    plugin::ready(&Store::open()?, progress)
}

/// What became of a wish to have a kernel in the cache.
#[derive(Debug)]
pub(crate) enum Fetched {
    /// It is new there.
    New(Kernel),
    /// It was there.
    Known(Kernel),
}

impl Fetched {
    pub(crate) fn kernel(self) -> Kernel {
        match self {
            Fetched::New(kernel) | Fetched::Known(kernel) => kernel,
        }
    }
}

/// Fetches the newest kernel that the package `name` stands for, unless it is there.
pub(crate) fn fetch(name: &str, progress: &mut dyn Progress) -> Result<Fetched> {
    package::fetch(&Store::open()?, name, progress)
}

/// Builds one of [`build::BUILDS`], unless it is there.
pub(crate) fn build(name: &str, progress: &mut dyn Progress) -> Result<Fetched> {
    build::build(&Store::open()?, name, progress)
}

/// Brings a kernel in from a file. Without a name it is called by its release, without a folder of
/// modules it gets this machine's own where it is one of this machine's own kernels. One that was
/// brought in under the same name is replaced.
pub(crate) fn add(
    file: &Path,
    name: Option<&str>,
    modules: Option<&Path>,
    progress: &mut dyn Progress,
) -> Result<Kernel> {
    added::add(&Store::open()?, file, name, modules, progress)
}

/// All kernels of the cache, with what is known of them and their size in bytes.
pub(crate) fn list() -> Result<Vec<(Kernel, Facts, u64)>> {
    let kernels = Store::open()?.kernels()?;
    Ok(kernels
        .into_iter()
        .map(|(kernel, facts)| {
            let size = store::size(&kernel.folder);
            (kernel, facts, size)
        })
        .collect())
}

/// The names under which kernels were brought in.
pub(crate) fn added() -> Result<Vec<String>> {
    let kernels = Store::open()?.kernels()?;
    let serves = kernels.into_iter().flat_map(|(_, facts)| facts.origin.serves);
    let name = |source| if let Source::Added(name) = source { Some(name) } else { None };
    Ok(serves.filter_map(name).collect())
}

/// Removes a kernel from the cache.
pub(crate) fn remove(name: &str, progress: &mut dyn Progress) -> Result<()> {
    let store = Store::open()?;
    let kernels = store.kernels()?;
    match kernels.iter().find(|(kernel, _)| kernel.name == name) {
        Some((kernel, _)) => store.remove(kernel, progress),
        None => Err(unknown(&store, name)),
    }
}

/// The cache's own folder, made on demand: `$XDG_CACHE_HOME/latlab`, else `~/.cache/latlab`.
pub(crate) fn cache() -> Result<PathBuf> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches =
        folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    let caches = caches.ok_or_else(|| {
        Failure::Failed("there is no place for the cache: set XDG_CACHE_HOME or HOME".to_owned())
    })?;
    let cache = caches.join("latlab");
    std::fs::create_dir_all(&cache).map_err(|e| {
        let elsewhere = "set XDG_CACHE_HOME to a folder that can be written";
        Failure::Failed(format!("{} can't be made ({e}): {elsewhere}", cache.display()))
    })?;
    Ok(cache)
}

/// Tells a function, and nobody ends it: what tests need.
#[cfg(test)]
struct Notes<'a>(&'a mut dyn FnMut(&str));

#[cfg(test)]
impl Progress for Notes<'_> {
    fn note(&mut self, text: &str) {
        (self.0)(text);
    }
    fn at(&mut self, _: u64, _: u64) {}
    fn pause(&mut self) -> bool {
        latlab_sys::clock::sleep_for(latlab_core::time::Nanos::from_millis(50));
        false
    }
}

fn unknown(store: &Store, name: &str) -> Failure {
    let kernels = store.kernels().unwrap_or_default();
    let names: Vec<&str> = kernels.iter().map(|(kernel, _)| kernel.name.as_str()).collect();
    let hint = match names.as_slice() {
        [] => "latlab kernel list shows what could be".to_owned(),
        names => suggest::hint(name, names),
    };
    Failure::Failed(format!("there is no kernel '{name}' in the cache: {hint}"))
}

/// SHA-256 in hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
