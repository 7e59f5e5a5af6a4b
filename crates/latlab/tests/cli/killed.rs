//! Killed runs: they leave no process and no file, and the next command restores their knobs.

use crate::knob;
use crate::program::{
    LATLAB, MachineLock, Output, Running, command, entries, folder, in_mount_namespace,
    lock_machine, root, run, running, wait_until, with_own_journal, workers,
};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

/// Kills a run that has set the knob to 7.
fn kill_run_with_knob_set(folder: &std::path::Path) {
    let words = "run cyclic --for 10min --set stat_interval=7";
    let mut run = Running::start(&mut with_own_journal(folder, words));
    run.wait_until_measuring();
    run.signal("KILL");
    assert_eq!(run.finish().signal(), Some(9));
    assert_eq!(knob::read(), "7", "no process is left to restore it");
}

/// Asserts that a command has restored the knob and reported it in one sentence.
fn assert_restored(output: &Output, before: &str) {
    assert_eq!(knob::read(), before);
    let sentence =
        format!("did not restore stat_interval (/proc/sys/vm/stat_interval); it is {before} again");
    let count = output.stderr.lines().filter(|line| line.contains(&sentence)).count();
    assert_eq!(count, 1, "{output:?}");
}

/// A run that was killed while it had set the knob. Its journal is in the folder.
struct KilledRun {
    folder: tempfile::TempDir,
    before: knob::RestoreOnDrop,
    /// Released last.
    _lock: MachineLock,
}

impl KilledRun {
    /// None for an ordinary user.
    fn new() -> Option<KilledRun> {
        root().then(|| {
            let lock = lock_machine();
            let before = knob::restore_on_drop();
            let folder = folder();
            kill_run_with_knob_set(folder.path());
            KilledRun { folder, before, _lock: lock }
        })
    }
}

#[test]
fn doctor_restores_knob_of_killed_run() {
    let Some(KilledRun { folder, before, _lock }) = KilledRun::new() else { return };
    let doctor = || Running::start(&mut with_own_journal(folder.path(), "doctor")).finish();
    assert_restored(&doctor(), &before.0);
    let again = doctor();
    assert!(!again.stderr.contains("killed"), "it is reported once: {again:?}");
}

#[test]
fn run_restores_knob_of_killed_run() {
    let Some(KilledRun { folder, before, _lock }) = KilledRun::new() else { return };
    let words = "run cyclic --for 100ms --cpus 0 --set stat_interval=9 --json";
    let output = Running::start(&mut with_own_journal(folder.path(), words)).finish();
    assert_restored(&output, &before.0);
    let record = output.record();
    assert!(record.warnings.iter().any(|warning| warning.code == "mended"));
    assert_eq!(record.changes[0].old, before.0, "not the value that the killed run set");
}

#[test]
fn knob_changed_after_the_kill_is_left_alone() {
    let Some(KilledRun { folder, before, _lock }) = KilledRun::new() else { return };
    knob::write("11");
    let output = Running::start(&mut with_own_journal(folder.path(), "doctor")).finish();
    assert!(output.stderr.contains("somebody has changed it to "), "{output:?}");
    assert_eq!(knob::read(), "11");
    drop(before);
}

/// A killed process ends some time after its parent has sent the signal.
#[test]
fn restore_beside_a_run_says_so_and_waits_for_one_that_is_killed() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let before = knob::restore_on_drop();
    let folder = folder();
    let start = |words| with_own_journal(folder.path(), words);
    let mut killed = Running::start(&mut start("run cyclic --for 10min --set stat_interval=7"));
    killed.wait_until_measuring();
    let restore = || run(&mut start("adapt --restore"));
    let held = format!("latlab {} still holds stat_interval", killed.pid());
    let runs = restore();
    assert_eq!((runs.code(), knob::read().as_str()), (Some(0), "7"), "{runs:?}");
    assert!(runs.stdout.contains(&format!("{held}: it runs")), "{runs:?}");
    let beside = run(&mut start("run cyclic --for 50ms --cpus 0 --json"));
    assert_eq!(beside.code(), Some(0), "{beside:?}");
    assert!(!beside.stdout.contains("still holds"), "{beside:?}");
    killed.signal("STOP");
    wait_until("it is stopped", || {
        crate::program::field(killed.pid(), "State").is_some_and(|state| state.starts_with('T'))
    });
    let stopped = restore();
    assert_eq!((stopped.code(), knob::read().as_str()), (Some(2), "7"), "{stopped:?}");
    assert!(stopped.stdout.contains(&held) && stopped.stdout.contains("is stopped"), "{stopped:?}");
    let beside = run(&mut start("run cyclic --for 50ms --cpus 0 --json"));
    let warnings = beside.record().warnings;
    assert!(warnings.iter().any(|warning| warning.text.contains(&held)), "{warnings:?}");
    killed.signal("KILL");
    let restored = restore();
    assert_eq!((restored.code(), knob::read()), (Some(0), before.0.clone()), "{restored:?}");
    assert!(restored.stdout.contains("did not restore stat_interval"), "{restored:?}");
    assert_eq!(killed.finish().signal(), Some(9));
}

/// The kernel refuses the value.
#[test]
fn run_that_fails_says_what_it_has_restored_before() {
    let Some(KilledRun { folder, before, _lock }) = KilledRun::new() else { return };
    let words = "run cyclic --for 50ms --set swappiness=999";
    let output = Running::start(&mut with_own_journal(folder.path(), words)).finish();
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("swappiness=999 was refused"), "{output:?}");
    assert_restored(&output, &before.0);
}

