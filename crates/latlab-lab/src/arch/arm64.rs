//! arm64.

use super::{Arch, InterruptDevice, Overwritten};
use latlab_part::part::About;
use object::elf::EM_AARCH64;

/// QEMU translates this CPU model to the fewest instructions of the host. Its generic timer counts
/// nanoseconds: at QEMU's usual 62.5 MHz, times would be multiples of 16 ns.
///
/// QEMU puts a device tree into the guest's memory whenever it starts, at the beginning where it boots
/// no kernel (`arm_setup_firmware_boot`, `hw/arm/boot.c`, QEMU 7.2); the kernel begins 2 MiB after it.
pub(super) static ARM64: Arch = Arch {
    name: "aarch64",
    title: "arm64",
    debian: "arm64",
    kbuild: "arm64",
    source_folder: "arm64",
    kernel_image: "arch/arm64/boot/Image",
    elf_machine: EM_AARCH64,
    library_folders: &[
        "/lib/aarch64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
    ],
    packages: &[
        About { name: "linux-image-6.12-arm64", summary: "Debian's standard kernel for arm64" },
        About {
            name: "linux-image-6.12-rt-arm64",
            summary: "Debian's PREEMPT_RT kernel for arm64",
        },
    ],
    cross_compiler: ["aarch64-linux-gnu-", "gcc-aarch64-linux-gnu"],
    qemu: "qemu-system-aarch64",
    qemu_package: "qemu-system-arm",
    board: "-machine virt,gic-version=3 -seed 1 -nodefaults -no-user-config \
            -display none -monitor none -no-reboot",
    restored: [&[], &[]],
    overwritten: Some(Overwritten { address: 0x4000_0000, bytes: 2 << 20 }),
    cpu_instructions: ["-cpu cortex-a57,cntfrq=1000000000"; 2],
    cpu_tcg: ["-cpu cortex-a57"; 2],
    cpu_kvm: "-cpu host",
    display: None,
    hpet: None,
    rtc_module: "rtc-pl031",
    interrupt_device: InterruptDevice::BuiltIn("edu"),
    serial_ports: ["ttyAMA0", "ttyS0"],
    port: ["-device", "pci-serial,chardev=port"],
    calibration: None,
    has_microscope: false,
    exact_clock: "",
    unchecked_timer: "",
};
