//! The kernel threads that handle interrupts, and the devices behind them.

use crate::machine::preemption::is_realtime;
use crate::root::Root;
use crate::{clock, procfs, sched};
use latlab_core::time::Nanos;
use latlab_mechanism::{Policy, Thread};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Finds the threads that handle interrupts. It remembers all that it found out about a thread,
/// except its policy, which is read each time.
#[derive(Debug)]
pub struct InterruptThreads {
    root: Root,
    known: BTreeMap<i32, Description>,
    /// Kernel threads that do other work.
    others: BTreeSet<i32>,
    /// IDs and names of threads whose policy could not be restored, as of the last list.
    unusual: Vec<(i32, String)>,
    /// The others, as of the last list.
    last: Vec<Thread>,
    /// Threads that may not have set their own priority yet, with the time at which they were
    /// found.
    young: BTreeMap<i32, Nanos>,
}

/// The time after which a new IRQ thread has its own priority. It starts as a `SCHED_OTHER` task,
/// may already wake the task that waits for its start, and then makes itself a real-time task. One
/// that is still `SCHED_OTHER` after this time was made so on purpose.
const YOUTH: Nanos = Nanos::from_secs(1);

/// The properties of a thread that stay the same while it lives.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Description {
    name: String,
    interrupt: Option<u32>,
    actions: Vec<String>,
    driver: Option<String>,
}

impl InterruptThreads {
    /// Looks for threads of this system; their devices are described below `root`.
    pub fn new(root: Root) -> InterruptThreads {
        let (known, others, young) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        let (unusual, last) = (Vec::new(), Vec::new());
        InterruptThreads { root, known, others, unusual, last, young }
    }

    /// The present threads, in order of their ids. Threads whose policy could not be restored
    /// (`SCHED_DEADLINE`, `SCHED_IDLE`, …) are left out, and so are threads that are too young to
    /// have set their own policy.
    pub fn list(&mut self) -> Vec<Thread> {
        self.update();
        let all = self.read_policies();
        let may_be_young = |id: i32| all.iter().any(|one| one.id == id && may_be_young(one));
        self.young.retain(|&id, found| clock::now() < *found + YOUTH && may_be_young(id));
        all.into_iter().filter(|thread| !self.is_young(thread.id)).collect()
    }

    /// The ids and names of the threads that the last [`InterruptThreads::list`] left out because
    /// their policy could not be restored.
    pub fn unusual(&self) -> &[(i32, String)] {
        &self.unusual
    }

    /// Whether [`InterruptThreads::list`] left this thread out as too young.
    pub fn is_young(&self, id: i32) -> bool {
        self.young.contains_key(&id)
    }

    /// The known threads with their present policies, except those that are unusual. If a thread's
    /// policy can't be read, it is the policy of the last list.
    fn read_policies(&mut self) -> Vec<Thread> {
        self.unusual.clear();
        let mut all = Vec::new();
        for (&id, one) in &self.known {
            match sched::policy_of(id) {
                Ok(Some(policy)) => all.push(one.thread(id, policy)),
                Ok(None) => self.unusual.push((id, one.name.clone())),
                // It has ended.
                Err(error) if procfs::is_gone(&error) => {}
                Err(_) => all.extend(self.last.iter().find(|last| last.id == id).cloned()),
            }
        }
        self.last.clone_from(&all);
        all
    }

    /// Forgets threads that have ended, and describes those that are new.
    fn update(&mut self) {
        // Threads that can't be listed have not ended.
        if let Ok(ids) = kernel_threads() {
            self.update_from(&ids);
        }
    }

    fn update_from(&mut self, ids: &BTreeSet<i32>) {
        // While the kernel lists the children of kthreadd it may skip one if another ends.
        self.known.retain(|id, one| ids.contains(id) || may_be_named(*id, &one.name));
        self.others.retain(|id| ids.contains(id));
        let unknown = |id: &&i32| !self.known.contains_key(*id) && !self.others.contains(*id);
        let new: Vec<i32> = ids.iter().filter(unknown).copied().collect();
        let mut drivers = None;
        for id in new {
            match kernel_thread_name(id) {
                Some(name) if handles_interrupts(&name) => {
                    let drivers = drivers.get_or_insert_with(|| drivers_by_interrupt(&self.root));
                    self.known.insert(id, describe(&self.root, name, drivers));
                    self.young.insert(id, clock::now());
                }
                Some(name) if name != "kthreadd" => drop(self.others.insert(id)),
                // It has no name of its own yet, or has ended.
                _ => {}
            }
        }
    }
}

