//! Rules of the source tree: pure crates stay pure, tables are complete, and words and names are those of
//! the field.
#![expect(clippy::tests_outside_test_module, reason = "a file in this folder is one test module")]
#![expect(clippy::disallowed_methods, reason = "git is asked, and lives no longer than this")]

use latlab_core::record::WarningCode;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The tree that this crate is part of.
fn tree() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a crate lies in crates/")
}

/// The files in git and those that could be added, relative to the tree; in an unpacked archive,
/// the files in the folders with sources.
fn files() -> Vec<String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(tree())
        .output();
    let mut files: Vec<String> = match listed {
        Ok(listed) if listed.status.success() => {
            String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect()
        }
        _ => ["crates", "docs"].iter().flat_map(|folder| below(&tree().join(folder))).collect(),
    };
    // A file that was deleted is listed until that is committed.
    files.retain(|file| tree().join(file).is_file());
    assert!(files.iter().any(|file| file == "crates/latlab/src/main.rs"), "{files:?}");
    files
}

fn below(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = entries.flat_map(|path| {
        let inside = path.strip_prefix(tree()).expect("it lies below").display().to_string();
        if path.is_dir() { below(&path) } else { vec![inside] }
    });
    files.collect()
}

/// The Rust files below `folder`, with their text.
fn sources(folder: &str) -> Vec<(String, String)> {
    let is_source = |file: &String| file.starts_with(folder) && ends_in("rs", file);
    let files = files().into_iter().filter(is_source);
    files.map(|file| (file.clone(), read(&file))).collect()
}

fn ends_in(extension: &str, file: &str) -> bool {
    Path::new(file).extension().is_some_and(|found| found == extension)
}

/// The text of a file; pictures and other data have none.
fn read(file: &str) -> String {
    let bytes = fs::read(tree().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    String::from_utf8(bytes).unwrap_or_default()
}

/// The text without comments and without strings on one line.
fn code(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.split("//").next().unwrap_or_default();
        line.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether `word` occurs in `code` by itself, not as a part of a longer name.
fn mentions(code: &str, word: &str) -> bool {
    let part_of_a_name = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        let whole = word.ends_with(':') || !after.is_some_and(part_of_a_name);
        whole && !before.is_some_and(part_of_a_name)
    })
}

/// Asserts that no code below `folder` mentions any of `words`.
fn nothing_in(folder: &str, words: &[&str]) {
    let sources = sources(folder);
    assert!(!sources.is_empty(), "{folder} has moved");
    for (file, text) in &sources {
        let code = code(text);
        let word = words.iter().find(|word| mentions(&code, word));
        assert_eq!(word, None, "{file} must not know this");
    }
}

/// Crates without input, output or a clock.
const PURE: [&str; 4] = ["latlab-core", "latlab-check", "latlab-mechanism", "latlab-trace"];

#[test]
fn pure_crates_have_no_input_output_or_clock() {
    let forbidden = [
        "unsafe",
        "std::fs",
        "std::net",
        "std::process",
        "std::env",
        "std::thread",
        "Instant",
        "SystemTime",
        "libc",
        "println",
        "eprintln",
    ];
    for pure in PURE {
        nothing_in(&format!("crates/{pure}/src/"), &forbidden);
        let manifest = read(&format!("crates/{pure}/Cargo.toml"));
        for system in ["libc", "nix", "rustix", "latlab-sys", "clap", "tokio"] {
            assert!(!manifest.lines().any(|line| line.starts_with(system)), "{pure}: {system}");
        }
    }
}

/// The functions that panic where a thread can't be started, and not a Builder.
#[test]
fn threads_are_started_where_failures_are_handled() {
    let inside = sources("crates/").into_iter().filter(|(file, _)| file.contains("/src/"));
    let tested = ["crates/latlab-testing/", "crates/latlab-period/"];
    for (file, text) in inside.filter(|(file, _)| !tested.iter().any(|one| file.starts_with(one))) {
        let text = text.split("mod tests {").next().unwrap_or_default();
        let panics =
            ["thread::spawn(", "scope.spawn("].iter().any(|call| code(text).contains(call));
        assert!(!panics || file.ends_with("/testing.rs") || file.contains("/tests/"), "{file}");
    }
}

