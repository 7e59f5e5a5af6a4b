//! Kernels from files of the user.

use super::store::{self, Facts, Origin, Store, modules_place};
use super::{Kernel, Progress, Source, digest, image};
use latlab_part::failure::{Context as _, Failure, Result, failed};
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// The kernel in a file that a profile names, with the modules that are installed for it below
/// `root`. Its name includes a part of the digest of both, so that two builds of one release stay
/// apart.
pub(super) fn image(
    store: &Store,
    root: &Path,
    path: &Path,
    progress: &mut dyn Progress,
) -> Result<Kernel> {
    let file = File::read(path)?;
    if let Some(kernel) = file.known(store, root)? {
        return Ok(kernel);
    }
    let image = file.image()?;
    let modules = Modules::installed(root, path, &image.release)?;
    let name = format!("{}-{}", image.release, &file.key(modules.as_ref())[..8]);
    file.keep(store, &name, image, modules, Source::Image(path.to_owned()), progress)
}

/// Adds a kernel; see [`super::add`].
pub(super) fn add(
    store: &Store,
    path: &Path,
    name: Option<&str>,
    modules: Option<&Path>,
    progress: &mut dyn Progress,
) -> Result<Kernel> {
    let file = File::read(path)?;
    let image = file.image()?;
    let name = name.map_or(Ok(image.release.as_str()), checked)?.to_owned();
    let modules = match modules {
        Some(folder) => Some(Modules::of(modules_in(folder, &image.release)?)?),
        None => Modules::installed(Path::new("/"), path, &image.release)?,
    };
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
        let there = std::fs::metadata(path).context(&shown)?;
        if !there.is_file() || there.len() > image::LARGEST.into() {
            return Err(failed(
                &shown,
                "this is not a kernel: it is not a file, or larger than any kernel",
            ));
        }
        let bytes = std::fs::read(path).context(&shown)?;
        let digest = digest(&bytes);
        Ok(File { path, bytes, digest })
    }

    /// Whether the kernel was read from a file with these contents.
    fn is(&self, kernel: &Kernel) -> bool {
        kernel.digest == self.digest
    }

    fn image(&self) -> Result<image::Image> {
        image::read(&self.bytes).at(self.path)
    }

    /// The digest of the kernel and its modules.
    fn key(&self, modules: Option<&Modules>) -> String {
        let modules = modules.map_or("", |modules| &modules.digest);
        digest(format!("{}\n{modules}", self.digest).as_bytes())
    }

    /// The cached kernel with the same bytes from any file and with the modules that are now installed
    /// for this one, if it is intact. Kernels from packages do not count: figures must not depend on
    /// which packages were fetched.
    fn known(&self, store: &Store, root: &Path) -> Result<Option<Kernel>> {
        let is_image = |source: &Source| matches!(source, Source::Image(_));
        let mut images = store.kernels()?;
        images
            .retain(|(kernel, facts)| self.is(kernel) && facts.origin.serves.iter().any(is_image));
        // With the same bytes, they have the same release.
        let Some((kernel, _)) = images.first() else { return Ok(None) };
        let modules = Modules::installed(root, self.path, &kernel.release)?;
        intact(images.into_iter().find(|image| has(image, modules.as_ref())))
    }

    /// Refuses the name of another kernel: profiles that name it would boot this one.
    fn refuse_other(&self, store: &Store, name: &str) -> Result<()> {
        let mut kernels = store.kernels()?.into_iter();
        match kernels.find(|(kernel, _)| kernel.name == name && !self.is(kernel)) {
            Some((kernel, _)) => Err(Failure::failed(format!(
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
        modules: Option<Modules>,
        serves: Source,
        progress: &mut dyn Progress,
    ) -> Result<Kernel> {
        let draft = store.begin(&format!("add-{name}"), &format!("adding {name}"), progress)?;
        // Another process may have added the same kernel meanwhile, and may be booting it.
        let same = |one: &(Kernel, Facts)| {
            one.0.name == name && self.is(&one.0) && has(one, modules.as_ref())
        };
        if let Some(kernel) = intact(store.kernels()?.into_iter().find(same))? {
            return Ok(kernel);
        }
        self.refuse_other(store, name)?;
        let kept = self.bytes.len() + image.unpacked();
        let folder = modules.as_ref().map(|modules| modules.folder.as_path());
        draft.need_space(kept as u64 + folder.map_or(0, store::size))?;
        if let Some(folder) = folder {
            draft.copy_modules(folder, &image.release)?;
        }
        let what = self.path.display().to_string();
        let modules = modules.map(|modules| modules.digest);
        let origin = Origin { what, version: String::new(), serves: vec![serves], modules };
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
    Err(Failure::failed(format!(
        "'{name}' is not a valid kernel name: use letters and digits, and + - . _ after the first"
    )))
}

/// The modules of `release` in a folder that the user named, or in its `lib/modules`.
fn modules_in(folder: &Path, release: &str) -> Result<PathBuf> {
    let places = [folder.to_owned(), folder.join(release), folder.join(modules_place(release))];
    places.into_iter().find(|place| place.join("modules.order").is_file()).ok_or_else(|| {
        let folder = folder.display();
        Failure::failed(format!("{folder}: it has no modules of {release} (no modules.order)"))
    })
}

/// The modules of a kernel.
struct Modules {
    folder: PathBuf,
    /// The digest of the names, sizes and modification times of its files: reading them all takes
    /// longer than the start of a guest.
    digest: String,
}

impl Modules {
    fn of(folder: PathBuf) -> Result<Modules> {
        let shown = folder.display().to_string();
        let mut text = String::new();
        for entry in WalkDir::new(&folder).sort_by_file_name() {
            let entry = entry.context(&shown)?;
            let there = entry.metadata().context(&shown)?;
            if there.is_file() {
                let path = entry.path().strip_prefix(&folder).unwrap_or_else(|_| entry.path());
                let (size, seconds, rest) = (there.len(), there.mtime(), there.mtime_nsec());
                let _ = writeln!(text, "{} {size} {seconds} {rest}", path.display());
            }
        }
        Ok(Modules { folder, digest: digest(text.as_bytes()) })
    }

    /// The modules below `root` of the kernel in this file; none where the file is not installed there,
    /// or has no modules.
    fn installed(root: &Path, file: &Path, release: &str) -> Result<Option<Modules>> {
        let kernel = real(&root.join("boot").join(format!("vmlinuz-{release}")))?;
        if kernel.is_none() || kernel != real(file)? {
            return Ok(None);
        }
        let folder = root.join(modules_place(release));
        let exists = store::exists(&folder.join("modules.order"))?;
        exists.then(|| Modules::of(folder)).transpose()
    }
}

/// The path without symbolic links; none where nothing that latlab may read is there.
fn real(path: &Path) -> Result<Option<PathBuf>> {
    match path.canonicalize() {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => Ok(None),
        real => real.map(Some).at(path),
    }
}

/// Whether a cached kernel has these modules, or none.
fn has((kernel, facts): &(Kernel, Facts), modules: Option<&Modules>) -> bool {
    let wanted = modules.map(|modules| modules.digest.as_str());
    kernel.modules.is_some() == wanted.is_some() && facts.origin.modules.as_deref() == wanted
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
            image(&store, folder.path(), &path, &mut Notes(&mut |_| ())).unwrap()
        };
        let first = kernel(&pvh());
        let second = kernel(&[pvh().as_slice(), b"built again"].concat());
        assert_eq!((first.release.as_str(), &first.release), ("6.12.1-test", &second.release));
        assert!(first.image.is_file() && second.image.is_file() && first.image != second.image);
        assert_eq!(kernel(&pvh()), first);
    }

    /// A machine with a kernel and a module.
    fn machine(root: &Path) -> (PathBuf, PathBuf) {
        let kernel = root.join("boot/vmlinuz-6.12.1-test");
        let modules = root.join("lib/modules/6.12.1-test");
        for (path, bytes) in [
            (&kernel, pvh()),
            (&modules.join("modules.order"), b"one.ko\n".to_vec()),
            (&modules.join("kernel/one.ko"), b"first".to_vec()),
        ] {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            write_atomically(path, &bytes).unwrap();
        }
        (kernel, modules)
    }

    #[test]
    fn image_has_the_modules_that_are_installed_now() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let (installed, modules) = machine(root);
        let store = Store::within(&root.join("cache"));
        let kernel = |path: &Path| image(&store, root, path, &mut Notes(&mut |_| ()));
        let one = |kernel: &Kernel| {
            let modules = kernel.modules.clone().expect("it has modules");
            std::fs::read(modules.join("kernel/one.ko")).unwrap()
        };
        let first = kernel(&installed).unwrap();
        assert_eq!(one(&first), b"first");
        assert_eq!(kernel(&installed).unwrap(), first);
        let copy = root.join("vmlinuz");
        std::fs::copy(&installed, &copy).unwrap();
        let bare = kernel(&copy).unwrap();
        assert_eq!(bare.modules, None, "it is not the file in boot/");
        assert_eq!((kernel(&installed).unwrap(), kernel(&copy).unwrap()), (first.clone(), bare));
        write_atomically(&modules.join("kernel/one.ko"), b"rebuilt").unwrap();
        let second = kernel(&installed).unwrap();
        assert_eq!((one(&first), one(&second)), (b"first".to_vec(), b"rebuilt".to_vec()));
    }

    #[test]
    fn image_whose_modules_cannot_be_read_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (installed, modules) = machine(folder.path());
        let store = Store::within(&folder.path().join("cache"));
        // A link to itself can't be followed.
        std::fs::remove_dir_all(&modules).unwrap();
        std::os::unix::fs::symlink(&modules, &modules).unwrap();
        let kernel = || image(&store, folder.path(), &installed, &mut Notes(&mut |_| ()));
        let error = kernel().unwrap_err().to_string();
        assert!(error.contains("lib/modules/6.12.1-test"), "{error}");
        std::fs::remove_file(&modules).unwrap();
        assert_eq!(kernel().unwrap().modules, None);
    }
}
