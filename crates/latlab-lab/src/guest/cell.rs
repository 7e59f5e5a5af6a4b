//! A cell: one job on one kernel, and everything that goes into its guest.

use super::plugin::Plugin;
use super::{GuestTime, Variables, disk, library, module, program};
use crate::arch::{Arch, InterruptDevice};
use crate::kernel::{Kernel, Source};
use crate::profile::Profile;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_guest::archive::Archive;
use latlab_guest::disk::PAGES;
use latlab_guest::orders::{self, DRIVER, INIT, JOB, Job, MODULES, ORDERS, Orders, PROGRAM};
use latlab_measure::message::ApicTimer;
use latlab_part::failure::{Context as _, Failure, FailureKind, Result};
use latlab_part::part::needs::{Device, Needs};
use latlab_sys::process;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// One job on one kernel.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// The target as given to `--on`.
    pub target: String,
    pub profile: Profile,
    pub kernel: Kernel,
    pub time: GuestTime,
    /// The known timer calibration, which the boot then skips.
    pub timer: Option<ApicTimer>,
    pub job: Job,
    /// Needs of the job's parts beyond a kernel.
    pub needs: Needs,
    /// Expected duration of the job in the guest's time.
    pub expected: Nanos,
    /// The test driver built for this kernel, where the job needs it.
    pub driver: Option<PathBuf>,
    /// Reason why the test driver is missing, where parts may be left out.
    pub no_driver: Option<String>,
    /// Files to copy into the guest: path in the guest, path on the host.
    pub files: Vec<(PathBuf, PathBuf)>,
    /// Symbolic links among them: path and target.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// The plugin that records its instructions. It does not change the record.
    pub plugin: Option<Plugin>,
}

/// A program of the user, to be started in a guest.
#[derive(Debug)]
pub struct Program {
    /// Arguments of latlab in the guest.
    pub words: Vec<String>,
    /// The program itself.
    pub path: PathBuf,
    /// Other files and folders that it reads.
    pub with: Vec<PathBuf>,
    /// Its working directory in the guest.
    pub folder: PathBuf,
    /// Its environment variables in the guest, in addition to those of every program there.
    pub variables: Variables,
    /// The time for which it was asked to run, in the guest's time, if it was.
    pub length: Option<Nanos>,
}

impl Program {
    /// The program of a command that a part of a plan starts, with the files that it reads.
    pub fn of_command(words: &[String], with: &[String]) -> Result<Program> {
        let name = words.first().map_or("", String::as_str);
        Ok(Program {
            words: Vec::new(),
            path: Program::locate(name.as_ref())?,
            with: with.iter().map(PathBuf::from).collect(),
            folder: "/".into(),
            variables: Variables::new(),
            length: None,
        })
    }

    /// Finds the program that a shell would start, in the folders of PATH.
    pub fn locate(name: &OsStr) -> Result<PathBuf> {
        let missing = || Failure::failed(format!("{}: program not found", name.display()));
        let found = process::find(name).ok_or_else(missing)?;
        // The folder without symbolic links and `..`, which do not exist in the guest. The program
        // keeps its name, which may itself be a link.
        let folder = found.parent().and_then(|folder| folder.canonicalize().ok());
        folder.zip(found.file_name()).map(|(folder, name)| folder.join(name)).ok_or_else(missing)
    }

    /// The job that starts it.
    pub fn job(&self) -> Job {
        let (words, folder) = (self.words.clone(), self.folder.clone());
        Job::Exec { words, folder, variables: self.variables() }
    }

    /// Expected duration of the job in the guest's time.
    pub fn expected(&self) -> Nanos {
        self.job().shortest() + self.length.unwrap_or_default()
    }

    /// All its environment variables.
    fn variables(&self) -> Variables {
        orders::usual_variables().into_iter().chain(self.variables.clone()).collect()
    }

