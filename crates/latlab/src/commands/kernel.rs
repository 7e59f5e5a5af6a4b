//! `latlab kernel`: the kernels that the laboratory boots.

use crate::failure::{Failure, Result, failed};
use crate::format;
use crate::format::progress::Bar;
use crate::kernel::build::BUILDS;
use crate::kernel::{self, Fetched, Kernel, PACKAGES, Source};
use crate::profile;
use crate::registry::About;
use latlab_sys::signal::Signals;
use std::fmt::Write as _;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  latlab kernel list                           what is here, and what could be
  latlab kernel fetch                          Debian's standard and PREEMPT_RT kernels, the newest
  latlab kernel build lab-full                 with every tracer and sched_ext; takes minutes
  latlab kernel add arch/x86/boot/bzImage --name mine
  latlab kernel remove debian-6.12.111-amd64";

/// Keep the kernels that the laboratory boots: list, fetch, build, add, remove
///
/// They lie in the user's cache (~/.cache/latlab), each ready to boot with its modules. Nothing of
/// it needs root, and this machine's own kernel stays as it is.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Kernels {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List the kernels in the cache, and those that could be fetched or built
    ///
    /// Each line has the kernel's name, its size, its release (what uname -r says in it), what it
    /// was made from, and how a profile calls it: kernel = { package = "linux-image-6.12-amd64" }.
    List,
    /// Fetch the newest kernel of a Debian package, unless it is here
    ///
    /// apt fetches it, checks who signed it, and installs nothing. Older ones stay until they are
    /// removed. A profile that needs a kernel which is not here fetches it by itself.
    Fetch {
        /// Packages as apt knows them [default: Debian's standard and PREEMPT_RT kernels]
        #[arg(value_name = "PACKAGE")]
        packages: Vec<String>,
    },
    /// Build one of latlab's own kernels from Debian's sources, unless it is here
    ///
    /// It takes 10 minutes or more of all CPUs, at low priority, and some gigabytes while it lasts.
    /// The log stays in the cache, below logs.
    Build {
        /// monolithic: preempted by nothing, preemptible: where no lock is held, or lab-full: every
        /// tracer and BPF
        name: String,
    },
    /// Bring in a kernel from a file: any bzImage or vmlinux for x86-64
    ///
    /// Modules of this machine's own kernels are found by themselves.
    Add {
        /// The bzImage (vmlinuz) or vmlinux
        file: PathBuf,
        /// What to call it [default: its release]
        #[arg(long)]
        name: Option<String>,
        /// The folder of its modules, or one that has them below lib/modules
        #[arg(long, value_name = "DIR")]
        modules: Option<PathBuf>,
    },
    /// Remove kernels from the cache
    Remove {
        /// Names as latlab kernel list shows them
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

impl Kernels {
    pub(super) fn run(&self) -> Result<()> {
        if let What::List = self.what {
            return format::put(&list(&kernel::list()?));
        }
        let signals = Signals::hold().map_err(|e| failed("signals can't be held back", e))?;
        let mut bar = Bar::new(&signals);
        match &self.what {
            What::List => Ok(()),
            What::Fetch { packages } => fetch(packages, &mut bar),
            What::Build { name } => {
                kernel::build(name, &mut bar).and_then(|built| tell(&built, &mut bar))
            }
            What::Add { file, name, modules } => {
                refuse_a_profiles_name(name.as_deref())?;
                let kernel = kernel::add(file, name.as_deref(), modules.as_deref(), &mut bar)?;
                bar.end();
                format::put(&format!("{}\n", kernel.name))
            }
            What::Remove { names } => {
                names.iter().try_for_each(|name| kernel::remove(name, &mut bar))
            }
        }
    }
}

/// A kernel called like a profile could not be reached: `lab:NAME` is the profile.
fn refuse_a_profiles_name(name: Option<&str>) -> Result<()> {
    let taken = profile::shipped().into_iter().find(|profile| Some(profile.name.as_str()) == name);
    match taken {
        Some(profile) => {
            let name = profile.name;
            Err(Failure::Failed(format!("{name} is a profile's name: choose another with --name")))
        }
        None => Ok(()),
    }
}

/// Fetches packages; without a name, those of the table.
fn fetch(packages: &[String], bar: &mut Bar<'_>) -> Result<()> {
    let standard: Vec<String> = PACKAGES.iter().map(|about| about.name.to_owned()).collect();
    let packages = if packages.is_empty() { &standard } else { packages };
    packages.iter().try_for_each(|name| kernel::fetch(name, bar).and_then(|it| tell(&it, bar)))
}

/// The name is the result, so that scripts can use it; whether it is new is said beside.
fn tell(fetched: &Fetched, bar: &mut Bar<'_>) -> Result<()> {
    bar.end();
    let kernel = match fetched {
        Fetched::Known(kernel) => {
            format::say(&format!("{} is here already, and there is no newer one", kernel.name));
            kernel
        }
        Fetched::New(kernel) => kernel,
    };
    format::put(&format!("{}\n", kernel.name))
}

fn list(kernels: &[(Kernel, kernel::Facts, u64)]) -> String {
    let mut text = String::new();
    if !kernels.is_empty() {
        let width = |text: fn(&Kernel) -> &str| {
            kernels.iter().map(|(kernel, ..)| text(kernel).len()).max().unwrap_or(0)
        };
        let (names, releases) = (width(|k| &k.name), width(|k| &k.release));
        text.push_str("Here:\n");
        for (kernel, facts, size) in kernels {
            let (name, release, size) = (&kernel.name, &kernel.release, size / 1_000_000);
            let from = facts.origin.from();
            let _ = writeln!(text, "  {name:<names$}  {size:>4} MB  {release:<releases$}  {from}");
            for source in &facts.origin.serves {
                let _ = writeln!(text, "  {:<names$}  kernel = {}", "", source.in_profile());
            }
        }
    }
    let absent =
        |source: &Source| !kernels.iter().any(|(_, facts, _)| facts.origin.serves.contains(source));
    let packages = PACKAGES.iter().filter(|a| absent(&Source::Package(a.name.to_owned())));
    part(&mut text, "To be had with latlab kernel fetch", &packages.collect::<Vec<_>>());
    let builds = BUILDS.iter().map(|build| &build.about);
    let builds = builds.filter(|a| absent(&Source::Build(a.name.to_owned())));
    part(&mut text, "To be had with latlab kernel build", &builds.collect::<Vec<_>>());
    text
}

fn part(text: &mut String, title: &str, parts: &[&About]) {
    if parts.is_empty() {
        return;
    }
    let _ = writeln!(text, "{}{title}:", if text.is_empty() { "" } else { "\n" });
    for about in parts {
        let _ = writeln!(text, "  {:<26}  {}", about.name, about.summary);
    }
}
