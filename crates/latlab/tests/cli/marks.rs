//! `latlab check` of programs with marks: the parts of their cycles, in C, Rust and Python, here and in
//! a guest.

use crate::period::library::{library, tree};
use crate::program::{LATLAB, Output, Running, folder, latlab, lock_machine, run, wait_until};
use latlab_check::{BreachReport, PartsReport, Report, Rule};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles `marks.c`, which needs the header only.
fn compiled(folder: &Path, options: &[&str]) -> PathBuf {
    let program = folder.join("marks");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-Wl,-z,now", "-I"]);
    cc.arg(tree().join("crates/latlab-period/include")).args(options).arg("-o").arg(&program);
    let output = run(cc.arg(tree().join("crates/latlab/tests/cli/check/marks.c")));
    assert_eq!(output.code(), Some(0), "{output:?}");
    program
}

fn check(options: &[&str], command: &[&Path]) -> Output {
    run(Command::new(LATLAB).arg("check").args(options).arg("--").args(command))
}

fn report(output: &Output) -> Report {
    serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

/// The report of `marks.c` with that argument.
fn checked(program: &Path, kind: &str) -> Report {
    report(&check(&["--json"], &[program, Path::new(kind)]))
}

/// The parts of the only thread.
fn parts(report: &Report) -> &PartsReport {
    report.threads[0].cycle.parts.as_ref().unwrap_or_else(|| panic!("no parts: {report:?}"))
}

/// Name and count of each part.
fn counts(parts: &PartsReport) -> Vec<(&str, u64)> {
    parts.parts.iter().map(|part| (part.name.as_str(), part.count)).collect()
}

/// Whether the rule is broken in that part. A busy machine can make other cycles overrun, in any part
/// or in none.
fn is_broken(report: &Report, rule: Rule, part: &str) -> bool {
    let broken =
        |breach: &BreachReport| breach.rule == rule && breach.part.as_deref() == Some(part);
    report.threads[0].breaches.iter().any(broken)
}

/// The report of a loop whose 100th cycle computes for 20 ms in `control`. A busy machine can wake that
/// cycle only after it had to end, when no part ran, or delay another cycle more: then it is checked
/// again.
fn overrun_by_its_part(program: &Path) -> Report {
    let undisturbed = |report: &Report| {
        let longest = parts(report).parts.iter().find(|part| part.name == "control");
        let worst = report.threads[0].cycle.worst.as_ref();
        is_broken(report, Rule::Overrun, "control")
            && longest.is_some_and(|part| part.id == 100)
            && worst.is_some_and(|worst| worst.marked.len() == 3 && worst.marked[0].id == 100)
    };
    let mut found = None;
    wait_until("cycle 100 overruns, and no other more", || {
        found = Some(checked(program, "overrun")).filter(undisturbed);
        found.is_some()
    });
    found.expect("it overran")
}

#[test]
fn parts_are_listed_and_breaches_placed_in_them() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    for options in [["-g", "-O1"], ["-s", "-O1"], ["-static", "-O0"]] {
        let program = compiled(folder.path(), &options);
        let found = checked(&program, "allocation");
        let cycles = found.threads[0].cycle.count;
        let each = [("read", cycles), ("control", cycles), ("filter", cycles)];
        assert_eq!(counts(parts(&found)), each, "{options:?}");
        let [read, control, filter] = &parts(&found).parts[..] else { panic!("{found:?}") };
        // Medians: a host that stalls adds to the sums, and so to the shares.
        assert!(read.running.median < filter.running.median, "{found:?}");
        assert!(filter.running.median < control.running.median, "{found:?}");
        assert!(filter.share <= control.share && control.share <= 1000, "{found:?}");
        assert_eq!((filter.id <= 0, read.id >= 0), (true, true));
        assert!(is_broken(&found, Rule::Allocation, "control"), "{found:?}");
        let late = overrun_by_its_part(&program);
        let worst = late.threads[0].cycle.worst.as_ref().expect("there are cycles");
        let marked: Vec<_> =
            worst.marked.iter().map(|part| (part.name.as_str(), part.id)).collect();
        for part in [("read", 100), ("control", 100), ("filter", -100)] {
            assert!(marked.contains(&part), "no {part:?}: {late:?}");
        }
    }
}