    /// The program, its libraries for this architecture, and the files that it reads. `check` gets
    /// the files that the user named, before any is read.
    pub fn files(
        &self,
        arch: &'static Arch,
        check: impl FnOnce(&[(PathBuf, PathBuf)]) -> Result<()>,
    ) -> Result<Vec<(PathBuf, PathBuf)>> {
        let (real, variables) = (self.real(), self.variables());
        let mut files = vec![(real.clone(), real)];
        for path in &self.with {
            files.extend(library::tree(path)?);
        }
        check(&files)?;
        let mut libraries = library::closure(&self.path, &variables, arch)?;
        for (_, here) in &files[1..] {
            libraries.extend(library::closure_if_any(here, &variables, arch)?);
        }
        files.extend(libraries);
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// The name that the user typed, if it differs from the real path. A program may look for its
    /// libraries next to its real path, and may depend on the name by which it was called.
    pub fn links(&self) -> Vec<(PathBuf, PathBuf)> {
        let real = self.real();
        if real == self.path { Vec::new() } else { vec![(self.path.clone(), real)] }
    }

    fn real(&self) -> PathBuf {
        self.path.canonicalize().unwrap_or_else(|_| self.path.clone())
    }
}

/// Everything that QEMU boots, and the job.
pub(crate) struct Boot {
    pub initramfs: Vec<u8>,
    pub cmdline: String,
    /// The modules that the guest loads, in order.
    pub modules: Vec<String>,
    /// An archive with the job and the user's files, which the guest unpacks after it has booted.
    pub job: Vec<u8>,
}

/// Parameters of a disk in memory whose completions are timers of the guest
/// (`Documentation/block/null_blk.rst`); the command line of a profile overrides them.
const DISK: &[&str] =
    &["gb=1", "memory_backed=1", "irqmode=2", "completion_nsec=100000", "hw_queue_depth=64"];

/// Kernel parameters of every guest. Addresses are not randomized, and random numbers do not depend
/// on the host; `panic=-1` ends QEMU. Boot work that measures nothing is skipped: certificates for
/// module signatures, self-tests of ciphers, jitter entropy, BTF for congestion control.
const CMDLINE: &str = "quiet panic=-1 rdinit=/latlab-guest nokaslr random.trust_cpu=off \
    cryptomgr.notests initcall_blacklist=load_system_certificate_list,jent_mod_init,\
bpf_tcp_ca_kfunc_init,bpf_dummy_struct_ops_init";

impl Cell {
    /// A boot of `kernel` without settings, the same for all profiles.
    pub(crate) fn plain(target: &str, kernel: Kernel, time: GuestTime, job: Job) -> Cell {
        let profile = Profile::plain(&kernel.name, Source::Added(kernel.name.clone()));
        Cell::of(target, profile, kernel, time, job)
    }

    /// A cell whose job needs nothing beyond its kernel and its profile.
    pub(crate) fn of(
        target: &str,
        profile: Profile,
        kernel: Kernel,
        time: GuestTime,
        job: Job,
    ) -> Cell {
        Cell {
            target: target.to_owned(),
            profile,
            kernel,
            time,
            timer: None,
            expected: job.shortest(),
            job,
            needs: Needs::default(),
            driver: None,
            no_driver: None,
            files: Vec::new(),
            links: Vec::new(),
            plugin: None,
        }
    }

    /// The modules that the job's parts need. If parts may be left out, only the modules that the
    /// kernel has: the guest leaves out a part whose module is missing.
    fn needed_modules(&self) -> Result<Vec<String>> {
        let mut names: Vec<String> =
            self.needs.modules.iter().map(|name| (*name).to_owned()).collect();
        if self.needs.devices.contains(&Device::Rtc) {
            names.push(self.kernel.arch.rtc_module.to_owned());
        }
        if self.job.may_lack() {
            // A module that can't be read may be there.
            let kernel = &self.kernel;
            let has = |name: &String| match module::closure(kernel, std::slice::from_ref(name)) {
                Err(failure) if failure.kind == FailureKind::Unsupported => Ok(false),
                found => found.map(|_| true),
            };
            let has = names.iter().map(has).collect::<Result<Vec<bool>>>()?;
            names =
                names.into_iter().zip(has).filter_map(|(name, has)| has.then_some(name)).collect();
        }
        Ok(names)
    }

    /// The parameters of the disk's module: of two words with one key the last one counts.
    fn disk_parameters(&self) -> Vec<&str> {
        let own = self.profile.cmdline.split_whitespace();
        let own = own.filter_map(|word| word.strip_prefix("null_blk."));
        DISK.iter().copied().chain(own).collect()
    }

