//! `latlab kernel`: manages the kernels that the laboratory boots.

use super::complete;
use latlab_format as format;
use latlab_format::progress::Bar;
use latlab_lab::kernel::build::BUILDS;
use latlab_lab::kernel::{self, Fetched, Kernel, Offer, Source};
use latlab_lab::{profile, snapshot};
use latlab_part::failure::{Context as _, Failure, Result};
use latlab_part::part::About;
use latlab_sys::signal::Signals;
use std::fmt::Write as _;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  latlab kernel list                           the cached kernels, and those that profiles use
  latlab kernel list --available               ask Debian's archive which kernels it has
  latlab kernel fetch                          the newest standard and PREEMPT_RT kernels of Debian
  latlab kernel build lab-full                 with all tracers and sched_ext; takes minutes
  latlab kernel add arch/x86/boot/bzImage --name mine
  latlab kernel remove debian-6.12.111-amd64";

/// Manage the kernels that the laboratory boots: list, fetch, build, add, remove
///
/// Kernels are stored with their modules in the user's cache (~/.cache/latlab). No command needs
/// root or changes the kernel of this machine.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Kernels {
    #[command(subcommand)]
    command: KernelCommand,
}

#[derive(Debug, clap::Subcommand)]
enum KernelCommand {
    /// List the kernels in the cache, and those that can be fetched or built
    ///
    /// Each line has the kernel's name, its size, its release (as uname -r prints it), its origin,
    /// and the line of a profile that selects it: kernel = { package = "linux-image-6.12-amd64" }.
    /// Guests start from snapshots, which the cache keeps up to a limit and makes anew as needed.
    List {
        /// List instead the kernels in Debian's archive: the newest of each series, in Debian 12, 13,
        /// their backports and sid
        #[arg(long)]
        available: bool,
    },
    /// Fetch the newest kernel of a Debian package, unless the cache has it
    ///
    /// apt downloads the package and checks its signature; nothing is installed. A package of a suite
    /// that this machine does not use comes from its mirror all the same. The name may be that of a
    /// series: linux-image-7.3-rt-amd64. Older kernels stay in the cache until they are removed.
    /// Kernels that profiles need are fetched automatically.
    Fetch {
        /// Names of packages [default: Debian's standard and PREEMPT_RT kernels]
        #[arg(value_name = "PACKAGE", add = complete::packages())]
        packages: Vec<String>,
    },
    /// Build one of latlab's own kernels from Debian's sources, unless the cache has it
    ///
    /// The build takes 10 minutes or more on all CPUs, at low priority, and some gigabytes of disk
    /// space. Its log stays in the folder logs of the cache.
    Build {
        /// monolithic (PREEMPT_NONE), preemptible (PREEMPT), or lab-full
        /// (all tracers and BPF)
        #[arg(add = complete::builds())]
        name: String,
    },
    /// Add a kernel from a file: a bzImage or vmlinux for x86-64, an Image for arm64
    ///
    /// The modules of this machine's kernels are found automatically.
    Add {
        /// The bzImage (vmlinuz) or vmlinux
        file: PathBuf,
        /// Name of the kernel [default: its release]
        #[arg(long)]
        name: Option<String>,
        /// Folder of its modules, or one that contains lib/modules
        #[arg(long, value_name = "DIR")]
        modules: Option<PathBuf>,
    },
    /// Remove kernels from the cache
    Remove {
        /// Names, as latlab kernel list shows them
        #[arg(required = true, value_name = "NAME", add = complete::cached())]
        names: Vec<String>,
    },
}

impl Kernels {
    pub(super) fn run(&self) -> Result<()> {
        if let KernelCommand::List { available: false } = self.command {
            return format::show(&list(&kernel::list()?, snapshot::total().unwrap_or_default()));
        }
        let signals = Signals::block().context("signals can't be blocked")?;
        let mut bar = Bar::new(&signals);
        match &self.command {
            KernelCommand::List { .. } => {
                let offers = kernel::available(&mut bar)?;
                bar.end();
                format::show(&available(&offers))
            }
            KernelCommand::Fetch { packages } => fetch(packages, &mut bar),
            KernelCommand::Build { name } => {
                kernel::build(name, &mut bar).and_then(|built| report(&built, &mut bar))
            }
            KernelCommand::Add { file, name, modules } => {
                refuse_profile_name(name.as_deref())?;
                let kernel = kernel::add(file, name.as_deref(), modules.as_deref(), &mut bar)?;
                bar.end();
                format::put(&format!("{}\n", kernel.name))
            }
            KernelCommand::Remove { names } => {
                names.iter().try_for_each(|name| kernel::remove(name, &mut bar))
            }
        }
    }
}

