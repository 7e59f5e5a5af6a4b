//! Programs in C++: a breach has the user's line, however much code of libraries lies between.

use super::{breaches, check, folder, line_of, report};
use crate::program::{Missing, lock_machine, not_run};
use latlab_check::{BreachReport, Report, Rule};
use std::path::{Path, PathBuf};
use std::process::Command;

const PRINT: &str = include_str!("print.cpp");
const CONTAINERS: &str = include_str!("containers.cpp");

/// Whether C++ programs can be compiled and watched here.
fn can_run() -> bool {
    if Command::new("c++").arg("--version").output().is_err() {
        not_run(Missing::Required, "it needs c++");
        return false;
    }
    latlab_testing::bpf()
}

/// Compiles a program into the folder.
fn compiled(name: &str, folder: &Path, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/check").join(name);
    let program = folder.join(source.file_stem().expect("it is a file"));
    let mut compile = Command::new("c++");
    compile.args(["-Wall", "-Wextra", "-Werror", "-pthread"]).args(options).arg("-o").arg(&program);
    let output = compile.arg(source).output().expect("c++ starts");
    assert!(output.status.success(), "{output:?}");
    program
}

/// The report of a program that was compiled so.
fn report_of(name: &str, options: &[&str]) -> Report {
    let folder = folder();
    report(&check(&["--json"], &compiled(name, folder.path(), options), ""))
}

/// The breaches of a rule.
fn of_rule(report: &Report, rule: Rule) -> Vec<&BreachReport> {
    let found: Vec<_> = breaches(report).into_iter().filter(|one| one.rule == rule).collect();
    assert!(!found.is_empty(), "{rule}: {report:?}");
    found
}

#[test]
fn print_by_a_stream_has_the_line_of_the_user() {
    if !can_run() {
        return;
    }
    let _lock = lock_machine();
    for level in ["-O0", "-O2"] {
        let report = report_of("print.cpp", &[level, "-g"]);
        let end = format!(" (print.cpp:{})", line_of(PRINT, "print"));
        for breach in of_rule(&report, Rule::FileIo) {
            let place = breach.place.clone().unwrap_or_default();
            assert!(place.starts_with("log_state") && place.ends_with(&end), "{level}: {breach:?}");
        }
    }
    let stripped = report_of("print.cpp", &["-O2", "-s"]);
    let place = of_rule(&stripped, Rule::FileIo)[0].place.clone().unwrap_or_default();
    assert!(place.starts_with("print+0x"), "{place}");
}

#[test]
fn templates_of_libraries_are_not_the_users() {
    if !can_run() {
        return;
    }
    let _lock = lock_machine();
    for level in ["-O0", "-O2"] {
        let report = report_of("containers.cpp", &[level, "-g"]);
        // The vector's memory, a node of the map, and a mutex of the C++ library.
        for (rules, mark) in
            [(&[Rule::Allocation][..], "fill"), (&[Rule::Inversion, Rule::NonPi][..], "lock")]
        {
            let end = format!("(containers.cpp:{})", line_of(CONTAINERS, mark));
            let found = breaches(&report).into_iter().filter(|one| rules.contains(&one.rule));
            let places: Vec<String> = found.filter_map(|one| one.place.clone()).collect();
            assert!(!places.is_empty(), "{level} {mark}: {report:?}");
            assert!(places.iter().all(|place| place.ends_with(&end)), "{level} {mark}: {places:?}");
            assert!(
                places.iter().all(|place| place.contains("Table")),
                "{level} {mark}: {places:?}"
            );
        }
    }
    // Without lines, namespaces tell the templates from the user's functions.
    let unnumbered = report_of("containers.cpp", &["-O0"]);
    for breach in of_rule(&unnumbered, Rule::Allocation) {
        let place = breach.place.clone().unwrap_or_default();
        assert!(place.contains("Table") && !place.starts_with("std::"), "{place}");
    }
}