    /// The size of the disk.
    fn disk_size(&self) -> Bytes {
        let mut sizes =
            self.disk_parameters().into_iter().filter_map(|word| word.strip_prefix("gb="));
        Bytes(sizes.next_back().and_then(|size| size.parse::<u64>().ok()).unwrap_or(1) << 30)
    }

    /// Makes the initramfs, the command line and the archive of the job.
    pub(crate) fn boot(&self) -> Result<Boot> {
        let disk = folder_on_disk(&self.needs)?;
        let mut archive = Archive::new();
        let modules = self.add_modules(&mut archive, disk.is_some())?;
        self.add_files(&mut archive, disk.is_some())?;
        let cmdline = self.cmdline(disk.is_some());
        let orders = self.orders(modules, disk);
        archive.file(ORDERS, 0o644, &orders::text(&orders));
        let (initramfs, job) = (archive.finish(), self.job()?);
        self.check_size(Bytes((initramfs.len() + job.len()) as u64))?;
        Ok(Boot { initramfs, cmdline, modules: orders.modules, job })
    }

    fn orders(&self, modules: Vec<String>, disk: Option<PathBuf>) -> Orders {
        let (arch, driver) = (self.kernel.arch, self.driver.is_some());
        let [_, port] = arch.serial_ports;
        let is_built_in = matches!(arch.interrupt_device, InterruptDevice::BuiltIn(_));
        Orders {
            port: port.to_owned(),
            time_domain: self.time.domain(),
            modules,
            driver,
            forgets_device: driver && is_built_in,
            calibration: arch.calibration.map(|names| names.map(str::to_owned)),
            files: self.profile.files.clone(),
            disk,
        }
    }

    /// The archive of the job.
    fn job(&self) -> Result<Vec<u8>> {
        let mut archive = Archive::new();
        archive.file(JOB, 0o644, &orders::text(&self.job));
        add_all(&mut archive, &self.files)?;
        for (link, target) in &self.links {
            archive.link(link, target);
        }
        Ok(archive.finish())
    }

    fn cmdline(&self, has_disk: bool) -> String {
        let [console, _] = self.kernel.arch.serial_ports;
        let mut cmdline = format!("console={console} {CMDLINE}");
        if has_disk {
            cmdline.extend(DISK.iter().map(|parameter| format!(" null_blk.{parameter}")));
        }
        cmdline = format!("{cmdline} {}", self.profile.cmdline);
        if self.time == GuestTime::Instructions {
            cmdline = format!("{cmdline} {}", self.kernel.arch.exact_clock);
        }
        format!("{cmdline} {}", self.kernel.arch.unchecked_timer)
    }

    /// Adds the modules that the guest loads. Their names with parameters, in order.
    fn add_modules(&self, archive: &mut Archive, has_disk: bool) -> Result<Vec<String>> {
        let mut wanted = self.profile.modules.clone();
        wanted.retain(|name| name != DRIVER);
        self.check_modules(&wanted)?;
        wanted.extend(self.needed_modules()?);
        if has_disk {
            wanted.extend(["null_blk".to_owned(), "ext4".to_owned()]);
        }
        let mut names = Vec::new();
        for module in module::closure(&self.kernel, &wanted)? {
            archive.file(format!("{MODULES}/{}.ko", module.name), 0o644, &module.bytes);
            let disk = if module.name == "null_blk" { self.disk_parameters() } else { Vec::new() };
            names.push([vec![module.name.as_str()], disk].concat().join(" "));
        }
        Ok(names)
    }

    /// Refuses the modules of a profile for a kernel that came without modules: they may or may not
    /// be built in.
    fn check_modules(&self, named: &[String]) -> Result<()> {
        if named.is_empty() || self.kernel.contents()?.have_modules() {
            return Ok(());
        }
        let (target, named, kernel) = (&self.target, named.join(", "), &self.kernel.name);
        Err(Failure::unsupported(format!(
            "{target}: the profile loads {named}, and the kernel {kernel} has no modules: add it with \
             them (latlab kernel add FILE --modules DIR), or remove from the profile what is built in"
        )))
    }

