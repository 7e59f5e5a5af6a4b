//! Studies: reproducible results, also after an interruption, and errors with their position.

use crate::program::{Output, Running, command, entries, folder, latlab, new_seed, wait_until};
use latlab_core::machine::TimeDomain;
use latlab_core::record::Record;
use std::fs;
use std::path::Path;

/// Returns a small study. With a new seed, its cells are not cached.
fn tiny(seed: u64) -> String {
    format!(
        r#"
title = "A tiny study"
paper = "Nobody 2026"
redoes = "nothing"
published_in = "nowhere"

[plan]
probes = ["cyclic"]
count = 50
warm_up = "20ms"
seed = {seed}

[[axis]]
name = "kernel"
each = [{{ label = "standard", on = "lab:standard" }}, {{ label = "rt", on = "lab:rt", repeat = 2 }}]

[[figure]]
name = "worst"
probe = "cyclic"

[[figure]]
name = "samples"
probe = "cyclic"
take = "recorded"

[[figure]]
name = "cache"
probe = "cyclic"
figure = "no such figure"

[published]
rt = {{ worst = "about 5, \"or so\"" }}

[[claim]]
says = "timers tick"
claim = "standard.worst > 100 * rt.worst"
bound = "physics: a tick is 4 ms"

[[claim]]
says = "there are as many samples as were asked for"
claim = "99 < rt.samples < 101 and 49 < standard.samples < 51"
bound = "physics: the plan asks for 50"

[[claim]]
says = "time stands still"
claim = "rt.worst <= 0s"
bound = "paper: none"
why = "it does not"

[[claim]]
says = "what was not measured is not claimed"
claim = "rt.cache >= 0"
bound = "paper: none"

[[picture]]
name = "how-late"
kind = "cdf"
title = "How late"
figures = ["worst"]
log = true

[[picture]]
name = "worst"
kind = "bars"
title = "The worst"
figures = ["worst"]
along = "kernel"
"#
    )
}

fn write_study(folder: &Path, text: &str) -> String {
    let path = folder.join("tiny.toml");
    fs::write(&path, text).expect("the folder can be written");
    path.display().to_string()
}