#[test]
fn journal_that_can_not_be_read_is_kept_until_it_can() {
    let Some(KilledRun { folder, before, _lock }) = KilledRun::new() else { return };
    // One file may be open at a time.
    let script = "mount --bind \"$1/journals\" /run/latlab; ulimit -n 4";
    let output = run(&mut in_mount_namespace(script, folder.path(), "adapt --restore"));
    assert_eq!((output.code(), knob::read().as_str()), (Some(2), "7"), "{output:?}");
    assert!(output.stdout.contains("Too many open files"), "{output:?}");
    let output = run(&mut with_own_journal(folder.path(), "adapt --restore"));
    assert_eq!((output.code(), knob::read()), (Some(0), before.0.clone()), "{output:?}");
}

#[test]
fn loads_end_with_a_killed_run() {
    let _lock = lock_machine();
    let folder = folder();
    // A copy: its path distinguishes its processes from those of other tests.
    let program = folder.path().join("latlab");
    fs::copy(LATLAB, &program).unwrap();
    let scratch = folder.path().join("scratch");
    fs::create_dir(&scratch).unwrap();
    let words = "run cyclic --policy other --for 10min --load cpu --load memory --load fork \
                 --load procfs --load hackbench --load";
    let mut run = Running::start(
        Command::new(&program)
            .args(words.split_whitespace())
            .arg(format!("disk:dir={}", scratch.display())),
    );
    run.wait_until_measuring();
    let workers = workers(run.pid()).len();
    assert!(workers >= 6, "{workers}");
    wait_until("workers have children", || running(&program).len() > 1 + workers);
    run.signal("KILL");
    assert_eq!(run.finish().signal(), Some(9));
    wait_until("no process of the run is left", || running(&program).is_empty());
    assert!(entries(&scratch).is_empty(), "{:?}", entries(&scratch));
}

#[test]
fn record_of_killed_run_is_the_older_one() {
    let _lock = lock_machine();
    let folder = folder();
    let out = folder.path().join("record.json");
    fs::write(&out, "an older one").unwrap();
    let words = "run cyclic --policy other --for 10min --out";
    let mut run = Running::start(command(words).arg(&out));
    run.wait_until_measuring();
    run.signal("KILL");
    assert_eq!(run.finish().signal(), Some(9));
    assert_eq!(fs::read_to_string(&out).unwrap(), "an older one");
}

#[test]
fn loads_end_with_a_killed_program_with_file_capabilities() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = folder.path().join("latlab");
    fs::copy(LATLAB, &program).unwrap();
    let capabilities = ["cap_sys_nice,cap_ipc_lock+ep"];
    let status = Command::new("setcap").args(capabilities).arg(&program).status();
    assert!(status.expect("make test installs setcap").success());
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
    command.current_dir("/").arg(&program);
    let mut run = Running::start(command.args("run cyclic --for 10min --load cpu".split(' ')));
    run.wait_until_measuring();
    run.signal("KILL");
    assert_eq!(run.finish().signal(), Some(9));
    wait_until("no process of the run is left", || running(&program).is_empty());
}

/// A guest with a VGA card. The load is stopped repeatedly until it is on its own terminal, and
/// killed there. `latlab exec` starts guests without a display, so that QEMU is wrapped to add one.
#[test]
fn doctor_restores_console_switched_by_killed_load() {
    let folder = folder();
    let qemu = folder.path().join("qemu-system-x86_64");
    let text = "#!/bin/sh\nPATH=${PATH#*:} exec qemu-system-x86_64 \"$@\" -vga std\n";
    fs::write(&qemu, text).expect("the folder can be written");
    fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755))
        .expect("the permissions can be set");
    let profile = folder.path().join("display.toml");
    let text = "summary = 'with a display'\nkernel = { package = 'linux-image-6.12-amd64' }\n\
                modules = ['bochs']\n";
    fs::write(&profile, text).expect("the folder can be written");
    let script = "shown() { read -r shown </sys/class/tty/tty0/active; echo \"$shown\"; }; shown; \
                  /latlab run cyclic --for 60s --load console-switch & sleep 2; \
                  read -r worker </proc/$!/task/$!/children; \
                  hold() { kill -STOP $worker; sleep 0.1; }; hold; \
                  until test \"$(shown)\" = tty15; do \
                  kill -CONT $worker; sleep 0.0013; hold; done; \
                  kill -9 $!; wait $!; shown; \
                  /latlab doctor >/dev/null; shown; echo /run/latlab/*";
    let path = std::env::var("PATH").expect("PATH is set");
    let mut exec = command("exec --with /bin/sleep");
    exec.env("PATH", format!("{}:{path}", folder.path().display()));
    exec.arg("--on").arg(format!("lab:{}", profile.display()));
    let output = run(exec.args(["--", "sh", "-c", script]));
    assert!(
        output.stderr.contains("did not restore active_console (/dev/tty0); it is 1 again"),
        "{output:?}"
    );
    assert_eq!(output.stdout, "tty1\ntty15\ntty1\n/run/latlab/*\n", "no journal is left");
}

/// A guest has a keyboard. A killed load leaves its LEDs in any state.
#[test]
fn doctor_restores_leds_changed_by_killed_load() {
    let script = "/latlab run cyclic --for 60s --load caps-lock & sleep 2; kill -9 $!; wait $!; \
                  /latlab doctor >/dev/null; echo /run/latlab/*";
    let output = run(command("exec --on lab:standard --with /bin/sleep -- sh -c").arg(script));
    assert!(
        output.stderr.contains("did not restore console_leds (/dev/tty0); it is 0 again"),
        "{output:?}"
    );
    assert_eq!(output.stdout, "/run/latlab/*\n", "no journal is left");
}
