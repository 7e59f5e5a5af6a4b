//! Commands that write files, while each of their system calls fails.

use super::{Extent, FAULTS, each, each_of, kills, some, stride, tampering};
use crate::kernel::kernel;
use crate::program::{command, entries, folder, run};
use latlab_core::record::Record;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn run_with_record(extent: Extent) {
    let folder = folder();
    let path = folder.path().join("record.json");
    let words = "run --for 20ms --cpus 0 --policy other --out record.json";
    extent("run --out", &|fault, nth| {
        let mut strace = Command::new("strace");
        strace.current_dir(&folder);
        let output = tampering(&mut strace, folder.path(), words, fault, nth)?;
        let record = fs::read_to_string(&path).ok().map(|text| Record::from_json(&text));
        let _ = fs::remove_file(&path);
        Some(match record {
            Some(Ok(_)) => Ok(()),
            None if output.code() != Some(0) => Ok(()),
            record => Err(format!("{record:?}: {output:?}")),
        })
    });
}

#[test]
fn record_is_whole_or_absent_if_a_call_fails() {
    run_with_record(some);
}

#[test]
fn record_is_whole_or_absent_whichever_call_fails() {
    run_with_record(each);
}

fn add_kernel(extent: Extent) {
    let folder = folder();
    fs::write(folder.path().join("vmlinux"), kernel("6.1.9"))
        .expect("the folder is the test's own");
    let in_cache = |command: &mut Command| {
        command.current_dir(&folder).env("XDG_CACHE_HOME", folder.path());
    };
    let added = || {
        let mut command = command("kernel add vmlinux");
        in_cache(&mut command);
        run(&mut command)
    };
    extent("kernel add", &|fault, nth| {
        let mut strace = Command::new("strace");
        in_cache(&mut strace);
        let output = tampering(&mut strace, folder.path(), "kernel add vmlinux", fault, nth)?;
        let image = fs::read(folder.path().join("latlab/kernels/6.1.9/image"));
        let is_whole = image.as_ref().is_ok_and(|image| *image == kernel("6.1.9"));
        let is_right = is_whole || image.is_err() && output.code() != Some(0);
        let again = added();
        let _ = fs::remove_dir_all(folder.path().join("latlab"));
        let is_repeatable = again.code() == Some(0) && again.stdout == "6.1.9\n";
        let is_right = is_right && is_repeatable && !output.stderr.contains("panicked");
        Some(if is_right { Ok(()) } else { Err(format!("{output:?}, then {again:?}")) })
    });
}

#[test]
fn kernel_is_whole_or_absent_if_a_call_fails() {
    add_kernel(some);
}

#[test]
fn kernel_is_whole_or_absent_whichever_call_fails() {
    add_kernel(each);
}

fn write_report(extent: Extent) {
    let folder = folder();
    let path = folder.path().join("report.html");
    let made =
        run(command("run --for 20ms --cpus 0 --policy other --out record.json")
            .current_dir(&folder));
    assert_eq!(made.code(), Some(0), "{made:?}");
    let words = "report record.json -o report.html";
    let made = run(command(words).current_dir(&folder));
    assert_eq!(made.code(), Some(0), "{made:?}");
    extent("report -o", &|fault, nth| {
        let mut strace = Command::new("strace");
        strace.current_dir(&folder);
        let output = tampering(&mut strace, folder.path(), words, fault, nth)?;
        let report = fs::read_to_string(&path).ok();
        let _ = fs::remove_file(&path);
        Some(match report {
            Some(page) if page.trim_end().ends_with("</html>") => Ok(()),
            None if output.code() != Some(0) => Ok(()),
            _ => Err(format!("{output:?}")),
        })
    });
}

#[test]
fn report_is_whole_or_absent_if_a_call_fails() {
    write_report(some);
}

#[test]
fn report_is_whole_or_absent_whichever_call_fails() {
    write_report(each);
}

/// The faults of commands that take seconds: all of them only where each call is to fail. They ask
/// programs, and would panic where std's `Command::output` can't wait for two pipes.
fn few() -> &'static [(&'static str, &'static str)] {
    const FEW: &[(&str, &str)] =
        &[("write", "error=ENOSPC"), ("poll", "error=ENOMEM"), ("memfd_create", "error=EMFILE")];
    if stride().is_some() { FAULTS } else { FEW }
}