/// Returns the names and contents of all files of a study.
fn files(out: &Path) -> Vec<(String, Vec<u8>)> {
    let names = ["claims.csv", "how-late.svg", "report.html", "table.csv", "table.md", "worst.svg"]
        .map(|name| out.join(name));
    let mut paths: Vec<_> = names.into_iter().chain(entries(&out.join("records"))).collect();
    paths.sort();
    let file = |path: &std::path::PathBuf| {
        let name =
            path.strip_prefix(out).expect("the path is below the folder").display().to_string();
        (name, fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
    };
    paths.iter().map(file).collect()
}

#[test]
fn study_on_this_machine_leaves_out_cells_of_other_kernels() {
    let folder = folder();
    let profile = |name: &str, kernel: &str, cmdline: &str| {
        let path = folder.path().join(name);
        let text = format!("summary = \"s\"\nkernel = {{ {kernel} }}\ncmdline = \"{cmdline}\"\n");
        fs::write(&path, text).expect("the folder can be written");
        format!("lab:{}", path.display())
    };
    let package = "package = \"linux-image-6.12-amd64\"";
    let ticks = profile("ticks.toml", package, "highres=off");
    let any = profile("any.toml", package, "");
    let image = profile("image.toml", "image = \"/none\"", "");
    let text = tiny(9).replace("[\"cyclic\"]", "[\"cyclic:policy=other\"]");
    let text = text.replace("lab:standard", &ticks).replace("lab:rt", &any);
    let study = write_study(folder.path(), &text);
    let output = latlab_succeeds(&format!("study {study} --on native"));
    for said in ["cell standard can't be asked here", "2 of 4 claims can't be asked here"] {
        assert!(output.stderr.contains(said), "no '{said}' in {output:?}");
    }
    for said in ["no value for standard.worst", "0 of 6 repetitions agree"] {
        assert!(output.stdout.contains(said), "no '{said}' in {output:?}");
    }
    // Neither a cell alone nor stored records may be of another kernel.
    let out = folder.path().join("out");
    let words = |more: &str| format!("study {study} --on native --out {} {more}", out.display());
    let refused = latlab(&words("--cell 1"));
    assert_eq!(refused.code(), Some(3), "{refused:?}");
    assert!(refused.stderr.contains("it is a kernel with timers at ticks"), "{refused:?}");
    latlab_succeeds(&words("--cell 2"));
    for path in entries(&out.join("records")) {
        let name = path.file_name().and_then(|name| name.to_str()).expect("it is a label");
        let copy = path.with_file_name(name.replace("rt", "standard"));
        fs::copy(&path, copy).expect("the folder can be written");
    }
    let merged = latlab_succeeds(&words("--merge"));
    let table = fs::read_to_string(out.join("table.md")).expect("the file exists");
    assert!(table.contains("`latlab study tiny.toml --on native --out DIR`"), "{table}");
    assert!(merged.stderr.contains("cell standard can't be asked here"), "{merged:?}");
    for other in [ticks, image] {
        let study = write_study(folder.path(), &text.replace(&any, &other));
        let output = latlab(&format!("study {study} --on native"));
        assert_eq!(output.code(), Some(3), "{output:?}");
        assert!(output.stderr.contains("none of its cells is of the kernel"), "{output:?}");
    }
}

fn latlab_succeeds(words: &str) -> Output {
    let output = latlab(words);
    assert_eq!(output.code(), Some(0), "{output:?}");
    output
}

#[test]
fn study_gives_the_same_bytes_at_once_and_cell_by_cell() {
    let folder = folder();
    let study = write_study(folder.path(), &tiny(7));
    let out = |name: &str| folder.path().join(name);
    let words =
        |name: &str, more: &str| format!("study {study} --out {} {more}", out(name).display());
    let output = latlab_succeeds(&words("one", "--fresh --jobs 2"));
    let names: Vec<String> = files(&out("one")).into_iter().map(|(name, _)| name).collect();
    let records = ["records/rt.json", "records/rt@2.json", "records/standard.json"];
    let others = ["report.html", "table.csv", "table.md", "worst.svg"];
    let first = ["claims.csv", "how-late.svg"];
    assert_eq!(names, [&first[..], &records[..], &others[..]].concat());
    let page = fs::read_to_string(out("one").join("report.html")).expect("the file exists");
    for text in ["1 of 4 claims holds", "picture-how-late", "latlab study tiny.toml --out tiny/"] {
        assert!(page.contains(text), "{text}");
    }
    let svg = fs::read_to_string(out("one").join("worst.svg")).expect("the file exists");
    assert!(svg.contains("The worst") && svg.contains("standard"), "{svg}");
    for word in ["  holds", "  differs", "  not measured", "time stands still", "it does not"] {
        assert!(output.stdout.contains(word), "no '{word}' in {output:?}");
    }
    assert!(output.stdout.contains("no value for rt.cache"), "{output:?}");
    let csv = fs::read_to_string(out("one").join("table.csv")).expect("the file exists");
    assert_eq!(csv.lines().count(), 1 + 2 * 3, "{csv}");
    assert!(csv.contains(",ns,\"about 5, \"\"or so\"\"\""), "{csv}");
    assert!(csv.contains("rt,samples,100,,"), "both repetitions count: {csv}");

    let again = latlab_succeeds(&words("two", "--fresh --jobs 1"));
    assert_eq!((&again.stdout, files(&out("two"))), (&output.stdout, files(&out("one"))));

    for cell in ["1", "2"] {
        latlab_succeeds(&words("three", &format!("--cell {cell}")));
    }
    let merged = latlab_succeeds(&words("three", "--merge"));
    assert_eq!((&merged.stdout, files(&out("three"))), (&output.stdout, files(&out("one"))));

    let other = write_study(folder.path(), &tiny(8));
    let output = latlab(&format!("study {other} --merge --out {}", out("three").display()));
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("of another plan"), "{output:?}");
    assert!(
        output.stderr.contains("2 of 2 cells could not be measured: there is no table"),
        "{output:?}"
    );
    assert_eq!(files(&out("three")), files(&out("one")), "older files are unchanged");
}

