//! Kernels that no distribution ships: built from Debian's sources with latlab's configuration.

mod recipe;

use super::archive::Archive;
use super::store::{Draft, Origin, Store};
use super::work::{explain, log_file, make, run, tool};
use super::{Fetched, Kernel, Progress, Source, apt, headers, image};
use crate::arch::Arch;
use latlab_core::suggest;
use latlab_part::failure::{Context as _, Failure, Result};
use latlab_part::part::About;
use recipe::Recipe;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A kernel that latlab can build.
#[derive(Debug)]
pub struct Build {
    /// Its name and summary.
    pub about: About,
    /// The options set, on top of `allnoconfig`.
    config: &'static str,
    /// Edits of the source, as TOML.
    edits: &'static str,
    /// Approximate number of objects, for the progress bar.
    objects: u64,
}

/// Every build, in the order `latlab kernel list` shows them.
pub static BUILDS: &[Build] = &[
    Build {
        about: About {
            name: "monolithic",
            summary: "PREEMPT_NONE without preemption points, HZ=100 (2.2/2.4-era)",
        },
        config: concat!(
            include_str!("build/historic.config"),
            include_str!("build/monolithic.config")
        ),
        edits: include_str!("build/historic.toml"),
        objects: 1_350,
    },
    Build {
        about: About {
            name: "preemptible",
            summary: "preemptible where no lock is held, HZ=100 (2.4-era patches)",
        },
        config: concat!(
            include_str!("build/historic.config"),
            include_str!("build/preemptible.config")
        ),
        edits: include_str!("build/historic.toml"),
        objects: 1_350,
    },
    Build {
        about: About { name: "lab-full", summary: "every tracer, BPF with types, sched_ext" },
        config: include_str!("build/lab-full.config"),
        edits: "",
        objects: 1_350,
    },
];

/// The package with the source.
const SOURCE: &str = "linux-source-6.12";

/// The kernel of a build, if it was built with the current recipe.
pub fn ready(store: &Store, name: &str) -> Result<Kernel> {
    let recipe = Recipe::of(find(name)?)?;
    match store.newest(&source(name))? {
        Some((kernel, facts)) if facts.origin.what == recipe.digest => Ok(kernel),
        found => {
            let why =
                if found.is_some() { "was built with another recipe" } else { "is not built yet" };
            Err(Failure::unsupported(format!(
                "the kernel {name} {why}: run latlab kernel build {name}, which takes minutes"
            )))
        }
    }
}

/// Builds a kernel, unless it was built before with the same recipe from the newest source.
pub fn build(store: &Store, name: &str, progress: &mut dyn Progress) -> Result<Fetched> {
    let build = find(name)?;
    let recipe = Recipe::of(build)?;
    let draft = store.begin(&format!("build-{name}"), &format!("building {name}"), progress)?;
    let (archive, package) = apt::find(SOURCE, Arch::usual().debian, progress, apt::show)?;
    if let Some((kernel, facts)) = store.newest(&source(name))?
        && facts.origin.what == recipe.digest
        && facts.origin.version == package.version
        && headers::are_with(&kernel)?
        && kernel.is_intact()?
    {
        return Ok(Fetched::Known(kernel));
    }
    recipe.check_tools()?;
    draft.need_space(package.size + package.unpacked + recipe.room())?;
    let tree = source_tree(&draft, &archive, package.clone(), progress)?;
    let log = log_file(&format!("kernel-{name}"))?;
    let make = Make { tree: &tree, log: &log };
    progress.note(&format!("building {name} from {SOURCE} {}", package.version));
    let ended = recipe.edit(&tree).and_then(|()| make.configure(&recipe, progress));
    let ended = ended.and_then(|()| make.build(build.objects, progress));
    let kept = draft.folder.join("headers");
    let ended = ended.and_then(|()| headers::collect(&tree, &kept, &log, progress));
    ended.map_err(|failure| explain(name, &log, failure, progress))?;
    let (what, version, serves) = (recipe.digest, package.version, vec![source(name)]);
    let origin = Origin { what, version, serves, modules: None };
    install(draft, &tree, origin).map(Fetched::New)
}

fn find(name: &str) -> Result<&'static Build> {
    BUILDS.iter().find(|build| build.about.name == name).ok_or_else(|| {
        let names: Vec<&str> = BUILDS.iter().map(|build| build.about.name).collect();
        Failure::failed(format!("there is no build '{name}': {}", suggest::hint(name, &names)))
    })
}

fn source(name: &str) -> Source {
    Source::Build(name.to_owned())
}

/// Fetches and unpacks the source.
fn source_tree(
    draft: &Draft,
    archive: &Archive,
    package: apt::Package,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    progress.note(&format!("fetching {} ({} MB)", package.name, package.size / 1_000_000));
    let (outer, tree) = (draft.folder.join("package"), draft.folder.join("linux"));
    for deb in apt::download(archive, &[package], &draft.folder, progress)? {
        apt::unpack(&deb, &outer, progress)?;
    }
    std::fs::create_dir(&tree).at(&tree)?;
    let archive = outer.join(format!("usr/src/{SOURCE}.tar.xz"));
    let mut tar = tool("tar");
    tar.arg("-xf").arg(archive).arg("--strip-components=1").arg("-C").arg(&tree);
    run(&tar, &draft.folder.join("tar.log"), progress, &mut |_| ())?;
    Ok(tree)
}

/// The kernel's build system, in a source tree.
struct Make<'a> {
    tree: &'a Path,
    log: &'a Path,
}

impl Make<'_> {
    /// Configures the tree with the recipe's options only, and checks that they are kept: the build
    /// system silently drops options with unmet dependencies.
    fn configure(&self, recipe: &Recipe, progress: &mut dyn Progress) -> Result<()> {
        let asked = self.tree.join("latlab.config");
        latlab_sys::file::write_atomically(&asked, recipe.config.as_bytes()).at(&asked)?;
        let configure = self.command(&["KCONFIG_ALLCONFIG=latlab.config", "allnoconfig"]);
        run(&configure, self.log, progress, &mut |_| ())?;
        let path = self.tree.join(".config");
        let result = std::fs::read_to_string(&path);
        recipe.check_kept(&result.at(&path)?)
    }

    fn build(&self, objects: u64, progress: &mut dyn Progress) -> Result<()> {
        let jobs = format!("-j{}", std::thread::available_parallelism().map_or(1, usize::from));
        let look = &mut |progress: &mut dyn Progress| {
            let log = std::fs::read(self.log).unwrap_or_default();
            let objects_so_far =
                log.split(|b| *b == b'\n').filter(|line| line.starts_with(b"  CC ")).count();
            progress.at((objects_so_far as u64).min(objects), objects);
        };
        // There are no modules, but this target makes Module.symvers, which other modules need.
        run(&self.command(&[&jobs, "bzImage", "modules"]), self.log, progress, look)
    }

    /// A compiler that is killed leaves its temporary files: they are in the tree.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = make(self.tree, Arch::usual(), words);
        command.env("TMPDIR", self.tree);
        command
    }
}

/// Adds the kernel of a built tree to the cache.
fn install(draft: Draft, tree: &Path, origin: Origin) -> Result<Kernel> {
    let file = tree.join(Arch::usual().kernel_image);
    let shown = file.display().to_string();
    let bytes = std::fs::read(&file).context(&shown)?;
    let image = image::read(&bytes).context(&shown)?;
    draft.take(&tree.join(".config"), "config")?;
    draft.take(&draft.folder.join("headers"), headers::PLACE)?;
    let name = format!("built-{}", image.release);
    draft.finish(&name, &bytes, image, origin)
}
