//! Tests: real programs run in roots that contain only the files found for them.

use super::*;
use latlab_part::failure::FailureKind;
use latlab_sys::{file, process};
use latlab_testing::root;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Output;

fn variables() -> Variables {
    Variables::from([("PATH".to_owned(), std::env::var("PATH").unwrap())])
}

fn closure(program: &Path) -> Result<Vec<(PathBuf, PathBuf)>> {
    super::closure(program, &variables(), Arch::own())
}

fn put(path: &Path, mode: u32, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    file::write_atomically(path, bytes).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs a program in a root that holds the program, these files, and `/proc`, from which the loader
/// reads `$ORIGIN`.
fn run_alone(program: &Path, files: &[(PathBuf, PathBuf)], arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let real = program.canonicalize().unwrap();
    for (guest, here) in files.iter().chain([&(real.clone(), real.clone())]) {
        let guest = folder.path().join(guest.strip_prefix("/").unwrap());
        put(&guest, 0o755, &fs::read(here).unwrap());
    }
    let script = "set -e; mkdir \"$1/proc\"; mount --rbind /proc \"$1/proc\"; exec chroot \"$@\"";
    let mut alone = process::command("unshare");
    alone.args(["--mount", "sh", "-c", script, "sh"]).arg(folder.path()).arg(real);
    process::output(alone.args(arguments).env_remove("LD_LIBRARY_PATH")).unwrap()
}

/// Asserts that a program runs alone and prints this.
fn says(program: &Path, arguments: &[&str], expected: &str) {
    let files = closure(program).unwrap();
    let said = run_alone(program, &files, arguments);
    assert_eq!(String::from_utf8_lossy(&said.stdout), expected, "{said:?} with {files:?}");
}

/// Compiles C; `words` are options, separated by blanks.
fn compile(folder: &Path, source: &str, output: &str, words: &str) -> PathBuf {
    let output = folder.join(output);
    let text = output.with_extension("c");
    put(&text, 0o644, source.as_bytes());
    let mut compiler = process::command("cc");
    compiler.args(["-x", "c"]).arg(&text).args(["-x", "none", "-o"]).arg(&output);
    let compiler = compiler.args(words.split_whitespace()).current_dir(folder);
    let done = process::output(compiler).unwrap();
    assert!(done.status.success(), "{done:?}");
    output
}

/// A program in `bin/`, which needs `libouter.so`, which needs `libinner.so`, both in `lib/`.
fn tower(folder: &Path, outer: &str, program: &str) -> PathBuf {
    for name in ["bin", "lib"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    compile(folder, "int inner(void) { return 40; }", "lib/libinner.so", "-shared -fPIC");
    let source = "int inner(void); int outer(void) { return inner() + 2; }";
    let words = format!("-shared -fPIC -Llib -linner {outer}");
    compile(folder, source, "lib/libouter.so", &words);
    let source = "#include <stdio.h>\nint outer(void); int main() { printf(\"%d\\n\", outer()); }";
    compile(folder, source, "bin/tower", &format!("-Llib -louter -Wl,-rpath-link,lib {program}"))
}

fn refused(program: &Path) -> Failure {
    closure(program).unwrap_err()
}

#[test]
fn closure_suffices_for_programs_of_this_machine() {
    if !root() {
        return;
    }
    says(Path::new("/bin/sh"), &["-c", "echo $((6 * 7))"], "42\n");
    let files = closure(Path::new("/bin/ls")).unwrap();
    let said = run_alone(Path::new("/bin/ls"), &files, &["/"]);
    let listed = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(listed.lines().any(|line| line == "lib64"), "{said:?} with {files:?}");
}

#[test]
fn closure_suffices_for_scripts() {
    if !root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    for first in ["#!/bin/sh", "#! /bin/sh -e", "#!/usr/bin/env sh", "#!/usr/bin/env -S sh -e"] {
        put(&script, 0o755, format!("{first}\necho \"by a shell\"\n").as_bytes());
        says(&script, &[], "by a shell\n");
    }
    let second = folder.path().join("second");
    put(&second, 0o755, format!("#!{}\n", script.display()).as_bytes());
    says(&second, &[], "by a shell\n");
}

#[test]
fn closure_finds_libraries_by_origin() {
    if !root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run_paths = ("-Wl,-rpath,$ORIGIN", "-Wl,-rpath,${ORIGIN}/../lib");
    let program = tower(folder.path(), run_paths.0, run_paths.1);
    says(&program, &[], "42\n");
    let link = folder.path().join("link");
    symlink("bin/tower", &link).unwrap();
    says(&link, &[], "42\n");
}

#[test]
fn closure_applies_rpath_to_indirect_libraries_but_not_runpath() {
    let old = tempfile::tempdir().unwrap();
    let program = tower(old.path(), "", "-Wl,--disable-new-dtags,-rpath,$ORIGIN/../lib");
    let files = closure(&program).unwrap();
    let inner = old.path().canonicalize().unwrap().join("lib/libinner.so");
    assert!(files.iter().any(|(guest, _)| *guest == inner), "{files:?}");
    if root() {
        says(&program, &[], "42\n");
    }
    let new = tempfile::tempdir().unwrap();
    let program = tower(new.path(), "", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../lib");
    let said = refused(&program);
    assert_eq!(said.kind, FailureKind::Unsupported);
    assert!(said.text.contains("libouter.so needs libinner.so, and no library folder"), "{said}");
    // LD_LIBRARY_PATH finds it; its first folder counts.
    let library_path = vec![new.path().join("nowhere"), new.path().join("lib")];
    let search = Search { library_path, ..Search::of(&variables(), Arch::own()).unwrap() };
    let files = closure_with(&search, &program).unwrap();
    let inner = new.path().join("lib/libinner.so");
    assert!(files.contains(&(inner.clone(), inner)), "{files:?}");
}

#[test]
fn closure_uses_configured_folders_and_adds_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let (conf, more) = (folder.path().join("ld.so.conf"), folder.path().join("more"));
    let library = folder.path().join("lib");
    put(&conf, 0o644, b"# folders\ninclude more/*.conf nowhere\n  /nowhere # none\n");
    put(&more.join("a.conf"), 0o644, format!("{}\n", library.display()).as_bytes());
    put(&more.join("b.conf"), 0o644, b"include *.conf\n/b\n");
    let configured = search::configured(&conf).unwrap();
    assert_eq!(configured, [library.as_path(), Path::new("/b"), Path::new("/nowhere")]);
    let program = tower(folder.path(), "", "");
    let search = Search { configured, ..Search::of(&Variables::new(), Arch::own()).unwrap() };
    let files = closure_with(&search, &program).unwrap();
    let guest: Vec<_> = files.iter().map(|(guest, _)| guest.display().to_string()).collect();
    assert_eq!(guest.iter().filter(|path| *path == search::CACHE).count(), 1, "{guest:?}");
    assert!(
        !closure(Path::new("/bin/sh"))
            .unwrap()
            .iter()
            .any(|(guest, _)| guest == Path::new("/etc/ld.so.cache"))
    );
}

#[test]
fn closure_of_a_static_program_is_empty() {
    let this = std::env::current_exe().unwrap();
    assert_eq!(closure(&this).unwrap(), []);
}

#[test]
fn closure_refuses_files_that_cannot_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    let name = path.display().to_string();
    let failed = |why: &str| Failure::failed(format!("{name}: {why}"));
    assert_eq!(refused(&path), failed("No such file or directory (os error 2)"));
    let said = refused(folder.path());
    assert_eq!(said.kind, FailureKind::Failed);
    assert!(said.text.ends_with("this is a folder: name a program in it"), "{said}");
    put(&path, 0o644, b"#!/bin/sh\n");
    assert_eq!(refused(&path), failed("this is not executable: use chmod +x"));
    put(&path, 0o755, b"#!/no/such/shell -e\n");
    let said = format!("{name} is run by /no/such/shell, which does not exist: install it");
    assert_eq!(refused(&path), Failure::unsupported(said));
    put(&path, 0o755, b"#!/usr/bin/env nosuchshell\n");
    let said = format!(
        "{name} is run by nosuchshell, which is not in the guest's PATH: install it, or pass your \
         PATH with --env PATH"
    );
    assert_eq!(refused(&path), Failure::unsupported(said));
    let neither = "this is neither a program for x86-64 nor a script that begins with #!";
    put(&path, 0o755, b"echo text\n");
    assert_eq!(refused(&path), failed(neither));
    // The class and the machine of an ELF file.
    let program = fs::read("/bin/sh").unwrap();
    let foreign = "this is a program for arm64, and the guest is for x86-64: choose a profile with \
                   @arm64, such as lab:rt@arm64";
    for (at, value, why) in [(4, 1, neither), (18, 183, foreign)] {
        let mut other = program.clone();
        other[at] = value;
        put(&path, 0o755, &other);
        assert_eq!(refused(&path), failed(why));
    }
    put(&path, 0o755, &program[..40]);
    assert_eq!(refused(&path).kind, FailureKind::Failed);
}

#[test]
fn closure_names_a_missing_library_and_what_needs_it() {
    let folder = tempfile::tempdir().unwrap();
    let program = tower(folder.path(), "", "-Wl,-rpath,$ORIGIN/../lib");
    // A library for another machine does not count.
    let outer = folder.path().join("lib/libouter.so");
    let mut bytes = fs::read(&outer).unwrap();
    bytes[18] = 183;
    put(&outer, 0o755, &bytes);
    let program = program.canonicalize().unwrap();
    let said = format!(
        "{} needs libouter.so, and no library folder has it for x86-64: install its \
         package, or name its folder with --env LD_LIBRARY_PATH=DIR",
        program.display()
    );
    assert_eq!(refused(&program), Failure::unsupported(said));
    let program = compile(
        folder.path(),
        "int main() { return 0; }",
        "odd",
        "-Wl,--dynamic-linker=/no/such/loader.so",
    );
    let said = refused(&program);
    assert_eq!(said.kind, FailureKind::Unsupported);
    assert!(
        said.text.contains("odd is loaded by /no/such/loader.so, which can't be read"),
        "{said}"
    );
}

#[test]
fn tree_holds_every_file_with_links_followed() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    put(&top.join("data/b"), 0o644, b"b");
    put(&top.join("data/deep/a"), 0o644, b"a");
    put(&top.join("elsewhere/c"), 0o644, b"c");
    symlink("../elsewhere", top.join("data/link")).unwrap();
    symlink("..", top.join("data/deep/loop")).unwrap();
    symlink("/no/such/file", top.join("data/nowhere")).unwrap();
    let guest = |path: &str| -> Vec<PathBuf> {
        let files = tree(&top.join(path)).unwrap();
        files.into_iter().map(|(guest, _)| guest).collect()
    };
    let expected = ["data/b", "data/deep/a", "data/link/c"].map(|path| top.join(path));
    assert_eq!(guest("data"), expected);
    assert_eq!(guest("data/deep/../b"), [top.join("data/b")]);
    let here = tree(&top.join("data/link/c")).unwrap();
    assert_eq!(fs::read(&here[0].1).unwrap(), b"c");
    let refused = |path: &Path| tree(path).unwrap_err().to_string();
    let large = top.join("large");
    fs::File::create(&large).unwrap().set_len(1 << 32).unwrap();
    let name = large.display();
    let said = format!("{name}: this file is too large: 4 GiB is the limit");
    assert_eq!(refused(&top), said);
    let none = top.join("none");
    assert_eq!(
        refused(&none),
        format!("{}: No such file or directory (os error 2)", none.display())
    );
    let said = "/dev/null: this is neither a file nor a folder, and can't be copied into the guest";
    assert_eq!(refused(Path::new("/dev/null")), said);
}
