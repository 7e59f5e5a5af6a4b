//! Kernels that no distribution has: built from Debian's sources with a configuration of ours.

mod recipe;

use super::store::{Draft, Origin, Store};
use super::work::{interrupted, run, tool};
use super::{Fetched, Kernel, Progress, Source, apt, cache, image};
use crate::failure::{Failure, Result, failed};
use crate::registry::About;
use latlab_core::suggest;
use recipe::Recipe;
use std::path::{Path, PathBuf};

/// A kernel that latlab can build.
#[derive(Debug)]
pub(crate) struct Build {
    pub(crate) about: About,
    /// The options asked for, on top of none.
    config: &'static str,
    /// Lines of the source that are changed, as TOML.
    edits: &'static str,
    /// How many objects are made, about: so that a bar has an end.
    objects: u64,
}

/// Every build, in the order `latlab kernel list` shows them.
pub(crate) static BUILDS: &[Build] = &[
    Build {
        about: About {
            name: "monolithic",
            summary: "preempted by nothing, 100 Hz: as kernels were",
        },
        config: include_str!("build/monolithic.config"),
        edits: include_str!("build/monolithic.toml"),
        objects: 1_200,
    },
    Build {
        about: About { name: "lab-full", summary: "every tracer, BPF with types, sched_ext" },
        config: include_str!("build/lab-full.config"),
        edits: "",
        objects: 1_350,
    },
];

/// The package with the source that is built.
const SOURCE: &str = "linux-source-6.12";

/// The kernel of a build, where it was built from what the recipe says today.
pub(crate) fn ready(store: &Store, name: &str) -> Result<Kernel> {
    let recipe = Recipe::of(find(name)?)?;
    match store.newest(&source(name))? {
        Some((kernel, facts)) if facts.origin.what == recipe.digest => Ok(kernel),
        found => {
            let why =
                if found.is_some() { "was built by another recipe" } else { "is not built yet" };
            Err(Failure::Unsupported(format!(
                "the kernel {name} {why}: latlab kernel build {name} does it, in minutes"
            )))
        }
    }
}

/// Builds a kernel, unless the same was built before from the newest source.
pub(crate) fn build(store: &Store, name: &str, progress: &mut dyn Progress) -> Result<Fetched> {
    let build = find(name)?;
    let recipe = Recipe::of(build)?;
    let draft = store.begin(&format!("build-{name}"), &format!("building {name}"), progress)?;
    let package = apt::find(SOURCE, &draft.folder.join("update.log"), progress, apt::show)?;
    if let Some((kernel, facts)) = store.newest(&source(name))?
        && facts.origin.what == recipe.digest
        && facts.origin.version == package.version
    {
        return Ok(Fetched::Known(kernel));
    }
    recipe.check_tools()?;
    draft.need_space(package.size + package.unpacked + recipe.room())?;
    let tree = source_tree(&draft, &package, progress)?;
    let log = log_file(name)?;
    let make = Make { tree: &tree, log: &log };
    progress.note(&format!("building {name} of {SOURCE} {}", package.version));
    let ended = recipe.edit(&tree).and_then(|()| make.configure(&recipe, progress));
    let ended = ended.and_then(|()| make.build(build.objects, progress));
    ended.map_err(|failure| explain(name, &log, failure, progress))?;
    let origin =
        Origin { what: recipe.digest, version: package.version, serves: vec![source(name)] };
    install(draft, &tree, origin).map(Fetched::New)
}

fn find(name: &str) -> Result<&'static Build> {
    BUILDS.iter().find(|build| build.about.name == name).ok_or_else(|| {
        let names: Vec<&str> = BUILDS.iter().map(|build| build.about.name).collect();
        Failure::Failed(format!("there is no build '{name}': {}", suggest::hint(name, &names)))
    })
}

fn source(name: &str) -> Source {
    Source::Build(name.to_owned())
}

/// Fetches and unpacks the source.
fn source_tree(
    draft: &Draft,
    package: &apt::Package,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    progress.note(&format!("fetching {} ({} MB)", package.name, package.size / 1_000_000));
    let deb = apt::download(package, &draft.folder, progress)?;
    let (outer, tree) = (draft.folder.join("package"), draft.folder.join("linux"));
    apt::unpack(&deb, &outer, progress)?;
    std::fs::create_dir(&tree).map_err(|e| failed(&tree.display().to_string(), e))?;
    let archive = outer.join(format!("usr/src/{SOURCE}.tar.xz"));
    let mut tar = tool("tar");
    tar.arg("-xf").arg(archive).arg("--strip-components=1").arg("-C").arg(&tree);
    run(&mut tar, &draft.folder.join("tar.log"), progress, &mut |_| ())?;
    Ok(tree)
}

/// Where what make says is kept, also of a build that failed.
fn log_file(name: &str) -> Result<PathBuf> {
    let logs = cache()?.join("logs");
    std::fs::create_dir_all(&logs).map_err(|e| failed(&logs.display().to_string(), e))?;
    let log = logs.join(format!("kernel-{name}.log"));
    std::fs::File::create(&log).map_err(|e| failed(&log.display().to_string(), e))?;
    Ok(log)
}

/// The kernel's own build system, in a tree.
struct Make<'a> {
    tree: &'a Path,
    log: &'a Path,
}

