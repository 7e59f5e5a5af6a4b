//! A CPU with performance states, between which a governor chooses: Linux's own driver for those that
//! ACPI describes, in a guest. The states are as fast as each other, as QEMU has one speed; what the
//! governor costs is its own work at each wake-up.

use super::remedies::assert_proven;
use crate::program::{command, run};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The compiled ACPI table of this source. Nothing answers at the two ports.
///
/// ```text
/// DefinitionBlock ("", "SSDT", 2, "LATLAB", "PSTATES", 1)
/// {
///     External (\_SB.CPUS.C000, ProcessorObj)
///     Scope (\_SB.CPUS.C000)
///     {
///         Name (_PCT, Package () {
///             ResourceTemplate () { Register (SystemIO, 16, 0, 0x0880) },
///             ResourceTemplate () { Register (SystemIO, 16, 0, 0x0882) }
///         })
///         Name (_PSS, Package () {
///             Package () { 1000, 1000, 10, 10, 0, 0 },
///             Package () { 500, 500, 10, 10, 1, 1 }
///         })
///         Name (_PPC, 0)
///     }
/// }
/// ```
#[rustfmt::skip]
const STATES: &[u8] = &[
    0x53, 0x53, 0x44, 0x54, 0xa9, 0x00, 0x00, 0x00, 0x02, 0xd0, 0x4c, 0x41, 0x54, 0x4c, 0x41, 0x42,
    0x50, 0x53, 0x54, 0x41, 0x54, 0x45, 0x53, 0x00, 0x01, 0x00, 0x00, 0x00, 0x49, 0x4e, 0x54, 0x4c,
    0x25, 0x09, 0x20, 0x20, 0xa0, 0x14, 0x00, 0x15, 0x5c, 0x2f, 0x03, 0x5f, 0x53, 0x42, 0x5f, 0x43,
    0x50, 0x55, 0x53, 0x43, 0x30, 0x30, 0x30, 0x0c, 0x00, 0x10, 0x4f, 0x06, 0x5c, 0x2f, 0x03, 0x5f,
    0x53, 0x42, 0x5f, 0x43, 0x50, 0x55, 0x53, 0x43, 0x30, 0x30, 0x30, 0x08, 0x5f, 0x50, 0x43, 0x54,
    0x12, 0x2c, 0x02, 0x11, 0x14, 0x0a, 0x11, 0x82, 0x0c, 0x00, 0x01, 0x10, 0x00, 0x00, 0x80, 0x08,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x79, 0x00, 0x11, 0x14, 0x0a, 0x11, 0x82, 0x0c, 0x00, 0x01,
    0x10, 0x00, 0x00, 0x82, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x79, 0x00, 0x08, 0x5f, 0x50,
    0x53, 0x53, 0x12, 0x20, 0x02, 0x12, 0x0e, 0x06, 0x0b, 0xe8, 0x03, 0x0b, 0xe8, 0x03, 0x0a, 0x0a,
    0x0a, 0x0a, 0x00, 0x00, 0x12, 0x0e, 0x06, 0x0b, 0xf4, 0x01, 0x0b, 0xf4, 0x01, 0x0a, 0x0a, 0x0a,
    0x0a, 0x01, 0x01, 0x08, 0x5f, 0x50, 0x50, 0x43, 0x00,
];

/// QEMU with this table. `acpi-cpufreq` leaves AMD's CPUs of family 15, as QEMU's is one, to another
/// driver. The version differs, so that no result of another QEMU is taken for one of it.
fn write_qemu(folder: &Path) {
    let table = folder.join("states.aml");
    fs::write(&table, STATES).expect("the folder can be written");
    let text = format!(
        "#!/bin/bash\nPATH=${{PATH#*:}}\nif test \"$1\" = --version; then\n  qemu-system-x86_64 \
         --version | sed '1s/$/ with performance states/'; exit; fi\nexec qemu-system-x86_64 \
         \"${{@/#max,/max,vendor=GenuineIntel,family=6,model=15,}}\" -acpitable file={}\n",
        table.display()
    );
    let program = folder.join("qemu-system-x86_64");
    fs::write(&program, text).expect("the folder can be written");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("it is ours");
}

/// The bound of 5 % is that of every remedy: less does not count as one. Nothing else can be tried.
#[test]
fn governor_is_proven_to_take_time_at_wake_ups() {
    let folder = tempfile::tempdir().expect("a temporary folder can be created");
    write_qemu(folder.path());
    let profile = folder.path().join("states.toml");
    let text = "summary = 'performance states'\nkernel = { package = 'linux-image-6.12-rt-amd64' }\n\
                modules = ['acpi-cpufreq']\n";
    fs::write(&profile, text).expect("the folder can be written");
    let path = std::env::var("PATH").expect("PATH is set");
    let mut explain =
        command("explain --prove --json --above 1us cyclic --load procfs --count 200");
    explain.env("PATH", format!("{}:{path}", folder.path().display()));
    let output = run(explain.arg("--on").arg(format!("lab:{}", profile.display())));
    let record = assert_proven(&output, &[("governor=performance", 1.05)]);
    assert_eq!(record.machine.governor.as_deref(), Some("schedutil"), "{record:?}");
}
