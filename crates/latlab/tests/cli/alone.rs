//! Independence of the program: one static file that needs only /proc, /sys and /dev.

use crate::program::{LATLAB, folder, lock_machine, root, run};
use std::fs;
use std::process::Command;

const PT_INTERP: u32 = 3;
const PT_DYNAMIC: u32 = 2;

/// Returns the types of the program headers of a little-endian 64-bit ELF file (elf(5)).
fn program_headers(elf: &[u8]) -> Vec<u32> {
    assert_eq!(&elf[..6], b"\x7fELF\x02\x01");
    let number = |at: usize, len: usize| {
        elf[at..at + len].iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
    };
    let (start, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    let kind = |nth| u32::try_from(number(start + nth * size, 4)).expect("four bytes");
    (0..count).map(kind).collect()
}

#[test]
fn program_needs_neither_loader_nor_library() {
    let elf = fs::read(LATLAB).unwrap();
    let headers = program_headers(&elf);
    assert!(!headers.is_empty() && !headers.contains(&PT_INTERP), "{headers:?}");
    // A static position-independent executable has a dynamic section, but names no library in it.
    if headers.contains(&PT_DYNAMIC) {
        let needed = run(Command::new("readelf").arg("-d").arg(LATLAB));
        assert!(!needed.stdout.contains("NEEDED"), "{needed:?}");
    }
}

#[test]
fn program_runs_in_an_empty_root() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    fs::copy(LATLAB, folder.path().join("latlab")).unwrap();
    let chrooted = |words: &str| {
        let script = "set -e; for d in proc sys dev; do mkdir -p \"$1/$d\"; \
                      mount --rbind \"/$d\" \"$1/$d\"; done; empty=$1; shift; \
                      exec chroot \"$empty\" /latlab \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh"]).arg(folder.path());
        run(command.args(words.split_whitespace()))
    };
    let output = chrooted("list");
    assert_eq!((output.code(), output.stderr.as_str()), (Some(0), ""), "{output:?}");
    let output = chrooted("run --for 200ms --json --load fork --load procfs");
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    assert!(record.series.iter().all(|series| series.counts.recorded > 0), "{record:?}");
    let output = chrooted("doctor --json");
    assert!(matches!(output.code(), Some(0 | 1)) && output.stdout.starts_with('{'), "{output:?}");
}
