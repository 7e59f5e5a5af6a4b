//! Interrupted runs: they keep their samples and restore all knobs.

use crate::knob;
use crate::measuring::wait_until_sampled;
use crate::program::{
    LATLAB, Output, Running, cache_with_kernels, command, entries, field, folder, latlab,
    lock_machine, path_with_script, pause, root, wait_until, with_own_journal,
};
use latlab_core::record::Record;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The numbers that are the names of entries of a folder, as of processes and threads.
fn numbers(folder: &str) -> impl Iterator<Item = u32> {
    let paths = entries(Path::new(folder)).into_iter();
    paths.filter_map(|path| path.file_name()?.to_str()?.parse().ok())
}

/// Starts a long run that sets a knob, calls `interrupt` once it has samples, and returns its output
/// and record.
fn interrupted(interrupt: impl FnOnce(&Running)) -> (Output, Record) {
    let folder = folder();
    let out = folder.path().join("kept.json");
    let words = "run cyclic --for 10min --warm-up 0 --set stat_interval=7 --load cpu --out";
    let mut run = Running::start(with_own_journal(folder.path(), words).arg(&out));
    run.wait_until_measuring();
    assert_eq!(knob::read(), "7", "the knob is set during the run");
    wait_until_sampled(run.pid());
    interrupt(&run);
    let output = run.finish();
    let record = fs::read_to_string(&out).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    let record = Record::from_json(&record).expect("the record is complete");
    (output, record)
}

#[test]
fn signal_to_end_keeps_samples_and_restores_knobs() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let before = knob::read();
    for signal in ["INT", "TERM", "HUP"] {
        let (output, record) = interrupted(|run| run.signal(signal));
        assert_eq!(output.code(), Some(4), "SIG{signal}: {output:?}");
        assert_eq!(knob::read(), before, "SIG{signal}");
        assert!(record.series.iter().all(|series| series.counts.recorded > 0), "{record:?}");
        let codes: Vec<&str> = record.warnings.iter().map(|w| w.code.as_str()).collect();
        assert!(codes.contains(&"interrupted"), "{codes:?}");
        assert!(!codes.contains(&"load-ended"), "{codes:?}");
        let change = &record.changes[0];
        let seen = (change.knob.as_str(), change.old.as_str(), change.new.as_str());
        assert_eq!(seen, ("stat_interval", before.as_str(), "7"));
        assert!(change.restored);
    }
}

/// What a guest has measured stays in it.
#[test]
fn sigint_ends_a_guest_without_a_record() {
    let folder = folder();
    let out = folder.path().join("none.json");
    let mut run = Running::start(command("run cyclic --for 1h --on lab:rt --out").arg(&out));
    let parent = run.pid().to_string();
    let is_guest = |process| {
        field(process, "PPid").is_some_and(|pid| pid == parent)
            && field(process, "Name").is_some_and(|name| name.starts_with("qemu-system"))
    };
    wait_until("it has started a guest", || {
        assert!(!run.has_ended(), "{run:?}");
        numbers("/proc").any(is_guest)
    });
    run.signal("INT");
    let output = run.finish();
    assert_eq!(output.code(), Some(4), "{output:?}");
    assert!(output.stderr.contains("nothing of it is kept"), "{output:?}");
    assert!(!out.exists(), "there is a record");
}

#[test]
fn sigint_while_the_plugin_is_built_ends_all_cells() {
    assert_eq!(latlab("kernel fetch linux-image-6.12-rt-amd64").code(), Some(0));
    let cache = cache_with_kernels();
    let begun = cache.path().join("begun");
    // A second build would fail.
    let make = format!("mkdir {} || exit 1; exec sleep 1000", begun.display());
    let path = path_with_script(cache.path(), "make", &make);
    let words = "run hackbench:misses=modelled --on lab:rt --on lab:v6.12-rt";
    let run = Running::start(command(words).env("PATH", path).env("XDG_CACHE_HOME", cache.path()));
    wait_until("the plugin is built", || begun.exists());
    run.signal("INT");
    let output = run.finish();
    assert_eq!(output.code(), Some(4), "{output:?}");
    assert_eq!(output.stderr.matches("building the QEMU plugin").count(), 1, "{output:?}");
}

#[test]
fn second_sigint_keeps_samples_and_restores_knobs() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let before = knob::read();
    for patience in [0, 10, 30, 60, 100] {
        let (output, record) = interrupted(|run| {
            run.signal("INT");
            pause(Duration::from_millis(patience));
            run.signal("INT");
        });
        assert_eq!(output.code(), Some(4), "after {patience} ms: {output:?}");
        assert!(record.warnings.iter().any(|warning| warning.code == "interrupted"));
        assert_eq!(knob::read(), before);
    }
}

#[test]
fn knob_changed_by_somebody_else_is_not_restored() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let before = knob::restore_on_drop();
    let (output, record) = interrupted(|run| {
        knob::write("11");
        run.signal("INT");
    });
    assert_eq!(output.code(), Some(2), "the run did not have its setting: {output:?}");
    assert_eq!(knob::read(), "11");
    assert!(!record.changes[0].restored);
    drop(before);
}

#[test]
fn knob_set_by_one_run_is_refused_to_another() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let before = knob::read();
    let words = "run cyclic --for 10min --set stat_interval=7";
    let mut first = Running::start(&mut with_own_journal(folder.path(), words));
    first.wait_until_measuring();
    let pid = first.pid().to_string();
    let second = Running::start(&mut with_own_journal(
        folder.path(),
        "run cyclic --for 100ms --set stat_interval=9",
    ));
    second.finish().assert_refused(2, &["stat_interval", "another latlab", &pid]);
    assert_eq!(knob::read(), "7");
    let other = "run cyclic --for 100ms --cpus 0 --set timer_migration=1 --json";
    let second = Running::start(&mut with_own_journal(folder.path(), other)).finish();
    assert_eq!(second.code(), Some(0), "another knob is free: {second:?}");
    assert_eq!(knob::read(), "7", "a run restores only its own knobs");
    first.signal("INT");
    assert_eq!(first.finish().code(), Some(4));
    assert_eq!(knob::read(), before);
}

#[test]
fn sigint_during_warm_up_is_reported_as_nothing_recorded() {
    let _lock = lock_machine();
    let words = "run cyclic --policy other --cpus 0 --for 60s --warm-up 10min --json";
    let mut run = Running::start(&mut command(words));
    run.wait_until_measuring();
    run.signal("INT");
    let output = run.finish();
    assert_eq!(output.code(), Some(4), "{output:?}");
    let record = output.record();
    assert_eq!(record.series[0].counts.recorded, 0);
    assert!(record.warnings.iter().any(|warning| warning.code == "nothing-recorded"));
}

#[test]
fn sighup_under_nohup_is_ignored() {
    let _lock = lock_machine();
    let mut nohup = std::process::Command::new("nohup");
    nohup.arg(LATLAB).args("run cyclic --policy other --cpus 0 --for 2s --json".split(' '));
    let mut run = Running::start(&mut nohup);
    let is_latlab = |name: String| name == "latlab";
    wait_until("nohup has become latlab", || field(run.pid(), "Name").is_some_and(is_latlab));
    // From the start to the end: a single signal might come too late where this test waits for a CPU.
    wait_until("it ends", || {
        let ended = run.has_ended();
        if !ended {
            run.signal("HUP");
        }
        ended
    });
    let output = run.finish();
    assert_eq!(output.code(), Some(0), "{output:?}");
    let counts = output.record().series[0].counts;
    assert!(counts.recorded + counts.missed >= 2_000, "{counts:?}");
}
