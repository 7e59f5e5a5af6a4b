//! The kernel's threads that handle interrupts, and what is known of their devices.

use crate::clock;
use crate::comings::{number, numbered};
use crate::machine::preemption::is_realtime;
use crate::root::Root;
use crate::sched;
use latlab_core::mechanism::{Policy, Thread};
use latlab_core::time::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Finds the threads that handle interrupts. What was found of a thread is remembered, but for how
/// it is scheduled.
#[derive(Debug)]
pub struct InterruptThreads {
    root: Root,
    known: BTreeMap<i32, Described>,
    /// Threads of the kernel that do other things.
    others: BTreeSet<i32>,
    /// Those that may not have given themselves a priority yet, and when they were first seen.
    young: BTreeMap<i32, Nanos>,
}

/// A thread of an interrupt starts as an ordinary task, may already wake who waits for it to start,
/// and then makes itself a real-time one. One that is still ordinary after this time was made so.
const YOUTH: Nanos = Nanos::from_secs(1);

/// What does not change while a thread lives.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Described {
    name: String,
    interrupt: Option<u32>,
    actions: Vec<String>,
    driver: Option<String>,
}

/// What the thread has started that starts all of the kernel's others, and names them later.
const CHILDREN: &str = "/proc/2/task/2/children";

impl InterruptThreads {
    /// Of this machine, whose devices are described below `root`.
    pub fn new(root: Root) -> InterruptThreads {
        let (known, others, young) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        InterruptThreads { root, known, others, young }
    }

    /// Those there are now, in the order of their numbers. One whose policy is none that could be
    /// given back (`SCHED_DEADLINE`, `SCHED_IDLE`, …) is left out, and so is one that is too young
    /// to have the policy that it will be found with.
    pub fn list(&mut self) -> Vec<Thread> {
        let ids = kernel_threads();
        self.known.retain(|id, _| ids.contains(id));
        self.others.retain(|id| ids.contains(id));
        let unknown = |id: &&i32| !self.known.contains_key(*id) && !self.others.contains(*id);
        let new: Vec<i32> = ids.iter().filter(unknown).copied().collect();
        let mut drivers = None;
        for id in new {
            match name_of(id) {
                Some(name) if handles_interrupts(&name) => {
                    let drivers = drivers.get_or_insert_with(|| drivers_by_interrupt(&self.root));
                    self.known.insert(id, describe(&self.root, name, drivers));
                    self.young.insert(id, clock::now());
                }
                Some(name) if name != "kthreadd" => drop(self.others.insert(id)),
                // It has no name yet, or has ended.
                _ => {}
            }
        }
        let all: Vec<Thread> = self.known.iter().filter_map(|(&id, one)| one.now(id)).collect();
        let ordinary = |id: i32| all.iter().any(|one| one.id == id && may_be_young(one));
        self.young.retain(|&id, seen| clock::now() < *seen + YOUTH && ordinary(id));
        all.into_iter().filter(|thread| !self.is_young(thread.id)).collect()
    }

    /// Whether it was left out as too young.
    pub fn is_young(&self, id: i32) -> bool {
        self.young.contains_key(&id)
    }
}

fn may_be_young(thread: &Thread) -> bool {
    thread.interrupt.is_some() && thread.policy == Policy::Other
}

impl Described {
    fn now(&self, id: i32) -> Option<Thread> {
        let Described { name, interrupt, actions, driver } = self.clone();
        let policy = sched::policy_of(id)?;
        Some(Thread { id, name, interrupt, actions, driver, policy })
    }
}

/// Whether the kernel handles all interrupts in threads that it can: `PREEMPT_RT` does, and others
/// do if `threadirqs` stands on their command line. Else some drivers ask for a thread.
pub fn all_in_threads(root: &Root) -> bool {
    let line = root.text("proc/cmdline").unwrap_or_default();
    is_realtime(root) || line.split_whitespace().any(|word| word == "threadirqs")
}

/// What a thread of this number is called, if it is one of the kernel.
fn name_of(id: i32) -> Option<String> {
    /// `PF_KTHREAD` of `linux/sched.h`.
    const OF_THE_KERNEL: u32 = 0x0020_0000;
    let name = fs::read_to_string(format!("/proc/{id}/comm")).ok()?;
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name stands in brackets; of what follows the flags are the seventh (proc_pid_stat(5)).
    let (_, rest) = text.rsplit_once(") ")?;
    let flags: u32 = rest.split(' ').nth(6)?.parse().ok()?;
    (flags & OF_THE_KERNEL != 0).then(|| name.trim_end_matches('\n').to_owned())
}

/// The numbers of the kernel's threads; of all processes, where the kernel does not tell.
fn kernel_threads() -> BTreeSet<i32> {
    match fs::read_to_string(CHILDREN) {
        Ok(children) => children.split_whitespace().filter_map(|id| id.parse().ok()).collect(),
        Err(_) => numbered(Path::new("/proc"))
            .unwrap_or_default()
            .iter()
            .filter_map(|path| number(path))
            .collect(),
    }
}

fn handles_interrupts(name: &str) -> bool {
    interrupt_of(name).is_some()
        || ["ksoftirqd/", "ktimers/"].iter().any(|start| name.starts_with(start))
}

/// Which interrupt a thread called `irq/24-eth0` handles.
fn interrupt_of(name: &str) -> Option<u32> {
    name.strip_prefix("irq/")?.split_once('-')?.0.parse().ok()
}

fn describe(root: &Root, name: String, drivers: &BTreeMap<u32, String>) -> Described {
    let interrupt = interrupt_of(&name);
    let actions = interrupt.map(|number| actions(root, number, &name)).unwrap_or_default();
    let driver = interrupt.and_then(|number| drivers.get(&number).cloned());
    Described { name, interrupt, actions, driver }
}

