//! The laboratory's kernels: their sources, and the cache that holds them ready to boot.

mod added;
pub mod apt;
mod archive;
mod available;
pub mod build;
mod contents;
mod driver;
mod headers;
pub mod image;
mod package;
mod plugin;
mod product;
pub mod store;
mod work;

pub use available::Offer;
pub use contents::Contents;
pub use store::Facts;

use super::arch::Arch;
use super::seal::Seal;
use super::snapshot;
use latlab_core::suggest;
use latlab_part::failure::{Context as _, Failure, Result};
use latlab_part::part::About;
use latlab_part::progress::Progress;
use latlab_sys::process;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs::{DirBuilder, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use store::Store;

/// The source of a kernel, as profiles name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A package known to apt, or one that depends on the newest of a series.
    Package(String),
    /// One of [`build::BUILDS`].
    Build(String),
    /// A bzImage, vmlinux or Image in a file.
    Image(PathBuf),
    /// A kernel that `latlab kernel add` stored under this name.
    Added(String),
}

impl Source {
    /// Its value in a profile, without the kind.
    fn name(&self) -> String {
        match self {
            Source::Package(name) | Source::Build(name) | Source::Added(name) => name.clone(),
            Source::Image(path) => path.display().to_string(),
        }
    }

    /// As a profile writes it: `{ package = "linux-image-6.12-amd64" }`.
    pub fn in_profile(&self) -> String {
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
pub struct Kernel {
    /// As `latlab kernel list` shows it: `debian-6.12.117-amd64`.
    pub name: String,
    /// Its release, as `uname -r` prints it.
    pub release: String,
    /// Its architecture.
    pub arch: &'static Arch,
    /// The file for QEMU's `-kernel`: the ELF vmlinux where it has a PVH entry, else the bzImage; for
    /// arm64 the Image.
    pub image: PathBuf,
    /// The folder `…/lib/modules/RELEASE`, if it has modules.
    pub modules: Option<PathBuf>,
    /// SHA-256 of the file it was read from, in hexadecimal.
    pub digest: String,
    /// Its folder in the cache.
    pub folder: PathBuf,
    /// The seal of `image`.
    pub(super) seal: Seal,
    /// The seal of the list of its other files.
    pub(super) contents: Seal,
}

impl Kernel {
    /// Whether the file that QEMU boots and the list of its other files are still there, and as they
    /// were written.
    pub fn is_intact(&self) -> Result<bool> {
        let holds = |seal: &Seal, path: &Path| match seal.holds(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            holds => holds.at(path),
        };
        let list = self.folder.join(contents::LIST);
        Ok(holds(&self.seal, &self.image)? && holds(&self.contents, &list)?)
    }

    /// Whether QEMU boots its vmlinux, and not a bzImage.
    pub fn is_vmlinux(&self) -> bool {
        self.image.file_name().is_some_and(|name| name == VMLINUX)
    }
}

/// The name of a vmlinux in a kernel's folder.
const VMLINUX: &str = "vmlinux";

/// The packages that are fetched where no other is named, and that the profiles use.
pub fn packages() -> &'static [About] {
    Arch::usual().packages
}

/// The kernel of `source`, from the cache. A package that is not cached is fetched, with
/// `progress`. A build takes minutes and is never started without a request: the result is
/// `Unsupported`, with the command to run.
///
/// A cached kernel whose file was changed since is removed first.
pub fn ready(source: &Source, progress: &mut dyn Progress) -> Result<Kernel> {
    let store = Store::open()?;
    while let Some((kernel, _)) = store.newest(source)?
        && !kernel.is_intact()?
    {
        let name = &kernel.name;
        if store.remove_changed(name, progress)? {
            progress.note(&format!("the kernel {name} was changed in the cache: it is removed"));
        }
    }
    match source {
        Source::Package(name) => match store.newest(source)? {
            Some((kernel, _)) => Ok(kernel),
            None => package::fetch(&store, name, progress).map(Fetched::kernel),
        },
        Source::Build(name) => build::ready(&store, name),
        Source::Image(path) => added::image(&store, Path::new("/"), path, progress),
        Source::Added(name) => match store.newest(source)? {
            Some((kernel, _)) => Ok(kernel),
            None => Err(unknown(&store, name)),
        },
    }
}

/// The test driver for a kernel: built when first needed, kept in the kernel's folder.
/// `Unsupported` where it can't be built here; the message names what is missing.
pub fn driver(kernel: &Kernel, progress: &mut dyn Progress) -> Result<PathBuf> {
    driver::ready(&Store::open()?, kernel, progress)
}

/// The QEMU plugin that records instructions: built when first needed, kept in the cache.
/// `Unsupported` where it can't be built here; the message names what is missing.
pub fn plugin(progress: &mut dyn Progress) -> Result<PathBuf> {
    plugin::ready(&Store::open()?, progress)
}

/// The result of fetching or building a kernel.
#[derive(Debug)]
pub enum Fetched {
    /// It was added to the cache.
    New(Kernel),
    /// It was cached already.
    Known(Kernel),
}

impl Fetched {
    /// The kernel, wherever it came from.
    pub fn kernel(self) -> Kernel {
        match self {
            Fetched::New(kernel) | Fetched::Known(kernel) => kernel,
        }
    }
}

/// Fetches the newest kernel of the package `name`, unless it is cached.
pub fn fetch(name: &str, progress: &mut dyn Progress) -> Result<Fetched> {
    package::fetch(&Store::open()?, name, progress)
}

/// Builds one of [`build::BUILDS`], unless it is cached.
pub fn build(name: &str, progress: &mut dyn Progress) -> Result<Fetched> {
    build::build(&Store::open()?, name, progress)
}

/// Adds a kernel from a file to the cache. The default name is its release; the default modules are
/// those that this machine has installed for that release. It replaces an added kernel of the same
/// name.
pub fn add(
    file: &Path,
    name: Option<&str>,
    modules: Option<&Path>,
    progress: &mut dyn Progress,
) -> Result<Kernel> {
    added::add(&Store::open()?, file, name, modules, progress)
}

/// All cached kernels, with their facts and size in bytes.
pub fn list() -> Result<Vec<(Kernel, Facts, u64)>> {
    let kernels = Store::open()?.kernels()?;
    Ok(kernels
        .into_iter()
        .map(|(kernel, facts)| {
            let size = store::size(&kernel.folder);
            (kernel, facts, size)
        })
        .collect())
}

/// The newest kernels that Debian's archive has of each series and kind, oldest first.
pub fn available(progress: &mut dyn Progress) -> Result<Vec<Offer>> {
    available::offers(Arch::usual().debian, progress)
}

/// The names of all kernels in the cache.
pub fn names() -> Result<Vec<String>> {
    let kernels = Store::open()?.kernels()?;
    Ok(kernels.into_iter().map(|(kernel, _)| kernel.name).collect())
}

/// The names of added kernels.
pub fn added() -> Result<Vec<String>> {
    let kernels = Store::open()?.kernels()?;
    let serves = kernels.into_iter().flat_map(|(_, facts)| facts.origin.serves);
    let name = |source| if let Source::Added(name) = source { Some(name) } else { None };
    Ok(serves.filter_map(name).collect())
}

/// Removes a kernel from the cache, also one that is damaged.
pub fn remove(name: &str, progress: &mut dyn Progress) -> Result<()> {
    let store = Store::open()?;
    if !store.has(name)? {
        return Err(unknown(&store, name));
    }
    // Snapshots that stay for now are removed above the limit.
    let _ = snapshot::remove_of(name);
    store.remove(name, progress)
}

/// The cache folder, created on demand: `$XDG_CACHE_HOME/latlab`, else `~/.cache/latlab`.
pub fn cache() -> Result<PathBuf> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches =
        folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    let caches = caches
        .ok_or_else(|| Failure::failed("the cache has no folder: set XDG_CACHE_HOME or HOME"))?;
    let cache = caches.join("latlab");
    // The mode that the XDG Base Directory Specification asks for.
    let created = DirBuilder::new().recursive(true).mode(0o700).create(&cache);
    let there = created.and_then(|()| std::fs::metadata(&cache)).map_err(|e| {
        let elsewhere = "set XDG_CACHE_HOME to a writable folder";
        Failure::failed(format!("{} can't be created ({e}): {elsewhere}", cache.display()))
    })?;
    check_owner(&cache, &there)?;
    Ok(cache)
}

