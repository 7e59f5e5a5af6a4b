//! Crashes: a command is killed before each call by which it changes a file or the machine, and
//! latlab is started again, with other rights, limits and surroundings. It restores the machine, or
//! says truthfully that it did not; then the next start restores it.

use super::scene::{Scene, is_said, state};
use super::{Attempt, Extent, each_of, some_of};
use crate::program::{lock_machine, root, run};
use std::cell::Cell;

/// Calls before which a command is killed.
const WRITES: &[(&str, &str)] = &[
    ("write", "signal=KILL"),
    ("rename", "signal=KILL"),
    ("unlink", "signal=KILL"),
    ("ftruncate", "signal=KILL"),
    ("fdatasync", "signal=KILL"),
    ("fallocate", "signal=KILL"),
    ("mkdir", "signal=KILL"),
    ("renameat", "signal=KILL"),
    ("sched_setattr", "signal=KILL"),
    ("flock", "signal=KILL"),
    ("exit_group", "signal=KILL"),
];

/// How latlab is started again: in a shell, after the journals in `$1` were bound to where it keeps
/// them, and with itself as `$2`.
const AGAIN: [(&str, &str); 10] = [
    ("as before", "exec \"$2\" adapt --restore"),
    ("as another user", "exec setpriv --reuid=65534 --clear-groups \"$2\" adapt --restore"),
    (
        "without capabilities",
        "exec setpriv --bounding-set=-all --inh-caps=-all \"$2\" adapt --restore",
    ),
    (
        "in another PID namespace",
        "exec unshare --pid --fork --mount-proc --kill-child \"$2\" adapt --restore",
    ),
    (
        "by a run in another PID namespace",
        "exec unshare --pid --fork --mount-proc --kill-child \"$2\" run --for 20ms --cpus 0 --policy other",
    ),
    ("with an empty /proc", "mount -t tmpfs none /proc; exec \"$2\" adapt --restore"),
    ("with four files", "ulimit -n 4; exec \"$2\" adapt --restore"),
    ("by a run with nine files", "ulimit -n 9; exec \"$2\" run --for 20ms --cpus 0 --policy other"),
    (
        "on a read-only file system",
        "mount -o remount,bind,ro /run/latlab; exec \"$2\" adapt --restore",
    ),
    (
        "on a full disk",
        "mkdir \"$1/disk\"; mount -t tmpfs -o size=64k none \"$1/disk\"
         cp \"$1\"/journals/* \"$1/disk\" 2>/dev/null
         dd if=/dev/zero of=\"$1/disk/full\" 2>/dev/null; mount --bind \"$1/disk\" /run/latlab
         \"$2\" adapt --restore; code=$?
         rm \"$1/disk/full\"; rm -f \"$1\"/journals/*; cp \"$1\"/disk/* \"$1/journals\" 2>/dev/null
         umount /run/latlab \"$1/disk\"; rmdir \"$1/disk\"; exit $code",
    ),
];

/// Kills a command before each of its writes, and starts latlab again in each of these ways, in
/// turns; in all of them if each call is asked for.
fn crash(extent: Extent, words: &str, prepare: impl Fn(&Scene)) {
    let _lock = lock_machine();
    let scene = Scene::new();
    let turn = Cell::new(0);
    extent(&format!("{words}, killed"), &|call, nth| {
        let ways = if super::stride() == Some(1) { AGAIN.len() } else { 1 };
        for _ in 0..ways {
            let (way, script) = AGAIN[turn.replace(turn.get() + 1) % AGAIN.len()];
            prepare(&scene);
            scene.tampered(words, call, nth)?;
            let script = format!("mount --bind \"$1/journals\" /run/latlab\n{script}");
            let again = run(scene.command(&script).arg(super::program()));
            // As the test found it, or as latlab says.
            if state() != scene.before && !is_said(&again) {
                return Some(Err(format!("{way}: not restored, and nothing was said: {again:?}")));
            }
            if let Err(why) = scene.check_restored(&again) {
                return Some(Err(format!("{way}: {why}")));
            }
        }
        Some(Ok(()))
    });
}

/// Kills before the first writes of a run, as a sample.
fn first_writes(name: &str, attempt: Attempt<'_>) {
    some_of(name, &WRITES[..3], attempt);
}

fn every_write(name: &str, attempt: Attempt<'_>) {
    each_of(name, WRITES, attempt);
}

fn crash_run(extent: Extent) {
    if root() {
        let words = "run --set stat_interval=13 --for 20ms --cpus 0 --policy other";
        crash(extent, words, |_| {});
    }
}

#[test]
fn run_killed_at_its_first_writes_is_restored_or_reported() {
    crash_run(first_writes);
}

#[test]
fn run_killed_at_any_write_is_restored_or_reported() {
    crash_run(every_write);
}

#[test]
fn adapt_killed_at_any_write_is_restored_or_reported() {
    if root() {
        crash(every_write, "adapt --for 50ms", |_| {});
    }
}

#[test]
fn restore_killed_at_any_write_is_restored_or_reported() {
    if root() {
        crash(every_write, "adapt --restore", |scene| {
            scene.kill("run --set stat_interval=13 --for 60s --cpus 0 --policy other");
        });
    }
}
