//! The choice of the accelerator of a virtual machine.

use crate::program::{
    Missing, cache_with_kernels, command, latlab, not_run, path_with_script, run,
};
use std::fs::File;

/// A test that fails because the host is busy, or KVM in use, says nothing about the next one.
#[test]
fn failure_of_the_test_of_kvm_is_told_and_not_kept() {
    if File::options().read(true).write(true).open("/dev/kvm").is_err() {
        not_run(Missing::Optional, "it needs /dev/kvm");
        return;
    }
    assert_eq!(latlab("kernel fetch linux-image-6.12-rt-amd64").code(), Some(0));
    let cache = cache_with_kernels();
    let qemu = "case \"$*\" in *--version) exec /usr/bin/qemu-system-x86_64 --version;;\n\
                *kvm*) echo 'KVM is in use' >&2;; *) echo 'it translates' >&2;; esac; exit 1";
    let path = path_with_script(cache.path(), "qemu-system-x86_64", qemu);
    let in_use =
        |words: &str| run(command(words).env("PATH", &path).env("XDG_CACHE_HOME", cache.path()));
    let words = "run cyclic --on vm:rt --count 10 --json";
    in_use(&format!("{words} --accel kvm")).assert_refused(3, &["vm:rt: KVM", "KVM is in use"]);
    let translated = in_use(words);
    assert_eq!(translated.code(), Some(2), "{translated:?}");
    let words = ["vm:rt: KVM failed its test", "KVM is in use", "QEMU translates", "it translates"];
    for word in words {
        assert!(translated.stderr.contains(word), "no '{word}' in: {translated:?}");
    }
    assert!(!cache.path().join("latlab/kvm").exists());
}
