//! Kernels from files of the user.

use super::store::{self, Facts, Origin, Store, modules_place};
use super::{Kernel, Progress, Source, digest, image};
use crate::failure::{Failure, Result, failed};
use std::path::{Path, PathBuf};

/// The kernel in a file that a profile names. Its name includes a part of its digest, so that two
/// builds of one release stay apart.
pub(crate) fn image(store: &Store, path: &Path, progress: &mut dyn Progress) -> Result<Kernel> {
    let file = File::read(path)?;
    if let Some(kernel) = file.known(store)? {
        return Ok(kernel);
    }
    let image = file.image()?;
    let name = format!("{}-{}", image.release, &file.digest[..8]);
    file.keep(store, &name, image, None, Source::Image(path.to_owned()), progress)
}

/// Adds a kernel; see [`super::add`].
pub(crate) fn add(
    store: &Store,
    path: &Path,
    name: Option<&str>,
    modules: Option<&Path>,
    progress: &mut dyn Progress,
) -> Result<Kernel> {
    let file = File::read(path)?;
    let image = file.image()?;
    let name = name.map_or(Ok(image.release.as_str()), checked)?.to_owned();
    let modules = modules.map(|folder| modules_in(folder, &image.release)).transpose()?;
    file.keep(store, &name, image, modules, Source::Added(name.clone()), progress)
}

/// A file that may be a kernel.
struct File<'a> {
    path: &'a Path,
    bytes: Vec<u8>,
    digest: String,
}

impl File<'_> {
    fn read(path: &Path) -> Result<File<'_>> {
        let shown = path.display().to_string();
        let there = std::fs::metadata(path).map_err(|e| failed(&shown, e))?;
        if !there.is_file() || there.len() > image::LARGEST.into() {
            return Err(failed(
                &shown,
                "this is not a kernel: it is not a file, or larger than any kernel",
            ));
        }
        let bytes = std::fs::read(path).map_err(|e| failed(&shown, e))?;
        let digest = digest(&bytes);
        Ok(File { path, bytes, digest })
    }

    /// Whether the kernel was read from a file with these contents.
    fn is(&self, kernel: &Kernel) -> bool {
        kernel.digest == self.digest
    }

    fn image(&self) -> Result<image::Image> {
        image::read(&self.bytes).map_err(|e| failed(&self.path.display().to_string(), e))
    }

    /// The cached kernel with the same bytes from any file, if it is intact. Kernels from packages do
    /// not count: they have modules, and figures must not depend on which packages were fetched.
    fn known(&self, store: &Store) -> Result<Option<Kernel>> {
        let is_image = |source: &Source| matches!(source, Source::Image(_));
        let kernels = store.kernels()?.into_iter();
        let mut images = kernels.filter(|(_, facts)| facts.origin.serves.iter().any(is_image));
        intact(images.find(|(kernel, _)| self.is(kernel)))
    }

    /// Refuses the name of another kernel: profiles that name it would boot this one.
    fn refuse_other(&self, store: &Store, name: &str) -> Result<()> {
        let mut kernels = store.kernels()?.into_iter();
        match kernels.find(|(kernel, _)| kernel.name == name && !self.is(kernel)) {
            Some((kernel, _)) => Err(Failure::Failed(format!(
                "another kernel has the name {name} already ({}): give this one another name with \
                 --name, or remove that one with: latlab kernel remove {name}",
                kernel.release
            ))),
            None => Ok(()),
        }
    }

    fn keep(
        &self,
        store: &Store,
        name: &str,
        image: image::Image,
        modules: Option<PathBuf>,
        serves: Source,
        progress: &mut dyn Progress,
    ) -> Result<Kernel> {
        let modules = modules.or_else(|| own_modules(self.path, &image.release));
        let draft = store.begin(&format!("add-{name}"), &format!("adding {name}"), progress)?;
        // Another process may have added the same kernel meanwhile, and may be booting it.
        let same = |(kernel, _): &(Kernel, Facts)| kernel.name == name && self.is(kernel);
        let there = intact(store.kernels()?.into_iter().find(same))?;
        if let (Some(kernel), None) = (there, &modules) {
            return Ok(kernel);
        }
        self.refuse_other(store, name)?;
        let kept = self.bytes.len() + image.unpacked();
        draft.need_space(kept as u64 + modules.as_deref().map_or(0, store::size))?;
        if let Some(modules) = modules {
            draft.copy_modules(&modules, &image.release)?;
        }
        let what = self.path.display().to_string();
        let origin = Origin { what, version: String::new(), serves: vec![serves] };
        draft.finish(name, &self.bytes, image, origin)
    }
}

/// A kernel that was found, if its file is as it was written.
fn intact(found: Option<(Kernel, Facts)>) -> Result<Option<Kernel>> {
    let Some((kernel, _)) = found else { return Ok(None) };
    Ok(kernel.is_intact()?.then_some(kernel))
}

/// Checks a name, which becomes the name of a folder.
fn checked(name: &str) -> Result<&str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "+-._".contains(c);
    if name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(fits) {
        return Ok(name);
    }
    Err(Failure::Failed(format!(
        "'{name}' is not a valid kernel name: use letters and digits, and + - . _ after the first"
    )))
}

/// The modules of `release` in a folder that the user named, or in its `lib/modules`.
fn modules_in(folder: &Path, release: &str) -> Result<PathBuf> {
    let places = [folder.to_owned(), folder.join(release), folder.join(modules_place(release))];
    places.into_iter().find(|place| place.join("modules.order").is_file()).ok_or_else(|| {
        let folder = folder.display();
        Failure::Failed(format!("{folder}: it has no modules of {release} (no modules.order)"))
    })
}

/// The modules of a kernel installed on this machine, if readable.
fn own_modules(file: &Path, release: &str) -> Option<PathBuf> {
    let installed = Path::new("/boot").join(format!("vmlinuz-{release}"));
    let is_it = file.canonicalize().ok()? == installed.canonicalize().ok()?;
    is_it.then(|| modules_in(Path::new("/"), release).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::Notes;
    use super::super::image::tests::pvh;
    use super::*;
    use latlab_sys::file::write_atomically;

    #[test]
    fn image_keeps_two_builds_of_one_release_apart() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::within(folder.path());
        let path = folder.path().join("vmlinux");
        let kernel = |bytes: &[u8]| {
            write_atomically(&path, bytes).unwrap();
            image(&store, &path, &mut Notes(&mut |_| ())).unwrap()
        };
        let first = kernel(&pvh());
        let second = kernel(&[pvh().as_slice(), b"built again"].concat());
        assert_eq!((first.release.as_str(), &first.release), ("6.12.1-test", &second.release));
        assert!(first.image.is_file() && second.image.is_file() && first.image != second.image);
        assert_eq!(kernel(&pvh()), first);
    }
}