#[test]
fn fetched_kernel_is_whole_or_absent_whichever_call_fails() {
    let folder = folder();
    fs::write(folder.path().join("vmlinux"), kernel("6.1.9"))
        .expect("the folder is the test's own");
    let apt = kills::archive(folder.path());
    let words = "kernel fetch linux-image-6.1.9-latlab";
    let cache = folder.path().join("cache-home");
    let in_cache = |command: &mut Command| {
        command.current_dir(&folder).env("XDG_CACHE_HOME", &cache).env("APT_CONFIG", &apt);
    };
    each_of("kernel fetch", few(), &|fault, nth| {
        fs::create_dir(&cache).expect("the folder is the test's own");
        let mut strace = Command::new("strace");
        in_cache(&mut strace);
        let output = tampering(&mut strace, folder.path(), words, fault, nth);
        let kernels = fs::read_dir(cache.join("latlab/kernels")).into_iter().flatten().flatten();
        let images = kernels.filter_map(|kernel| fs::read(kernel.path().join("image")).ok());
        let images: Vec<Vec<u8>> = images.collect();
        let mut again = command(words);
        in_cache(&mut again);
        let again = run(&mut again);
        let _ = fs::remove_dir_all(&cache);
        let output = output?;
        let is_right = images.iter().all(|image| *image == kernel("6.1.9"))
            && (!images.is_empty() || output.code() != Some(0))
            && !output.stderr.contains("panicked")
            && again.code() == Some(0);
        Some(if is_right { Ok(()) } else { Err(format!("{output:?}, then {again:?}")) })
    });
}

/// Whether a table is the right one, in which values may be missing.
fn lacks_at_most(table: &str, right: &str) -> bool {
    let fields = |text: &str| text.split([',', '\n']).map(str::to_owned).collect::<Vec<_>>();
    let (table, right) = (fields(table), fields(right));
    let both = table.iter().zip(&right);
    table.len() == right.len()
        && both.into_iter().all(|(one, other)| one.is_empty() || one == other)
}

/// A file that can't be looked at may be there: without it a guest would measure something else.
#[test]
fn cell_is_refused_where_a_file_of_the_guest_can_not_be_read() {
    let folder = folder();
    let words = "run --on lab:utime --count 20 --fresh --out record.json";
    let made = run(command(words).current_dir(&folder));
    assert_eq!(made.code(), Some(0), "{made:?}");
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let kernels = entries(&cache.expect("there is a home").join("latlab/kernels"));
    let configs: Vec<PathBuf> = kernels.iter().map(|kernel| kernel.join("config")).collect();
    let library = ["/etc/ld.so.conf"].map(PathBuf::from).to_vec();
    let cases = [
        (words, "openat", &configs, "config: "),
        ("exec --on lab:utime -- /bin/true", "openat", &library, "ld.so.conf: "),
    ];
    for (words, call, paths, named) in cases {
        let mut strace = Command::new("strace");
        strace.current_dir(&folder).args(["-f", "-qq", "-o", "trace"]);
        strace.arg("-e").arg(format!("trace={call}"));
        strace.arg("-e").arg(format!("inject={call}:error=EIO"));
        for path in paths {
            strace.arg("-P").arg(path);
        }
        let output = run(strace.arg(super::program()).args(words.split_whitespace()));
        assert_eq!(output.code(), Some(2), "{output:?}");
        assert!(output.stderr.contains(named), "{output:?}");
    }
}

/// A study of two cells in the laboratory. A kept cell or a table that a fault damaged would differ
/// from those of the study without faults.
#[test]
fn study_and_kept_cells_are_right_or_absent_whichever_call_fails() {
    let folder = folder();
    fs::write(folder.path().join("two.toml"), kills::STUDY).expect("the folder is the test's own");
    let made = run(command("study two.toml --out right").current_dir(&folder));
    assert_eq!(made.code(), Some(0), "{made:?}");
    let table = |name: &str| fs::read_to_string(folder.path().join(name).join("table.csv")).ok();
    let right = table("right").expect("the study wrote it");
    each_of("study --out", few(), &|fault, nth| {
        let mut strace = Command::new("strace");
        strace.current_dir(&folder);
        let words = "study two.toml --out tried";
        let output = tampering(&mut strace, folder.path(), words, fault, nth)?;
        let tried = table("tried");
        let again = run(command("study two.toml --out tried").current_dir(&folder));
        // A cell that failed has no value in the table, and the study says so.
        let is_part = tried.as_deref().is_none_or(|tried| lacks_at_most(tried, &right));
        let is_right = (tried.as_ref() == Some(&right) || output.code() != Some(0) && is_part)
            && !output.stderr.contains("panicked")
            && again.code() == Some(0)
            && table("tried").as_ref() == Some(&right);
        let _ = fs::remove_dir_all(folder.path().join("tried"));
        Some(if is_right { Ok(()) } else { Err(format!("{output:?}, then {again:?}")) })
    });
}
