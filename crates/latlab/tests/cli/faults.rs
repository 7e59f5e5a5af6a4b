//! Faults: each system call of a command fails, once or from then on, or ends it. The machine is then as
//! before, or latlab says that it is not, and the next one restores it; a file that it writes is whole
//! or absent. `make test` makes some calls fail, `make test-all` more, and `make torture` each.

mod crashes;
mod files;
mod kills;
mod machine;
mod scene;
mod surroundings;
mod unrestored;

use crate::program::{LATLAB, Output, run};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

/// System calls, and how each fails: once, or from then on where a plus follows. A `write` of 0 bytes
/// is the shortest short one.
const FAULTS: &[(&str, &str)] = &[
    ("openat", "error=EMFILE"),
    ("openat", "error=EACCES"),
    ("read", "error=EIO"),
    ("write", "error=ENOSPC"),
    ("write", "retval=0"),
    ("rename", "error=EIO"),
    ("flock", "error=ENOLCK"),
    ("unlink", "error=EACCES"),
    ("getdents64", "error=EIO"),
    ("readlink", "error=EACCES"),
    ("sched_setattr", "error=EPERM"),
    ("clone3", "error=EAGAIN"),
    ("openat", "error=EMFILE+"),
    ("read", "error=EIO+"),
    ("sched_setattr", "error=EPERM+"),
    // Up to here in `make test-all`.
    ("openat", "error=EACCES+"),
    ("getdents64", "error=EIO+"),
    ("flock", "error=ENOLCK+"),
    ("openat", "error=ENOMEM"),
    ("openat", "error=EIO"),
    ("read", "error=ENOMEM"),
    ("read", "error=EINTR"),
    ("write", "error=EIO"),
    ("write", "error=EINTR"),
    ("rename", "error=ENOSPC"),
    ("renameat", "error=EIO"),
    ("fdatasync", "error=EIO"),
    ("fsync", "error=ENOSPC"),
    ("ftruncate", "error=EIO"),
    ("fallocate", "error=ENOSPC"),
    ("flock", "error=EINTR"),
    ("statx", "error=ENOMEM"),
    ("getdents64", "error=ENOMEM"),
    ("mkdir", "error=ENOSPC"),
    ("sched_getattr", "error=EPERM"),
    ("socket", "error=EMFILE"),
    ("bind", "error=EACCES"),
    ("accept4", "error=EMFILE"),
    ("epoll_ctl", "error=ENOMEM"),
    ("perf_event_open", "error=EMFILE"),
    ("bpf", "error=ENOMEM"),
    ("memfd_create", "error=EMFILE"),
    ("capset", "error=EPERM"),
];
const ALWAYS: usize = 15;

/// Commands of which only the first thread is tampered with, and no program that it starts.
const STARTING: [&str; 2] = ["kernel fetch", "study"];

/// The distance between calls that fail. `make torture` sets `LATLAB_FAULTS` to 1, so that each call
/// fails; without it calls 1, 2, 4, 8, … do.
fn stride() -> Option<usize> {
    let stride = std::env::var("LATLAB_FAULTS").ok()?;
    Some(stride.parse().expect("LATLAB_FAULTS is a number"))
}

/// The tested program: another one shows what this harness finds in it.
fn program() -> String {
    std::env::var("LATLAB_UNDER_TEST").unwrap_or_else(|_| LATLAB.to_owned())
}

/// Adds strace, which tampers with the nth `call`, and `latlab` with these words to a command, and
/// runs it. None if latlab makes fewer of these calls.
fn tampering(
    command: &mut Command,
    folder: &Path,
    words: &str,
    (call, how): (&str, &str),
    nth: usize,
) -> Option<Output> {
    let trace = folder.join("trace");
    let _ = fs::remove_file(&trace);
    // Not apt and QEMU: with failing writes they wait for ever.
    if !STARTING.iter().any(|start| words.starts_with(start)) {
        command.arg("-f");
    }
    command.args(["-qq", "-e"]).arg(format!("trace={call}"));
    let (how, lasting) = how.strip_suffix('+').map_or((how, ""), |how| (how, "+"));
    command.arg("-e").arg(format!("inject={call}:{how}:when={nth}{lasting}"));
    command.arg("-o").arg(&trace).arg(program()).args(words.split_whitespace());
    let output = run(command);
    let traced = fs::read_to_string(&trace).unwrap_or_default();
    let tampered = traced.contains("(INJECTED)") || traced.contains("killed by SIGKILL");
    tampered.then_some(output)
}

/// A call and how it fails, and which of these calls does: the first is 1.
type Attempt<'a> = &'a dyn Fn((&str, &str), usize) -> Option<Result<(), String>>;

/// How many calls fail: [`some`] or [`each`].
type Extent = fn(&str, Attempt<'_>);

/// Makes a few calls fail, as a sample of what [`each`] does.
fn some(name: &str, attempt: Attempt<'_>) {
    const FEW: [(&str, &str); 3] =
        [("write", "error=ENOSPC"), ("openat", "error=EMFILE"), ("read", "error=EIO+")];
    some_of(name, &FEW, attempt);
}

/// Makes the first and the third of these calls fail.
fn some_of(name: &str, faults: &[(&str, &str)], attempt: Attempt<'_>) {
    let calls = faults.iter().flat_map(|fault| [1, 3].map(|nth| (fault, nth)));
    let tried = calls.filter_map(|(fault, nth)| Some((fault, nth, attempt(*fault, nth)?)));
    let tried: Vec<_> = tried.collect();
    let wrong: Vec<_> = tried.iter().filter(|(_, _, result)| result.is_err()).collect();
    assert!(wrong.is_empty(), "{name}: {wrong:#?}");
    assert!(tried.len() > 2, "{name}: few calls were made to fail");
}

/// Makes calls of a command fail, each once.
fn each(name: &str, attempt: Attempt<'_>) {
    let faults = if stride().is_some() { FAULTS } else { &FAULTS[..ALWAYS] };
    each_of(name, faults, attempt);
}

fn each_of(name: &str, faults: &[(&str, &str)], attempt: Attempt<'_>) {
    let (mut tried, mut wrong) = (0, Vec::new());
    for fault in faults {
        let mut nth = 1;
        while let Some(result) = attempt(*fault, nth) {
            tried += 1;
            if let Err(why) = result {
                tell(&format!("wrong: {name}, {fault:?}, call {nth}: {why}"));
                wrong.push(format!("{fault:?}, call {nth}: {why}"));
            }
            nth += stride().unwrap_or(nth);
        }
        if stride().is_some() {
            tell(&format!("{tried} faults: {name}, up to {fault:?}"));
        }
    }
    tell(&format!("{tried} faults: {name}, {} wrong", wrong.len()));
    assert!(wrong.is_empty(), "{} of {tried}: {wrong:#?}", wrong.len());
    assert!(tried > 4, "few calls were made to fail");
}

/// Written directly: the test harness hides what a passing test prints with `eprintln`, and shows what
/// a long one prints at its end only.
fn tell(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("standard error is open");
}
