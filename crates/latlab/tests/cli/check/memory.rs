//! Programs that lock some of their memory, or protect it, and cycles of the warm-up.

use super::{breaches, check, compile, compiled, folder, line_of, report};
use crate::program::lock_machine;
use latlab_check::{Level, Rule};
use std::path::{Path, PathBuf};

const SOURCE: &str = include_str!("memory.c");

fn program(folder: &Path) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/check/memory.c");
    compile(Path::new(source), folder, &["-g", "-Wl,-z,now"])
}

#[test]
fn locked_page_is_no_locked_memory() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = program(folder.path());
    for (kind, expected) in [
        ("page", Some((Rule::NotLocked, Level::Error))),
        ("current", Some((Rule::LockFuture, Level::Warning))),
        ("all", None),
    ] {
        let output = check(&["--json"], &program, kind);
        let report = report(&output);
        let locks = [Rule::NotLocked, Rule::LockFuture];
        let found = breaches(&report).into_iter().filter(|breach| locks.contains(&breach.rule));
        let found: Vec<_> = found.map(|breach| (breach.rule, breach.level)).collect();
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{kind}: {output:?}");
        assert_eq!(output.code(), Some(i32::from(kind == "page")), "{kind}: {output:?}");
    }
    let text = check(&[], &program, "page").stdout;
    assert!(text.contains(" KiB of memory are locked"), "{text}");
}

#[test]
fn protection_fault_is_no_missing_page() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = program(folder.path());
    let output = check(&["--json"], &program, "protected");
    assert_eq!(output.code(), Some(1), "{output:?}");
    let found = report(&output);
    let errors = breaches(&found).into_iter().filter(|breach| breach.level == Level::Error);
    let mut errors: Vec<_> = errors
        .map(|breach| (breach.subject.as_str(), breach.rule, breach.place.clone(), breach.count))
        .collect();
    errors.sort();
    let place = |function: &str, mark: &str| {
        Some(format!("{function} (memory.c:{})", line_of(SOURCE, mark)))
    };
    let expected = [
        ("call of mprotect", Rule::Protection, place("main", "close"), 50),
        ("call of mprotect", Rule::Protection, place("open_page", "open"), 50),
        ("protection fault", Rule::Protection, place("poll_safepoint", "poll"), 50),
    ];
    assert_eq!(errors, expected, "{output:?}");
    let text = check(&[], &program, "protected").stdout;
    assert!(text.contains("no page was missing") && !text.contains("malloc"), "{text}");
}

#[test]
fn breach_in_the_warm_up_is_not_judged() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = compiled(folder.path(), &["-g", "-Wl,-z,now"]);
    // It grows its stack in the 51st cycle.
    let output = check(&["--warm-up=100cycles", "--json"], &program, "stack");
    assert_eq!(output.code(), Some(0), "{output:?}");
    let cycle = &report(&output).threads[0].cycle;
    assert_eq!(cycle.warm_up, 100, "{output:?}");
    assert!(cycle.count <= 100 && cycle.count > 90, "{output:?}");
    let text = check(&["--warm-up=100cycles"], &program, "stack").stdout;
    assert!(text.contains("without 100 cycles of warm-up"), "{text}");
    let all = check(&["--warm-up=1h"], &program, "none");
    all.assert_refused(2, &["faults [", "are in the warm-up", "--warm-up"]);
    let wrong = check(&["--warm-up=100"], &program, "none");
    assert_eq!(wrong.code(), Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("100cycles"), "{wrong:?}");
}
