//! Features that a kernel of the laboratory lacks: refused with the reason, or skipped with a
//! warning.

use crate::program::{Output, command, folder, in_mount_namespace, latlab, root, run};
use std::path::{Path, PathBuf};

/// Returns the image of Debian's kernel in the user's cache.
fn image() -> PathBuf {
    let output = latlab("kernel fetch linux-image-6.12-amd64");
    assert_eq!(output.code(), Some(0), "{output:?}");
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let home = || variable("HOME").map(|home| home.join(".cache"));
    let cache = variable("XDG_CACHE_HOME").or_else(home).expect("HOME is set");
    cache.join("latlab/kernels").join(output.stdout.trim()).join("vmlinux")
}

/// Creates a cache in `folder` with the kernel `bare`: Debian's without its modules.
fn with_bare_kernel(folder: &Path) {
    let mut add = command("kernel add --name bare");
    let output = run(add.arg(image()).env("XDG_CACHE_HOME", folder));
    assert_eq!((output.code(), output.stdout.as_str()), (Some(0), "bare\n"), "{output:?}");
}

fn in_cache(folder: &Path, words: &str) -> Output {
    run(command(words).env("XDG_CACHE_HOME", folder))
}

/// Returns the texts of the warnings about skipped parts.
fn skipped(output: &Output) -> Vec<String> {
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    assert!(record.series[0].counts.recorded > 0, "the probe must still measure: {record:?}");
    let skipped = record.warnings.into_iter().filter(|warning| warning.code == "skipped");
    skipped.map(|warning| warning.text).collect()
}

/// Modules cannot be built for a kernel from a file without installed headers.
#[test]
fn driver_that_cannot_be_built_is_skipped_with_the_reason() {
    if !root() {
        return;
    }
    let folder = folder();
    with_bare_kernel(folder.path());
    // Hides headers of the same kernel that may be installed on this machine.
    let hidden = "if test -d /lib/modules; then mount -t tmpfs none /lib/modules; fi";
    let measured = |command: &str, words: &str| {
        let words = format!("{command} cyclic --count 20 --json --on lab:bare {words}");
        run(in_mount_namespace(hidden, folder.path(), &words).env("XDG_CACHE_HOME", folder.path()))
    };
    let in_guest = |words: &str| measured("run", words);
    let loads = "--load interrupts:device --load fork";
    let why = "modules for 6.12";
    in_guest(loads).assert_refused(3, &[why, "headers", "/lib/modules/6.12"]);
    let output = in_guest(&format!("{loads} --skip-missing"));
    let texts = skipped(&output);
    let [load, driver] = texts.as_slice() else { panic!("{texts:?}") };
    assert!(load.starts_with("interrupts was left out: interrupts: "), "{load}");
    assert!(load.contains("/dev/latlab"), "{load}");
    assert!(driver.starts_with("the test driver was left out: "), "{driver}");
    assert!(driver.contains(why), "{driver}");
    let record = output.record();
    let worked: Vec<&str> = record.work.iter().map(|work| work.load.as_str()).collect();
    assert_eq!(worked, ["fork"]);
    // The microscope compares the records of two runs.
    assert_eq!(skipped(&measured("explain", &format!("{loads} --skip-missing"))), texts);
}

/// The guest has a graphics card, but this kernel has no driver for it.
#[test]
fn console_without_display_driver_is_not_switched() {
    let folder = folder();
    with_bare_kernel(folder.path());
    let words = "run cyclic --count 20 --json --on lab:bare --load console-switch";
    let why = "no driver draws this machine's console";
    in_cache(folder.path(), words).assert_refused(3, &["lab:bare: ", "console-switch: ", why]);
    let texts = skipped(&in_cache(folder.path(), &format!("{words} --skip-missing")));
    let [load] = texts.as_slice() else { panic!("{texts:?}") };
    assert!(load.starts_with("console-switch was left out: ") && load.contains(why), "{load}");
}
