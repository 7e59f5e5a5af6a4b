//! A cell: one job on one kernel, and all that goes into the guest for it.

use super::archive::Archive;
use super::facts::ApicTimer;
use super::microscope::Microscope;
use super::orders::{Job, MODULES, ORDERS, Orders, PROGRAM};
use super::{Time, driver, library, module};
use crate::engine;
use crate::failure::{Failure, Result, failed};
use crate::kernel::{self, Kernel, Source};
use crate::needs::Needs;
use crate::profile::Profile;
use latlab_core::plan::{Length, Plan};
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// One job on one kernel.
#[derive(Debug)]
pub(super) struct Cell {
    /// What the user typed after `--on`.
    pub(super) target: String,
    pub(super) profile: Profile,
    pub(super) kernel: Kernel,
    pub(super) time: Time,
    /// What its kernel is told before it would measure it.
    pub(super) timer: Option<ApicTimer>,
    pub(super) job: Job,
    /// The test driver for this kernel, where it is needed.
    pub(super) driver: Option<PathBuf>,
    /// Why there is none all the same, where parts may be left out.
    pub(super) no_driver: Option<String>,
    /// Files to bring along: where in the guest, and where here.
    pub(super) files: Vec<(PathBuf, PathBuf)>,
    /// Symbolic links among them: where, and to what.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
    /// Who watches its instructions. It changes nothing of what comes out.
    pub(super) microscope: Option<Microscope>,
}

/// A program of the user's, to be started in a guest.
#[derive(Debug)]
pub(crate) struct Program {
    /// What follows `latlab exec` in the guest.
    pub(crate) words: Vec<String>,
    /// The program itself.
    pub(crate) path: PathBuf,
    /// Further files and folders that it reads.
    pub(crate) with: Vec<PathBuf>,
}

impl Program {
    /// The job of starting it, from the current folder and with its search paths.
    pub(super) fn job(&self) -> Result<Job> {
        let text = |what: &str, value: OsString| {
            value
                .into_string()
                .map_err(|_| Failure::Failed(format!("{what} is not text: a guest can't be told")))
        };
        let folder = std::env::current_dir().map_err(|e| failed("the current folder", e))?;
        let folder = text("the name of the current folder", folder.into_os_string())?;
        let mut paths = BTreeMap::new();
        for name in ["PATH", "LD_LIBRARY_PATH"] {
            if let Some(value) = std::env::var_os(name) {
                paths.insert(name.to_owned(), text(name, value)?);
            }
        }
        Ok(Job::Exec { words: self.words.clone(), folder: folder.into(), paths })
    }

    /// The program, its libraries, and what it reads.
    pub(super) fn files(&self) -> Result<Vec<(PathBuf, PathBuf)>> {
        let real = self.real();
        let mut files = vec![(real.clone(), real)];
        files.extend(library::closure(&self.path)?);
        for path in &self.with {
            for (there, here) in library::tree(path)? {
                files.extend(library::closure_if_any(&here)?);
                files.push((there, here));
            }
        }
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// The name that the user typed, where it is another one: a program may find its libraries
    /// beside its real one, and go by the one it was called.
    pub(super) fn links(&self) -> Vec<(PathBuf, PathBuf)> {
        let real = self.real();
        if real == self.path { Vec::new() } else { vec![(self.path.clone(), real)] }
    }

    fn real(&self) -> PathBuf {
        self.path.canonicalize().unwrap_or_else(|_| self.path.clone())
    }
}

/// What QEMU is given to boot.
pub(super) struct Boot {
    pub(super) initramfs: Vec<u8>,
    pub(super) cmdline: String,
    /// The modules that it loads, in their order.
    pub(super) modules: Vec<String>,
    /// Digests of all that is in the initramfs but for the job.
    pub(super) but_job: String,
    /// The digest of the orders, the job included.
    pub(super) orders: String,
}

/// A disk in memory whose completions are timers of the guest (`Documentation/block/null_blk.rst`),
/// unless the command line of its profile says otherwise.
const DISK: &[&str] =
    &["gb=1", "memory_backed=1", "irqmode=2", "completion_nsec=100000", "hw_queue_depth=64"];

/// What every guest is told. Its addresses are not random, and random numbers come from nothing
/// of the host's; `panic=-1` ends QEMU. What is left out measures nothing: certificates for the
/// signatures of modules, self-tests of ciphers, entropy by jitter, BTF for congestion control.
const CMDLINE: &str = "console=ttyS0 quiet panic=-1 rdinit=/latlab nokaslr random.trust_cpu=off \
    cryptomgr.notests initcall_blacklist=load_system_certificate_list,jent_mod_init,\
bpf_tcp_ca_kfunc_init,bpf_dummy_struct_ops_init";

/// In instruction time the processor's clock is known exactly, and its interrupts arrive.
const CMDLINE_INSTRUCTIONS: &str = "tsc=reliable tsc_early_khz=1000000 no_timer_check";

impl Cell {
    /// A boot of `kernel` as it comes: the same whichever profile asks for it.
    pub(super) fn plain(target: &str, kernel: Kernel, time: Time, job: Job) -> Cell {
        let profile = Profile::plain(&kernel.name, Source::Added(kernel.name.clone()));
        Cell::of(target, profile, kernel, time, job)
    }

