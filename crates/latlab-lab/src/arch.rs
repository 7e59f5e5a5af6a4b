//! Everything the laboratory knows about a processor architecture.
//!
//! Each has a file with one constant of type [`Arch`]. No other file of the program names one, except
//! `kernel/image`, which reads their boot protocols.

mod amd64;
mod arm64;

use super::guest::GuestTime;
use amd64::AMD64;
use arm64::ARM64;
use latlab_core::suggest;
use latlab_measure::session::Accel;
use latlab_part::failure::{Failure, Result};
use latlab_part::part::About;
use latlab_part::part::needs::Device;
use object::elf::Machine;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The architecture of guests: its QEMU options, and the names of its kernels and programs.
#[derive(Debug)]
pub struct Arch {
    /// As `uname -m` and `std::env::consts::ARCH` name it.
    pub name: &'static str,
    /// As messages name it.
    pub title: &'static str,
    /// As Debian's packages and users name it.
    pub debian: &'static str,
    /// `ARCH=` of the kernel's build system.
    pub kbuild: &'static str,
    /// The folder below `arch/` in the kernel's sources.
    pub source_folder: &'static str,
    /// The bootable image that the kernel's build creates, relative to its tree.
    pub kernel_image: &'static str,
    /// `e_machine` of its ELF files.
    pub elf_machine: Machine,
    /// Library folders that the dynamic loader searches last.
    pub library_folders: &'static [&'static str],
    /// Debian's packages with its kernels: name and summary.
    pub packages: &'static [About],
    /// The names of its compiler's programs, up to the last word, and Debian's package with it.
    pub cross_compiler: [&'static str; 2],
    /// QEMU's program for it.
    pub qemu: &'static str,
    /// Debian's package with that program.
    pub qemu_package: &'static str,
    /// QEMU options of the machine, without devices that depend on the host's time or its users.
    pub board: &'static str,
    /// QEMU options that replace the options for booting a kernel if the guest is restored: for a
    /// bootable image, and for a vmlinux.
    pub restored: [&'static [&'static str]; 2],
    /// The part of a restored guest's memory that QEMU overwrites when it starts.
    pub overwritten: Option<Overwritten>,
    /// QEMU options of the processor in instruction time: with one CPU, with several.
    pub cpu_instructions: [&'static str; 2],
    /// The same in wall-clock time with TCG.
    pub cpu_tcg: [&'static str; 2],
    /// The same with KVM.
    pub cpu_kvm: &'static str,
    /// QEMU options of a graphics card; none where the console has no pixels.
    pub display: Option<&'static [&'static str]>,
    /// QEMU options of interrupt lines for the HPET's timers; none where there is no HPET.
    pub hpet: Option<&'static [&'static str]>,
    /// The kernel module of the board's real-time clock.
    pub rtc_module: &'static str,
    /// The PCI device that interrupts at a known time.
    pub interrupt_device: InterruptDevice,
    /// The serial ports of a guest: the console, and the port to latlab on the host.
    pub serial_ports: [&'static str; 2],
    /// QEMU options of the latter.
    pub port: [&'static str; 2],
    /// The function with which a boot begins to calibrate its timer, and the variable in which it
    /// stores the result; none where the hardware knows its frequency.
    pub calibration: Option<[&'static str; 2]>,
    /// Whether the plugin knows its instructions.
    pub has_microscope: bool,
    /// Kernel parameters in instruction time: the frequency of the clock is known exactly, so that it
    /// is not calibrated.
    pub exact_clock: &'static str,
    /// The kernel parameter for a timer whose interrupts arrive: the kernel waits for them in a loop,
    /// and panics where the host stops the processor meanwhile.
    pub unchecked_timer: &'static str,
}

/// The device that interrupts for the test driver, by QEMU's name. QEMU does not store its state
/// (`hw/misc/edu.c`, QEMU 7.2), so it is new whenever a guest has its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptDevice {
    /// It is plugged in after the guest has stopped.
    PluggedIn(&'static str),
    /// The machine can't plug it in: the guest forgets it before it stops.
    BuiltIn(&'static str),
}

/// The beginning of a guest's memory: its physical address, and its length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overwritten {
    /// The first address.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: usize,
}

/// All architectures; guests have the first one unless something else is said.
static ALL: [&Arch; 2] = [&AMD64, &ARM64];

impl Arch {
    /// The architecture of guests where nothing else is said.
    pub fn usual() -> &'static Arch {
        ALL[0]
    }

    /// The architecture of this program.
    pub fn own() -> &'static Arch {
        ALL.into_iter().find(|arch| arch.is_host()).unwrap_or(ALL[0])
    }

    /// The architecture of this name, as Debian spells it.
    pub fn named(name: &str) -> Result<&'static Arch> {
        ALL.into_iter().find(|arch| arch.debian == name).ok_or_else(|| {
            let hint = suggest::hint(name, &ALL.map(|arch| arch.debian));
            Failure::failed(format!("there is no architecture '{name}': {hint}"))
        })
    }

    /// The architecture of the package with this name, which Debian's kernels end with.
    pub fn of_package(name: &str) -> &'static Arch {
        let last = name.trim_end_matches("-unsigned").rsplit('-').next();
        ALL.into_iter().find(|arch| last == Some(arch.debian)).unwrap_or(Arch::usual())
    }

    /// The architecture of ELF files for this machine.
    pub fn of_machine(machine: Machine) -> Option<&'static Arch> {
        ALL.into_iter().find(|arch| arch.elf_machine == machine)
    }

    /// QEMU options of the processor of a guest with this number of CPUs.
    pub fn processor(&self, time: GuestTime, cpus: u32) -> &'static str {
        let several = usize::from(cpus > 1);
        match time {
            GuestTime::Instructions => self.cpu_instructions[several],
            GuestTime::Wall(Accel::Tcg) => self.cpu_tcg[several],
            GuestTime::Wall(Accel::Kvm) => self.cpu_kvm,
        }
    }

    /// QEMU options of a device that a part needs. `Unsupported` where this architecture has none.
    pub fn device(&self, device: Device) -> Result<&'static [&'static str]> {
        let (options, name) = match device {
            Device::Display => (self.display, "a VGA card"),
            Device::Hpet => (self.hpet, "an HPET"),
            Device::Rtc => (Some([].as_slice()), "a real-time clock"),
        };
        options.ok_or_else(|| {
            let why = format!("a guest for {} has no such device: {name}", self.title);
            Failure::unsupported(why)
        })
    }

    /// Whether this program runs on the same architecture, so that it can build for it.
    pub fn is_host(&self) -> bool {
        std::env::consts::ARCH == self.name
    }
}

impl PartialEq for Arch {
    fn eq(&self, other: &Arch) -> bool {
        self.name == other.name
    }
}

impl Eq for Arch {}

/// A reference to an architecture, in files by Debian's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchName(pub &'static Arch);

impl Default for ArchName {
    fn default() -> ArchName {
        ArchName(Arch::usual())
    }
}

impl Serialize for ArchName {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.serialize_str(self.0.debian)
    }
}

impl<'de> Deserialize<'de> for ArchName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<ArchName, D::Error> {
        let name = String::deserialize(from)?;
        Arch::named(&name).map(ArchName).map_err(serde::de::Error::custom)
    }
}