#[test]
fn sys_does_not_know_the_program() {
    nothing_in("crates/latlab-sys/src/", &["clap", "println", "eprintln"]);
}

/// The folders of all crates, with a `/` at the end.
fn crates() -> Vec<String> {
    let manifests = files().into_iter().filter(|file| file.starts_with("crates/"));
    let folders: Vec<String> =
        manifests.filter_map(|file| file.strip_suffix("Cargo.toml").map(str::to_owned)).collect();
    assert!(folders.len() > 9, "{folders:?}");
    folders
}

#[test]
fn system_calls_are_made_by_two_crates_only() {
    let exempt = ["crates/latlab-sys/", "crates/latlab-period/"];
    for folder in crates().iter().filter(|folder| !exempt.contains(&folder.as_str())) {
        nothing_in(folder, &["unsafe", "libc"]);
        let forbids = read(&format!("{folder}src/lib.rs")).contains("#![forbid(unsafe_code)]");
        assert!(forbids, "{folder}");
    }
}

#[test]
fn libbpf_is_used_by_one_crate_only() {
    for folder in crates().iter().filter(|folder| *folder != "crates/latlab-bpf/") {
        nothing_in(folder, &["libbpf_rs", "libbpf_sys"]);
    }
    nothing_in("crates/latlab-bpf/src/", &["println", "eprintln", "clap"]);
}

/// A program of a user's links latlab-period, which therefore stands alone: it has the system calls
/// that it needs, and with them the only `unsafe` outside latlab-sys.
#[test]
fn library_for_users_needs_the_c_library_only() {
    let manifest = read("crates/latlab-period/Cargo.toml");
    let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
    let dependencies = dependencies.split('[').next().unwrap_or_default();
    let names: Vec<&str> =
        dependencies.lines().filter_map(|line| Some(line.split_once(" = ")?.0)).collect();
    assert_eq!(names, ["libc"]);
    assert!(read("crates/latlab-period/src/lib.rs").contains("#![no_std]"));
    let unsafe_crates =
        sources("crates/").into_iter().filter(|(_, text)| mentions(&code(text), "unsafe"));
    let exempt = ["crates/latlab-sys/", "crates/latlab-period/"];
    let other: Vec<String> = unsafe_crates
        .map(|(file, _)| file)
        .filter(|file| !exempt.iter().any(|folder| file.starts_with(folder)))
        .collect();
    assert_eq!(other, [""; 0], "unsafe outside latlab-sys and latlab-period");
}

/// The crates of a program, as cargo compiles them: version and features.
fn compiled(program: &str) -> BTreeSet<String> {
    let words =
        ["tree", "--offline", "--locked", "-e", "normal", "--prefix", "none", "--no-dedupe"];
    let listed = Command::new("cargo")
        .args(words)
        .args(["--format", "{p} [{f}]", "--package", program])
        .current_dir(tree())
        .output()
        .expect("cargo runs this test");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect()
}

/// With other features the crates that latlab and the program of guests share would be compiled twice.
#[test]
fn both_programs_use_crates_with_the_same_features() {
    let (guest, latlab) = (compiled("latlab-guest"), compiled("latlab"));
    let other: Vec<&String> = guest.difference(&latlab).collect();
    assert_eq!(
        other, [""; 0],
        "give these in crates/latlab-guest/Cargo.toml the features that latlab has"
    );
}

#[test]
fn page_of_records_has_every_warning() {
    let page = read("docs/record.md");
    let is_missing = |code: &WarningCode| !page.contains(&format!("`{}`", code.name()));
    let missing: Vec<&str> = WarningCode::all().filter(is_missing).map(WarningCode::name).collect();
    assert_eq!(missing, [""; 0], "docs/record.md lacks them");
}

/// Probes, loads, calls and causes.
const MEASURE: &str = "crates/latlab-measure/src/";

