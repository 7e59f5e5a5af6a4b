//! `make install`: the program, the library for loops, manual pages, completions and the unit, below a
//! folder.

use crate::period::library;
use crate::program::{LATLAB, Missing, entries, folder, not_run, run};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Installs the program of the tests below `folder`.
fn install(folder: &Path) {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("it is in crates/");
    let mut make = Command::new("make");
    // The program is taken as it is.
    make.args(["--silent", "--old-file", LATLAB, "install", &format!("LATLAB={LATLAB}")]);
    make.args([&format!("DESTDIR={}", folder.display()), "PREFIX=/opt/latlab"]);
    // Built in a folder of its own: cargo is building the tests'.
    let library = tree.join("target/period");
    make.arg(format!("PERIOD={}/liblatlab-period", library.display()));
    make.arg(format!("CARGO_TARGET_DIR={}", library.display()));
    let _lock = library::lock(&library);
    let output = run(make.current_dir(tree).env_remove("MAKEFLAGS"));
    assert_eq!(output.code(), Some(0), "{output:?}");
}

#[test]
fn install_puts_program_pages_completions_and_unit_below_prefix() {
    let folder = folder();
    install(folder.path());
    let prefix = folder.path().join("opt/latlab");
    let text = |path: &str| {
        fs::read_to_string(prefix.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    };
    let version = run(Command::new(prefix.join("bin/latlab")).arg("--version"));
    assert_eq!(version.code(), Some(0), "{version:?}");
    assert!(text("share/bash-completion/completions/latlab").contains("complete -F"));
    assert!(text("share/zsh/site-functions/_latlab").starts_with("#compdef latlab"));
    assert!(text("share/fish/vendor_completions.d/latlab.fish").contains("--command latlab"));
    for command in ["adapt", "explain"] {
        let unit = text(&format!("lib/systemd/system/latlab-{command}.service"));
        assert!(unit.contains(&format!("ExecStart=/opt/latlab/bin/latlab {command}")), "{unit}");
        assert!(!unit.contains("/usr/local/"), "{unit}");
    }
    assert_eq!(entries(folder.path()), [folder.path().join("opt")]);
    assert_links(folder.path());
    assert_shown(&prefix.join("share/man/man1"));
}

/// Asserts that man shows each page, which has its examples.
fn assert_shown(pages: &Path) {
    let pages = entries(pages);
    let names: Vec<_> = pages.iter().filter_map(|page| page.file_stem()?.to_str()).collect();
    for name in ["latlab", "latlab-run", "latlab-adapt-status", "latlab-kernel-build"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("worker")), "{names:?}");
    for (page, name) in pages.iter().zip(&names) {
        let mut man = Command::new("man");
        man.arg("-l")
            .arg(page)
            .env("MANPAGER", "cat")
            .env("MANWIDTH", "80")
            .env("LC_ALL", "C.UTF-8");
        if man.output().is_err() {
            not_run(Missing::Required, "a part of it needs man");
            return;
        }
        let output = run(&mut man);
        assert_eq!((output.code(), output.stderr.as_str()), (Some(0), ""), "{name}: {output:?}");
        let title = name.to_uppercase();
        assert!(output.stdout.to_uppercase().contains(&title), "{name}: {output:?}");
    }
}

/// Asserts that pkg-config finds the installed library, with which a program links and runs.
fn assert_links(folder: &Path) {
    let prefix = folder.join("opt/latlab");
    let mut config = Command::new("pkg-config");
    config.args(["--cflags", "--libs", "latlab-period"]).env("PKG_CONFIG_SYSROOT_DIR", folder);
    let config = run(config.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")));
    assert_eq!(config.code(), Some(0), "{config:?}");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/control.c");
    let program = folder.join("control");
    let mut cc = Command::new("cc");
    cc.args(["-o"]).arg(&program).arg(source).args(config.stdout.split_whitespace());
    let compiled = run(&mut cc);
    assert_eq!(compiled.code(), Some(0), "{compiled:?}");
    let mut loads = Command::new("ldd");
    let loads = run(loads.arg(&program).env("LD_LIBRARY_PATH", prefix.join("lib")));
    assert!(loads.stdout.contains("liblatlab-period.so.0 => "), "{loads:?}");
    fs::remove_file(program).expect("it was just made");
}
