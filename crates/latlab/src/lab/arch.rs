//! Everything the laboratory knows about a processor architecture.
//!
//! A second architecture is a second constant of type [`Arch`]. No other file of the program names
//! one, except `kernel/image`, which reads its boot protocol.

use super::guest::GuestTime;
use super::kernel::Kernel;
use crate::part::About;
use crate::part::needs::Device;
use crate::session::Accel;
use object::elf::{EM_X86_64, Machine};

/// The architecture of guests: its QEMU options, and the names of its kernels and programs.
#[derive(Debug)]
pub(crate) struct Arch {
    /// As `uname -m` and `std::env::consts::ARCH` name it.
    pub(crate) name: &'static str,
    /// As messages name it.
    pub(crate) title: &'static str,
    /// As Debian's packages name it.
    pub(crate) debian: &'static str,
    /// `ARCH=` of the kernel's build system.
    pub(crate) kbuild: &'static str,
    /// The folder below `arch/` in the kernel's sources.
    pub(crate) source_folder: &'static str,
    /// The bootable image that the kernel's build creates, relative to its tree.
    pub(crate) kernel_image: &'static str,
    /// `e_machine` of its ELF files.
    pub(crate) elf_machine: Machine,
    /// Library folders that the dynamic loader searches last.
    pub(crate) library_folders: &'static [&'static str],
    /// Debian's packages with its kernels: name and summary.
    pub(crate) packages: &'static [About],
    /// QEMU's program for it.
    pub(crate) qemu: &'static str,
    /// Debian's package with that program.
    pub(crate) qemu_package: &'static str,
    /// QEMU options of the machine, without devices that depend on the host's time or its users.
    pub(crate) board: &'static str,
    /// The ROM that QEMU adds to a machine that boots a vmlinux, and one that boots a bzImage.
    pub(crate) option_roms: [&'static str; 2],
    /// QEMU options of the processor in instruction time: with one CPU, with several.
    pub(crate) cpu_instructions: [&'static str; 2],
    /// The same in wall-clock time with TCG.
    pub(crate) cpu_tcg: [&'static str; 2],
    /// The same with KVM.
    pub(crate) cpu_kvm: &'static str,
    /// QEMU options of a graphics card.
    pub(crate) display: &'static [&'static str],
    /// QEMU options of interrupt lines for the HPET's timers.
    pub(crate) hpet: &'static [&'static str],
    /// QEMU's name of the PCI device that interrupts at a known time.
    pub(crate) interrupt_device: &'static str,
    /// The serial ports of a guest: the console, and the port to latlab on the host.
    pub(crate) serial_ports: [&'static str; 2],
    /// The function with which a boot begins to calibrate its timer, and the variable in which it
    /// stores the result.
    pub(crate) calibration: [&'static str; 2],
    /// Kernel parameters in instruction time: the frequency of the clock is known exactly, and its
    /// interrupts arrive, so that neither is calibrated.
    pub(crate) exact_clock: &'static str,
}

/// The architecture of the laboratory's guests.
pub(crate) static GUEST: &Arch = &X86_64;

/// The small firmware (qboot) avoids the search for devices that the guest does not have.
///
/// `cmpxchg16b` leaves flags that it does not change as they were after an operand of earlier
/// instructions (`helper_cmpxchg16b` of QEMU 7.2, `target/i386/tcg/mem_helper.c`). An interrupt
/// right after it saves them, "nested task" among them, and a later `iretq` faults. This was seen
/// where one processor interrupts another: guests with several do not have the instruction.
static X86_64: Arch = Arch {
    name: "x86_64",
    title: "x86-64",
    debian: "amd64",
    kbuild: "x86_64",
    source_folder: "x86",
    kernel_image: "arch/x86/boot/bzImage",
    elf_machine: EM_X86_64,
    library_folders: &[
        "/lib/x86_64-linux-gnu",
        "/usr/lib/x86_64-linux-gnu",
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
    ],
    packages: &[
        About { name: "linux-image-6.12-amd64", summary: "Debian's standard kernel" },
        About { name: "linux-image-6.12-rt-amd64", summary: "Debian's PREEMPT_RT kernel" },
    ],
    qemu: "qemu-system-x86_64",
    qemu_package: "qemu-system-x86",
    board: "-machine pc,usb=off -bios qboot.rom -seed 1 -nodefaults -no-user-config \
            -display none -monitor none -no-reboot",
    option_roms: ["pvh.bin", "linuxboot_dma.bin"],
    cpu_instructions: ["-cpu max,-rdrand,-rdseed", "-cpu max,-rdrand,-rdseed,-cx16"],
    cpu_tcg: ["-cpu max", "-cpu max,-cx16"],
    cpu_kvm: "-cpu host",
    display: &["-vga", "std"],
    // On this machine the HPET's timers share a legacy line that Linux does not give to drivers:
    // they get lines 16 to 23 as well, as on newer machines.
    hpet: &["-global", "hpet.hpet-intcap=0xff0104"],
    interrupt_device: "edu",
    serial_ports: ["ttyS0", "ttyS1"],
    calibration: ["setup_boot_APIC_clock", "lapic_timer_period"],
    exact_clock: "tsc=reliable tsc_early_khz=1000000 no_timer_check",
};

impl Arch {
    /// QEMU options of the processor of a guest with this number of CPUs.
    pub(crate) fn processor(&self, time: GuestTime, cpus: u32) -> &'static str {
        let several = usize::from(cpus > 1);
        match time {
            GuestTime::Instructions => self.cpu_instructions[several],
            GuestTime::Wall(Accel::Tcg) => self.cpu_tcg[several],
            GuestTime::Wall(Accel::Kvm) => self.cpu_kvm,
        }
    }

    /// The ROM that QEMU adds to a machine that boots this kernel.
    pub(crate) fn option_rom(&self, kernel: &Kernel) -> &'static str {
        let [vmlinux, image] = self.option_roms;
        if kernel.is_vmlinux() { vmlinux } else { image }
    }

    /// QEMU options of a device that a part needs.
    pub(crate) fn device(&self, device: Device) -> &'static [&'static str] {
        match device {
            Device::Display => self.display,
            Device::Hpet => self.hpet,
        }
    }

    /// Whether this program runs on the same architecture, so that it can build for it.
    pub(crate) fn is_host(&self) -> bool {
        std::env::consts::ARCH == self.name
    }
}