    /// Adds everything else: the disk, the kernel's configuration, the programs.
    fn add_files(&self, archive: &mut Archive, has_disk: bool) -> Result<()> {
        let mut files = Vec::new();
        if has_disk {
            archive.file(PAGES, 0o644, &disk::pages(self.disk_size())?);
        }
        if let Some(driver) = &self.driver {
            files.push((format!("{MODULES}/{DRIVER}.ko").into(), driver.clone()));
        }
        add_all(archive, &files)?;
        // A guest without its configuration would measure something else.
        if let Some(config) = self.kernel.contents()?.read(Path::new("config"))? {
            archive.file(format!("/boot/config-{}", self.kernel.release), 0o644, &config);
        }
        archive.file(INIT, 0o755, &program::init(self.kernel.arch)?);
        if matches!(self.job, Job::Exec { .. }) {
            archive.file(PROGRAM, 0o755, &program::latlab(self.kernel.arch)?);
        }
        Ok(())
    }

    /// Refuses files that do not fit into the guest or would be hidden there, before any of them is
    /// read.
    pub(crate) fn check_files(&self, files: &[(PathBuf, PathBuf)]) -> Result<()> {
        let mut sizes = BTreeMap::new();
        for (there, here) in files {
            self.check_place(there)?;
            let found = here.metadata().at(here)?;
            sizes.insert(there, found.len());
        }
        self.check_size(Bytes(sizes.into_values().fold(0, u64::saturating_add)))
    }

    /// Refuses a place in the guest where a copied file would be hidden by the guest's own file
    /// systems. In wall-clock time the guest has its files before it mounts these.
    pub(crate) fn check_place(&self, place: &Path) -> Result<()> {
        let own: &[&str] = match self.time {
            GuestTime::Instructions => &["/proc", "/sys"],
            GuestTime::Wall(_) => &["/proc", "/sys", "/dev"],
        };
        let Some(own) = own.iter().find(|own| place.starts_with(own)) else { return Ok(()) };
        let (target, place) = (&self.target, place.display());
        Err(Failure::failed(format!(
            "{target}: {place} would be hidden by the guest's own {own}: copy it to another folder \
             first, such as /tmp"
        )))
    }

    /// Refuses an initramfs that the guest cannot unpack: it holds the archive twice meanwhile, and
    /// a root in memory gets half of the memory.
    fn check_size(&self, size: Bytes) -> Result<()> {
        let memory = self.profile.memory;
        if size.0 <= memory.0 / 3 {
            return Ok(());
        }
        Err(Failure::failed(format!(
            "{}: {size} of files do not fit into a guest with {memory} of memory: copy fewer files, \
             or use a profile of your own with more memory",
            self.target
        )))
    }