/// What the handler that runs in this thread is registered as. Kernels before 5.17 cut a thread's
/// name to 15 bytes, so that several of an interrupt's may fit.
fn actions(root: &Root, interrupt: u32, name: &str) -> Vec<String> {
    let own = name.split_once('-').map_or("", |(_, action)| action);
    // A handler that asked for a thread of its own, and was given another for its first half.
    let own = own.strip_prefix("s-").unwrap_or(own);
    let listed = root.text(format!("sys/kernel/irq/{interrupt}/actions")).unwrap_or_default();
    let listed: Vec<&str> = listed.split(',').map(str::trim).collect();
    let whole = listed.contains(&own);
    let fit = |action: &&&str| !whole && action.starts_with(own);
    let fitting: Vec<String> = listed.iter().filter(fit).map(|&one| one.to_owned()).collect();
    if fitting.is_empty() { vec![own.to_owned()] } else { fitting }
}

/// Which driver has the device of each interrupt, as far as buses say.
fn drivers_by_interrupt(root: &Root) -> BTreeMap<u32, String> {
    let folder =
        |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|one| one.path());
    let mut drivers = BTreeMap::new();
    for bus in folder(&root.path("sys/bus")) {
        for device in folder(&bus.join("devices")) {
            let Ok(driver) = fs::read_link(device.join("driver")) else { continue };
            let Some(driver) = driver.file_name().and_then(|name| name.to_str()) else { continue };
            let line = fs::read_to_string(device.join("irq")).ok();
            let line =
                line.and_then(|text| text.trim().parse::<u32>().ok()).filter(|line| *line > 0);
            let messages = folder(&device.join("msi_irqs"))
                .filter_map(|path| path.file_name()?.to_str()?.parse::<u32>().ok());
            drivers.extend(line.into_iter().chain(messages).map(|one| (one, driver.to_owned())));
        }
    }
    drivers
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn a_thread_s_interrupt_is_in_its_name() {
        assert_eq!(interrupt_of("irq/24-eth0"), Some(24));
        assert_eq!(interrupt_of("irq/9-s-acpi"), Some(9));
        for other in ["irq/24", "irq/x-y", "kworker/0:1", "irq_work/0", "ksoftirqd/1"] {
            assert_eq!(interrupt_of(other), None, "{other}");
        }
        assert!(handles_interrupts("ksoftirqd/1") && handles_interrupts("ktimers/0"));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a temporary folder is not the machine")]
    fn a_kernel_with_all_in_threads_says_so_or_was_told() {
        let (_folder, root) = root();
        fs::create_dir_all(root.path("proc/sys/kernel")).unwrap();
        let told = |version: &str, line: &str| {
            fs::write(root.path("proc/sys/kernel/version"), version).unwrap();
            fs::write(root.path("proc/cmdline"), line).unwrap();
            all_in_threads(&root)
        };
        assert!(!told("#1 SMP PREEMPT_DYNAMIC Debian\n", "quiet nothreadirqs\n"));
        assert!(told("#1 SMP PREEMPT_DYNAMIC Debian\n", "quiet threadirqs\n"));
        assert!(told("#1 SMP PREEMPT_RT Sun Nov 22\n", "quiet\n"));
    }

    #[test]
    fn the_handlers_that_fit_a_name_are_named() {
        let (_folder, root) = root();
        let says = |text: &str| {
            fs::File::create(root.path("sys/kernel/irq/24/actions"))
                .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
                .unwrap();
        };
        says("ehci_hcd:usb1,ehci_hcd:usb2,snd_hda_intel\n");
        assert_eq!(actions(&root, 24, "irq/24-ehci_hcd"), ["ehci_hcd:usb1", "ehci_hcd:usb2"]);
        assert_eq!(actions(&root, 24, "irq/24-ehci_hcd:usb2"), ["ehci_hcd:usb2"]);
        assert_eq!(actions(&root, 24, "irq/24-s-snd_hda_intel"), ["snd_hda_intel"]);
        assert_eq!(actions(&root, 25, "irq/25-eth0"), ["eth0"], "sysfs says nothing");
    }

    #[test]
    fn drivers_are_found_by_line_and_by_message() {
        let (_folder, root) = root();
        for device in ["0", "1"] {
            let device = root.path(format!("sys/bus/pci/devices/{device}"));
            symlink("../../../bus/pci/drivers/e1000e", device.join("driver")).unwrap();
        }
        fs::create_dir(root.path("sys/bus/pci/devices/0/msi_irqs/31")).unwrap();
        fs::File::create(root.path("sys/bus/pci/devices/1/irq"))
            .and_then(|mut file| std::io::Write::write_all(&mut file, b"24\n"))
            .unwrap();
        let drivers = drivers_by_interrupt(&root);
        let expected = [(24, "e1000e".to_owned()), (31, "e1000e".to_owned())];
        assert_eq!(drivers, BTreeMap::from(expected));
    }

    #[test]
    fn every_machine_has_threads_for_soft_interrupts() {
        let mut all = InterruptThreads::new(Root::default());
        // In a container the kernel's threads are not to be seen.
        if name_of(2).as_deref() == Some("kthreadd") {
            let threads = all.list();
            assert!(threads.iter().any(|thread| thread.name.starts_with("ksoftirqd/")));
            assert_eq!(all.list(), threads, "what is remembered is what was found");
        }
    }

    #[test]
    fn who_only_calls_itself_so_is_none_of_the_kernel_s() {
        let ours = i32::try_from(std::process::id()).unwrap();
        assert_eq!(name_of(ours), None);
    }
}
