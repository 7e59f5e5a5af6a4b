//! x86-64.

use super::{Arch, InterruptDevice};
use latlab_part::part::About;
use object::elf::EM_X86_64;

/// The small firmware (qboot) avoids the search for devices that the guest does not have.
///
/// `cmpxchg16b` leaves flags that it does not change as they were after an operand of earlier
/// instructions (`helper_cmpxchg16b` of QEMU 7.2, `target/i386/tcg/mem_helper.c`). An interrupt
/// right after it saves them, "nested task" among them, and a later `iretq` faults. This was seen
/// where one processor interrupts another: guests with several do not have the instruction.
pub(super) static AMD64: Arch = Arch {
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
    cross_compiler: ["x86_64-linux-gnu-", "gcc-x86-64-linux-gnu"],
    qemu: "qemu-system-x86_64",
    qemu_package: "qemu-system-x86",
    board: "-machine pc,usb=off -bios qboot.rom -seed 1 -nodefaults -no-user-config \
            -display none -monitor none -no-reboot",
    // The ROM that QEMU adds where it boots a kernel: a restored guest has it too.
    restored: [&["-option-rom", "linuxboot_dma.bin"], &["-option-rom", "pvh.bin"]],
    overwritten: None,
    cpu_instructions: ["-cpu max,-rdrand,-rdseed", "-cpu max,-rdrand,-rdseed,-cx16"],
    cpu_tcg: ["-cpu max", "-cpu max,-cx16"],
    cpu_kvm: "-cpu host",
    display: Some(&["-vga", "std"]),
    // On this machine the HPET's timers share a legacy line that Linux does not give to drivers:
    // they get lines 16 to 23 as well, as on newer machines.
    hpet: Some(&["-global", "hpet.hpet-intcap=0xff0104"]),
    rtc_module: "rtc-cmos",
    interrupt_device: InterruptDevice::PluggedIn("edu"),
    serial_ports: ["ttyS0", "ttyS1"],
    port: ["-serial", "chardev:port"],
    calibration: Some(["setup_boot_APIC_clock", "lapic_timer_period"]),
    has_microscope: true,
    exact_clock: "tsc=reliable tsc_early_khz=1000000",
    unchecked_timer: "no_timer_check",
};