#[test]
fn parts_do_not_know_other_parts() {
    let parts = ["probe::", "load::", "call::", "cause::", "mechanism::", "target::", "lab::"];
    for part in ["probe", "load", "call", "cause"] {
        let others: Vec<&str> =
            parts.into_iter().filter(|other| !other.starts_with(part)).collect();
        nothing_in(&format!("{MEASURE}{part}"), &others);
    }
    nothing_in(&format!("{MEASURE}workload"), &parts);
}

#[test]
fn architecture_is_named_in_one_file_only() {
    // A reader of one architecture's boot protocol, and examples in a help text.
    let exempt = ["/arch.rs", "/arch/", "kernel/image.rs", "commands/kernel.rs"];
    let mut wrong = Vec::new();
    let parts = ["crates/latlab/src/", "crates/latlab-lab/src/", MEASURE];
    for (file, text) in parts.into_iter().flat_map(sources) {
        if exempt.iter().any(|exempt| file.contains(exempt)) || file.contains("/tests") {
            continue;
        }
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for word in ["x86_64", "amd64", "EM_X86_64", "ttyS", "arch/x86"] {
            if lines.clone().any(|line| line.contains(word)) {
                wrong.push(format!("{file}: {word}"));
            }
        }
    }
    assert!(wrong.is_empty(), "for lab/arch: {wrong:#?}");
}

/// The files in the folder `room` that its table does not list, without the modules `shared` that
/// several parts use.
fn left_out(room: &str, shared: &[&str]) -> Vec<String> {
    let table = code(&read(&format!("{room}.rs")));
    let folder = format!("{room}/");
    let stem =
        |file: &str| Some(file.strip_prefix(&folder)?.strip_suffix(".rs")?.replace('/', "::"));
    let names = sources(&folder).into_iter().filter_map(|(file, _)| stem(&file));
    let listed = |name: &String| table.contains(&format!("entry::<{name}::"));
    names.filter(|name| !listed(name) && !shared.contains(&name.as_str())).collect()
}

#[test]
fn parts_are_in_the_table_of_their_kind() {
    assert_eq!(
        left_out(
            &format!("{MEASURE}probe"),
            &[
                "context::ring_result",
                "inject::delay",
                "noise::lost_time",
                "noise::steal",
                "player::sound",
                "realfeel::device",
                "rhealstone::objects"
            ]
        ),
        [""; 0]
    );
    assert_eq!(
        left_out(
            &format!("{MEASURE}load"),
            &["console", "network", "space", "context", "exec::program", "place", "workers"]
        ),
        [""; 0]
    );
    assert_eq!(left_out(&format!("{MEASURE}call"), &["anonymous", "store", "window"]), [""; 0]);
    assert_eq!(left_out(&format!("{MEASURE}cause"), &["tests"]), [""; 0]);
    assert_eq!(left_out("crates/latlab-adapt/src/mechanism", &[]), [""; 0]);
    for (file, text) in sources(&format!("{MEASURE}call/")) {
        let code = code(&text);
        let known = ["super::anonymous::", "super::store::", "super::{Call"];
        let lines = code.lines().filter(|line| line.contains("super::"));
        let other = lines
            .filter(|line| !line.contains("pub(super)"))
            .find(|line| !known.iter().any(|known| line.contains(known)));
        assert_eq!(other, None, "{file} must not know this");
    }
}

#[test]
fn files_begin_with_a_description() {
    for (file, text) in sources("") {
        assert!(text.starts_with("//! ") || file.contains("/fixtures/"), "{file}: begin with //!");
    }
}

#[test]
fn files_are_declared_by_their_parent() {
    for (file, _) in sources("crates/") {
        let path = Path::new(&file);
        let (Some(folder), Some(name)) = (path.parent(), path.file_stem()) else { continue };
        let name = name.to_string_lossy();
        let top =
            ["src", "tests", "benches", "examples", "bin"].iter().any(|f| folder.ends_with(f));
        if matches!(name.as_ref(), "main" | "lib" | "mod" | "build")
            || (top && !folder.ends_with("src"))
        {
            continue;
        }
        let parents: [PathBuf; 4] = [
            folder.with_extension("rs"),
            folder.join("mod.rs"),
            folder.join("lib.rs"),
            folder.join("main.rs"),
        ];
        let declared = |parent: &PathBuf| {
            let text = fs::read_to_string(tree().join(parent)).unwrap_or_default();
            code(&text).lines().any(|line| line.trim().ends_with(&format!("mod {name};")))
        };
        assert!(parents.iter().any(declared), "{file} is built by nobody");
    }
}