#[test]
fn parts_are_shown_in_text_and_on_the_page() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = compiled(folder.path(), &["-g"]);
    let output = check(&[], &[&program, Path::new("allocation")]);
    let row = |name: &str| output.stdout.lines().find(|line| line.trim_start().starts_with(name));
    for name in ["part, running", "read ", "control ", "filter "] {
        assert!(row(name).is_some(), "{name}: {output:?}");
    }
    assert!(output.stdout.contains(", in part control"), "{output:?}");
    let json = folder.path().join("check.json");
    let output = check(&["--json"], &[&program, Path::new("none")]);
    std::fs::write(&json, &output.stdout).expect("the folder can be written");
    let page = folder.path().join("check.html");
    let made = latlab(&format!("report {} -o {}", json.display(), page.display()));
    assert_eq!(made.code(), Some(0), "{made:?}");
    let page = std::fs::read_to_string(page).expect("the page was written");
    // The longest cycle may be the first one, whose parts have the id 0.
    for words in ["Parts of the cycle", "part control", "filter (id "] {
        assert!(page.contains(words), "the page does not say {words}");
    }
}

#[test]
fn wrong_marks_are_counted() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = compiled(folder.path(), &["-g"]);
    let unpaired = |kind| {
        let found = checked(&program, kind);
        let &PartsReport { without_end, without_begin, left_out, .. } = parts(&found);
        (without_end, without_begin, left_out, found.threads[0].cycle.count)
    };
    let (without_end, without_begin, left_out, cycles) = unpaired("without-end");
    assert_eq!((without_end, without_begin, left_out), (cycles, 0, 0));
    let (without_end, without_begin, left_out, cycles) = unpaired("without-begin");
    assert_eq!((without_end, without_begin, left_out), (0, cycles, 0));
    let (without_end, without_begin, left_out, _) = unpaired("many");
    // Of 1103 parts of the first cycles, 1000 are kept.
    assert_eq!((without_end, without_begin, left_out % 103), (0, 0, 0));
    assert!((103..=20 * 103).contains(&left_out), "{left_out}");
    assert_eq!(unpaired("other-thread").1, 0);
    let text = check(&[], &[&program, Path::new("without-end")]);
    assert!(text.stdout.contains("parts did not end in their cycle"), "{text:?}");
}

#[test]
fn marks_in_other_registers_are_refused_with_a_note() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    // The same note, whose arguments sys/sdt.h would put anywhere.
    let include = folder.path().join("latlab-mark.h");
    let header = tree().join("crates/latlab-period/include/latlab-mark.h");
    let header = std::fs::read_to_string(header).expect("the header can be read");
    let other = header.replace("8@%%rdi", "8@%%rbx").replace("8@x0", "8@x9");
    assert_ne!(other, header);
    std::fs::write(include, other).expect("the folder can be written");
    let own = format!("-I{}", folder.path().display());
    let program = folder.path().join("marks");
    let source = tree().join("crates/latlab/tests/cli/check/marks.c");
    let output =
        run(Command::new("cc").args(["-pthread", "-o"]).arg(&program).arg(own).arg(source));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let found = checked(&program, "none");
    assert_eq!(found.threads[0].cycle.parts, None);
    let note = "marks: marks whose arguments are in other registers";
    assert!(found.notes.iter().any(|one| one.starts_with(note)), "{found:?}");
}

#[test]
fn marks_of_a_running_process_and_of_a_program_of_a_shell_are_found() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let program = library().compile("control", folder.path());
    let script = format!("exec {} 500", program.display());
    let found =
        report(&check(&["--json"], &[Path::new("sh"), Path::new("-c"), Path::new(&script)]));
    let names = |found: &Report| {
        counts(parts(found)).into_iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&found), ["sensor", "actuator"]);
    let running = Running::start(Command::new(&program).arg("1000000000"));
    let pid = running.pid();
    wait_until("the loop runs", || latlab(&format!("watch {pid} --once")).code() == Some(0));
    // On a busy machine a short check may end before it has seen a cycle: then a longer one follows.
    let has_parts = |time: &str| {
        let output = latlab(&format!("check --pid {pid} --for {time} --json"));
        let report: Option<Report> = serde_json::from_str(&output.stdout).ok();
        let is_marked = |report: &Report| report.threads[0].cycle.parts.is_some();
        let mut found = report.filter(is_marked).as_ref().map(names).unwrap_or_default();
        // It may have been between both.
        found.sort();
        found == ["actuator", "sensor"]
    };
    assert!(["500ms", "5s", "1min"].into_iter().any(has_parts), "the parts are found");
}

