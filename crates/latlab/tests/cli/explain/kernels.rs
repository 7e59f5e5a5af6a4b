//! Explanations on each kernel of the laboratory, from the oldest to the newest: hardly any of the time of late
//! wake-ups has no cause, whichever load delays them, and the plugin has seen the same.

use super::explained;
use crate::program::{Output, latlab};
use latlab_core::record::Record;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The profiles that are named after the versions of their kernels, as `v6.12` and `v6.12-rt`, by version.
fn kernels() -> BTreeMap<(u32, u32), Vec<String>> {
    let profiles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../latlab-lab/src/profile");
    let paths = fs::read_dir(profiles).expect("the profiles exist").flatten();
    let mut kernels = BTreeMap::<_, Vec<_>>::new();
    for path in paths.map(|entry| entry.path()) {
        let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        let version = name.strip_prefix('v').and_then(|rest| rest.split('-').next());
        let numbers = version.and_then(|version| version.split_once('.'));
        if let Some((Ok(major), Ok(minor))) = numbers.map(|(a, b)| (a.parse(), b.parse())) {
            kernels.entry((major, minor)).or_default().push(name);
        }
    }
    kernels
}

/// How wake-ups are explained: `--traced`, or `--verify`, which fails where the plugin has seen something else.
type How = &'static str;

/// Asserts that at most 1 % of the time of late wake-ups under this load is unexplained, and that explaining
/// them cost the probe no page fault.
fn assert_explained(how: How, kernel: &str, load: &str) {
    let words = |seed: u32| {
        format!(
            "explain cyclic {how} --on lab:{kernel} --load {load} --count 150 --seed {seed} --json"
        )
    };
    // A run may differ by some instructions from the one with the plugin, which then explains nothing.
    let is_refused = |output: &Output| output.stderr.contains("nothing is explained");
    let run = |seed: u32| (latlab(&words(seed)), words(seed));
    let (output, words) =
        (0..2).map(run).find(|(output, _)| !is_refused(output)).unwrap_or_else(|| run(2));
    assert_eq!(output.code(), Some(0), "{words}: {output:?}");
    let record: Record = output.record();
    let explained = explained(&record);
    assert!(explained.unexplained.0 * 100 <= explained.total.0, "{words}: {explained:?}");
    assert_eq!(record.series[0].disturbed.minor_faults, 0, "{words}: {:?}", record.warnings);
}

/// The profiles of the newest kernel: with PREEMPT_RT and without.
fn newest(kernels: &BTreeMap<(u32, u32), Vec<String>>) -> &[String] {
    let (_, newest) = kernels.last_key_value().expect("there are profiles of versions");
    assert_eq!(newest.len(), 2, "with PREEMPT_RT and without: {newest:?}");
    newest
}

#[test]
fn wake_ups_on_the_newest_kernel_have_causes() {
    for kernel in newest(&kernels()) {
        assert_explained("--verify", kernel, "page-cache");
    }
}

/// Asserts it on the newest kernel and on an older one; on all of them where `LATLAB_SCENES` is set, as
/// `make truth` does.
fn assert_explained_on_kernels(load: &str, how: How, older: &str) {
    let kernels = kernels();
    assert!(kernels.values().flatten().any(|kernel| kernel == older), "{older} in {kernels:?}");
    if std::env::var("LATLAB_SCENES").is_ok() {
        kernels.values().flatten().for_each(|kernel| assert_explained(how, kernel, load));
    } else {
        for kernel in newest(&kernels).iter().map(String::as_str).chain([older]) {
            assert_explained(how, kernel, load);
        }
    }
}

macro_rules! on_kernels {
    ($($name:ident: $load:literal $how:literal $older:literal,)*) => {
        $(
            #[test]
            fn $name() {
                assert_explained_on_kernels($load, $how, $older);
            }
        )*
    };
}

// Under fork only `--traced`: on 7.2 with PREEMPT_RT the plugin saw interrupts enabled for 1.2 us of what the
// recorder charges to `interrupts-off`; on 6.12 and on 7.3 with PREEMPT_RT its count is off by one.
on_kernels! {
    wake_ups_under_disk_have_causes: "disk" "--verify" "v6.12-rt",
    wake_ups_under_exec_have_causes: "exec" "--traced" "v6.1",
    wake_ups_under_exit_have_causes: "exit" "--traced" "v7.2-rt",
    wake_ups_under_fork_have_causes: "fork" "--traced" "v7.2",
    wake_ups_under_hackbench_have_causes: "hackbench" "--traced" "v6.1-rt",
    wake_ups_under_memory_have_causes: "memory" "--traced" "v6.12",
    wake_ups_under_netbench_have_causes: "netbench" "--traced" "v7.2",
    wake_ups_under_page_cache_have_causes: "page-cache" "--verify" "v6.12",
    wake_ups_under_procfs_have_causes: "procfs" "--traced" "v6.1-rt",
}