    /// One that needs nothing more than its kernel and its profile.
    pub(super) fn of(target: &str, profile: Profile, kernel: Kernel, time: Time, job: Job) -> Cell {
        Cell {
            target: target.to_owned(),
            profile,
            kernel,
            time,
            timer: None,
            job,
            driver: None,
            no_driver: None,
            files: Vec::new(),
            links: Vec::new(),
            microscope: None,
        }
    }

    /// What the job needs beyond a kernel.
    pub(super) fn needs(&self) -> Result<Needs> {
        self.job.plan().map_or(Ok(Needs::default()), engine::needs)
    }

    /// The modules that its parts need; where parts may be left out, those that its kernel has: who
    /// lacks one finds out in the guest.
    fn needed_modules(&self, needs: &Needs) -> Vec<String> {
        let modules = self.kernel.modules.as_deref();
        let names = needs.modules.iter().map(|name| (*name).to_owned());
        let has = |name: &String| module::closure(modules, std::slice::from_ref(name)).is_ok();
        names.filter(|name| !self.job.may_lack() || has(name)).collect()
    }

    /// What the disk's module is told: the last of two words counts.
    fn disk(&self) -> Vec<&str> {
        let own = self.profile.cmdline.split_whitespace();
        let own = own.filter_map(|word| word.strip_prefix("null_blk."));
        DISK.iter().copied().chain(own).collect()
    }

    /// Makes the archive and the command line.
    pub(super) fn boot(&self) -> Result<Boot> {
        let needs = self.needs()?;
        let disk = disk(&needs)?;
        let mut files = self.files.clone();
        let mut wanted = self.profile.modules.clone();
        wanted.retain(|name| name != driver::MODULE);
        wanted.extend(self.needed_modules(&needs));
        let mut cmdline = CMDLINE.to_owned();
        if disk.is_some() {
            wanted.extend(["null_blk".to_owned(), "ext4".to_owned()]);
            cmdline.extend(DISK.iter().map(|parameter| format!(" null_blk.{parameter}")));
            let mke2fs = mke2fs()?;
            files.extend(library::closure(&mke2fs)?);
            files.push(("/sbin/mke2fs".into(), mke2fs));
        }
        cmdline = format!("{cmdline} {}", self.profile.cmdline);
        if self.time == Time::Instructions {
            cmdline = format!("{cmdline} {CMDLINE_INSTRUCTIONS}");
        }
        let modules = module::closure(self.kernel.modules.as_deref(), &wanted)?;
        let mut archive = Archive::new();
        let mut names = Vec::new();
        for module in &modules {
            archive.file(format!("{MODULES}/{}.ko", module.name), 0o644, &module.bytes);
            let disk = if module.name == "null_blk" { self.disk() } else { Vec::new() };
            names.push([vec![module.name.as_str()], disk].concat().join(" "));
        }
        if let Some(driver) = &self.driver {
            files.push((format!("{MODULES}/{}.ko", driver::MODULE).into(), driver.clone()));
            names.push(driver::MODULE.to_owned());
        }
        let config = self.kernel.folder.join("config");
        if config.exists() {
            files.push((format!("/boot/config-{}", self.kernel.release).into(), config));
        }
        for (there, here) in &files {
            let bytes = std::fs::read(here).map_err(|e| failed(&here.display().to_string(), e))?;
            archive.file(there, 0o755, &bytes);
        }
        for (link, target) in &self.links {
            archive.link(link, target);
        }
        let program =
            std::fs::read("/proc/self/exe").map_err(|e| failed("the program itself", e))?;
        archive.file(PROGRAM, 0o755, &program);
        let orders = Orders {
            time_domain: self.time.domain(),
            modules: names,
            files: self.profile.files.clone(),
            disk,
            job: self.job.clone(),
        };
        let text = orders.text();
        let but_job = Orders { job: Job::Learn, ..orders.clone() }.text();
        let but_job = format!("{}\n{}", kernel::digest(archive.bytes()), kernel::digest(&but_job));
        archive.file(ORDERS, 0o644, &text);
        let initramfs = archive.finish();
        // The guest holds it twice while it unpacks, and a root in memory gets half of that.
        let (size, memory) = (Bytes(initramfs.len() as u64), self.profile.memory);
        if size.0 > memory.0 / 3 {
            return Err(Failure::Failed(format!(
                "{}: {size} of files are too many for a guest with {memory} of memory: bring fewer, \
                 or a profile of your own with more memory",
                self.target
            )));
        }
        let (modules, orders) = (orders.modules, kernel::digest(&text));
        Ok(Boot { initramfs, cmdline, modules, but_job, orders })
    }