/// Whether the kernel handles all interrupts that it can in threads: `PREEMPT_RT` does, other
/// kernels do if booted with `threadirqs`. Otherwise only the drivers that ask for it have threads.
pub fn all_in_threads(root: &Root) -> bool {
    let line = root.text("proc/cmdline").unwrap_or_default();
    is_realtime(root) || line.split_whitespace().any(|word| word == "threadirqs")
}

impl Description {
    fn thread(&self, id: i32, policy: Policy) -> Thread {
        let Description { name, interrupt, actions, driver } = self.clone();
        Thread { id, name, interrupt, actions, driver, policy }
    }
}

fn may_be_young(thread: &Thread) -> bool {
    thread.interrupt.is_some() && thread.policy == Policy::Other
}

/// The ids of all kernel threads; of all processes, where the kernel does not list the children
/// of kthreadd (`CONFIG_PROC_CHILDREN`).
fn kernel_threads() -> io::Result<BTreeSet<i32>> {
    match fs::read_to_string("/proc/2/task/2/children") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let all = procfs::numbered(Path::new("/proc"))?;
            Ok(all.iter().filter_map(|path| procfs::number(path)).collect())
        }
        children => Ok(children?.split_whitespace().filter_map(|id| id.parse().ok()).collect()),
    }
}

/// Whether there is a thread with this id and name, as far as that can be known.
fn may_be_named(id: i32, name: &str) -> bool {
    match procfs::name(id) {
        Ok(found) => found == name,
        Err(error) => !procfs::is_gone(&error),
    }
}

/// The name of this thread, if it is a kernel thread.
fn kernel_thread_name(id: i32) -> Option<String> {
    /// `PF_KTHREAD` of `linux/sched.h`.
    const KERNEL_THREAD: u32 = 0x0020_0000;
    const FLAGS: usize = 9;
    let name = procfs::name(id).ok()?;
    let flags: u32 = procfs::stat_field(id, FLAGS).ok()?;
    (flags & KERNEL_THREAD != 0).then_some(name)
}

fn handles_interrupts(name: &str) -> bool {
    interrupt_of(name).is_some()
        || ["ksoftirqd/", "ktimers/"].iter().any(|start| name.starts_with(start))
}

/// The number of the interrupt that a thread of this name handles, as in `irq/24-eth0`.
fn interrupt_of(name: &str) -> Option<u32> {
    name.strip_prefix("irq/")?.split_once('-')?.0.parse().ok()
}

fn describe(root: &Root, name: String, drivers: &BTreeMap<u32, String>) -> Description {
    let interrupt = interrupt_of(&name);
    let actions = interrupt.map(|number| actions(root, number, &name)).unwrap_or_default();
    let driver = interrupt.and_then(|number| drivers.get(&number).cloned());
    Description { name, interrupt, actions, driver }
}

/// The names under which the handler of this thread may be registered. Kernels before 5.17 cut the
/// name of a thread to 15 bytes, so that several handlers of one interrupt may match.
fn actions(root: &Root, interrupt: u32, name: &str) -> Vec<String> {
    let own = name.split_once('-').map_or("", |(_, action)| action);
    // "s-": the second thread of a handler, for its own threaded part.
    let own = own.strip_prefix("s-").unwrap_or(own);
    let listed = root.text(format!("sys/kernel/irq/{interrupt}/actions")).unwrap_or_default();
    let listed: Vec<&str> = listed.split(',').map(str::trim).collect();
    if listed.contains(&own) {
        return vec![own.to_owned()];
    }
    let matching: Vec<String> =
        listed.iter().filter(|action| action.starts_with(own)).map(|&one| one.to_owned()).collect();
    if matching.is_empty() { vec![own.to_owned()] } else { matching }
}

/// The driver of the device of each interrupt, where a bus in sysfs shows it.
fn drivers_by_interrupt(root: &Root) -> BTreeMap<u32, String> {
    let mut drivers = BTreeMap::new();
    for bus in entries(&root.path("sys/bus")) {
        for device in entries(&bus.join("devices")) {
            if let Some(driver) = driver_of(&device) {
                drivers.extend(interrupts_of(&device).map(|one| (one, driver.clone())));
            }
        }
    }
    drivers
}

/// The name of the driver that is bound to a device.
fn driver_of(device: &Path) -> Option<String> {
    let driver = fs::read_link(device.join("driver")).ok()?;
    Some(driver.file_name()?.to_str()?.to_owned())
}

