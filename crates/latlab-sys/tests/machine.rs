//! Machines read from captured trees, and the findings of the doctor about them.
#![expect(clippy::tests_outside_test_module, reason = "a file in this folder is one test module")]

use latlab_core::doctor::{Severity, diagnose};
use latlab_core::machine::{Machine, ResourceLimit};
use latlab_sys::file;
use latlab_sys::machine::read;
use latlab_sys::root::Root;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn captured(name: &str) -> Machine {
    read(&Root::new(fixture(name)))
}

/// The findings, a line for each severity.
fn findings(machine: &Machine) -> [String; 4] {
    let findings = diagnose(machine);
    Severity::ALL.map(|severity| {
        let codes = findings.iter().filter(|f| f.severity == severity).map(|f| f.code.as_str());
        codes.collect::<Vec<_>>().join(" ")
    })
}

#[test]
fn machine_of_a_virtual_machine() {
    let machine = captured("vm-preempt-none");
    assert_eq!(machine.kernel, "6.18.44");
    // Arguments after the dashes are for init, not for the kernel.
    assert_eq!(machine.preempt.as_deref(), Some("none"));
    assert_eq!(machine.preempt_modes, ["none", "voluntary", "full", "lazy"]);
    assert_eq!(machine.config("CONFIG_BPF_SYSCALL"), Some("y"));
    assert_eq!(machine.config("CONFIG_PREEMPT_RT"), Some("n"));
    assert_eq!(machine.hz, Some(250));
    assert_eq!(machine.clocksource.as_deref(), Some("tsc"));
    assert_eq!(machine.clocksources, ["kvm-clock"]);
    // The tree has only the flag; the name would come from CPUID.
    assert_eq!(machine.hypervisor.as_deref(), Some("unknown"));
    assert_eq!(machine.cpus.to_string(), "0-1");
    assert_eq!(machine.siblings[&1].to_string(), "1");
    assert_eq!(machine.governor, None);
    assert_eq!(machine.rt_runtime_us, Some(950_000));
    assert_eq!(machine.processor.idle.driver.as_deref(), Some("haltpoll"));
    assert_eq!(machine.processor.idle.states[1].name, "haltpoll idle");
    assert_eq!(machine.processor.idle.cpu_dma_latency_us, Some(2_000_000_000));
    assert_eq!(machine.processor.vulnerabilities["retbleed"], "Vulnerable");
    let group = machine.scheduling.cgroup.as_ref().unwrap();
    assert_eq!((group.path.as_str(), group.rt_runtime_us), ("/", 950_000));
    assert_eq!(machine.scheduling.rt_threads_per_cpu, Some(1));
    assert_eq!(machine.scheduling.rt_threads.len(), 2);
    assert_eq!(machine.rights.can("CAP_SYS_NICE"), Some(true));
    assert_eq!(machine.counters.steal_ticks, Some(29));
    assert_eq!(machine.timer_resolution_ns, None);
    assert_eq!(
        findings(&machine),
        [
            "no-preempt-rt",
            "hypervisor preemption-model soft-watchdog",
            "steal tick-stops-when-idle timer-migration unthreaded-interrupts",
            "firmware mitigations rt-throttled stat-interval tick-rate",
        ]
    );
}

#[test]
fn machine_of_a_laptop_read_by_a_user() {
    let machine = captured("rt-laptop");
    assert_eq!(machine.preempt.as_deref(), Some("rt"));
    assert_eq!(machine.config("CONFIG_PREEMPT_DYNAMIC"), Some("n"));
    assert_eq!(machine.hypervisor, None);
    assert_eq!(machine.siblings[&2].to_string(), "2,6");
    assert_eq!(machine.governor.as_deref(), Some("powersave"));
    assert_eq!(machine.processor.frequency.boost, Some(true));
    assert_eq!(machine.processor.frequency.min_khz, Some(400_000));
    assert_eq!(machine.processor.idle.cpu_dma_latency_us, None);
    assert_eq!(machine.isolation.isolated.as_ref().unwrap().to_string(), "2-3");
    assert_eq!(machine.isolation.rcu_nocbs.as_ref().unwrap().to_string(), "2");
    assert!(machine.isolation.nohz_full.as_ref().unwrap().is_empty());
    assert_eq!(machine.gpu_drivers, ["i915"]);
    assert_eq!(machine.efi_runtime, Some(false));
    assert_eq!(machine.lockdown.as_deref(), Some("integrity"));
    assert_eq!(machine.memory.swap_used_kib, Some(524_288));
    assert_eq!(machine.rights.rtprio, Some(ResourceLimit::At(0)));
    assert_eq!(machine.rights.rttime, Some(ResourceLimit::Unlimited));
    // Each CPU has a count for its core and one for its package.
    assert_eq!(machine.counters.throttles, Some(60));
    assert_eq!(machine.scheduling.cgroup, None);
    let users: Vec<(u32, u32)> = machine
        .scheduling
        .rt_threads
        .iter()
        .filter(|thread| !thread.kernel)
        .map(|thread| (thread.tid, thread.priority))
        .collect();
    assert_eq!(users, [(655, 99), (656, 99), (1810, 88)], "latlab itself is left out");
    assert_eq!(
        findings(&machine),
        [
            "no-realtime-right",
            "deep-idle governor highest-priority-taken isolated-sibling nmi-watchdog \
             soft-watchdog thermal-throttling",
            "graphics irqbalance isolated-callbacks isolated-interrupts memory-lock-limit smt \
             swap tick-stops-when-idle timer-migration",
            "boost firmware isolated-ticks lockdown mitigations no-tracing-right rt-rivals rt-throttled \
             stat-interval tick-rate",
        ]
    );
}