    /// How long to wait for it on the wall before it counts as hung: a guest in instruction time
    /// that is never idle takes about ten times its own time, and this host may be busy.
    pub(super) fn patience(&self) -> Nanos {
        let guest_time = match &self.job {
            Job::Run(plan) => expected(plan),
            Job::Exec { .. } => Nanos::from_secs(10),
            Job::Learn | Job::Symbols(_) => Nanos::from_secs(2),
        };
        Nanos::from_secs(120) + Nanos(guest_time.0.saturating_mul(50))
    }
}

/// The folder that is to lie on the guest's disk.
fn disk(needs: &Needs) -> Result<Option<PathBuf>> {
    if needs.folders.len() > 1 {
        let why = "a guest has one disk: give all loads and calls the same dir=";
        return Err(Failure::Failed(why.to_owned()));
    }
    Ok(needs.folders.first().cloned())
}

/// How long a plan measures.
fn expected(plan: &Plan) -> Nanos {
    let once = |part: &latlab_core::plan::Part| match plan.length {
        Length::For(time) => time,
        Length::Count(count) => {
            let interval = part.params.get("interval").and_then(serde_json::Value::as_u64);
            Nanos(interval.unwrap_or(1_000_000).saturating_mul(count))
        }
    };
    let of = |part| {
        let lengths = engine::lengths(part).unwrap_or(1);
        Nanos((once(part) + plan.warm_up).0.saturating_mul(lengths))
    };
    let probes = plan.probes.iter().fold(Nanos(0), |sum, part| sum + of(part));
    // A scan's limit is far more than most need.
    plan.scans.iter().fold(probes, |sum, scan| sum + Nanos(scan.limit.0 / 4))
}

fn mke2fs() -> Result<PathBuf> {
    let places = ["/sbin/mke2fs", "/usr/sbin/mke2fs"].map(Path::new);
    places.into_iter().find(|path| path.exists()).map(Path::to_owned).ok_or_else(|| {
        let why = "a guest's disk needs mke2fs, which is not installed: apt-get install e2fsprogs";
        Failure::Unsupported(why.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_module_that_the_kernel_lacks_is_left_out_where_parts_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = Kernel {
            name: "bare".to_owned(),
            release: "6.1-bare".to_owned(),
            image: "/nowhere".into(),
            modules: Some(folder.path().to_owned()),
            digest: String::new(),
            folder: folder.path().to_owned(),
        };
        let modules = |skip_missing: bool| {
            let plan = json!({
                "probes": [], "loads": [{ "name": "console-switch", "params": { "on": "all" } }],
                "target": "lab:bare", "cpus": "0", "length": { "count": 1 }, "warm_up": 0,
                "seed": 0, "settings": [], "skip_missing": skip_missing,
            });
            let job = Job::Run(Box::new(serde_json::from_value(plan).unwrap()));
            let cell = Cell::plain("lab:bare", kernel.clone(), Time::Instructions, job);
            cell.needed_modules(&cell.needs().unwrap())
        };
        assert_eq!((modules(false).len(), modules(true).len()), (1, 0));
    }
}