/// The line interrupt of a device, if it has one, and its message-signalled interrupts.
fn interrupts_of(device: &Path) -> impl Iterator<Item = u32> + use<> {
    let line = fs::read_to_string(device.join("irq")).ok();
    let line = line.and_then(|text| text.trim().parse::<u32>().ok()).filter(|line| *line > 0);
    let messages = entries(&device.join("msi_irqs"));
    let messages = messages.filter_map(|path| path.file_name()?.to_str()?.parse::<u32>().ok());
    line.into_iter().chain(messages)
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::not_run;
    use std::os::unix::fs::symlink;

    fn root() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        for path in ["sys/kernel/irq/24", "sys/bus/pci/devices/0/msi_irqs", "sys/bus/pci/devices/1"]
        {
            fs::create_dir_all(root.path(path)).unwrap();
        }
        (folder, root)
    }

    #[test]
    fn irq_thread_name_contains_its_interrupt() {
        assert_eq!(interrupt_of("irq/24-eth0"), Some(24));
        assert_eq!(interrupt_of("irq/9-s-acpi"), Some(9));
        for other in ["irq/24", "irq/x-y", "kworker/0:1", "irq_work/0", "ksoftirqd/1"] {
            assert_eq!(interrupt_of(other), None, "{other}");
        }
        assert!(handles_interrupts("ksoftirqd/1") && handles_interrupts("ktimers/0"));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a temporary folder is not the machine")]
    fn irq_threading_is_read_from_version_and_command_line() {
        let (_folder, root) = root();
        fs::create_dir_all(root.path("proc/sys/kernel")).unwrap();
        let threaded = |version: &str, line: &str| {
            fs::write(root.path("proc/sys/kernel/version"), version).unwrap();
            fs::write(root.path("proc/cmdline"), line).unwrap();
            all_in_threads(&root)
        };
        assert!(!threaded("#1 SMP PREEMPT_DYNAMIC Debian\n", "quiet nothreadirqs\n"));
        assert!(threaded("#1 SMP PREEMPT_DYNAMIC Debian\n", "quiet threadirqs\n"));
        assert!(threaded("#1 SMP PREEMPT_RT Sun Nov 22\n", "quiet\n"));
    }

    #[test]
    fn irq_actions_match_the_name_of_the_thread() {
        let (_folder, root) = root();
        let write = |text: &str| {
            fs::File::create(root.path("sys/kernel/irq/24/actions"))
                .and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()))
                .unwrap();
        };
        write("ehci_hcd:usb1,ehci_hcd:usb2,snd_hda_intel\n");
        assert_eq!(actions(&root, 24, "irq/24-ehci_hcd"), ["ehci_hcd:usb1", "ehci_hcd:usb2"]);
        assert_eq!(actions(&root, 24, "irq/24-ehci_hcd:usb2"), ["ehci_hcd:usb2"]);
        assert_eq!(actions(&root, 24, "irq/24-s-snd_hda_intel"), ["snd_hda_intel"]);
        assert_eq!(actions(&root, 25, "irq/25-eth0"), ["eth0"], "sysfs does not list it");
    }

    #[test]
    fn irq_drivers_are_found_by_line_and_by_message() {
        let (_folder, root) = root();
        for device in ["0", "1"] {
            let device = root.path(format!("sys/bus/pci/devices/{device}"));
            symlink("../../../bus/pci/drivers/e1000e", device.join("driver")).unwrap();
        }
        fs::create_dir(root.path("sys/bus/pci/devices/0/msi_irqs/31")).unwrap();
        fs::File::create(root.path("sys/bus/pci/devices/1/irq"))
            .and_then(|mut file| io::Write::write_all(&mut file, b"24\n"))
            .unwrap();
        let drivers = drivers_by_interrupt(&root);
        let expected = [(24, "e1000e".to_owned()), (31, "e1000e".to_owned())];
        assert_eq!(drivers, BTreeMap::from(expected));
    }

    #[test]
    fn irq_threads_include_those_of_softirqs() {
        if kernel_thread_name(2).as_deref() != Some("kthreadd") {
            return not_run(
                "irq_threads_include_those_of_softirqs",
                "kernel threads are not visible",
            );
        }
        let mut all = InterruptThreads::new(Root::default());
        let threads = all.list();
        assert!(threads.iter().any(|thread| thread.name.starts_with("ksoftirqd/")));
        let found = all.known.clone();
        all.list();
        // Not the threads listed: another program may change their policies meanwhile.
        assert_eq!(all.known, found, "remembered as they were found");
        all.known.insert(i32::MAX, all.known[&threads[0].id].clone());
        all.update_from(&BTreeSet::new());
        let is_known = |thread: &Thread| all.known.contains_key(&thread.id);
        assert!(threads.iter().all(is_known), "a list that lacks them does not end them");
        assert!(!all.known.contains_key(&i32::MAX), "there is no such thread");
    }

    #[test]
    fn irq_thread_of_a_program_is_no_kernel_thread() {
        let ours = i32::try_from(std::process::id()).unwrap();
        assert_eq!(kernel_thread_name(ours), None);
    }
}
