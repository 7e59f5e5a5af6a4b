//! Rights: each command drops the capabilities that it does not need, and so do the programs that it
//! starts.

use crate::laboratory::{children, is_guest};
use crate::program::{
    Running, capabilities, command, folder, lock_machine, root, wait_until, workers,
};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Capabilities that nothing but a program of the user's may have.
const NEEDLESS: [&str; 6] =
    ["cap_sys_module", "cap_sys_rawio", "cap_sys_boot", "cap_sys_time", "cap_setpcap", "cap_mknod"];

fn has_needless(pid: u32) -> bool {
    capabilities(pid).iter().any(|name| NEEDLESS.contains(&name.as_str()))
}

/// This test has all of them.
fn is_fully_root() -> bool {
    root() && NEEDLESS.iter().all(|name| capabilities(std::process::id()).iter().any(|c| c == name))
}

/// It waits for a writer of the record, which is a pipe.
#[test]
fn report_keeps_access_to_files_only() {
    if !root() {
        return;
    }
    let folder = folder();
    let pipe = folder.path().join("record.json");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo starts").success());
    let report = Running::start(command("report").arg(&pipe));
    let files =
        ["cap_chown", "cap_dac_override", "cap_dac_read_search", "cap_fowner", "cap_fsetid"];
    wait_until("capabilities are dropped", || capabilities(report.pid()) == files);
    report.signal("TERM");
    report.finish();
}

#[test]
fn run_and_its_loads_drop_needless_capabilities() {
    if !is_fully_root() {
        return;
    }
    let _lock = lock_machine();
    let mut run =
        Running::start(&mut command("run --policy other --cpus 0 --for 10min --load hackbench"));
    run.wait_until_measuring();
    let loads = workers(run.pid());
    assert!(!loads.is_empty() && !loads.iter().any(|pid| has_needless(*pid)), "{loads:?}");
    assert!(!has_needless(run.pid()));
    // Only packages need it, which are fetched for guests.
    assert!(!capabilities(run.pid()).iter().any(|name| name == "cap_setuid"));
    assert!(capabilities(run.pid()).iter().any(|name| name == "cap_sys_nice"));
    run.signal("TERM");
    assert_eq!(run.finish().code(), Some(4));
}

#[test]
fn program_of_a_load_keeps_all_capabilities() {
    if !is_fully_root() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let path = folder.path().join("status");
    let to = path.display();
    let script = format!("cp /proc/$$/status {to}.part; mv {to}.part {to}; exec sleep 1000");
    let load = format!("exec:sh -c '{script}'");
    let words = "run --policy other --cpus 0 --for 10min --load";
    let mut run = Running::start(command(words).arg(load));
    run.wait_until_measuring();
    wait_until("the load has written its status", || path.exists());
    run.signal("INT");
    assert_eq!(run.finish().code(), Some(4));
    let status = |path: &Path| {
        let text = fs::read_to_string(path).expect("cp has written it");
        text.lines().find(|line| line.starts_with("CapPrm")).map(str::to_owned)
    };
    assert_eq!(status(&path), status(Path::new("/proc/self/status")));
}

#[test]
fn qemu_can_only_read_files() {
    if !root() {
        return;
    }
    // A guest that sleeps would soon be at its end.
    let mut exec = command("exec --on lab:standard -- sh -c");
    let guest = Running::start(exec.arg("while :; do :; done"));
    let mut qemu = None;
    wait_until("a guest runs", || {
        qemu = children(guest.pid()).into_iter().find(|pid| is_guest(*pid));
        qemu.is_some()
    });
    assert_eq!(capabilities(qemu.expect("it runs")), ["cap_dac_read_search"]);
    guest.signal("TERM");
    guest.finish();
}