#[test]
fn machine_of_a_board_without_a_kernel_configuration() {
    let machine = captured("board-arm64");
    assert_eq!(machine.preempt.as_deref(), Some("rt"));
    assert!(machine.config.is_empty());
    assert_eq!(machine.hz, None);
    assert_eq!(machine.processor.arch.as_deref(), Some("aarch64"));
    assert_eq!(machine.processor.model.as_deref(), Some("NXP i.MX8MPlus EVK board"));
    assert_eq!(machine.siblings[&3].to_string(), "3");
    assert_eq!(machine.isolation.nohz_full.as_ref().unwrap().to_string(), "2-3");
    assert_eq!(machine.isolation.rcu_nocbs.as_ref().unwrap().to_string(), "2-3");
    assert_eq!(machine.isolation.irq_affinity.as_ref().unwrap().to_string(), "0-1");
    // CPU 1 may still enter it, the others may not.
    assert!(!machine.processor.idle.states[1].disabled);
    // The fan is not a matter of the CPUs, and no idle time is added.
    assert_eq!(machine.processor.cooling, ["cpufreq-cpu0"]);
    assert_eq!(machine.hypervisor, None);
    assert_eq!(machine.firmware, ["psci", "optee"]);
    assert_eq!(machine.rt_runtime_us, Some(-1));
    assert_eq!(machine.efi_runtime, Some(false));
    assert_eq!(machine.tracer.as_deref(), Some("nop"));
    assert_eq!(machine.scheduling.features.len(), 4);
    let deadline = machine.scheduling.rt_threads.iter().find(|t| t.policy == "deadline");
    assert_eq!(deadline.unwrap().comm, "plc (task) 1");
    assert_eq!(
        findings(&machine),
        ["", "cooling deep-idle", "nohz-full rt-unthrottled", "firmware mitigations rt-rivals"]
    );
}

#[test]
fn machine_virt_of_qemu_is_a_virtual_machine() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("proc/device-tree");
    std::fs::create_dir_all(&tree).unwrap();
    file::write_atomically(&tree.join("compatible"), b"linux,dummy-virt\0").unwrap();
    let cpu = b"processor\t: 0\nCPU implementer\t: 0x41\n";
    file::write_atomically(&folder.path().join("proc/cpuinfo"), cpu).unwrap();
    assert_eq!(read(&Root::new(folder.path())).hypervisor.as_deref(), Some("qemu"));
}

#[test]
fn machine_of_an_empty_tree_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let machine = read(&Root::new(folder.path()));
    assert_eq!(machine, Machine::default());
    assert_eq!(diagnose(&machine), []);
}

/// A future or broken kernel may write anything into any file.
#[test]
fn machine_of_nonsense_is_read_without_a_panic() {
    let nonsense: [&[u8]; 6] =
        [b"", b"\xff\0", b"-1", b"18446744073709551615 18446744073709551615 1", b"0,", b"a (b) [c"];
    for name in ["vm-preempt-none", "rt-laptop", "board-arm64"] {
        for content in nonsense {
            let folder = tempfile::tempdir().unwrap();
            fill(&fixture(name), folder.path(), content).unwrap();
            let machine = read(&Root::new(folder.path()));
            diagnose(&machine);
        }
    }
}

/// Copies the tree from `from` to `to`, with other content in all files except those that decide
/// which others are read.
#[expect(clippy::disallowed_methods, reason = "a temporary folder is not the machine")]
fn fill(from: &Path, to: &Path, content: &[u8]) -> std::io::Result<()> {
    const KEPT: &[&str] = &["online", "osrelease", "cpuinfo"];
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            std::fs::create_dir(&to)?;
            fill(&from, &to, content)?;
        } else if KEPT.iter().any(|name| entry.file_name() == *name) {
            std::fs::copy(&from, &to)?;
        } else {
            std::fs::write(&to, content)?;
        }
    }
    Ok(())
}

#[test]
fn machine_of_this_system_is_read_and_serialised() {
    let machine = read(&Root::default());
    assert!(!machine.kernel.is_empty() && !machine.cpus.is_empty());
    assert!(machine.processor.arch.is_some());
    assert!(machine.timer_resolution_ns.is_some());
    assert!(machine.rights.capabilities.is_some() && machine.rights.rtprio.is_some());
    let text = serde_json::to_string(&machine).unwrap();
    assert_eq!(serde_json::from_str::<Machine>(&text).unwrap(), machine);
}