/// Refuses the name of a profile: `lab:NAME` boots the profile, so the kernel could not be booted.
fn refuse_profile_name(name: Option<&str>) -> Result<()> {
    let taken = profile::shipped().into_iter().find(|profile| Some(profile.name.as_str()) == name);
    match taken {
        Some(profile) => {
            let name = profile.name;
            Err(Failure::failed(format!(
                "{name} is a profile's name: choose another one with --name"
            )))
        }
        None => Ok(()),
    }
}

/// Fetches these packages, or the standard ones.
fn fetch(packages: &[String], bar: &mut Bar<'_>) -> Result<()> {
    let standard: Vec<String> =
        kernel::packages().iter().map(|about| about.name.to_owned()).collect();
    let packages = if packages.is_empty() { &standard } else { packages };
    let mut packages = packages.iter();
    packages.try_for_each(|name| kernel::fetch(name, bar).and_then(|fetched| report(&fetched, bar)))
}

/// Prints the kernel's name on stdout, for scripts, and on stderr that it was there already.
fn report(fetched: &Fetched, bar: &mut Bar<'_>) -> Result<()> {
    bar.end();
    let kernel = match fetched {
        Fetched::Known(kernel) => {
            format::say(&format!(
                "{} is in the cache already, and there is no newer one",
                kernel.name
            ));
            kernel
        }
        Fetched::New(kernel) => kernel,
    };
    format::put(&format!("{}\n", kernel.name))
}

/// The kernels, and the number and size of snapshots.
fn list(kernels: &[(Kernel, kernel::Facts, u64)], snapshots: (usize, u64)) -> String {
    let mut text = String::new();
    if !kernels.is_empty() {
        let width = |text: fn(&Kernel) -> &str| {
            kernels.iter().map(|(kernel, ..)| text(kernel).len()).max().unwrap_or(0)
        };
        let (names, releases) = (width(|k| &k.name), width(|k| &k.release));
        text.push_str("In the cache:\n");
        for (kernel, facts, size) in kernels {
            let (name, release, size) = (&kernel.name, &kernel.release, size / 1_000_000);
            let origin = facts.origin.from();
            let _ =
                writeln!(text, "  {name:<names$}  {size:>4} MB  {release:<releases$}  {origin}");
            for source in &facts.origin.serves {
                let _ = writeln!(text, "  {:<names$}  kernel = {}", "", source.in_profile());
            }
        }
        let (count, mega) = (snapshots.0, |bytes| bytes / 1_000_000);
        let (size, limit) = (mega(snapshots.1), mega(snapshot::LIMIT));
        let _ =
            writeln!(text, "Snapshots of booted guests: {count}, {size} MB of at most {limit} MB");
    }
    let is_missing =
        |source: &Source| !kernels.iter().any(|(_, facts, _)| facts.origin.serves.contains(source));
    let packages =
        kernel::packages().iter().filter(|a| is_missing(&Source::Package(a.name.to_owned())));
    list_available(&mut text, "latlab kernel fetch", &packages.collect::<Vec<_>>());
    let builds = BUILDS.iter().map(|build| &build.about);
    let builds = builds.filter(|a| is_missing(&Source::Build(a.name.to_owned())));
    list_available(&mut text, "latlab kernel build", &builds.collect::<Vec<_>>());
    text
}

/// The kernels that can be fetched, one a line: package, version, suite.
fn available(offers: &[Offer]) -> String {
    let width = |text: fn(&Offer) -> &str| {
        offers.iter().map(|offer| text(offer).len()).max().unwrap_or_default()
    };
    let (packages, versions) = (width(|offer| &offer.package), width(|offer| &offer.version));
    let line = |offer: &Offer| {
        let Offer { package, version, suite } = offer;
        format!("{package:<packages$}  {version:<versions$}  {suite}\n")
    };
    offers.iter().map(line).collect()
}

fn list_available(text: &mut String, command: &str, kernels: &[&About]) {
    if kernels.is_empty() {
        return;
    }
    let _ = writeln!(text, "{}Available via {command}:", if text.is_empty() { "" } else { "\n" });
    for about in kernels {
        let _ = writeln!(text, "  {:<26}  {}", about.name, about.summary);
    }
}
