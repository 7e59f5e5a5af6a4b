//! Runs whose knob can't be restored: each command says so, whatever else it has to say.

use super::program;
use super::scene::{OWN_JOURNALS, Scene, state};
use crate::knob;
use crate::program::{Output, entries, lock_machine, root, run};
use std::fs;
use std::path::Path;

/// Runs `latlab` with these words, started by `starter`. The second write to the knob fails, with
/// which the first run that sets it restores it.
fn unrestored(scene: &Scene, starter: &[&str], words: &str) -> Output {
    let mut command = scene.command(OWN_JOURNALS);
    command.args(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=write", "-P", knob::PATH]);
    command.args(["-e", "inject=write:error=EIO:when=2"]).args(starter).arg(program());
    let output = run(command.args(words.split_whitespace()));
    assert!(output.stderr.contains("not restored: stat_interval"), "{output:?}");
    assert_eq!(output.code(), Some(2), "{output:?}");
    scene.check(&output).expect("the next start restores the knob");
    output
}

#[test]
fn knob_that_is_not_restored_is_reported_beside_a_sample_above_a_limit() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let scene = Scene::new();
    let words = format!(
        "run --set stat_interval={} --for 1s --cpus 0 --policy other --stop-above 1ns",
        scene.new
    );
    let output = unrestored(&scene, &[], &words);
    assert!(output.stderr.contains("above 1 ns"), "{output:?}");
}

#[test]
fn knob_that_is_not_restored_is_reported_beside_a_record_that_cannot_be_written() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let scene = Scene::new();
    let words = format!(
        "run --set stat_interval={} --for 1s --cpus 0 --policy other --out /dev/full",
        scene.new
    );
    // The record is then written there.
    let temporary = format!("TMPDIR={}", scene.folder().display());
    let output = unrestored(&scene, &["env", &temporary], &words);
    assert!(output.stderr.contains("can't be written to /dev/full"), "{output:?}");
    assert!(!output.stderr.contains("wrote /dev/full"), "{output:?}");
    assert!(output.stdout.contains("cyclic"), "no summary: {output:?}");
}

#[test]
fn knob_that_is_not_restored_after_an_interruption_fails_ab() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let scene = Scene::new();
    let side = "-- run --for 60s --cpus 0 --policy other";
    let words = format!("ab {side} --set stat_interval={} {side}", scene.new);
    // A shell's background jobs ignore SIGINT.
    let script = format!(
        "env --default-signal=INT \"$@\" & latlab=$!
         until [ $(cat {}) = {} ]; do sleep 0.02; done
         sleep 0.5; kill -INT $latlab; wait $latlab",
        knob::PATH,
        scene.new
    );
    unrestored(&scene, &["sh", "-c", &script, "sh"], &words);
}

/// Measures a study of a cell whose knob can't be restored, and another one, to the folder `out`.
fn study(scene: &Scene, out: &Path) -> Output {
    let path = scene.folder().join("mine.toml");
    let text = format!(
        "title = 'T'\npaper = 'P'\nredoes = 'x'\n\
         plan = {{ probes = ['cyclic:policy=other'], on = 'native', for = '50ms' }}\n\
         axis = [{{ name = 'knob', each = [{{ label = 'set', set = ['stat_interval={}'] }}, \
         {{ label = 'unset' }}] }}]\n\
         figure = [{{ name = 'samples', probe = 'cyclic', take = 'recorded' }}]\n",
        scene.new
    );
    fs::write(&path, text).expect("the folder is the test's own");
    let output =
        unrestored(scene, &[], &format!("study {} --out {}", path.display(), out.display()));
    assert!(output.stderr.contains("cell 1, set: not restored"), "{output:?}");
    output
}

#[test]
fn cell_whose_knob_is_not_restored_is_reported_beside_a_table_that_cannot_be_written() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let scene = Scene::new();
    let out = scene.folder().join("out");
    fs::create_dir_all(out.join("table.csv/x")).expect("the folder is the test's own");
    let output = study(&scene, &out);
    assert!(output.stderr.contains("table.csv: "), "{output:?}");
    assert!(!output.stderr.contains("wrote to"), "{output:?}");
    assert!(output.stdout.contains("unset"), "no table: {output:?}");
}

#[test]
fn cell_whose_knob_is_not_restored_is_not_in_the_table() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let scene = Scene::new();
    let out = scene.folder().join("out");
    study(&scene, &out);
    let table = fs::read_to_string(out.join("table.csv")).expect("there is a table");
    assert!(table.contains("set,samples,,"), "{table}");
    assert!(!out.join("records/set.json").exists(), "the failed run has a record");
}

/// What somebody sets later would look like a change of this run.
#[test]
fn journal_that_can_not_be_removed_is_emptied_or_reported() {
    if !root() {
        return;
    }
    let _lock = lock_machine();
    let scene = Scene::new();
    let run_with = |faults: &[&str]| {
        let mut command = scene.command(OWN_JOURNALS);
        command.args(["strace", "-qq", "-o", "/dev/null"]);
        command.args(["-e", "trace=unlink,ftruncate"]);
        for fault in faults {
            command.args(["-e", *fault]);
        }
        command.arg(program()).args(["run", "--for", "20ms", "--cpus", "0", "--policy", "other"]);
        run(command.args(["--set", &format!("stat_interval={}", scene.new)]))
    };
    let unremovable = "inject=unlink:error=EROFS";
    let output = run_with(&[unremovable]);
    assert_eq!((output.code(), state() == scene.before), (Some(0), true), "{output:?}");
    let journals = entries(&scene.journals());
    assert!(journals.iter().all(|left| fs::metadata(left).unwrap().len() == 0), "{journals:?}");
    // The first truncation is that of the new journal.
    let output = run_with(&[unremovable, "inject=ftruncate:error=EROFS:when=2+"]);
    assert_eq!((output.code(), state() == scene.before), (Some(2), true), "{output:?}");
    assert!(output.stderr.contains("not restored: the journal /run/latlab/"), "{output:?}");
    scene.check(&output).expect("the next start removes the journal");
}