/// Refuses a cache that other users can write: its kernels are booted, and its plugin is a part of
/// QEMU.
fn check_owner(cache: &Path, there: &Metadata) -> Result<()> {
    let cache = cache.display();
    if there.uid() != process::user() {
        return Err(Failure::failed(format!(
            "{cache} belongs to another user, who could change what latlab runs: set XDG_CACHE_HOME \
             to a folder of your own"
        )));
    }
    if there.mode() & 0o022 != 0 {
        return Err(Failure::failed(format!(
            "other users may write to {cache} and change what latlab runs: run chmod -R go-w {cache}"
        )));
    }
    Ok(())
}

/// For tests: a kernel that does not boot, and has no modules.
#[cfg(test)]
impl Kernel {
    pub(crate) fn bare(folder: &Path) -> Kernel {
        Kernel {
            name: "bare".to_owned(),
            release: "6.1-bare".to_owned(),
            arch: Arch::usual(),
            image: "/nowhere".into(),
            modules: None,
            digest: String::new(),
            folder: folder.to_owned(),
            seal: Seal::of(folder, b"").expect("the folder can be opened"),
            contents: contents::list(folder).expect("the folder can be written"),
        }
    }
}

/// For tests: passes notes to a function, and never ends the work.
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
        [] => "latlab kernel list shows what can be fetched or built".to_owned(),
        names => suggest::hint(name, names),
    };
    Failure::failed(format!("there is no kernel '{name}' in the cache: {hint}"))
}

/// SHA-256 in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
