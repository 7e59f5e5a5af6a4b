//! The hypervisor of a virtual machine, if it can be detected.

use super::processor::cpuinfo;
use crate::root::Root;

/// The name of the hypervisor; `unknown` where only its presence is known.
pub(super) fn read(root: &Root) -> Option<String> {
    let info = root.text("proc/cpuinfo")?;
    if let Some(flags) = cpuinfo(&info, "flags") {
        // x86: the flag is a CPUID bit that no physical processor sets.
        let virtual_machine = flags.split_whitespace().any(|flag| flag == "hypervisor");
        return virtual_machine.then(|| {
            let name = root.word("sys/hypervisor/type").or_else(|| signature(root));
            name.or_else(|| firmware(root)).unwrap_or_else(|| "unknown".to_owned())
        });
    }
    let node = root.word("proc/device-tree/hypervisor/compatible");
    let node = node.map(|names| names.split('\0').next().unwrap_or_default().to_owned());
    root.word("sys/hypervisor/type").or(node).or_else(|| board(root)).or_else(|| firmware(root))
}

/// The hypervisor of a board that is none: QEMU's machine `virt`, which has no other sign of it where it
/// boots a kernel without firmware.
fn board(root: &Root) -> Option<String> {
    let names = root.word("proc/device-tree/compatible")?;
    names.split('\0').any(|name| name == "linux,dummy-virt").then(|| "qemu".to_owned())
}

/// The hypervisor that the virtual firmware names.
fn firmware(root: &Root) -> Option<String> {
    const KNOWN: &[(&str, &str)] = &[
        ("QEMU", "qemu"),
        ("KVM", "kvm"),
        ("VMware", "vmware"),
        ("VirtualBox", "virtualbox"),
        ("Virtual Machine", "hyperv"),
        ("Parallels", "parallels"),
        ("Google Compute Engine", "google"),
    ];
    let text = ["sys_vendor", "product_name"]
        .map(|name| root.text(format!("sys/class/dmi/id/{name}")).unwrap_or_default())
        .join(" ");
    KNOWN.iter().find(|(words, _)| text.contains(words)).map(|(_, name)| (*name).to_owned())
}

/// The signature in CPUID leaf `0x4000_0000`, which is reserved for hypervisors.
#[cfg(target_arch = "x86_64")]
fn signature(root: &Root) -> Option<String> {
    if !root.is_live() {
        return None;
    }
    let leaf = std::arch::x86_64::__cpuid(0x4000_0000);
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].map(u32::to_le_bytes).concat();
    let text = String::from_utf8(bytes).ok()?;
    let known = [
        ("KVMKVMKVM", "kvm"),
        ("Microsoft Hv", "hyperv"),
        ("VMwareVMware", "vmware"),
        ("XenVMMXenVMM", "xen"),
        ("TCGTCGTCGTCG", "qemu-tcg"),
        ("ACRNACRNACRN", "acrn"),
        ("bhyve bhyve ", "bhyve"),
    ];
    let text = text.trim_matches('\0');
    let name = known.iter().find(|(signature, _)| *signature == text).map(|(_, name)| *name);
    let name = name.unwrap_or(text.trim());
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(not(target_arch = "x86_64"))]
fn signature(_: &Root) -> Option<String> {
    None
}