/// Records from several hosts can be put into one folder. Those that do not belong together are not
/// put into one table.
#[test]
fn cells_of_another_time_domain_or_kernel_are_refused() {
    let folder = folder();
    let cells = "{ label = \"rt-2\", on = \"lab:rt\", seed = 90 }, { label = \"rt\"";
    let study = tiny(7).replacen("{ label = \"rt\"", cells, 1);
    let study = write_study(folder.path(), &study);
    let out = folder.path().join("out");
    latlab_succeeds(&format!("study {study} --out {}", out.display()));
    let path = out.join("records/rt-2.json");
    let record = fs::read_to_string(&path).expect("the file exists");
    let record = Record::from_json(&record).expect("the file is a record");
    let refused = |change: &dyn Fn(&mut Record), why: &str| {
        let mut other = record.clone();
        change(&mut other);
        fs::write(&path, other.to_json()).expect("the folder can be written");
        let output = latlab(&format!("study {study} --merge --out {}", out.display()));
        assert_eq!(output.code(), Some(2), "{output:?}");
        assert!(
            output.stderr.contains("cell 2, rt-2: ") && output.stderr.contains(why),
            "{output:?}"
        );
        let table = fs::read_to_string(out.join("table.csv")).expect("the file exists");
        assert!(table.contains("rt-2,worst,,ns") && !table.contains("rt,worst,,ns"), "{table}");
    };
    refused(
        &|record| record.machine.time_domain = TimeDomain::Silicon,
        "its record is in silicon time, that of standard in instructions time",
    );
    // The first record of a target defines its kernel.
    let path = out.join("records/rt.json");
    fs::write(out.join("records/rt-2.json"), record.to_json()).expect("the folder can be written");
    let mut other = Record::from_json(&fs::read_to_string(&path).expect("the file exists"))
        .expect("the file is a record");
    let mine = std::mem::replace(&mut other.machine.kernel, "5.10".to_owned());
    fs::write(&path, other.to_json()).expect("the folder can be written");
    let output = latlab(&format!("study {study} --merge --out {}", out.display()));
    assert_eq!(output.code(), Some(2), "{output:?}");
    let why = format!("lab:rt was Linux 5.10 when it was measured, and Linux {mine} when rt-2 was");
    assert!(output.stderr.contains("cell 3, rt: ") && output.stderr.contains(&why), "{output:?}");
}

#[test]
fn study_that_was_killed_resumes() {
    let folder = folder();
    let study = write_study(folder.path(), &tiny(new_seed()));
    let out = |name: &str| folder.path().join(name);
    let words = |name: &str| format!("study {study} --jobs 1 --out {}", out(name).display());
    let killed = Running::start(&mut command(&words("killed")));
    wait_until("the first cell is done", || killed.stderr().contains("1 of 3 done"));
    killed.signal("KILL");
    assert_eq!(killed.finish().signal(), Some(9));
    let resumed = latlab_succeeds(&words("killed"));
    assert!(
        !resumed.stderr.contains("1 of 3 done"),
        "the first cell is not measured again: {resumed:?}"
    );
    assert!(resumed.stderr.contains("3 of 3 done"), "{resumed:?}");
    let whole = latlab_succeeds(&format!("{} --fresh", words("whole")));
    assert_eq!((whole.stdout, files(&out("whole"))), (resumed.stdout, files(&out("killed"))));
}