    /// Time after which the guest counts as hung where QEMU has a CPU: a guest in instruction time that is
    /// never idle takes about ten times its own time.
    pub(crate) fn patience(&self) -> Nanos {
        Nanos::from_secs(120) + Nanos(self.expected.0.saturating_mul(50))
    }
}

/// Adds files: path in the guest, path on the host.
fn add_all(archive: &mut Archive, files: &[(PathBuf, PathBuf)]) -> Result<()> {
    for (there, here) in files {
        let bytes = std::fs::read(here).at(here)?;
        archive.file(there, 0o755, &bytes);
    }
    Ok(())
}

/// The folder that lies on the guest's disk.
fn folder_on_disk(needs: &Needs) -> Result<Option<PathBuf>> {
    if needs.folders.len() > 1 {
        let why = "a guest has one disk: give all loads and calls the same dir=";
        return Err(Failure::failed(why));
    }
    Ok(needs.folders.first().cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::store::modules_place;
    use latlab_measure::session::Accel;
    use latlab_sys::file;
    use serde_json::json;
    use std::collections::BTreeSet;

    #[test]
    fn guest_has_the_time_for_which_its_program_was_asked_to_run() {
        let patience = |length: Option<Nanos>| {
            let folder = tempfile::tempdir().unwrap();
            let program = Program { length, ..program("/bin/true") };
            let kernel = Kernel::bare(folder.path());
            let cell = Cell::plain("lab:bare", kernel, GuestTime::Instructions, program.job());
            Cell { expected: program.expected(), ..cell }.patience()
        };
        assert_eq!(patience(None), Nanos::from_secs(620));
        assert_eq!(patience(Some(Nanos::from_secs(900))), Nanos::from_secs(620 + 50 * 900));
    }

    /// A program without arguments.
    fn program(path: &str) -> Program {
        Program {
            words: Vec::new(),
            path: path.into(),
            with: Vec::new(),
            folder: "/".into(),
            variables: Variables::new(),
            length: None,
        }
    }

    #[test]
    fn files_that_do_not_fit_are_refused_before_any_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let [text, large, other] = ["text", "large", "other"].map(|name| folder.path().join(name));
        for (path, bytes) in [(&text, 0), (&large, 200 << 20), (&other, 200 << 20)] {
            std::fs::File::create(path).unwrap().set_len(bytes).unwrap();
        }
        let kernel = Kernel::bare(folder.path());
        let cell = Cell::plain("lab:bare", kernel, GuestTime::Instructions, Job::Calibrate);
        let files = |with: Vec<PathBuf>| {
            let program = Program { with, ..program(text.to_str().unwrap()) };
            let files = program.files(Arch::usual(), |named| cell.check_files(named));
            files.unwrap_err().to_string()
        };
        let refused = files(vec![large.clone(), other]);
        assert!(refused.starts_with("lab:bare: 400MiB of files do not fit"), "{refused}");
        // What is named twice is copied once.
        let read = files(vec![large.clone(), large.clone()]);
        assert!(read.contains("not executable"), "{read}");
    }

    #[test]
    fn file_that_the_guest_would_hide_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let check = |time: GuestTime, place: &str| {
            let cell = Cell::plain("lab:bare", Kernel::bare(folder.path()), time, Job::Calibrate);
            cell.check_files(&[(place.into(), folder.path().to_owned())])
        };
        let wall = GuestTime::Wall(Accel::Tcg);
        for time in [wall, GuestTime::Instructions] {
            let refused = check(time, "/proc/cpuinfo").unwrap_err().to_string();
            let why = "/proc/cpuinfo would be hidden by the guest's own /proc: ";
            assert!(refused.contains(why), "{refused}");
            assert_eq!(check(time, "/tmp/program"), Ok(()));
            assert_eq!(check(time, "/process/program"), Ok(()));
        }
        check(wall, "/dev/shm/program").unwrap_err();
        assert_eq!(check(GuestTime::Instructions, "/dev/shm/program"), Ok(()));
    }

    #[test]
    fn profile_with_modules_needs_a_kernel_with_modules() {
        let folder = tempfile::tempdir().unwrap();
        let adding = |modules: &[&str]| {
            let kernel = Kernel::bare(folder.path());
            let mut cell = Cell::plain("lab:mine", kernel, GuestTime::Instructions, Job::Calibrate);
            cell.profile.modules = modules.iter().map(|name| (*name).to_owned()).collect();
            cell.add_modules(&mut Archive::new(), false)
        };
        let refused = adding(&["latlab", "veth"]).unwrap_err();
        assert_eq!(refused.kind, FailureKind::Unsupported);
        let why = "lab:mine: the profile loads veth, and the kernel bare has no modules: ";
        assert!(refused.to_string().starts_with(why), "{refused}");
        assert_eq!(adding(&["latlab"]), Ok(Vec::new()));
    }

    #[test]
    fn missing_module_is_left_out_when_parts_may_be_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join(modules_place("6.1-bare"));
        std::fs::create_dir_all(&place).unwrap();
        file::write_atomically(&place.join("modules.order"), b"").unwrap();
        let kernel = Kernel::bare(folder.path());
        let modules = |skip_missing: bool| {
            let plan = json!({
                "probes": [], "loads": [],
                "target": "lab:bare", "cpus": "0", "length": { "count": 1 }, "warm_up": 0,
                "seed": 0, "settings": [], "skip_missing": skip_missing,
            });
            let job = Job::Run(Box::new(serde_json::from_value(plan).unwrap()));
            let needs = Needs { modules: BTreeSet::from(["vgastate"]), ..Needs::default() };
            let cell = Cell::plain("lab:bare", kernel.clone(), GuestTime::Instructions, job);
            Cell { needs, ..cell }.needed_modules().unwrap()
        };
        assert_eq!((modules(false).len(), modules(true).len()), (1, 0));
    }
}