#[test]
fn files_are_short_and_named_after_their_content() {
    const VAGUE: [&str; 6] = ["utils", "util", "helpers", "helper", "manager", "common"];
    for (file, text) in sources("") {
        let lines = text.lines().count();
        assert!(lines <= 600, "{file} has {lines} lines");
        let stem = Path::new(&file).file_stem().unwrap_or_default().to_string_lossy();
        assert!(!VAGUE.contains(&stem.as_ref()), "{file}: what is in it?");
    }
}

#[test]
fn files_have_no_marks_of_unfinished_work() {
    // In two parts, so that this file is not found itself.
    let words = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["../", "shared"]].map(|w| w.concat());
    for file in files() {
        let text = read(&file);
        let word = words.iter().find(|word| mentions(&text, word));
        assert_eq!(word, None, "in {file}");
    }
}

/// The project's former words for which the field has a term, in two parts so that this file is not
/// found itself.
const OLD_WORDS: [[&str; 2]; 24] = [
    ["non-preempt", "able"],
    ["nonpreempt", "able"],
    ["non_preempt", "able"],
    ["spoils ", "latency"],
    ["holds no ", "more"],
    ["time of the ", "wall"],
    ["how ", "manieth"],
    ["no ", "lesser"],
    ["can", "aries"],
    ["to be ", "had"],
    ["before you ", "believe"],
    ["are no ", "threads"],
    ["what is ", "owed"],
    ["drawn by ", "chance"],
    ["give ", "back"],
    ["gives ", "back"],
    ["given ", "back"],
    ["policies are ", "heard"],
    ["nothing is said ", "beyond"],
    ["held ", "off"],
    ["under ", "test"],
    ["far ", "side"],
    ["who ", "pays"],
    ["err", "and"],
];

#[test]
fn old_words_do_not_return() {
    let mut wrong = Vec::new();
    for file in files() {
        if file == "CHANGELOG.md" || file.starts_with("charts/package") || ends_in("lock", &file) {
            continue;
        }
        let text = read(&file).replace(['\n', '*', '/'], " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        let words = OLD_WORDS.iter().map(|parts| parts.concat());
        wrong.extend(
            words.filter(|word| mentions(&text, word)).map(|word| format!("{file}: {word}")),
        );
    }
    assert!(wrong.is_empty(), "docs/glossary.md has the project's words: {wrong:#?}");
}

#[test]
fn names_of_functions_begin_with_a_noun_or_a_verb() {
    const RIDDLES: [&str; 7] = ["what_", "who_", "whom_", "whose_", "where_", "which_", "that_"];
    let mut wrong = Vec::new();
    for (file, text) in sources("") {
        let names = text.lines().filter_map(|line| line.split_once("fn ")).map(|(_, name)| name);
        let riddles = names.filter(|name| RIDDLES.iter().any(|word| name.starts_with(word)));
        wrong.extend(riddles.map(|name| format!("{file}: {name}")));
    }
    assert!(wrong.is_empty(), "name the subject first: {wrong:#?}");
}

#[test]
fn pages_have_one_title() {
    for file in files().iter().filter(|file| ends_in("md", file)) {
        let text = read(file);
        let mut fenced = false;
        let titles = text.lines().filter(|line| {
            fenced ^= line.starts_with("```");
            !fenced && line.starts_with("# ")
        });
        assert_eq!(titles.count(), 1, "{file}");
    }
}

#[test]
fn mentions_finds_whole_words_in_code() {
    assert_eq!(code("a(); // unsafe\nb(\"libc\") c"), "a(); \nb(\"\") c");
    assert!(mentions("x = unsafe { y }", "unsafe") && mentions("use crate::load::Crew", "load::"));
    assert!(!mentions("#![forbid(unsafe_code)]", "unsafe") && !mentions("reload::x", "load::"));
}