/// New processes take page faults at page boundaries, where the microscope must count correctly.
#[test]
fn report_explains_the_worst_sample_on_request() {
    let folder = folder();
    let text = "title = 'Late'\npaper = 'Nobody 2026'\nredoes = 'nothing'\n\
         plan = { on = 'lab:preemptible-hr', probes = ['cyclic'], loads = ['fork'], for = '1s' }\n\
         [[axis]]\nname = 'one'\neach = [{ label = 'one' }]\n\
         [[figure]]\nname = 'worst'\nprobe = 'cyclic'\n";
    let (study, out) = (write_study(folder.path(), text), folder.path().join("out"));
    let words = format!("study {study} --out {}", out.display());
    let page = || fs::read_to_string(out.join("report.html")).expect("the file exists");
    let latencies = |name: &str| {
        let json = fs::read_to_string(out.join(name)).expect("the file exists");
        let record = Record::from_json(&json).expect("the file is a record");
        record.worst.iter().map(|sample| (sample.at, sample.latency)).collect::<Vec<_>>()
    };
    let without = latlab_succeeds(&words);
    assert!(page().contains("latlab explain cyclic --load fork --on lab:preemptible-hr --for 1s"));

    let with = latlab_succeeds(&format!("{words} --explain"));
    assert_eq!(with.stdout, without.stdout);
    let explained = page();
    assert!(explained.contains("The cell was measured once more with tracing"));
    assert!(explained.contains("latlab study tiny.toml --explain --out tiny/"));
    assert!(
        explained.contains("id=\"paths-path-1\"") && !explained.contains("measure without looking")
    );
    assert_eq!(latencies("worst.json"), latencies("records/one.json"));
    latlab_succeeds(&format!("{words} --merge"));
    assert!(page() == explained, "the explanation is cached");

    write_study(folder.path(), &text.replace("probe = 'cyclic'", "probe = 'cyclic'\ntake = 'min'"));
    latlab(&format!("{words} --explain"))
        .assert_refused(2, &["--explain", "longest latency", "max"]);
    write_study(folder.path(), text);
    let long = latlab(&format!("{words} --explain --for 10h"));
    long.assert_refused(2, &["--explain", "cells of more than", "shorter --for"]);
}

#[test]
fn cell_that_cannot_be_measured_is_named_and_others_are_measured() {
    let folder = folder();
    let study = tiny(7).replace("lab:standard", "lab:/nowhere/vmlinuz");
    let study = write_study(folder.path(), &study);
    let output = latlab(&format!("study {study}"));
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("cell 1, standard: "), "{output:?}");
    assert!(output.stderr.contains("1 of 2 cells could not be measured"), "{output:?}");
    assert!(output.stdout.contains("no value for standard.samples"), "{output:?}");
    assert!(output.stdout.contains("no value for rt.cache"), "{output:?}");
}

#[test]
fn error_in_study_is_refused_with_its_position() {
    let folder = folder();
    let cases: [(&str, &str, &[&str]); 13] = [
        ("count = 50", "cuont = 50", &["line 9, column 1: unknown field `cuont`", "`count`"]),
        ("count = 50", "count = \"many\"", &["line 9, column 9: ", "expected"]),
        ("\"cyclic\"]", "\"cylic\"]", &["line 8, column 11: there is no probe 'cylic'", "cyclic"]),
        ("lab:rt\"", "lab:rtt\"", &["line 15, column", "there is no profile 'rtt'", "rt"]),
        ("lab:rt\"", "lap:rt\"", &["there is no target 'lap:rt'", "lab"]),
        ("\"20ms\"", "\"20\"", &["line 10, column 11: '20' has no unit"]),
        ("rt.worst <= 0s", "rt.wurst <= 0s", &["column 10: unknown result 'rt.wurst'", "rt.worst"]),
        ("\"bars\"", "\"bar\"", &["line 64, column 8: unknown kind of picture 'bar'", "bars"]),
        ("along = \"kernel\"", "along = \"load\"", &["column 9: unknown axis 'load'", "kernel"]),
        ("rt.cache >= 0", "rt.cache >= ", &["expected a number, a time, a result"]),
        (
            "\"worst\"\nprobe = \"cyclic\"",
            "\"worst\"\nprobe = \"timer\"",
            &["line 19, column 9: no cell measures the probe 'timer'"],
        ),
        (", on = \"lab:standard\"", "", &["line 15, column 19: the cell standard has no target"]),
        ("count = 50", "for = \"900d\"", &["line 9, column 7: a cell is measured for at most"]),
    ];
    for (from, to, words) in cases {
        let text = tiny(7);
        assert!(text.contains(from), "{from}");
        let study = write_study(folder.path(), &text.replacen(from, to, 1));
        latlab(&format!("study {study} --check"))
            .assert_refused(2, &[&[study.as_str()], words].concat());
    }
    let study = write_study(folder.path(), &tiny(7));
    let output = latlab_succeeds(&format!("study {study} --check"));
    assert!(output.stdout.ends_with("2 cells, 3 figures, 4 claims; no errors\n"), "{output:?}");
    let output = latlab_succeeds(&format!("study {study} --list-cells"));
    assert_eq!(output.stdout.lines().count(), 3, "{output:?}");
    let out = folder.path().display();
    latlab(&format!("study {study} --cell 3 --out {out}/3"))
        .assert_refused(2, &["no cell 3", "1 to 2"]);
    assert!(!folder.path().join("3").exists());
    latlab("study qick").assert_refused(2, &["there is no study 'qick'", "did you mean quick?"]);
    latlab("study /nowhere/x.toml").assert_refused(2, &["/nowhere/x.toml", "No such file"]);
    let output = latlab_succeeds("list studies");
    assert!(
        output.stdout.contains("quick") && output.stdout.contains("rabbits-inversion"),
        "{output:?}"
    );
    let output = latlab_succeeds("list rabbits-inversion");
    assert!(output.stdout.contains("figure 9") && output.stdout.contains("claim"), "{output:?}");
}