/// Asserts that the report of a program in a guest has the parts, and is the same twice.
fn assert_same_in_guest(program: &Path) {
    let check = || check(&["--on=lab:rt", "--json"], &[program, Path::new("100")]);
    let (first, second) = (check(), check());
    let found = report(&first);
    let cycles = found.threads[0].cycle.count;
    assert_eq!(counts(parts(&found)), [("sensor", cycles), ("actuator", cycles)], "{first:?}");
    assert_eq!(first.stdout, second.stdout);
}

#[test]
fn parts_of_a_program_in_c_are_the_same_in_each_guest() {
    if !latlab_testing::bpf() {
        return;
    }
    let folder = folder();
    assert_same_in_guest(&library().compile("control", folder.path()));
}

#[test]
fn parts_of_a_program_in_rust_are_found_here_and_in_a_guest() {
    if !latlab_testing::bpf() {
        return;
    }
    let program = library().rust_example();
    let found = report(&check(&["--json"], &[&program, Path::new("200")]));
    let cycles = found.threads[0].cycle.count;
    assert_eq!(counts(parts(&found)), [("sensor", cycles), ("actuator", cycles)]);
    assert_same_in_guest(&program);
}

/// Number of cycles of the example in Python, and of those in which a part of it was not seen.
fn cycles_in_python(output: &Output) -> (u64, u64) {
    let found = report(output);
    let cycles = found.threads[0].cycle.count;
    let seen = found.threads[0].cycle.parts.as_ref().map(counts).unwrap_or_default();
    assert!(seen.len() <= 2, "{found:?}");
    let of = |name: &str| seen.iter().find(|part| part.0 == name).map_or(0, |part| part.1);
    (cycles, cycles.saturating_sub(of("sensor").min(of("actuator"))))
}

/// Copies the example in Python to the folder, with the package that it imports.
fn python_example(folder: &Path) -> PathBuf {
    library().python_package(folder);
    let script = folder.join("control.py");
    std::fs::copy(tree().join("examples/control.py"), &script).expect("the folder is the test's");
    script
}

/// Checks the example in Python for so many cycles.
fn check_python(script: &Path, options: &[&str], cycles: &str) -> Output {
    let mut command = Command::new(LATLAB);
    command.args(["check", "--json"]).args(options);
    command.args(["--", "/usr/bin/python3", "-B", "-S"]).arg(script).arg(cycles);
    run(command.env("PYTHONPATH", script.parent().expect("it lies in a folder")))
}

#[test]
fn parts_of_a_program_in_python_are_found() {
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let folder = folder();
    let script = python_example(folder.path());
    // latlab sees the library after some cycles: after more on a busy machine, of which a program that
    // goes on for longer has enough.
    let sees_most = |cycles| {
        let (cycles, before) = cycles_in_python(&check_python(&script, &[], cycles));
        before <= cycles / 2
    };
    assert!(["100", "1000", "10000"].into_iter().any(sees_most), "the parts are found");
}

#[test]
fn parts_of_a_program_in_python_are_the_same_in_each_guest() {
    if !latlab_testing::bpf() {
        return;
    }
    let folder = folder();
    let script = python_example(folder.path());
    let mut python = Command::new("/usr/bin/python3");
    let words = "import sysconfig; print(sysconfig.get_path('stdlib'))";
    let standard = run(python.args(["-c", words]));
    let with = format!("--with={}", standard.stdout.trim());
    let own = format!("--with={}", folder.path().display());
    let guest = ["--on=lab:rt", "--env=PYTHONPATH", &with, &own];
    let (first, second) =
        (check_python(&script, &guest, "30"), check_python(&script, &guest, "30"));
    assert!(cycles_in_python(&first).1 <= 5, "{first:?}");
    assert_eq!(first.stdout, second.stdout);
}