impl Make<'_> {
    /// Makes the configuration of no option but those asked for, and sees that they are kept:
    /// the build system drops what depends on something that is missing, and says nothing.
    fn configure(&self, recipe: &Recipe, progress: &mut dyn Progress) -> Result<()> {
        let asked = self.tree.join("latlab.config");
        latlab_sys::file::write_atomically(&asked, recipe.config.as_bytes())
            .map_err(|e| failed(&asked.display().to_string(), e))?;
        let mut make = self.command(&["KCONFIG_ALLCONFIG=latlab.config", "allnoconfig"]);
        run(&mut make, self.log, progress, &mut |_| ())?;
        let path = self.tree.join(".config");
        let result = std::fs::read_to_string(&path);
        recipe.check_kept(&result.map_err(|e| failed(&path.display().to_string(), e))?)
    }

    fn build(&self, objects: u64, progress: &mut dyn Progress) -> Result<()> {
        let jobs = format!("-j{}", std::thread::available_parallelism().map_or(1, usize::from));
        let look = &mut |progress: &mut dyn Progress| {
            let log = std::fs::read(self.log).unwrap_or_default();
            let objects_so_far =
                log.split(|b| *b == b'\n').filter(|line| line.starts_with(b"  CC ")).count();
            progress.at((objects_so_far as u64).min(objects), objects);
        };
        run(&mut self.command(&[&jobs, "bzImage"]), self.log, progress, look)
    }

    /// make with these words, in a process group that dies with us: its compilers are no children
    /// of ours, so a shell that waits for the end of our pipe ends them all. What says who built
    /// where and when is the same everywhere, so that the kernel is.
    fn command(&self, words: &[&str]) -> std::process::Command {
        const TIED: &str = "exec 3<&0; { read -r _ <&3; kill -KILL 0; } & \
                            exec nice -n 10 make ARCH=x86_64 \"$@\" 3<&- </dev/null";
        use std::os::unix::process::CommandExt as _;
        let mut command = tool("sh");
        command.stdin(std::process::Stdio::piped()).process_group(0).current_dir(self.tree);
        for name in ["MAKEFLAGS", "MFLAGS", "CROSS_COMPILE", "LLVM", "KBUILD_OUTPUT", "KCFLAGS"] {
            command.env_remove(name);
        }
        command.env("KBUILD_BUILD_TIMESTAMP", "2020-01-01");
        command.env("KBUILD_BUILD_USER", "latlab").env("KBUILD_BUILD_HOST", "lab");
        let here = format!("-ffile-prefix-map={}=.", self.tree.display());
        command.arg("-c").arg(TIED).arg("make").args(words);
        command.arg(format!("KCFLAGS={here}")).arg(format!("KAFLAGS={here}"));
        command
    }
}

/// Makes a kernel of a tree that was built.
fn install(draft: Draft, tree: &Path, origin: Origin) -> Result<Kernel> {
    let file = tree.join("arch/x86/boot/bzImage");
    let shown = file.display().to_string();
    let bytes = std::fs::read(&file).map_err(|e| failed(&shown, e))?;
    let image = image::read(&bytes).map_err(|e| failed(&shown, e))?;
    draft.take(&tree.join(".config"), "config")?;
    let name = format!("built-{}", image.release);
    draft.finish(&name, &bytes, image, origin)
}

/// Shows how the log of a failed build ends, and says where to read on.
fn explain(name: &str, log: &Path, failure: Failure, progress: &mut dyn Progress) -> Failure {
    const LINES: usize = 12;
    let Failure::Failed(why) = &failure else { return failure };
    if failure == interrupted() {
        return failure;
    }
    let said = std::fs::read(log).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).into_owned();
    let lines: Vec<&str> = said.lines().collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    let log = log.display();
    progress.note(&format!("the end of {log}:\n{}", last.join("\n")));
    Failure::Failed(format!("{name} could not be built: {why}; see {log}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::time::Nanos;
    use latlab_sys::process::Running;
    use latlab_sys::{clock, file};
    use std::process::Stdio;

    /// How many processes of the group are at work.
    fn at_work(group: u32) -> usize {
        let stat =
            |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("stat")).ok();
        let processes = std::fs::read_dir("/proc").unwrap().flatten().filter_map(stat);
        let state_and_group = processes.filter_map(|stat| {
            // The name in parentheses may hold anything.
            let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
            Some((fields.next()?.to_owned(), fields.nth(1)?.to_owned()))
        });
        state_and_group.filter(|(state, of)| *of == group.to_string() && state != "Z").count()
    }

    fn until(so: impl Fn() -> bool) {
        let deadline = clock::now() + Nanos::from_secs(60);
        while !so() {
            assert!(clock::now() < deadline);
            clock::sleep_for(Nanos::from_millis(5));
        }
    }

    #[test]
    fn what_make_has_started_ends_with_us_even_where_we_are_killed() {
        let folder = tempfile::tempdir().unwrap();
        let rules = b"bzImage:\n\tsleep 1000 & sleep 1000\n";
        file::write_atomically(&folder.path().join("Makefile"), rules).unwrap();
        let make = Make { tree: folder.path(), log: Path::new("") };
        let start = || {
            let mut command = make.command(&["bzImage"]);
            let mut running = Running::start(command.stdout(Stdio::null())).unwrap();
            let group = running.child().id();
            // make, its shell, two sleepers, and who waits for our end.
            until(|| at_work(group) == 5);
            (running, group)
        };
        let (mut running, group) = start();
        // What the kernel does with the pipes of a process that is killed.
        drop(running.child().stdin.take());
        until(|| at_work(group) == 0);
        let (running, group) = start();
        drop(running);
        until(|| at_work(group) == 0);
    }
}