#[test]
fn option_without_effect_on_a_study_is_refused() {
    let refused = |words: &str, option: &str| {
        latlab(&format!("study quick {words}")).assert_refused(2, &[option]);
    };
    refused("--accel kvm", "--accel");
    refused("--on native --cold", "--cold");
    refused("--on native --jobs 4", "--jobs");
    refused("--on native --limit 1s", "--limit");
    refused("--on native --fresh", "--fresh");
    refused("--merge --out none --fresh", "--fresh");
    refused("--check --jobs 2", "--jobs");
    refused("--list-cells --limit 1s", "--limit");
}

#[test]
fn repetition_is_not_confused_with_a_cell_of_its_name() {
    let folder = folder();
    let cells = "{ label = \"rt-2\", on = \"lab:rt\", seed = 90 }, { label = \"rt\"";
    let study = write_study(folder.path(), &tiny(7).replacen("{ label = \"rt\"", cells, 1));
    let out = folder.path().join("out");
    latlab_succeeds(&format!("study {study} --out {}", out.display()));
    assert_eq!(entries(&out.join("records")).len(), 4, "a record for each repetition");
    latlab_succeeds(&format!("study {study} --merge --out {}", out.display()));
}

#[test]
fn pictures_of_an_earlier_study_are_removed() {
    let folder = folder();
    let study = write_study(folder.path(), &tiny(7));
    let out = folder.path().join("out");
    let words = |more: &str| format!("study {study} --out {} {more}", out.display());
    latlab_succeeds(&words(""));
    let users_picture = out.join("mine.svg");
    fs::write(&users_picture, "<svg xmlns=\"http://www.w3.org/2000/svg\"/>")
        .expect("the folder can be written");
    let pictures = || {
        let is_picture =
            |path: &std::path::PathBuf| path.extension().is_some_and(|kind| kind == "svg");
        let paths = entries(&out).into_iter().filter(is_picture);
        let names = paths.map(|path| path.file_name().expect("a file has a name").to_owned());
        let names = names.map(|name| name.into_string().expect("the name is UTF-8"));
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    assert_eq!(pictures(), ["how-late.svg", "mine.svg", "worst.svg"]);
    write_study(folder.path(), &tiny(7).replace("name = \"how-late\"", "name = \"late\""));
    let output = latlab_succeeds(&words("--merge"));
    assert_eq!(pictures(), ["late.svg", "mine.svg", "worst.svg"]);
    {
        let removed = "how-late.svg";
        assert!(
            output.stderr.contains(&format!("{removed} was drawn by an earlier study")),
            "{output:?}"
        );
    }
}
